//! The upload queue of a remote store: empty files whose names say what to upload. Nothing can be
//! half-written, duplicates are one file, and any later process can continue: one that was started
//! for it, the next run, or `tasting push`.

use crate::model::Hash;
use crate::store::{StoreError, private};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What waits longer is given up.
const LONGEST_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// No more than this may wait.
const MOST_WAITING: usize = 50_000;

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UploadJob {
    /// An execution is to be written: the test, the hash of its dependency set, the key of its
    /// outcome.
    Put { test: Hash, dependency_set: Hash, key: Hash, replace: bool },
    /// An outcome was used.
    Used { test: Hash, key: Hash },
    /// An outcome was found to be wrong.
    Drop { key: Hash },
    /// An object is to be written.
    Object { key: Hash, replace: bool },
}

impl UploadJob {
    fn file(&self) -> String {
        match self {
            UploadJob::Put { test, dependency_set, key, replace: false } => {
                format!("put-{test}-{dependency_set}-{key}")
            }
            UploadJob::Put { test, dependency_set, key, replace: true } => {
                format!("replace-{test}-{dependency_set}-{key}")
            }
            UploadJob::Used { test, key } => format!("used-{test}-{key}"),
            UploadJob::Drop { key } => format!("drop-{key}"),
            UploadJob::Object { key, replace: false } => format!("object-{key}"),
            UploadJob::Object { key, replace: true } => format!("reobject-{key}"),
        }
    }

    fn of_file(name: &str) -> Option<UploadJob> {
        let mut parts = name.split('-');
        let word = parts.next()?;
        let hashes = parts.map(Hash::from_text).collect::<Option<Vec<_>>>()?;
        match (word, hashes.as_slice()) {
            ("put", &[test, dependency_set, key]) => {
                Some(UploadJob::Put { test, dependency_set, key, replace: false })
            }
            ("replace", &[test, dependency_set, key]) => {
                Some(UploadJob::Put { test, dependency_set, key, replace: true })
            }
            ("used", &[test, key]) => Some(UploadJob::Used { test, key }),
            ("drop", &[key]) => Some(UploadJob::Drop { key }),
            ("object", &[key]) => Some(UploadJob::Object { key, replace: false }),
            ("reobject", &[key]) => Some(UploadJob::Object { key, replace: true }),
            _ => None,
        }
    }
}

/// The jobs in one folder.
pub struct Spool {
    folder: PathBuf,
}

/// A lock. It ends with the process at the latest.
pub struct Held {
    _lock: File,
}

impl Spool {
    pub fn new(folder: PathBuf) -> Spool {
        Spool { folder }
    }

    /// Adds an job.
    pub fn add(&self, job: UploadJob) -> Result<(), StoreError> {
        let path = self.folder.join(job.file());
        let create = || private::options().write(true).create(true).truncate(false).open(&path);
        let made =
            create().or_else(|_| private::create_folder(&self.folder).and_then(|()| create()));
        made.map(|_| ()).map_err(|error| StoreError::io("write", &path, error))
    }

    /// What is to be done, the oldest first.
    pub fn jobs(&self) -> Vec<UploadJob> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found: Vec<(SystemTime, UploadJob, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let job = UploadJob::of_file(entry.file_name().to_str()?)?;
                Some((entry.metadata().ok()?.modified().ok()?, job, entry.path()))
            })
            .collect();
        found.sort();
        let too_many = found.len().saturating_sub(MOST_WAITING);
        let is_old = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > LONGEST_WAIT);
        let mut kept = Vec::with_capacity(found.len());
        for (number, (time, job, path)) in found.into_iter().enumerate() {
            if number < too_many || is_old(&time) {
                let _ = fs::remove_file(path);
            } else {
                kept.push(job);
            }
        }
        kept
    }

    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.jobs().is_empty()
    }

    /// An job is done.
    pub fn done(&self, job: &UploadJob) {
        let _ = fs::remove_file(self.folder.join(job.file()));
    }

    /// The right to do jobs, which is waited for.
    pub fn turn(&self) -> Option<Held> {
        let lock = self.lock_file("turn")?;
        flock(&lock, FlockOperation::LockExclusive).ok()?;
        Some(Held { _lock: lock })
    }

    /// Held by the process that does the jobs which come up; nothing if somebody else holds it. Who
    /// gives it up looks again afterwards.
    pub fn uploader_lock(&self) -> Option<Held> {
        let lock = self.lock_file("uploader")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Held { _lock: lock })
    }

    fn lock_file(&self, name: &str) -> Option<File> {
        let path = self.folder.parent().unwrap_or(Path::new("/")).join(name);
        let open = || private::options().write(true).create(true).truncate(false).open(&path);
        open().or_else(|_| private::create_folder(&self.folder).and_then(|()| open())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_jobs_wait_once_until_done() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().join("a/spool"));
        let hash = |name: &[u8]| Hash::of(name);
        let put = |replace| UploadJob::Put {
            test: hash(b"t"),
            dependency_set: hash(b"s"),
            key: hash(b"k"),
            replace,
        };
        let all = [
            put(false),
            put(true),
            UploadJob::Used { test: hash(b"t"), key: hash(b"k") },
            UploadJob::Drop { key: hash(b"k") },
            UploadJob::Object { key: hash(b"k"), replace: false },
            UploadJob::Object { key: hash(b"k"), replace: true },
        ];
        assert!(spool.is_empty());
        for job in all.iter().chain(&all) {
            spool.add(*job).unwrap();
        }
        fs::write(folder.path().join("a/spool/put-nonsense"), "").unwrap();
        let mut found = spool.jobs();
        found.sort();
        assert_eq!(found, all);
        all.iter().for_each(|job| spool.done(job));
        assert!(spool.is_empty());
    }

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().join("spool"));
        let uploader_lock = spool.uploader_lock().unwrap();
        assert!(Spool::new(folder.path().join("spool")).uploader_lock().is_none());
        assert!(spool.turn().is_some(), "who holds it does not keep others from doing jobs");
        drop(uploader_lock);
        assert!(spool.uploader_lock().is_some());
    }
}
