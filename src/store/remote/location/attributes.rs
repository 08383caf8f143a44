//! The attributes behind a URL: each word, and what its value may be.

use super::{Attributes, Layout, Secret};
use crate::store::remote::{ValueKind, keys, url};
use std::path::PathBuf;
use std::time::Duration;

/// What a name of a namespace can be made of.
const LONGEST_NAMESPACE: usize = 64;

/// The largest object that is shared unless somebody says otherwise.
pub(super) const LARGEST_OBJECT: usize = 16 << 20;

impl Attributes {
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
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
pub(super) fn duration(name: &str, text: &str, plain: &str) -> Result<Duration, String> {
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
    let bytes = bytes.filter(|bytes| (1..=crate::store::LARGEST).contains(bytes));
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
