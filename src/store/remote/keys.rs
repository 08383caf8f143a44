//! Ed25519 keys in text form: a private key in a PEM file, public keys in base64.

use ring::signature::Ed25519KeyPair;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;

/// What stands before a public key in DER (RFC 8410).
const PUBLIC_KEY_START: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key, as `openssl genpkey -algorithm ed25519` writes it.
pub fn key_pair(path: &Path) -> Result<Ed25519KeyPair, String> {
    let wrong = |reason: String| format!("the key {} cannot be used: {reason}", path.display());
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| wrong(error.to_string()))?;
    let PrivateKeyDer::Pkcs8(key) = key else {
        return Err(wrong("it is not in PKCS#8".to_owned()));
    };
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der())
        .map_err(|_| wrong("it is no Ed25519 key".to_owned()))
}

/// A public key in base64: bare, or as `openssl pkey -pubout` writes it between the lines of
/// dashes.
pub fn public_key(text: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("{text:?} is no public Ed25519 key in base64");
    let bytes = base64(text.trim()).ok_or_else(wrong)?;
    let bare = bytes.strip_prefix(&PUBLIC_KEY_START).unwrap_or(&bytes);
    bare.try_into().map_err(|_| wrong())
}

/// The bytes that base64 stands for.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = (bits << 6 | value as u32) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_with_and_without_padding() {
        assert_eq!(base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(base64("aGVsbG8"), Some(b"hello".to_vec()));
        assert_eq!(base64("a-b"), None);
    }
}
