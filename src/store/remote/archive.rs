//! A remote store in one piece, for places where a request for each test is too much, such as the
//! cache of GitHub's actions, or S3: written by `tasting push`, read by `tasting pull`. The piece is
//! a file, or one value on a server (the attribute `archive`).

use super::{Backend, Fetched, Listed, Name, ValueKind};
use crate::model::{Hash, Hasher};
use crate::store::store_file::TemporaryFile;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const START: &str = "tasting archive 1";

/// The first line is not longer.
const LONGEST_START: usize = 256;

/// ValueKind (1), hash (16), length (4).
const HEADER: usize = 21;

/// An archive that is larger is not read.
pub const LARGEST: usize = 4 << 30;

pub struct Archive {
    place: ArchivePlace,
    namespace: String,
    values: BTreeMap<Name, Vec<u8>>,
    is_changed: bool,
}

/// Where an archive is.
enum ArchivePlace {
    File(PathBuf),
    Server(Box<dyn Backend>),
}

impl Archive {
    /// Reads an archive; a file that is not there is an empty one. One of another namespace is none.
    pub fn open(path: PathBuf, namespace: &str) -> Result<Archive, String> {
        let bytes = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Ok(found) if found.len() > LARGEST as u64 => {
                return Err("it is too large for an archive".to_owned());
            }
            _ => Some(fs::read(&path).map_err(|error| error.to_string())?),
        };
        Archive::of(ArchivePlace::File(path), bytes, namespace)
    }

    /// The archive that a server has; one that is not there is empty.
    pub(super) fn on(mut server: Box<dyn Backend>, namespace: &str) -> Result<Archive, String> {
        let bytes = match server.get(&[name_on_server()], false)?.pop() {
            Some(Fetched::Value(bytes)) => Some(bytes),
            Some(Fetched::Bad(reason)) => return Err(reason),
            Some(Fetched::Missing) | None => None,
        };
        Archive::of(ArchivePlace::Server(server), bytes, namespace)
    }

    fn of(place: ArchivePlace, bytes: Option<Vec<u8>>, namespace: &str) -> Result<Archive, String> {
        let namespace = namespace.to_owned();
        let Some(bytes) = bytes else {
            return Ok(Archive { place, namespace, values: BTreeMap::new(), is_changed: true });
        };
        let (found, values) =
            values(&bytes).ok_or("it is no archive of Tasting's, or was cut short")?;
        if found != namespace {
            return Err(format!(
                "it has results for {found:?}, and this is {namespace:?} (sharing.processors in tasting.toml)"
            ));
        }
        Ok(Archive { place, namespace, values, is_changed: false })
    }
}

/// As an object, it is no result of a test, and nobody takes it for one.
fn name_on_server() -> Name {
    Name::object(Hasher::new("archive of results").finish())
}

/// The namespace and the values in an archive's bytes; `None` if it is none.
pub fn values(bytes: &[u8]) -> Option<(&str, BTreeMap<Name, Vec<u8>>)> {
    let end = bytes.iter().take(LONGEST_START).position(|byte| *byte == b'\n')?;
    let namespace =
        std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(START)?.strip_prefix(' ')?;
    let mut rest = &bytes[end + 1..];
    let mut values = BTreeMap::new();
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(HEADER)?;
        let kind =
            ValueKind::ALL.into_iter().find(|kind| kind.letter() == char::from(header[0]))?;
        let hash = Hash(header[1..17].try_into().ok()?);
        let length = u32::from_le_bytes(header[17..].try_into().ok()?) as usize;
        let (value, after) = after.split_at_checked(length)?;
        values.insert(Name { kind, hash }, value.to_vec());
        rest = after;
    }
    Some((namespace, values))
}

impl Backend for Archive {
    fn get(&mut self, names: &[Name], _: bool) -> Result<Vec<Fetched>, String> {
        let value = |name| {
            self.values.get(name).map_or(Fetched::Missing, |value| Fetched::Value(value.clone()))
        };
        Ok(names.iter().map(value).collect())
    }

    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String> {
        for (name, value) in values {
            if replace || !self.values.contains_key(name) {
                self.values.insert(*name, value.clone());
                self.is_changed = true;
            }
        }
        Ok(())
    }

    fn remove(&mut self, names: &[Name]) -> Result<(), String> {
        names.iter().for_each(|name| self.is_changed |= self.values.remove(name).is_some());
        Ok(())
    }

    fn touch(&mut self, _: &[Name]) -> Result<(), String> {
        Ok(())
    }

    fn list(&mut self, visit: &mut dyn FnMut(Listed)) -> Result<(), String> {
        self.values
            .iter()
            .for_each(|(name, value)| visit(Listed { name: *name, bytes: value.len() as u64 }));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        let mut bytes = format!("{START} {}\n", self.namespace).into_bytes();
        for (name, value) in &self.values {
            bytes.push(name.kind.letter() as u8);
            bytes.extend_from_slice(&name.hash.0);
            bytes.extend_from_slice(
                &u32::try_from(value.len()).map_err(|error| error.to_string())?.to_le_bytes(),
            );
            bytes.extend_from_slice(value);
        }
        match &mut self.place {
            ArchivePlace::Server(server) => server.put(&[(name_on_server(), bytes)], true),
            ArchivePlace::File(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let written = TemporaryFile::write_public(folder, &bytes);
                written.and_then(|file| file.replace(path)).map_err(|error| error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn archives_round_trip_truncated_ones_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (one, two) = (Name::outcome(Hash::of(b"1")), Name::dependency_sets(Hash::of(b"2")));
        let mut archive = Archive::open(path.clone(), "n").unwrap();
        archive.put(&[(one, b"first".to_vec()), (two, Vec::new())], false).unwrap();
        archive.put(&[(one, b"second".to_vec())], false).unwrap();
        archive.finish().unwrap();
        let mut read = Archive::open(path.clone(), "n").unwrap();
        assert_eq!(read.get(&[one], false).unwrap(), [Fetched::Value(b"first".to_vec())]);
        let mut count = 0;
        read.list(&mut |_| count += 1).unwrap();
        assert_eq!(count, 2);
        assert!(Archive::open(path.clone(), "another").is_err());
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(Archive::open(path.clone(), "n").is_err());
        fs::write(&path, "something else").unwrap();
        assert!(Archive::open(path, "n").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_archive_or_none(bytes: Vec<u8>) {
            let _ = values(&bytes);
            let _ = values(&[b"tasting archive 1 n\n", &bytes[..]].concat());
        }
    }
}
