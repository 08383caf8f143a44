//! Signing requests for S3 (AWS Signature Version 4).
//!
//! In: a request in parts, a key, a time. Out: the headers to add.

use crate::model::calendar;
use ring::{digest, hmac};
use std::fmt::Write;

/// Who signs.
#[derive(Clone, Default)]
pub struct Credentials {
    pub access_key: String,
    pub secret_key: String,
    pub session_token: Option<String>,
}

/// What is signed. Path and query are encoded already.
pub struct Signed<'a> {
    pub method: &'a str,
    pub host: &'a str,
    pub path: &'a str,
    pub query: &'a [(String, String)],
    pub body: &'a [u8],
    pub region: &'a str,
    /// `20130524T000000Z`
    pub time: &'a str,
}

/// The headers that make a request one of this user's.
pub fn headers(signed: &Signed, by: &Credentials) -> Vec<(String, String)> {
    let day = &signed.time[..8];
    let content = hex(digest::digest(&digest::SHA256, signed.body).as_ref());
    let mut headers = vec![
        ("host".to_owned(), signed.host.to_owned()),
        ("x-amz-content-sha256".to_owned(), content.clone()),
        ("x-amz-date".to_owned(), signed.time.to_owned()),
    ];
    headers.extend(
        by.session_token.iter().map(|token| ("x-amz-security-token".to_owned(), token.clone())),
    );
    let names = headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let mut query: Vec<String> =
        signed.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    query.sort();
    let request = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{content}",
        signed.method,
        signed.path,
        query.join("&")
    );
    let scope = format!("{day}/{}/s3/aws4_request", signed.region);
    let request = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{request}", signed.time);
    let start = format!("AWS4{}", by.secret_key).into_bytes();
    let parts = [day, signed.region, "s3", "aws4_request", &text];
    let signature = hex(&parts.iter().fold(start, |key, part| keyed(&key, part.as_bytes())));
    let credential = format!("Credential={}/{scope}", by.access_key);
    headers.remove(0);
    headers.push((
        "authorization".to_owned(),
        format!("AWS4-HMAC-SHA256 {credential},SignedHeaders={names},Signature={signature}"),
    ));
    headers
}

fn keyed(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A time as S3 wants it, from seconds since 1970.
pub fn time(seconds: u64) -> String {
    let rest = seconds % 86_400;
    let (year, month, day) = calendar::date(seconds / 86_400);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example for listing a bucket in Amazon's description of the signature, with the
    /// credentials that it gives.
    #[test]
    fn the_documented_example() {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let query =
            [("max-keys".to_owned(), "2".to_owned()), ("prefix".to_owned(), "J".to_owned())];
        let signed = Signed {
            method: "GET",
            host: "examplebucket.s3.amazonaws.com",
            path: "/",
            query: &query,
            body: b"",
            region: "us-east-1",
            time: "20130524T000000Z",
        };
        let headers = headers(&signed, &credentials);
        let (_, authorization) = headers.last().unwrap();
        let signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert!(authorization.ends_with(&format!("Signature={signature}")), "{authorization}");
    }

    #[test]
    fn times() {
        assert_eq!(time(0), "19700101T000000Z");
        assert_eq!(time(1_369_353_600), "20130524T000000Z");
        assert_eq!(time(951_782_400 + 86_399), "20000229T235959Z");
        assert_eq!(time(4_102_444_799), "20991231T235959Z");
    }
}
