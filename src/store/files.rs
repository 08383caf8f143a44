//! The store that comes with Tasting: plain files in one folder, written under another name and
//! renamed into place. There is no lock that a killed process could hold, no server, and no file
//! whose damage reaches further than one entry. docs/store.md has the measurements against SQLite
//! and LMDB.
//!
//! ```text
//! results-1/ab/cdef….o      an outcome, under its key       results-1/log/…         decisions and their sums
//! results-1/ab/cdef….s0…sf  dependency sets of a test                results-1/quarantine/…  marks
//! results-1/ab/cdef….b      traces and manifests            results-1/contents      hashes of files
//! results-1/sizes           of the folders, about           results-1/disturbed/…   tests to treat otherwise
//! ```

use super::contents::Contents;
use super::dependency_sets::{self, Stem};
use super::entry::{self, BLOB, LARGEST_FILE, OUTCOME};
use super::journal::Log;
use super::marks::Marks;
use super::remote::Name;
use super::retention::{self, Retention};
use super::store_file::{self, TemporaryFile};
use super::{
    DEFAULT_LIMIT, Journal, LARGEST, Memo, Quarantine, Results, Store, StoreError, Volume,
};
use crate::model::{Decision, DependencySet, Disturbed, Hash, Mark, Outcome, Stats};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// The version of the layout: another version of Tasting with another layout has a folder of its
/// own.
const FOLDER: &str = "results-1";

/// A use is noted at most this often, so that reusing writes next to nothing.
const NOTED: Duration = Duration::from_secs(3600);

/// What comes from elsewhere, and was never used here, counts as used so long ago.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

/// How a store is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes the entries may take on disk.
    pub limit: u64,
    /// Never write.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { limit: DEFAULT_LIMIT, read_only: false }
    }
}

/// A store in a folder.
pub struct FileStore {
    root: PathBuf,
    options: Options,
    contents: OnceLock<Option<Contents>>,
}

impl FileStore {
    /// The store below `TASTING_DIR`. Nothing is touched before something is asked for.
    pub fn new(folder: &Path, options: Options) -> Self {
        FileStore { root: folder.join(FOLDER), options, contents: OnceLock::new() }
    }

    fn stem(&self, name: Hash) -> Stem {
        let name_text = name.to_string();
        Stem { folder: retention::folder(&self.root, name.0[0]), name: name_text[2..].to_owned() }
    }

    fn outcome_path(&self, key: Hash) -> PathBuf {
        self.stem(key).file(".o")
    }

    fn blob_path(&self, name: Hash) -> PathBuf {
        self.stem(name).file(".b")
    }

