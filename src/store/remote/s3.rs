//! A remote store in a bucket of S3 or a compatible server (MinIO, Ceph, R2).
//!
//! Credentials: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, or the
//! attributes `user` and `password…`, or the file `~/.aws/credentials` with `AWS_PROFILE`. Without
//! any, requests are not signed: a public bucket can be read.

use super::http::{self, Answer};
use super::location::{Attributes, Layout};
use super::sign_s3::{self, Credentials, Signed};
use super::url::{self, Url};
use super::{Backend, Fetched, Listed, Name, Timeouts};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::http::Request;

/// One page of a listing is not longer.
const LARGEST_PAGE: usize = 8 << 20;

pub struct S3 {
    agent: Agent,
    scheme: String,
    host: String,
    /// What stands before the name in the path: the bucket, unless the host names it, and the
    /// prefix.
    start: String,
    /// The beginning of all names in the bucket.
    prefix: String,
    region: String,
    layout: Layout,
    largest: usize,
    credentials: Option<Credentials>,
}

impl S3 {
    pub fn new(
        bucket: &str,
        prefix: &str,
        attributes: &Attributes,
        timeouts: Timeouts,
    ) -> Result<S3, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let region = attributes
            .region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = attributes
            .endpoint
            .clone()
            .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
            .or_else(|| variable("AWS_ENDPOINT_URL"));
        // With an endpoint of one's own the bucket is part of the path: its name need not be one of
        // a host.
        let (text, in_path) = match endpoint {
            Some(endpoint) => (endpoint, true),
            None => (format!("https://{bucket}.s3.{region}.amazonaws.com"), false),
        };
        let url = Url::parse(&text).map_err(|error| format!("the endpoint of S3: {error}"))?;
        if !["http", "https"].contains(&url.scheme.as_str()) {
            return Err("the endpoint of S3 starts with http:// or https://".to_owned());
        }
        let namespace = &attributes.namespace;
        let parts = [prefix, namespace].into_iter().filter(|part| !part.is_empty());
        let prefix: String = parts.map(|part| format!("{part}/")).collect();
        let base = url::encoded(url.path.trim_end_matches('/'), "/");
        let start = if in_path {
            format!("{base}/{}/", url::encoded(bucket, ""))
        } else {
            format!("{base}/")
        };
        Ok(S3 {
            agent: http::agent(timeouts, attributes.ca_file.as_deref(), url.is_secure())?,
            scheme: url.scheme.clone(),
            host: url.authority(),
            start,
            prefix,
            region,
            layout: attributes.layout,
            largest: attributes.largest,
            credentials: credentials(attributes)?,
        })
    }

    fn object(&self, name: Name) -> String {
        let file = name.file();
        match self.layout {
            Layout::Flat => format!("{}{file}", self.prefix),
            _ => format!("{}{}/{}", self.prefix, &file[..2], &file[2..]),
        }
    }

    /// The name of an object, if it is one of ours.
    fn name(&self, object: &str) -> Option<Name> {
        let rest = object.strip_prefix(&self.prefix)?;
        match self.layout {
            Layout::Flat => Name::of_file(rest),
            _ => rest
                .split_once('/')
                .and_then(|(start, rest)| Name::of_file(&format!("{start}{rest}"))),
        }
    }

    fn request(
        &self,
        method: &str,
        object: &str,
        query: &[(&str, &str)],
        body: &[u8],
        largest: usize,
    ) -> Result<Answer, String> {
        let path = format!("{}{}", self.start, url::encoded(object, "/"));
        let query: Vec<(String, String)> = query
            .iter()
            .map(|(name, value)| (url::encoded(name, ""), url::encoded(value, "")))
            .collect();
        let joined = query
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("&");
        let mark = if joined.is_empty() { "" } else { "?" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}://{}{path}{mark}{joined}", self.scheme, self.host));
        if let Some(credentials) = &self.credentials {
            let seconds =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            let (time, host, region) = (sign_s3::time(seconds), &self.host, &self.region);
            let signed =
                Signed { method, host, path: &path, query: &query, body, region, time: &time };
            for (name, value) in sign_s3::headers(&signed, credentials) {
                request = request.header(name, value);
            }
        }
        http::send(
            &self.agent,
            request.body(body.to_vec()).map_err(|error| error.to_string())?,
            largest,
        )
    }
}

