//! Where the results of a team are: a URL and attributes, in the syntax of ccache's remote storage.
//!
//! In: `redis://host:6379 namespace=main read-only` (words, or parts between `|`). Out: a
//! [`Location`], or an error that says which word is wrong. Nothing is opened or looked up here,
//! and no error repeats a secret.

use super::url::{self, Url};
use super::{ValueKind, keys};
use crate::model::keys::Code;
use std::path::PathBuf;
use std::time::Duration;

/// What a name of a namespace can be made of.
const LONGEST_NAMESPACE: usize = 64;

/// The largest object that is shared unless somebody says otherwise.
const LARGEST_OBJECT: usize = 16 << 20;

/// Where to look, and how.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    pub endpoint: Endpoint,
    pub attributes: Attributes,
    /// For people: without secrets.
    pub shown: String,
}

/// The sorts of servers.
#[derive(Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A folder, for instance on NFS.
    Folder(PathBuf),
    /// Redis and what speaks like it.
    Redis(Url),
    /// The same at a socket of this machine.
    RedisSocket { path: PathBuf, url: Url },
    /// Any server with GET, PUT and HEAD.
    Http(Url),
    /// A bucket and the beginning of the names in it.
    S3 { bucket: String, prefix: String },
    /// All in one file.
    Archive(PathBuf),
}

/// What stands after the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Whether to read only; `None` where nobody has said.
    pub read_only: Option<bool>,
    pub namespace: String,
    pub layout: Layout,
    pub connect_timeout: Duration,
    /// For all that is asked at one time.
    pub operation_timeout: Duration,
    /// How long a server that failed is left alone.
    pub retry: Duration,
    /// Values that nobody has used for so long may go.
    pub expire: Option<Duration>,
    /// Larger values are neither read nor written.
    pub largest: usize,
    /// All results are one value, for `tasting push` and `tasting pull`.
    pub archive: bool,
    pub umask: Option<u32>,
    pub ca_file: Option<PathBuf>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub bearer_token: Option<Secret>,
    pub headers: Vec<(String, String)>,
    /// Of S3: where, if not at Amazon.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// The private key that values are signed with.
    pub sign_key: Option<PathBuf>,
    /// Public keys; if there are any, only what they have signed is believed.
    pub trusted_keys: Vec<String>,
    /// Compiled objects are shared as well, up to this size.
    pub objects: Option<usize>,
    /// The same as `expire`, for objects.
    pub expire_objects: Option<Duration>,
}

/// Something that is not to be shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Text(String),
    /// In a variable of the environment.
    Variable(String),
    /// In a file, on its first line.
    File(PathBuf),
}

/// How the names of values become paths, as ccache has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `ab/cdef…`
    Subdirs,
    /// `abcdef…`
    Flat,
    /// `ac/` and 64 digits: what Bazel's servers want.
    Bazel,
}

impl Code for Layout {
    fn code(self) -> u64 {
        match self {
            Layout::Subdirs => 0,
            Layout::Flat => 1,
            Layout::Bazel => 2,
        }
    }
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes {
            read_only: None,
            namespace: String::new(),
            layout: Layout::Subdirs,
            connect_timeout: Duration::from_millis(500),
            operation_timeout: Duration::from_millis(1500),
            retry: Duration::from_secs(300),
            expire: None,
            largest: 64 << 20,
            archive: false,
            umask: None,
            ca_file: None,
            user: None,
            password: None,
            bearer_token: None,
            headers: Vec::new(),
            endpoint: None,
            region: None,
            sign_key: None,
            trusted_keys: Vec::new(),
            objects: None,
            expire_objects: None,
        }
    }
}

/// A time such as `12h` or `7d`, for command lines.
pub fn time(text: &str) -> Result<Duration, String> {
    duration("the time", text, "s")
}

/// A path as the part of a URL.
pub fn encoded(path: &str) -> String {
    url::encoded(path, "/")
}

/// Words that switch a remote off that `tasting.toml` names.
pub fn is_none(text: &str) -> bool {
    ["", "none", "off", "no"].contains(&text.trim())
}

