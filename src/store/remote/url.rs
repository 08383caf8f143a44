//! The parts of URLs that locations consist of: scheme, user, password, host, port, path.

/// A URL in parts. User, password and path are decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    pub user: String,
    pub password: String,
    pub host: String,
    pub port: u16,
    has_port: bool,
    pub path: String,
    pub query: String,
}

impl Url {
    /// Divides a URL. No error repeats any of it but the scheme.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (scheme, rest) =
            text.split_once(':').ok_or("a URL starts with a scheme such as redis: or file:")?;
        let is_scheme =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'+';
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return Err("a URL starts with a scheme such as redis: or file:".to_owned());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or(("", login));
        // As Redis has it, what stands alone is the password; elsewhere it is the user.
        let (user, password) = if login.contains(':') || scheme.starts_with("redis") {
            (user, password)
        } else {
            (login, "")
        };
        let (host, port) = host_and_port(place)?;
        let needs_host = ["redis", "rediss", "http", "https", "s3"].contains(&scheme);
        if needs_host && host.is_empty() {
            return Err(format!("{scheme}: needs a host"));
        }
        Ok(Url {
            scheme: scheme.to_owned(),
            user: decoded(user),
            password: decoded(password),
            host: host.to_owned(),
            port: port.unwrap_or_else(|| usual_port(scheme)),
            has_port: port.is_some(),
            path: decoded(path),
            query: query.to_owned(),
        })
    }

    /// Whether it is to be spoken to through TLS.
    pub fn is_secure(&self) -> bool {
        ["rediss", "https"].contains(&self.scheme.as_str())
    }

    /// For people: without user and password.
    pub fn shown(&self) -> String {
        let login = if self.user.is_empty() && self.password.is_empty() { "" } else { "***@" };
        let slashes = if self.host.is_empty() && login.is_empty() { "" } else { "//" };
        format!("{}:{slashes}{login}{}{}", self.scheme, self.authority(), self.path)
    }

    /// Host and port, as they were given.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.has_port { format!("{host}:{}", self.port) } else { host }
    }
}

/// The parts of `host:port` or `[::1]:port`.
fn host_and_port(place: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("an address in brackets has no end")?;
            (host, rest.strip_prefix(':'))
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port
        .map(|port| port.parse::<u16>().map_err(|_| "a port is a number up to 65535".to_owned()));
    let is_host = |letter: char| letter.is_alphanumeric() || ".-_:%".contains(letter);
    if !host.chars().all(is_host) {
        return Err("the host's name has letters that no name has".to_owned());
    }
    Ok((host, port.transpose()?))
}

fn usual_port(scheme: &str) -> u16 {
    match scheme {
        "redis" | "rediss" => 6379,
        "https" => 443,
        _ => 80,
    }
}

/// A text with `%20` and the like replaced. What is no such sequence stays.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte =
            digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text in which nothing but letters, digits, `-._~` and `keep` stands for itself.
pub fn encoded(text: &str, keep: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || keep.as_bytes().contains(&byte)
        {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("rediss://me:p%40ss@[::1]:7000/3").unwrap();
        assert_eq!(
            (url.user.as_str(), url.password.as_str(), url.host.as_str(), url.port),
            ("me", "p@ss", "::1", 7000)
        );
        assert_eq!((url.path.as_str(), url.shown().as_str()), ("/3", "rediss://***@[::1]:7000/3"));
        let url = Url::parse("redis://secret@h").unwrap();
        assert_eq!((url.user.as_str(), url.password.as_str()), ("", "secret"));
        let url = Url::parse("http://me@h").unwrap();
        assert_eq!((url.user.as_str(), url.password.as_str()), ("me", ""));
        let url = Url::parse("redis+unix:/run/x.sock?db=2").unwrap();
        assert_eq!(
            (url.path.as_str(), url.query.as_str(), url.host.as_str()),
            ("/run/x.sock", "db=2", "")
        );
    }

    #[test]
    fn texts_come_back() {
        let text = "a/b c%+ä";
        assert_eq!(encoded(text, "/"), "a/b%20c%25%2B%C3%A4");
        assert_eq!(decoded(&encoded(text, "")), text);
        assert_eq!(decoded("100%"), "100%");
    }
}
