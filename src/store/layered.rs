//! The local store, with a remote store behind it. What is stored here is not asked for there; what
//! is found there is copied here when it is used; what is new here waits in the upload queue for a
//! background process.

use super::remote::spool::UploadJob;
use super::remote::{Fetched, Name, Remote, ValueKind};
use super::{
    FileStore, Journal, Memo, Quarantine, RemoteLookup, Results, Store, StoreError, Volume,
};
use crate::model::{Decision, DependencySet, Disturbed, Hash, Mark, Outcome, Stats};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The two stores as one.
pub struct Layered {
    pub near: FileStore,
    pub far: Option<Remote>,
    state: Mutex<RemoteAnswers>,
    has_upload_jobs: AtomicBool,
}

#[derive(Default)]
struct RemoteAnswers {
    /// Outcomes that came from the remote store.
    fetched: HashMap<Hash, Outcome>,
    /// Keys whose values there are of no use.
    bad: HashSet<Hash>,
}

impl Layered {
    pub fn new(near: FileStore, far: Option<Remote>) -> Layered {
        Layered { near, far, state: Mutex::default(), has_upload_jobs: AtomicBool::new(false) }
    }

    /// Whether this process has left something to be done.
    pub fn has_upload_jobs(&self) -> bool {
        self.has_upload_jobs.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, RemoteAnswers> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writable_far(&self) -> Option<&Remote> {
        self.far.as_ref().filter(|far| far.is_writable() && !self.near.is_read_only())
    }

    /// Adds a job to the upload queue. The worst result of a failure is
    /// that others run the test.
    fn spool(&self, job: UploadJob) {
        if let Some(far) = self.writable_far() {
            self.has_upload_jobs.fetch_or(far.spool.add(job).is_ok(), Ordering::Relaxed);
        }
    }

    fn fetch(&self, far: &Remote, test: Option<Hash>, keys: &[Hash]) -> RemoteLookup {
        let mut asked = RemoteLookup::default();
        let trial = far.location.attributes.operation_timeout;
        if far.reading.is_open(trial).is_some() {
            return asked;
        }
        let names: Vec<Name> = test
            .iter()
            .map(|test| Name::dependency_sets(*test))
            .chain(keys.iter().map(|key| Name::outcome(*key)))
            .collect();
        let values = match far.get(&names, test.is_none()) {
            Ok(values) => values,
            Err(failure) => {
                far.reading.failed(&failure.reason);
                asked.problem = Some(format!(
                    "the remote store {} is left alone for a while: {}",
                    failure.shown, failure.reason
                ));
                return asked;
            }
        };
        far.reading.succeeded();
        for (name, value) in names.into_iter().zip(values) {
            let read = match value {
                Fetched::Missing => continue,
                Fetched::Value(bytes) => self.take(far, name, &bytes, &mut asked),
                Fetched::Bad(reason) => Err(reason),
            };
            if let Err(reason) = read {
                self.state().bad.insert(name.hash);
                asked.problem = Some(format!(
                    "a value in the remote store {} is of no use: {reason}",
                    far.location.url()
                ));
            }
        }
        asked
    }

    fn take(
        &self,
        far: &Remote,
        name: Name,
        bytes: &[u8],
        asked: &mut RemoteLookup,
    ) -> Result<(), String> {
        match name.kind {
            ValueKind::DependencySets => {
                asked.dependency_sets = far.read_dependency_sets(name, bytes)?
            }
            ValueKind::Outcome => {
                let outcome = far.read_outcome(name, bytes)?;
                self.state().fetched.insert(name.hash, outcome);
                asked.found = true;
            }
            // Nobody asks for one here.
            ValueKind::Object => {}
        }
        Ok(())
    }
}

impl Results for Layered {
    fn dependency_sets(&self, test: Hash) -> Result<Vec<DependencySet>, StoreError> {
        self.near.dependency_sets(test)
    }

    fn outcome(&self, key: Hash) -> Result<Option<Outcome>, StoreError> {
        let fetched = self.state().fetched.get(&key).cloned();
        if fetched.is_some() { Ok(fetched) } else { self.near.outcome(key) }
    }

