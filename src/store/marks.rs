//! Tests that are treated specially, because they are in quarantine or were disturbed: one small
//! file each, under the test's identity.

use super::StoreError;
use super::store_file::{self, TemporaryFile};
use crate::model::envelope::Format;
use crate::model::{Disturbed, FormatError, Hash, Mark};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

const LARGEST_MARK: usize = 4 << 20;

/// What is written about a test.
pub trait AboutTest: Serialize + DeserializeOwned {
    const FOLDER: &str;
    const FORMAT: Format;

    fn test(&self) -> Hash;
    fn since(&self) -> u64;
}

impl AboutTest for Mark {
    const FOLDER: &str = "quarantine";
    const FORMAT: Format = Format { magic: *b"TASTEMRK", version: 1 };

    fn test(&self) -> Hash {
        self.test
    }

    fn since(&self) -> u64 {
        self.since
    }
}

impl AboutTest for Disturbed {
    const FOLDER: &str = "disturbed";
    const FORMAT: Format = Format { magic: *b"TASTEDIS", version: 1 };

    fn test(&self) -> Hash {
        self.test
    }

    fn since(&self) -> u64 {
        self.since
    }
}

/// The marks of one kind, in a folder.
pub struct Marks<T> {
    folder: PathBuf,
    kind: PhantomData<T>,
}

impl<T: AboutTest> Marks<T> {
    /// The marks below the store's folder.
    pub fn new(store: &Path) -> Self {
        Marks { folder: store.join(T::FOLDER), kind: PhantomData }
    }

    /// Writes a mark.
    pub fn set(&self, mark: &T) -> Result<(), StoreError> {
        let path = self.path(mark.test());
        let bytes = T::FORMAT.encode(mark).map_err(|error| StoreError::damaged(&path, error))?;
        if bytes.len() > LARGEST_MARK {
            return Err(StoreError::TooLarge { size: bytes.len(), limit: LARGEST_MARK });
        }
        TemporaryFile::write(&self.folder, &bytes)?.replace(&path)
    }

    /// The mark of a test.
    pub fn get(&self, test: Hash) -> Result<Option<T>, StoreError> {
        let path = self.path(test);
        let Some((bytes, _)) = store_file::read(&path, LARGEST_MARK)? else { return Ok(None) };
        match T::FORMAT.decode::<T>(&bytes) {
            Ok((mark, _)) if mark.test() == test => Ok(Some(mark)),
            Ok(_) => Err(StoreError::damaged(&path, FormatError::Malformed)),
            Err(error) => Err(StoreError::damaged(&path, error)),
        }
    }

    /// All marks that can be read, the oldest first.
    pub fn all(&self) -> Result<Vec<T>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &self.folder, error)),
        };
        let mark = |entry: fs::DirEntry| {
            let (bytes, _) = store_file::read(&entry.path(), LARGEST_MARK).ok()??;
            Some(T::FORMAT.decode::<T>(&bytes).ok()?.0)
        };
        let mut marks: Vec<T> = entries.flatten().filter_map(mark).collect();
        marks.sort_by_key(|mark| (mark.since(), mark.test()));
        Ok(marks)
    }

    /// Removes a mark.
    pub fn remove(&self, test: Hash) -> Result<(), StoreError> {
        let path = self.path(test);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, test: Hash) -> PathBuf {
        self.folder.join(test.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_last_and_damaged_marks_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let marks = Marks::new(folder.path());
        let mark = |name: &[u8], since| {
            let reason = "it gave two results".to_owned();
            Mark { test: Hash::of(name), since, reason, argv: vec!["./t".into()], passes_left: 3 }
        };
        let (one, two) = (mark(b"1", 9), mark(b"2", 5));
        assert!(marks.all().unwrap().is_empty() && marks.get(one.test).unwrap().is_none());
        marks.set(&one).unwrap();
        marks.set(&two).unwrap();
        assert_eq!(marks.get(one.test).unwrap(), Some(one.clone()));
        assert_eq!(marks.all().unwrap(), [two.clone(), one.clone()]);
        fs::copy(marks.path(one.test), marks.path(two.test)).unwrap();
        assert!(marks.get(two.test).is_err());
        marks.remove(one.test).unwrap();
        marks.remove(one.test).unwrap();
        assert!(marks.get(one.test).unwrap().is_none());
    }
}
