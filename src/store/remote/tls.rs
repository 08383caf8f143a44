//! TLS: the trusted certificates. Those of `ca-file` if it is set, else those of the system.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where systems keep the certificates that they believe; `SSL_CERT_FILE` names another file.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates that are believed.
pub fn certificates(ca_file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let given = ca_file
        .map(Path::to_owned)
        .or_else(|| std::env::var_os("SSL_CERT_FILE").map(PathBuf::from));
    let system = || BUNDLES.iter().map(PathBuf::from).find(|path| path.exists());
    let path = given
        .or_else(system)
        .ok_or("this system has no certificates to check TLS with: name some with ca-file")?;
    let wrong = |error: &dyn std::fmt::Display| {
        format!("the certificates in {} cannot be read: {error}", path.display())
    };
    let all = CertificateDer::pem_file_iter(&path).map_err(|error| wrong(&error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if all.is_empty() { Err(wrong(&"there are none")) } else { Ok(all) }
}

/// The cryptography.
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A connection to `host`, over an open one.
pub fn wrap(
    stream: TcpStream,
    host: &str,
    ca_file: Option<&Path>,
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    // Systems have certificates among theirs that are not well-formed; one of our own would be
    // missed at once.
    roots.add_parsable_certificates(certificates(ca_file)?);
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| "the host's name is none that TLS knows".to_owned())?;
    let connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    Ok(StreamOwned::new(connection, stream))
}