/// The credentials, from wherever there are some.
fn credentials(attributes: &Attributes) -> Result<Option<Credentials>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let (Some(access_key), Some(password)) = (&attributes.user, &attributes.password) {
        let (access_key, secret_key) = (access_key.clone(), password.text()?);
        return Ok(Some(Credentials { access_key, secret_key, session_token: None }));
    }
    if let (Some(access_key), Some(secret_key)) =
        (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
    {
        return Ok(Some(Credentials {
            access_key,
            secret_key,
            session_token: variable("AWS_SESSION_TOKEN"),
        }));
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".aws/credentials"));
    let file = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(home);
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    Ok(profile(&text, &variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned())))
}

/// A profile in a file of credentials.
fn profile(text: &str, name: &str) -> Option<Credentials> {
    let mut found = Credentials::default();
    let mut is_meant = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_meant = section.trim() == name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_meant) {
            let value = value.trim().to_owned();
            match key.trim() {
                "aws_access_key_id" => found.access_key = value,
                "aws_secret_access_key" => found.secret_key = value,
                "aws_session_token" => found.session_token = Some(value),
                _ => {}
            }
        }
    }
    (!found.access_key.is_empty() && !found.secret_key.is_empty()).then_some(found)
}

/// The texts between `<tag>` and `</tag>`.
fn tagged<'a>(text: &'a str, tag: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let parts: Vec<&str> =
        text.split(&open).skip(1).filter_map(|part| Some(part.split_once(&close)?.0)).collect();
    parts.into_iter()
}

impl Backend for S3 {
    fn get(&mut self, names: &[Name], first_hit_only: bool) -> Result<Vec<Fetched>, String> {
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            all.push(http::fetched(
                self.request("GET", &self.object(*name), &[], b"", self.largest)?,
                "GET",
            )?);
            if first_hit_only && matches!(all.last(), Some(Fetched::Value(_))) {
                break;
            }
        }
        all.resize(names.len(), Fetched::Missing);
        Ok(all)
    }

    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String> {
        for (name, value) in values {
            let object = self.object(*name);
            if !replace && self.request("HEAD", &object, &[], b"", 0)?.status == 200 {
                continue;
            }
            let answer = self.request("PUT", &object, &[], value, self.largest)?;
            if answer.status != 200 {
                return Err(answer.refusal("PUT"));
            }
        }
        Ok(())
    }

    fn remove(&mut self, names: &[Name]) -> Result<(), String> {
        let remove =
            |name: &Name| self.request("DELETE", &self.object(*name), &[], b"", self.largest);
        names.iter().try_for_each(|name| remove(name)?.removed())
    }

    fn touch(&mut self, _: &[Name]) -> Result<(), String> {
        Ok(())
    }

    fn list(&mut self, visit: &mut dyn FnMut(Listed)) -> Result<(), String> {
        let mut next: Option<String> = None;
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", self.prefix.as_str())];
            query.extend(next.as_deref().map(|token| ("continuation-token", token)));
            let answer = self.request("GET", "", &query, b"", LARGEST_PAGE)?;
            if answer.status != 200 {
                return Err(answer.refusal("listing"));
            }
            let text =
                String::from_utf8_lossy(answer.body.as_deref().unwrap_or_default()).into_owned();
            for object in tagged(&text, "Contents") {
                let name = tagged(object, "Key").next().and_then(|key| self.name(key));
                let bytes = tagged(object, "Size").next().and_then(|size| size.parse().ok());
                if let (Some(name), Some(bytes)) = (name, bytes) {
                    visit(Listed { name, bytes });
                }
            }
            next = tagged(&text, "NextContinuationToken").next().map(str::to_owned);
            if next.is_none() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles() {
        let text = "[default]\naws_access_key_id = A\naws_secret_access_key=S\n[ci]\naws_access_key_id=B\naws_secret_access_key=T\naws_session_token=U\n";
        assert_eq!(profile(text, "default").unwrap().access_key, "A");
        let ci = profile(text, "ci").unwrap();
        assert_eq!((ci.secret_key.as_str(), ci.session_token.as_deref()), ("T", Some("U")));
        assert!(profile(text, "other").is_none() && profile("", "default").is_none());
    }

    #[test]
    fn tags() {
        let text = "<a><Key>x</Key><Size>1</Size></a><a><Key>y</Key></a><a><Key>";
        assert_eq!(tagged(text, "Key").collect::<Vec<_>>(), ["x", "y"]);
    }
}