    fn retention(&self, limit: u64) -> Retention<'_> {
        Retention { root: &self.root, limit }
    }

    fn writable(&self) -> Result<(), StoreError> {
        if self.options.read_only { Err(StoreError::ReadOnly) } else { Ok(()) }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// The folder of this layout's files.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps an outcome that nobody has used here yet.
    pub(super) fn put_outcome(&self, key: Hash, outcome: &Outcome) -> Result<(), StoreError> {
        let size = self.write_outcome(key, outcome)?;
        if let Ok(file) = store_file::open(&self.outcome_path(key)) {
            dependency_sets::use_at(&file, SystemTime::now() - UNUSED);
        }
        self.retention(self.options.limit).added(&[(key.0[0], size)]);
        Ok(())
    }

    fn write_outcome(&self, key: Hash, outcome: &Outcome) -> Result<u64, StoreError> {
        self.writable()?;
        if outcome.size() > LARGEST {
            return Err(StoreError::TooLarge { size: outcome.size(), limit: LARGEST });
        }
        let path = self.outcome_path(key);
        let raw = outcome.to_bytes().map_err(|error| StoreError::damaged(&path, error))?;
        let file = entry::encode(&OUTCOME, key, &raw)?;
        TemporaryFile::write(&retention::folder(&self.root, key.0[0]), &file)?.replace(&path)?;
        Ok(file.len() as u64)
    }

    /// Keeps a dependency set of a test that nobody has used here yet.
    pub(super) fn put_dependency_set(
        &self,
        test: Hash,
        dependency_set: &DependencySet,
    ) -> Result<(), StoreError> {
        let size = self.write_dependency_set(test, dependency_set)?;
        if let (Ok(raw), 1..) = (dependency_set.to_bytes(), size) {
            dependency_sets::touch(&self.stem(test), test, &raw, SystemTime::now() - UNUSED);
        }
        self.retention(self.options.limit).added(&[(test.0[0], size)]);
        Ok(())
    }

    fn write_dependency_set(
        &self,
        test: Hash,
        dependency_set: &DependencySet,
    ) -> Result<u64, StoreError> {
        self.writable()?;
        let stem = self.stem(test);
        let raw =
            dependency_set.to_bytes().map_err(|error| StoreError::damaged(&stem.folder, error))?;
        dependency_sets::add(&stem, test, &raw)
    }

    /// Whether there is an outcome with this key.
    pub(super) fn has_outcome(&self, key: Hash) -> bool {
        self.outcome_path(key).symlink_metadata().is_ok()
    }

    /// The names of all outcomes, and then of all tests with dependency sets; of those that were
    /// used within a time, if there is one.
    pub(super) fn entries(&self, used_within: Option<Duration>) -> Result<Vec<Name>, StoreError> {
        let mut names = BTreeSet::new();
        self.retention(0).every_file(|path, used| {
            let is_old =
                used.elapsed().is_ok_and(|age| used_within.is_some_and(|longest| age > longest));
            names.extend(name_of(path).filter(|_| !is_old));
        })?;
        Ok(names.into_iter().rev().collect())
    }

    /// Notes a use; whether it was time to note one.
    pub(super) fn note_use(&self, test: Hash, dependency_set: &DependencySet, key: Hash) -> bool {
        let Ok(file) = store_file::open(&self.outcome_path(key)) else { return false };
        let noted = file.metadata().and_then(|metadata| metadata.modified()).ok();
        let recently = noted
            .and_then(|time| SystemTime::now().duration_since(time).ok())
            .is_some_and(|age| age < NOTED);
        if recently || self.options.read_only {
            return false;
        }
        dependency_sets::use_now(&file);
        if let Ok(raw) = dependency_set.to_bytes() {
            dependency_sets::touch(&self.stem(test), test, &raw, SystemTime::now());
        }
        true
    }

    fn contents(&self) -> Option<&Contents> {
        let path = self.root.join("contents");
        self.contents.get_or_init(|| Contents::open(&path, !self.options.read_only)).as_ref()
    }
}

impl Results for FileStore {
    fn dependency_sets(&self, test: Hash) -> Result<Vec<DependencySet>, StoreError> {
        dependency_sets::read(&self.stem(test), test)
    }

    fn outcome(&self, key: Hash) -> Result<Option<Outcome>, StoreError> {
        let path = self.outcome_path(key);
        let Some((file, _)) = store_file::read(&path, LARGEST_FILE)? else { return Ok(None) };
        let outcome = entry::decode(&OUTCOME, key, &file).and_then(|raw| Outcome::from_bytes(&raw));
        outcome.map(Some).map_err(|error| StoreError::damaged(&path, error))
    }

    fn put(
        &self,
        test: Hash,
        dependency_set: &DependencySet,
        key: Hash,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        // The outcome first: who sees the dependency set finds it.
        let outcome_size = self.write_outcome(key, outcome)?;
        let dependency_set_size = self.write_dependency_set(test, dependency_set)?;
        self.retention(self.options.limit)
            .added(&[(key.0[0], outcome_size), (test.0[0], dependency_set_size)]);
        Ok(())
    }

    fn used(&self, test: Hash, dependency_set: &DependencySet, key: Hash) {
        self.note_use(test, dependency_set, key);
    }

    fn drop_outcome(&self, key: Hash) -> Result<bool, StoreError> {
        self.writable()?;
        let path = self.outcome_path(key);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("remove", &path, error)),
        }
    }
}