impl Location {
    /// Reads a URL and its attributes.
    pub fn parse(text: &str) -> Result<Location, String> {
        let mut words = text
            .split(|letter: char| letter.is_whitespace() || letter == '|')
            .filter(|word| !word.is_empty());
        let first = words.next().ok_or("there is no URL")?;
        let url = Url::parse(first)?;
        let mut attributes = Attributes::default();
        let mut shown = vec![url.shown()];
        for word in words {
            if word.contains("://") && !word.contains('=') {
                return Err(
                    "there can be one URL only; attributes are of the form name=value".to_owned()
                );
            }
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            attributes.set(name, value)?;
            shown.push(if is_secret(name) { format!("{name}=***") } else { word.to_owned() });
        }
        let endpoint = endpoint(url)?;
        let location = Location { endpoint, attributes, shown: shown.join(" ") };
        location.check()?;
        Ok(location)
    }

    /// Attributes that mean nothing for a sort of server are mistakes.
    fn check(&self) -> Result<(), String> {
        let Attributes { layout, umask, endpoint, region, bearer_token, headers, ca_file, .. } =
            &self.attributes;
        let Attributes { expire, expire_objects, objects, .. } = &self.attributes;
        let is_http = matches!(self.endpoint, Endpoint::Http(_));
        let is_s3 = matches!(self.endpoint, Endpoint::S3 { .. });
        let is_folder = matches!(self.endpoint, Endpoint::Folder(_));
        let is_redis = matches!(self.endpoint, Endpoint::Redis(_) | Endpoint::RedisSocket { .. });
        let wrong = [
            ("layout", *layout != Layout::Subdirs && is_redis),
            ("layout=bazel", *layout == Layout::Bazel && !is_http),
            ("umask", umask.is_some() && !is_folder),
            ("endpoint", endpoint.is_some() && !is_s3),
            ("region", region.is_some() && !is_s3),
            ("bearer-token", bearer_token.is_some() && !is_http),
            ("header", !headers.is_empty() && !is_http),
            ("ca-file", ca_file.is_some() && is_folder),
            ("expire", expire.is_some() && (is_http || is_s3)),
            ("expire-objects", expire_objects.is_some() && (is_http || is_s3)),
            ("archive", self.attributes.archive && !(is_http || is_s3)),
            ("objects", objects.is_some() && self.attributes.archive),
            ("objects", objects.is_some() && matches!(self.endpoint, Endpoint::Archive(_))),
        ];
        match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
            Some((name, _)) => {
                Err(format!("the attribute {name} means nothing for this sort of URL"))
            }
            None => Ok(()),
        }
    }
}

fn is_secret(name: &str) -> bool {
    ["password", "bearer-token", "header"].contains(&name)
}

fn endpoint(url: Url) -> Result<Endpoint, String> {
    let path = || PathBuf::from(&url.path);
    match url.scheme.as_str() {
        "file" if !url.path.starts_with('/') => Err("file: needs an absolute path".to_owned()),
        "file" => Ok(Endpoint::Folder(path())),
        "archive" => Ok(Endpoint::Archive(path())),
        "redis" | "rediss" => Ok(Endpoint::Redis(url)),
        "redis+unix" if !url.path.starts_with('/') => {
            Err("redis+unix: needs the absolute path of a socket".to_owned())
        }
        "redis+unix" => Ok(Endpoint::RedisSocket { path: path(), url }),
        "http" | "https" => Ok(Endpoint::Http(url)),
        "s3" if url.host.is_empty() => Err("s3:// needs a bucket".to_owned()),
        "s3" => Ok(Endpoint::S3 {
            bucket: url.host.clone(),
            prefix: url.path.trim_matches('/').to_owned(),
        }),
        other => Err(format!(
            "{other:?} is none of file, redis, rediss, redis+unix, http, https, s3 and archive"
        )),
    }
}

