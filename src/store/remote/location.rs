//! Where a remote store is: a URL and attributes, in the syntax of ccache's remote storage.
//!
//! In: `redis://host:6379 namespace=main read-only` (words, or parts between `|`). Out: a
//! [`Location`], or an error that says which word is wrong. Nothing is opened or looked up here,
//! and no error repeats a secret.

mod attributes;

use self::attributes::duration;
use super::url::{self, Url};
use crate::model::keys::Code;
use std::path::PathBuf;
use std::time::Duration;

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
#[path = "location_tests.rs"]
mod tests;