impl Journal for FileStore {
    fn log(&self, decision: &Decision) -> Result<(), StoreError> {
        self.writable()?;
        Log::new(&self.root).append(decision)
    }

    fn log_all(&self, decisions: &[Decision]) -> Result<(), StoreError> {
        self.writable()?;
        Log::new(&self.root).append_all(decisions)
    }

    fn decisions(&self, last: usize) -> Result<Vec<Decision>, StoreError> {
        Log::new(&self.root).last(last)
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        Log::new(&self.root).stats()
    }

    fn zero_stats(&self) -> Result<(), StoreError> {
        self.writable()?;
        Log::new(&self.root).zero()
    }
}

impl Memo for FileStore {
    fn recall(&self, name: Hash) -> Option<Hash> {
        self.contents()?.get(name)
    }

    fn remember(&self, name: Hash, value: Hash) {
        if self.options.read_only {
            return;
        }
        if let Some(contents) = self.contents() {
            contents.set(name, value);
        }
    }

    fn blob(&self, name: Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.blob_path(name);
        let Some((file, _)) = store_file::read(&path, LARGEST_FILE)? else { return Ok(None) };
        entry::decode(&BLOB, name, &file)
            .map(Some)
            .map_err(|error| StoreError::damaged(&path, error))
    }

    fn put_blob(&self, name: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        self.writable()?;
        let file = entry::encode(&BLOB, name, bytes)?;
        TemporaryFile::write(&retention::folder(&self.root, name.0[0]), &file)?
            .replace(&self.blob_path(name))?;
        self.retention(self.options.limit).added(&[(name.0[0], file.len() as u64)]);
        Ok(())
    }

    fn has_blob(&self, name: Hash) -> bool {
        self.blob_path(name).symlink_metadata().is_ok()
    }
}

impl Quarantine for FileStore {
    fn mark(&self, mark: &Mark) -> Result<(), StoreError> {
        self.writable()?;
        Marks::new(&self.root).set(mark)
    }

    fn mark_of(&self, test: Hash) -> Result<Option<Mark>, StoreError> {
        Marks::new(&self.root).get(test)
    }

    fn marks(&self) -> Result<Vec<Mark>, StoreError> {
        Marks::new(&self.root).all()
    }

    fn unmark(&self, test: Hash) -> Result<(), StoreError> {
        self.writable()?;
        Marks::<Mark>::new(&self.root).remove(test)
    }

    fn disturb(&self, disturbed: &Disturbed) -> Result<(), StoreError> {
        self.writable()?;
        Marks::new(&self.root).set(disturbed)
    }

    fn disturbed(&self, test: Hash) -> Option<Disturbed> {
        Marks::new(&self.root).get(test).ok().flatten()
    }

    fn all_disturbed(&self) -> Result<Vec<Disturbed>, StoreError> {
        Marks::new(&self.root).all()
    }

    fn forget_disturbance(&self, test: Hash) -> Result<(), StoreError> {
        self.writable()?;
        Marks::<Disturbed>::new(&self.root).remove(test)
    }
}

impl Store for FileStore {
    fn volume(&self) -> Result<Volume, StoreError> {
        self.retention(0).volume()
    }

    fn clean(&self, limit: u64) -> Result<u64, StoreError> {
        self.writable()?;
        self.retention(limit).clean()
    }

    fn clear(&self) -> Result<(), StoreError> {
        self.writable()?;
        let contents = self.root.join("contents");
        match fs::remove_file(&contents) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &contents, error))
            }
            _ => self.retention(0).clear(),
        }
    }
}

/// What a file holds, by its name and that of its folder.
fn name_of(path: &Path) -> Option<Name> {
    let (stem, ending) = path.file_name()?.to_str()?.split_once('.')?;
    let hash = Hash::from_text(&format!("{}{stem}", path.parent()?.file_name()?.to_str()?))?;
    match ending.as_bytes() {
        b"o" => Some(Name::outcome(hash)),
        [b's', _] => Some(Name::dependency_sets(hash)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
