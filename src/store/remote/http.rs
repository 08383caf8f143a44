//! A remote store behind HTTP: any server with GET, PUT and HEAD. The paths are those of ccache's
//! layouts. Each value takes a request, so a lookup of several keys ends with the first that is
//! found.

use super::location::{Attributes, Layout};
use super::url::{self, Url};
use super::{Backend, Fetched, Listed, Name, Timeouts, tls};
use crate::model::Hasher;
use std::io::Read;
use std::sync::Arc;
use ureq::Agent;
use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How much of an answer is read that is no value.
const LONGEST_MESSAGE: u64 = 300;

pub struct Http {
    agent: Agent,
    base: String,
    layout: Layout,
    namespace: String,
    largest: usize,
    headers: Vec<(String, String)>,
}

/// A client with these limits.
pub fn agent(
    timeouts: Timeouts,
    ca_file: Option<&std::path::Path>,
    is_secure: bool,
) -> Result<Agent, String> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(timeouts.connect))
        .timeout_global(Some(timeouts.operation))
        .user_agent(concat!("tasting/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity");
    if is_secure {
        let all = tls::certificates(ca_file)?;
        let all: Vec<Certificate<'static>> =
            all.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
        let secure = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(all)));
        config =
            config.tls_config(secure.unversioned_rustls_crypto_provider(tls::provider()).build());
    }
    Ok(config.build().new_agent())
}

/// An answer: its status, and its body unless that is too long.
pub struct Answer {
    pub status: u16,
    pub body: Option<Vec<u8>>,
}

impl Answer {
    /// Whether the server has done what it was told.
    pub fn done(&self, what: &str) -> Result<(), String> {
        if (200..300).contains(&self.status) { Ok(()) } else { Err(self.refusal(what)) }
    }

    /// Whether something is not there any more.
    pub fn removed(&self) -> Result<(), String> {
        if self.status == 404 { Ok(()) } else { self.done("DELETE") }
    }

    /// Why the server has refused; its own words, as far as they are fit to be seen.
    pub fn refusal(&self, what: &str) -> String {
        let body = self.body.as_deref().unwrap_or_default();
        let text: String =
            String::from_utf8_lossy(body).chars().filter(|letter| !letter.is_control()).collect();
        let hint = match self.status {
            401 | 403 => "; is the password or token right?",
            405 => "; does the server allow it here?",
            507 => "; the server is full",
            _ => "",
        };
        format!("{what} was answered with status {}{hint} {text}", self.status)
            .trim_end()
            .to_owned()
    }
}

/// Sends a request and reads the answer, of a value at most `largest` bytes.
pub fn send(agent: &Agent, request: Request<Vec<u8>>, largest: usize) -> Result<Answer, String> {
    let is_head = request.method() == Method::HEAD;
    let (parts, body) = request.into_parts();
    let sent = match parts.method {
        Method::PUT | Method::POST => agent.run(Request::from_parts(parts, &body[..])),
        _ => agent.run(Request::from_parts(parts, ())),
    };
    let mut response: Response<ureq::Body> = sent.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body = match (is_head, status) {
        (true, _) => Ok(Vec::new()),
        (_, 200) => response.body_mut().with_config().limit(largest as u64).read_to_vec(),
        _ => {
            let mut message = Vec::new();
            // Half a message is better than none.
            let _ = response.body_mut().as_reader().take(LONGEST_MESSAGE).read_to_end(&mut message);
            Ok(message)
        }
    };
    match body {
        Ok(body) => Ok(Answer { status, body: Some(body) }),
        Err(ureq::Error::BodyExceedsLimit(_)) => Ok(Answer { status, body: None }),
        Err(error) => Err(error.to_string()),
    }
}

/// What an answer to GET means.
pub fn fetched(answer: Answer, what: &str) -> Result<Fetched, String> {
    match answer {
        Answer { status: 404 | 410, .. } => Ok(Fetched::Missing),
        Answer { status: 200, body: None } => {
            Ok(Fetched::Bad("it is larger than max-value allows".to_owned()))
        }
        Answer { status: 200, body: Some(body) } if body.is_empty() => Err(format!(
            "{what} was answered with status 200 and nothing: that is no store for values"
        )),
        Answer { status: 200, body: Some(body) } => Ok(Fetched::Value(body)),
        answer => Err(answer.refusal(what)),
    }
}