impl Attributes {
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let text = || {
            let value = value.filter(|value| !value.is_empty());
            value
                .map(url::decoded)
                .ok_or_else(|| format!("the attribute {name} needs a value: {name}=…"))
        };
        let path = || text().map(PathBuf::from);
        match name {
            "read-only" => {
                self.read_only = Some(value.map_or(Ok(true), |value| truth(name, value))?)
            }
            "namespace" => self.namespace = namespace(text()?)?,
            "layout" => self.layout = layout(&text()?)?,
            "connect-timeout" => self.connect_timeout = duration(name, &text()?, "ms")?,
            "operation-timeout" => self.operation_timeout = duration(name, &text()?, "ms")?,
            "retry" => self.retry = duration(name, &text()?, "s")?,
            "expire" => self.expire = Some(duration(name, &text()?, "s")?),
            "max-value" => self.largest = size(name, &text()?)?,
            "archive" => self.archive = value.map_or(Ok(true), |value| truth(name, value))?,
            "umask" => self.umask = Some(umask(&text()?)?),
            "ca-file" => self.ca_file = Some(path()?),
            "user" => self.user = Some(text()?),
            "password" => self.password = Some(Secret::Text(text()?)),
            "password-env" => self.password = Some(Secret::Variable(text()?)),
            "password-file" => self.password = Some(Secret::File(path()?)),
            "bearer-token" => self.bearer_token = Some(Secret::Text(text()?)),
            "bearer-token-env" => self.bearer_token = Some(Secret::Variable(text()?)),
            "bearer-token-file" => self.bearer_token = Some(Secret::File(path()?)),
            "header" => self.headers.push(header(&text()?)?),
            "endpoint" => self.endpoint = Some(text()?),
            "region" => self.region = Some(text()?),
            "sign-key" => self.sign_key = Some(path()?),
            "trusted-key" => self.trusted_keys.push(trusted_key(text()?)?),
            "objects" => self.objects = objects(name, value)?,
            "expire-objects" => self.expire_objects = Some(duration(name, &text()?, "s")?),
            // Of ccache's, and always so here.
            "keep-alive" | "update-mtime" => {
                _ = value.map(|value| truth(name, value)).transpose()?
            }
            _ => return Err(format!("there is no attribute {name:?}")),
        }
        Ok(())
    }

    /// How long values of a kind are kept that nobody uses.
    pub fn lifetime(&self, kind: ValueKind) -> Option<Duration> {
        if kind == ValueKind::Object { self.expire_objects.or(self.expire) } else { self.expire }
    }
}

fn trusted_key(text: String) -> Result<String, String> {
    keys::public_key(&text).map(|_| text)
}

/// Whether objects are shared, and how large ones: `objects`, `objects=8M`, `objects=no`.
fn objects(name: &str, value: Option<&str>) -> Result<Option<usize>, String> {
    let is_shared = value.map_or(Ok(true), |value| truth(name, value));
    match (is_shared, value) {
        (Ok(is_shared), _) => Ok(is_shared.then_some(LARGEST_OBJECT)),
        (Err(_), value) => size(name, value.unwrap_or_default()).map(Some),
    }
}

fn truth(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{name} is either true or false")),
    }
}

fn namespace(name: String) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.len() > LONGEST_NAMESPACE || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(format!(
            "a namespace has up to {LONGEST_NAMESPACE} letters, digits, dots, underscores or hyphens"
        ));
    }
    Ok(name)
}

fn layout(name: &str) -> Result<Layout, String> {
    match name {
        "subdirs" => Ok(Layout::Subdirs),
        "flat" => Ok(Layout::Flat),
        "bazel" => Ok(Layout::Bazel),
        _ => Err("the layout is one of subdirs, flat and bazel".to_owned()),
    }
}

/// A number with a unit; `plain` is the unit of a bare number.
fn duration(name: &str, text: &str, plain: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match if unit.is_empty() { plain } else { unit } {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => 0,
    };
    let length = number
        .parse::<u32>()
        .ok()
        .map(|number| u64::from(number) * factor)
        .filter(|length| *length > 0);
    length
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{name} is a time such as 500ms, 30s, 12h or 30d"))
}

fn size(name: &str, text: &str) -> Result<usize, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => Some(0),
        "k" => Some(10),
        "m" => Some(20),
        _ => None,
    };
    let bytes =
        number.parse::<u32>().ok().zip(shift).map(|(number, shift)| (number as usize) << shift);
    let bytes = bytes.filter(|bytes| (1..=super::super::LARGEST).contains(bytes));
    bytes.ok_or_else(|| format!("{name} is a size up to 64M, such as 500K or 8M"))
}

fn umask(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mask| *mask <= 0o777)
        .ok_or("umask is an octal number such as 002".to_owned())
}

/// `name=value` or `name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(['=', ':']).ok_or("a header is of the form header=name=value")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_name) || value.chars().any(char::is_control) {
        return Err("a header is of the form header=name=value".to_owned());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