    fn put(
        &self,
        test: Hash,
        dependency_set: &DependencySet,
        key: Hash,
        outcome: &Outcome,
    ) -> Result<(), StoreError> {
        self.near.put(test, dependency_set, key, outcome)?;
        if let Some(far) = self.writable_far().filter(|far| far.private_reason(outcome).is_none())
            && let Ok(dependency_set) = dependency_set.hash()
        {
            let replace = far.usage.recache || self.state().bad.contains(&key);
            self.spool(UploadJob::Put { test, dependency_set, key, replace });
        }
        Ok(())
    }

    fn used(&self, test: Hash, dependency_set: &DependencySet, key: Hash) {
        if let Some(outcome) = self.state().fetched.remove(&key) {
            // If it cannot be kept, it is fetched again.
            let _ = self.near.put(test, dependency_set, key, &outcome);
        } else if self.near.note_use(test, dependency_set, key)
            && self.far.as_ref().is_some_and(|far| far.location.attributes.expire.is_some())
        {
            self.spool(UploadJob::Used { test, key });
        }
    }

    fn drop_outcome(&self, key: Hash) -> Result<bool, StoreError> {
        self.state().fetched.remove(&key);
        self.spool(UploadJob::Drop { key });
        self.near.drop_outcome(key)
    }

    fn ask(&self, test: Option<Hash>, keys: &[Hash]) -> RemoteLookup {
        self.far.as_ref().map(|far| self.fetch(far, test, keys)).unwrap_or_default()
    }
}

impl Journal for Layered {
    fn log(&self, decision: &Decision) -> Result<(), StoreError> {
        self.near.log(decision)
    }

    fn log_all(&self, decisions: &[Decision]) -> Result<(), StoreError> {
        self.near.log_all(decisions)
    }

    fn decisions(&self, last: usize) -> Result<Vec<Decision>, StoreError> {
        self.near.decisions(last)
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.near.stats()
    }

    fn zero_stats(&self) -> Result<(), StoreError> {
        self.near.zero_stats()
    }
}

impl Memo for Layered {
    fn recall(&self, name: Hash) -> Option<Hash> {
        self.near.recall(name)
    }

    fn remember(&self, name: Hash, value: Hash) {
        self.near.remember(name, value);
    }

    fn blob(&self, name: Hash) -> Result<Option<Vec<u8>>, StoreError> {
        self.near.blob(name)
    }

    fn put_blob(&self, name: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        self.near.put_blob(name, bytes)
    }

    fn has_blob(&self, name: Hash) -> bool {
        self.near.has_blob(name)
    }
}

impl Quarantine for Layered {
    fn mark(&self, mark: &Mark) -> Result<(), StoreError> {
        self.near.mark(mark)
    }

    fn mark_of(&self, test: Hash) -> Result<Option<Mark>, StoreError> {
        self.near.mark_of(test)
    }

    fn marks(&self) -> Result<Vec<Mark>, StoreError> {
        self.near.marks()
    }

    fn unmark(&self, test: Hash) -> Result<(), StoreError> {
        self.near.unmark(test)
    }

    fn disturb(&self, disturbed: &Disturbed) -> Result<(), StoreError> {
        self.near.disturb(disturbed)
    }

    fn disturbed(&self, test: Hash) -> Option<Disturbed> {
        self.near.disturbed(test)
    }

    fn all_disturbed(&self) -> Result<Vec<Disturbed>, StoreError> {
        self.near.all_disturbed()
    }

    fn forget_disturbance(&self, test: Hash) -> Result<(), StoreError> {
        self.near.forget_disturbance(test)
    }
}

impl Store for Layered {
    fn volume(&self) -> Result<Volume, StoreError> {
        self.near.volume()
    }

    fn clean(&self, limit: u64) -> Result<u64, StoreError> {
        self.near.clean(limit)
    }

    fn clear(&self) -> Result<(), StoreError> {
        self.near.clear()
    }
}