impl Http {
    pub fn new(url: &Url, attributes: &Attributes, timeouts: Timeouts) -> Result<Http, String> {
        let mut headers = attributes.headers.clone();
        let password = attributes
            .password
            .as_ref()
            .map_or(Ok(url.password.clone()), |secret| secret.text())?;
        let user = attributes.user.clone().unwrap_or_else(|| url.user.clone());
        if let Some(token) = &attributes.bearer_token {
            headers.push(("Authorization".to_owned(), format!("Bearer {}", token.text()?)));
        } else if !user.is_empty() || !password.is_empty() {
            headers.push((
                "Authorization".to_owned(),
                format!("Basic {}", base64(format!("{user}:{password}").as_bytes())),
            ));
        }
        let path = url::encoded(url.path.trim_end_matches('/'), "/");
        Ok(Http {
            agent: agent(timeouts, attributes.ca_file.as_deref(), url.is_secure())?,
            base: format!("{}://{}{path}", url.scheme, url.authority()),
            layout: attributes.layout,
            namespace: attributes.namespace.clone(),
            largest: attributes.largest,
            headers,
        })
    }

    fn address(&self, name: Name) -> String {
        let Http { base, namespace, .. } = self;
        let file = name.file();
        let space = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
        match self.layout {
            Layout::Subdirs => format!("{base}{space}/{}/{}", &file[..2], &file[2..]),
            Layout::Flat => format!("{base}{space}/{file}"),
            Layout::Bazel => {
                let half = |domain| {
                    Hasher::new(domain).bytes(namespace.as_bytes()).bytes(file.as_bytes()).finish()
                };
                format!("{base}/ac/{}{}", half("first half"), half("second half"))
            }
        }
    }

    fn request(&self, method: Method, name: Name, body: Vec<u8>) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(self.address(name));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.header("Content-Type", "application/octet-stream").body(body);
        send(&self.agent, request.map_err(|error| error.to_string())?, self.largest)
    }
}

impl Backend for Http {
    fn get(&mut self, names: &[Name], first_hit_only: bool) -> Result<Vec<Fetched>, String> {
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            all.push(fetched(self.request(Method::GET, *name, Vec::new())?, "GET")?);
            if first_hit_only && matches!(all.last(), Some(Fetched::Value(_))) {
                break;
            }
        }
        all.resize(names.len(), Fetched::Missing);
        Ok(all)
    }

    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String> {
        for (name, value) in values {
            if !replace && self.request(Method::HEAD, *name, Vec::new())?.status == 200 {
                continue;
            }
            self.request(Method::PUT, *name, value.clone())?.done("PUT")?;
        }
        Ok(())
    }

    fn remove(&mut self, names: &[Name]) -> Result<(), String> {
        names.iter().try_for_each(|name| self.request(Method::DELETE, *name, Vec::new())?.removed())
    }

    fn touch(&mut self, _: &[Name]) -> Result<(), String> {
        Ok(())
    }

    fn list(&mut self, _: &mut dyn FnMut(Listed)) -> Result<(), String> {
        Err("a server behind HTTP does not tell what it holds; ask it by its own means".to_owned())
    }
}

/// Bytes in base64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - part.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= part.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hash;
    use crate::store::remote::location::{Endpoint, Location};
    use std::time::Duration;

    fn http(text: &str) -> Http {
        let location = Location::parse(text).unwrap();
        let Endpoint::Http(url) = location.endpoint else { panic!() };
        let second = Duration::from_secs(1);
        Http::new(&url, &location.attributes, Timeouts { connect: second, operation: second })
            .unwrap()
    }

    #[test]
    fn layouts() {
        let name = Name::outcome(Hash([0xab; 16]));
        let digits = "ab".repeat(15);
        assert_eq!(
            http("http://h:8080/c/").address(name),
            format!("http://h:8080/c/ab/{digits}.o1")
        );
        assert_eq!(
            http("http://h namespace=n layout=flat").address(name),
            format!("http://h/n/ab{digits}.o1")
        );
        let bazel = http("http://h/c layout=bazel").address(name);
        let path = bazel.strip_prefix("http://h/c/ac/").unwrap();
        assert!(path.len() == 64 && path.bytes().all(|byte| byte.is_ascii_hexdigit()), "{bazel}");
        assert_ne!(bazel, http("http://h/c layout=bazel namespace=n").address(name));
    }

    #[test]
    fn requests_have_authentication() {
        assert_eq!(base64(b"a"), "YQ==");
        let header = |text| http(text).headers.pop().unwrap().1;
        assert_eq!(header("http://me:secret@h"), "Basic bWU6c2VjcmV0");
        assert_eq!(header("http://h bearer-token=t"), "Bearer t");
    }

    #[test]
    fn an_empty_answer_is_an_error() {
        let answer =
            |status, body: &[u8]| fetched(Answer { status, body: Some(body.to_vec()) }, "GET");
        assert!(
            answer(200, b"").is_err()
                && answer(500, b"x").is_err()
                && answer(403, b"").is_err()
                && answer(204, b"").is_err()
        );
        assert_eq!(answer(404, b""), Ok(Fetched::Missing));
        assert_eq!(answer(200, b"x"), Ok(Fetched::Value(b"x".to_vec())));
    }
}
