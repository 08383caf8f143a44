//! The bytes of one value in a remote store: the entry as the local store has it (compressed, with
//! its name, a checksum), in an envelope with the writer's signature.
//!
//! In: a name and its value. Out: bytes; and the reverse, or the reason why the bytes are rejected.

use super::keys::{key_pair, public_key};
use super::location::Attributes;
use super::{Name, ValueKind};
use crate::model::envelope::Format;
use crate::model::{DependencySet, FormatError, Outcome};
use crate::store::{MOST_DEPENDENCY_SETS, entry};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const VALUE: Format = Format { magic: *b"TASTEFAR", version: 1 };

/// The format of the list of a test's dependency sets.
const SHAPES: Format = Format { magic: *b"TASTESHS", version: 1 };

/// The format of a compiled object.
const OBJECT: Format = Format { magic: *b"TASTESOB", version: 1 };

/// A list of dependency sets has no more bytes than this before it is packed; every machine that
/// looks for the test reads all of it.
const LONGEST_LIST: usize = 4 << 20;

#[derive(Serialize, Deserialize)]
struct Value<'a> {
    /// Ed25519, 64 bytes; nothing if nobody has signed it.
    signature: &'a [u8],
    body: &'a [u8],
}

/// Who signs, and who is believed.
#[derive(Default)]
pub struct Keys {
    sign_key: Option<PathBuf>,
    trusted: Vec<String>,
    namespace: String,
    largest: usize,
}

impl Keys {
    pub fn new(attributes: &Attributes, trusted: &[String]) -> Keys {
        Keys {
            sign_key: attributes.sign_key.clone(),
            trusted: trusted.to_vec(),
            namespace: attributes.namespace.clone(),
            largest: attributes.largest,
        }
    }

    /// The bytes for an outcome.
    pub fn outcome(&self, name: Name, outcome: &Outcome) -> Result<Vec<u8>, String> {
        self.wrap(name, &outcome.to_bytes().map_err(|error| error.to_string())?)
    }

    /// The bytes for the dependency sets of a test. The last ones are left out if there are too
    /// many.
    pub fn dependency_sets(
        &self,
        name: Name,
        dependency_sets: &[DependencySet],
    ) -> Result<Vec<u8>, String> {
        let mut room = LONGEST_LIST;
        let mut list: Vec<Vec<u8>> = Vec::new();
        for dependency_set in dependency_sets.iter().take(MOST_DEPENDENCY_SETS) {
            let raw = dependency_set.to_bytes().map_err(|error| error.to_string())?;
            let Some(left) = room.checked_sub(raw.len()) else { break };
            room = left;
            list.push(raw);
        }
        let parts: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        self.wrap(name, &postcard::to_stdvec(&parts).map_err(|error| error.to_string())?)
    }

    /// The bytes for an object, which comes as others are to get it.
    pub fn object(&self, name: Name, raw: &[u8]) -> Result<Vec<u8>, String> {
        self.wrap(name, raw)
    }

    fn wrap(&self, name: Name, raw: &[u8]) -> Result<Vec<u8>, String> {
        let body =
            entry::encode(format(name.kind), name.hash, raw).map_err(|error| error.to_string())?;
        let signature = match &self.sign_key {
            Some(path) => key_pair(path)?.sign(&self.message(&body)).as_ref().to_vec(),
            None => Vec::new(),
        };
        let bytes = VALUE
            .encode(&Value { signature: &signature, body: &body })
            .map_err(|error| error.to_string())?;
        if bytes.len() > self.largest {
            return Err(format!("{} bytes are more than max-value allows", bytes.len()));
        }
        Ok(bytes)
    }

    /// The outcome that somebody wrote, if it can be believed.
    pub fn read_outcome(&self, name: Name, bytes: &[u8]) -> Result<Outcome, String> {
        let raw = self.unwrap(name, bytes)?;
        Outcome::from_bytes(&raw).map_err(|error| error.to_string())
    }

    /// The dependency sets that somebody wrote.
    pub fn read_dependency_sets(
        &self,
        name: Name,
        bytes: &[u8],
    ) -> Result<Vec<DependencySet>, String> {
        let raw = self.unwrap(name, bytes)?;
        let malformed = || FormatError::Malformed.to_string();
        let (parts, rest): (Vec<&[u8]>, &[u8]) =
            postcard::take_from_bytes(&raw).map_err(|_| malformed())?;
        if !rest.is_empty() || parts.len() > MOST_DEPENDENCY_SETS {
            return Err(malformed());
        }
        parts
            .into_iter()
            .map(|part| DependencySet::from_bytes(part).map_err(|error| error.to_string()))
            .collect()
    }

    /// The object that somebody wrote, if it can be believed.
    pub fn read_object(&self, name: Name, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.unwrap(name, bytes)
    }

    fn unwrap(&self, name: Name, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if bytes.len() > self.largest {
            return Err("it is larger than max-value allows".to_owned());
        }
        let (value, rest) = VALUE.decode::<Value>(bytes).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err("something follows it".to_owned());
        }
        self.believe(&value)?;
        entry::decode(format(name.kind), name.hash, value.body).map_err(|error| error.to_string())
    }

    /// Whether somebody wrote it who is trusted. Where no keys are named, everybody is.
    fn believe(&self, value: &Value) -> Result<(), String> {
        if self.trusted.is_empty() {
            return Ok(());
        }
        if value.signature.is_empty() {
            return Err("nobody has signed it, and keys are named that are trusted".to_owned());
        }
        let message = self.message(value.body);
        for key in &self.trusted {
            let key = public_key(key)?;
            if UnparsedPublicKey::new(&ED25519, key).verify(&message, value.signature).is_ok() {
                return Ok(());
            }
        }
        Err("its signature is of none of the keys that are trusted".to_owned())
    }

    /// What is signed. A value of one namespace is none of another.
    fn message(&self, body: &[u8]) -> Vec<u8> {
        [b"tasting value 1\0", self.namespace.as_bytes(), b"\0", body].concat()
    }
}

