//! The dependency sets of one test: up to 16 files with one set each, so that no process has to
//! read, change and write a list that another one is changing too. A new dependency set takes a
//! free slot, or else the least recently used one.

use super::entry::{self, DEPENDENCY_SET, LARGEST_FILE};
use super::store_file::{self, TemporaryFile};
use super::{MOST_DEPENDENCY_SETS, StoreError};
use crate::model::{DependencySet, Hash};
use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder and the name of an entry's file.
pub struct Stem {
    pub folder: PathBuf,
    pub name: String,
}

impl Stem {
    /// The file with this ending.
    pub fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    fn place(&self, number: usize) -> PathBuf {
        self.file(&format!(".s{number:x}"))
    }
}

/// A place that is taken.
struct Taken {
    path: PathBuf,
    used: SystemTime,
    content: Result<(Vec<u8>, File), StoreError>,
}

/// The places of a test: those that are taken, and those that are not.
fn survey(stem: &Stem, test: Hash) -> (Vec<Taken>, Vec<PathBuf>) {
    let (mut taken, mut free) = (Vec::new(), Vec::new());
    for path in (0..MOST_DEPENDENCY_SETS).map(|number| stem.place(number)) {
        match store_file::read(&path, LARGEST_FILE) {
            Ok(None) => free.push(path),
            Ok(Some((bytes, file))) => taken.push(examine(path, test, &bytes, file)),
            Err(error) => {
                taken.push(Taken { path, used: SystemTime::UNIX_EPOCH, content: Err(error) })
            }
        }
    }
    taken.sort_by_key(|place| std::cmp::Reverse(place.used));
    (taken, free)
}

fn examine(path: PathBuf, test: Hash, bytes: &[u8], file: File) -> Taken {
    match entry::decode(&DEPENDENCY_SET, test, bytes) {
        Ok(raw) => {
            let used = file
                .metadata()
                .and_then(|metadata| metadata.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH);
            Taken { path, used, content: Ok((raw, file)) }
        }
        Err(error) => {
            let content = Err(StoreError::damaged(&path, error));
            Taken { path, used: SystemTime::UNIX_EPOCH, content }
        }
    }
}

/// The dependency sets of a test, the latest first.
pub fn read(stem: &Stem, test: Hash) -> Result<Vec<DependencySet>, StoreError> {
    let mut dependency_sets = Vec::new();
    let mut problem = None;
    for place in survey(stem, test).0 {
        let dependency_set = place.content.and_then(|(raw, _)| {
            DependencySet::from_bytes(&raw).map_err(|error| StoreError::damaged(&place.path, error))
        });
        match dependency_set {
            Ok(dependency_set) if dependency_sets.contains(&dependency_set) => {}
            Ok(dependency_set) => dependency_sets.push(dependency_set),
            Err(error) => problem = Some(error),
        }
    }
    match problem {
        Some(problem) if dependency_sets.is_empty() => Err(problem),
        _ => Ok(dependency_sets),
    }
}

/// Adds a dependency set to a test, or makes it the latest. Gives the size of the new file, if
/// there is one.
pub fn add(stem: &Stem, test: Hash, raw: &[u8]) -> Result<u64, StoreError> {
    let (taken, free) = survey(stem, test);
    if refresh(&taken, raw, SystemTime::now()) {
        return Ok(0);
    }
    let content = entry::encode(&DEPENDENCY_SET, test, raw)?;
    let temporary = TemporaryFile::write(&stem.folder, &content)?;
    for place in &free {
        if temporary.claim(place)? {
            return Ok(content.len() as u64);
        }
    }
    let oldest = taken.last().map_or_else(|| stem.place(0), |place| place.path.clone());
    temporary.replace(&oldest)?;
    Ok(content.len() as u64)
}

/// Notes when a dependency set that is there was used.
pub fn touch(stem: &Stem, test: Hash, raw: &[u8], time: SystemTime) {
    refresh(&survey(stem, test).0, raw, time);
}

/// Whether the dependency set is there; it was used then.
fn refresh(taken: &[Taken], raw: &[u8], time: SystemTime) -> bool {
    let Some((path, file)) = taken.iter().find_map(|place| match &place.content {
        Ok((content, file)) if content == raw => Some((&place.path, file)),
        _ => None,
    }) else {
        return false;
    };
    use_at(file, time);
    // Someone may have cleaned it away in between.
    is_in_place(path)
}

fn is_in_place(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Notes that a file was used now.
pub fn use_now(file: &File) {
    use_at(file, SystemTime::now());
}

/// Notes when a file was used. A file of another user, or in a folder that is read-only, stays as
/// it is.
pub fn use_at(file: &File, time: SystemTime) {
    let _ = file.set_times(FileTimes::new().set_modified(time));
}