impl Secret {
    /// What is meant.
    pub fn text(&self) -> Result<String, String> {
        match self {
            Secret::Text(text) => Ok(text.clone()),
            Secret::Variable(name) => std::env::var(name)
                .map_err(|_| format!("the variable {name}, which is to hold a secret, is not set")),
            Secret::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!("the file {} with a secret cannot be read: {error}", path.display())
                })?;
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

impl std::fmt::Debug for Location {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Location {
        Location::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_scheme_and_both_ways_to_separate() {
        assert!(
            matches!(parsed("file:/srv/t").endpoint, Endpoint::Folder(path) if path == *"/srv/t")
        );
        assert!(
            matches!(parsed("file:///srv/t").endpoint, Endpoint::Folder(path) if path == *"/srv/t")
        );
        assert!(
            matches!(parsed("redis://h").endpoint, Endpoint::Redis(url) if url.host == "h" && url.port == 6379)
        );
        assert!(
            matches!(parsed("redis+unix:/run/r.sock").endpoint, Endpoint::RedisSocket { path, .. } if path == *"/run/r.sock")
        );
        assert!(matches!(parsed("https://h/x/").endpoint, Endpoint::Http(url) if url.port == 443));
        assert!(
            matches!(parsed("s3://b/p/q").endpoint, Endpoint::S3 { bucket, prefix } if bucket == "b" && prefix == "p/q")
        );
        let one = parsed("http://h/c|read-only|layout=bazel|operation-timeout=20");
        assert_eq!(one.attributes.operation_timeout, Duration::from_millis(20));
        assert!(
            one.attributes
                == parsed("http://h/c read-only=true layout=bazel operation-timeout=20ms")
                    .attributes
        );
    }

    #[test]
    fn secrets_are_not_shown_and_not_repeated_in_errors() {
        let text = "http://me:hush@h/c bearer-token=hush header=X-Key=hush";
        assert_eq!(parsed(text).shown, "http://***@h/c bearer-token=*** header=***");
        assert_eq!(format!("{:?}", parsed("redis://:hush@h/2")), "redis://***@h/2");
        for wrong in [
            "ftp://a:hush@h",
            "http://h header=hush",
            "redis://:hush@h:port",
            "redis://h password=hush nonsense",
        ] {
            assert!(!Location::parse(wrong).unwrap_err().contains("hush"), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        for text in [
            "",
            "  ",
            "host",
            "/a/path",
            "file:a",
            "ftp://h",
            "redis://",
            "redis://h:99999",
            "s3://",
            "http://h nonsense=1",
            "http://h namespace=a/b",
            "http://h namespace=..",
            "redis://h layout=flat",
            "file:/x layout=bazel",
            "http://h operation-timeout=soon",
            "http://h max-value=1G",
            "http://h read-only=maybe",
            "http://h umask=2",
            "http://a http://b",
            "redis://h bearer-token=x",
            "http://h expire=3d",
            "redis://h connect-timeout=0",
            "redis://h objects=1G",
            "redis://h objects=maybe",
            "archive:/x objects",
            "http://h expire-objects=3d",
            "redis://h trusted-key=AAAA",
        ] {
            assert!(Location::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn objects_are_shared_only_where_that_is_said() {
        let objects = |text: &str| parsed(&format!("redis://h{text}")).attributes.objects;
        assert_eq!(
            (objects(""), objects(" objects=no"), objects(" objects=0")),
            (None, None, None)
        );
        assert_eq!(
            (objects(" objects"), objects(" objects=1")),
            (Some(LARGEST_OBJECT), Some(LARGEST_OBJECT))
        );
        assert_eq!(objects(" objects=300K"), Some(300 << 10));
        let attributes = parsed("redis://h expire=9d").attributes;
        assert_eq!(attributes.lifetime(ValueKind::Object), attributes.expire);
        let attributes = parsed("redis://h expire=9d expire-objects=2d").attributes;
        assert_eq!(
            attributes.lifetime(ValueKind::Object),
            Some(Duration::from_secs(2 * 24 * 3600))
        );
        assert_eq!(attributes.lifetime(ValueKind::Outcome), attributes.expire);
        let key = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
        assert_eq!(parsed(&format!("redis://h trusted-key={key}")).attributes.trusted_keys, [key]);
    }

    #[test]
    fn secrets_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hush\nmore\n").unwrap();
        assert_eq!(Secret::File(file).text().unwrap(), "hush");
        assert!(
            Secret::File("/nowhere".into()).text().is_err()
                && Secret::Variable("NOT_SET_X".into()).text().is_err()
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_location_or_an_error(text in "(redis|http|file|s3)?[:/@|= .%a-z0-9\\[\\]-]{0,40}") {
            let _ = Location::parse(&text);
        }
    }
}