fn format(kind: ValueKind) -> &'static Format {
    match kind {
        ValueKind::DependencySets => &SHAPES,
        ValueKind::Outcome => &entry::OUTCOME,
        ValueKind::Object => &OBJECT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Dependency, DependencyKind, Hash, PortablePath};
    use proptest::prelude::*;
    use std::process::Command;

    fn keys(namespace: &str) -> Keys {
        Keys { namespace: namespace.to_owned(), largest: 1 << 20, ..Keys::default() }
    }

    fn dependency_set(path: &str) -> DependencySet {
        DependencySet {
            dependencies: vec![Dependency::on(DependencyKind::File, PortablePath::absolute(path))],
        }
    }

    /// A private key in a file, and its public one.
    fn new_key(folder: &std::path::Path, name: &str) -> (PathBuf, String) {
        let path = folder.join(name);
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "ed25519", "-out"])
            .arg(&path)
            .status()
            .unwrap();
        let public =
            Command::new("openssl").args(["pkey", "-pubout", "-in"]).arg(&path).output().unwrap();
        assert!(made.success());
        (path, String::from_utf8(public.stdout).unwrap().lines().nth(1).unwrap().to_owned())
    }

    #[test]
    fn dependency_sets_round_trip_within_the_limit() {
        let name = Name::dependency_sets(Hash::of(b"t"));
        let dependency_sets: Vec<DependencySet> =
            (0..20).map(|number| dependency_set(&format!("/{number}"))).collect();
        let bytes = keys("").dependency_sets(name, &dependency_sets).unwrap();
        assert_eq!(
            keys("").read_dependency_sets(name, &bytes).unwrap(),
            dependency_sets[..MOST_DEPENDENCY_SETS]
        );
        assert!(
            keys("").read_dependency_sets(Name::dependency_sets(Hash::of(b"u")), &bytes).is_err()
        );
        let large: Vec<DependencySet> = (0..3)
            .map(|number| dependency_set(&format!("{number}{}", "x".repeat(LONGEST_LIST / 2))))
            .collect();
        let bytes = keys("").dependency_sets(name, &large).unwrap();
        assert_eq!(keys("").read_dependency_sets(name, &bytes).unwrap().len(), 1);
    }

    #[test]
    #[ignore = "needs openssl"]
    fn only_trusted_keys_are_believed() {
        let folder = tempfile::tempdir().unwrap();
        let ((mine, public), (other, other_public)) =
            (new_key(folder.path(), "a"), new_key(folder.path(), "b"));
        let name = Name::dependency_sets(Hash::of(b"t"));
        let written = |key: Option<&PathBuf>, namespace| {
            Keys { sign_key: key.cloned(), ..keys(namespace) }
                .dependency_sets(name, &[dependency_set("/x")])
                .unwrap()
        };
        let read = |bytes: &[u8], trusted: &[&String]| {
            let trusted = trusted.iter().map(|key| key.to_string()).collect();
            Keys { trusted, ..keys("n") }.read_dependency_sets(name, bytes)
        };
        let signed = written(Some(&mine), "n");
        assert!(
            read(&signed, &[&public]).is_ok() && read(&signed, &[&other_public, &public]).is_ok()
        );
        assert!(read(&signed, &[]).is_ok(), "without keys everybody is believed");
        assert!(read(&signed, &[&other_public]).unwrap_err().contains("none of the keys"));
        assert!(read(&written(None, "n"), &[&public]).unwrap_err().contains("nobody has signed"));
        assert!(read(&written(Some(&other), "n"), &[&public]).is_err());
        assert!(
            read(&written(Some(&mine), "another"), &[&public]).is_err(),
            "of another namespace"
        );
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        for text in ["", "AAAA", "not base64!", &"A".repeat(100)] {
            assert!(public_key(text).is_err(), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
            .unwrap();
        assert!(
            Keys { sign_key: Some(path), ..keys("") }
                .dependency_sets(Name::dependency_sets(Hash::of(b"t")), &[])
                .is_err()
        );
    }

    #[test]
    fn too_large_is_refused_both_ways() {
        let name = Name::dependency_sets(Hash::of(b"t"));
        let noise: String =
            (0..5000).map(|number| char::from(b'a' + (number * number % 23) as u8)).collect();
        let bytes = keys("").dependency_sets(name, &[dependency_set(&noise)]).unwrap();
        let small = Keys { largest: bytes.len() - 1, ..keys("") };
        assert!(
            small.dependency_sets(name, &[dependency_set(&noise)]).is_err()
                && small.read_dependency_sets(name, &bytes).is_err()
        );
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at: usize, change in 1u8..) {
            let name = Name::dependency_sets(Hash::of(b"t"));
            let mut bytes = keys("").dependency_sets(name, &[dependency_set("/x/y")]).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= change;
            prop_assert!(keys("").read_dependency_sets(name, &bytes).is_err());
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(body: Vec<u8>, signature: Vec<u8>) {
            let bytes = VALUE.encode(&Value { signature: &signature, body: &body }).unwrap();
            prop_assert!(keys("").read_outcome(Name::outcome(Hash::default()), &bytes).is_err());
            prop_assert!(keys("").read_outcome(Name::outcome(Hash::default()), &body).is_err());
        }
    }
}
