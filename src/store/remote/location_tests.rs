//! Locations: every scheme, every attribute, errors without secrets.

use super::attributes::LARGEST_OBJECT;
use super::*;
use crate::store::remote::ValueKind;
use proptest::prelude::*;

fn parsed(text: &str) -> Location {
    Location::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_scheme_and_both_ways_to_separate() {
    assert!(matches!(parsed("file:/srv/t").endpoint, Endpoint::Folder(path) if path == *"/srv/t"));
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
            == parsed("http://h/c read-only=true layout=bazel operation-timeout=20ms").attributes
    );
}

#[test]
fn secrets_appear_nowhere() {
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
fn malformed_locations_are_errors() {
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
    assert_eq!((objects(""), objects(" objects=no"), objects(" objects=0")), (None, None, None));
    assert_eq!(
        (objects(" objects"), objects(" objects=1")),
        (Some(LARGEST_OBJECT), Some(LARGEST_OBJECT))
    );
    assert_eq!(objects(" objects=300K"), Some(300 << 10));
    let attributes = parsed("redis://h expire=9d").attributes;
    assert_eq!(attributes.lifetime(ValueKind::Object), attributes.expire);
    let attributes = parsed("redis://h expire=9d expire-objects=2d").attributes;
    assert_eq!(attributes.lifetime(ValueKind::Object), Some(Duration::from_secs(2 * 24 * 3600)));
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
