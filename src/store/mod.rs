//! The store of executions. A lookup has two steps, as in a compiler cache's direct mode: the
//! test's identity → the dependency sets of earlier executions → (the caller hashes a dependency
//! set's current values) → the outcome with that key.
//!
//! In: dependency sets, outcomes, decisions. Out: the same, complete and as they were stored, or a
//! reason why not. If anything is wrong with the store, tests run; nothing worse happens.

pub mod entry;
pub mod files;
pub mod layered;
pub mod remote;

mod contents;
mod dependency_sets;
mod journal;
mod marks;
pub mod private;
pub mod retention;
mod sizes;
mod store_file;

pub use files::{FileStore, Options};
pub use layered::Layered;

use crate::model::{Decision, DependencySet, Disturbed, FormatError, Hash, Mark, Outcome, Stats};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How many bytes an outcome or a dependency set may have before it is packed.
pub const LARGEST: usize = 64 << 20;

/// How many dependency sets are kept of one test.
pub const MOST_DEPENDENCY_SETS: usize = 16;

/// What `Options::limit` is unless somebody says otherwise.
pub const DEFAULT_LIMIT: u64 = 5 << 30;

/// Why the store could not do what it was asked for. The caller runs the test, and shows this as
/// the reason.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the store cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the store's file {} is of no use: {source}", path.display())]
    Damaged { path: PathBuf, source: FormatError },
    #[error("{size} bytes are more than the store takes in one piece ({limit})")]
    TooLarge { size: usize, limit: usize },
    #[error("the store is not to be written (TASTING_READONLY)")]
    ReadOnly,
}

impl StoreError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        StoreError::Io { action, path: path.to_owned(), source }
    }

    /// The same for what lies beside the store.
    pub fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::io(action, path, source)
    }

    /// A file of what lies beside the store cannot be made.
    pub fn format(path: &Path, source: FormatError) -> Self {
        Self::damaged(path, source)
    }

    fn damaged(path: &Path, source: FormatError) -> Self {
        StoreError::Damaged { path: path.to_owned(), source }
    }
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub dependency_sets: u64,
    pub outcomes: u64,
    /// On disk.
    pub bytes: u64,
}

/// What came of asking a store further away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteLookup {
    /// The dependency sets of the test that are known there.
    pub dependency_sets: Vec<DependencySet>,
    /// Whether some of the outcomes were there; `outcome` gives them now.
    pub found: bool,
    /// What was wrong, with the store or with what it holds.
    pub problem: Option<String>,
}

/// A store, for many processes at once: results, what is remembered beside them, the log, and the
/// quarantine.
pub trait Store: Results + Memo + Journal + Quarantine {
    /// What there is.
    fn volume(&self) -> Result<Volume, StoreError>;

    /// Removes what was used longest ago, until no more than `limit` bytes are left. Gives the
    /// bytes that were freed.
    fn clean(&self, limit: u64) -> Result<u64, StoreError>;

    /// Forgets all executions and content hashes. The log, the sums and the quarantine stay.
    fn clear(&self) -> Result<(), StoreError>;
}

/// What came of executions.
pub trait Results: Send + Sync {
    /// The dependency sets of earlier executions of a test, the latest first, each once. Damaged
    /// ones are passed over, unless there are no others.
    fn dependency_sets(&self, test: Hash) -> Result<Vec<DependencySet>, StoreError>;

    /// The outcome of the execution with this key.
    fn outcome(&self, key: Hash) -> Result<Option<Outcome>, StoreError>;

    /// Remembers an execution. Once this has returned `Ok`, every process finds it, whatever
    /// happens to this one.
    fn put(
        &self,
        test: Hash,
        dependency_set: &DependencySet,
        key: Hash,
        outcome: &Outcome,
    ) -> Result<(), StoreError>;

    /// Notes that an outcome was reused, so that it is not the next to be cleaned away. Cheap, and
    /// never fails.
    fn used(&self, test: Hash, dependency_set: &DependencySet, key: Hash);

    /// Forgets an outcome. Says whether there was one.
    fn drop_outcome(&self, key: Hash) -> Result<bool, StoreError>;

    /// Asks a store further away, if there is one, for the dependency sets of a test and for
    /// outcomes, all at one time.
    fn ask(&self, _test: Option<Hash>, _keys: &[Hash]) -> RemoteLookup {
        RemoteLookup::default()
    }
}

/// What is dear to compute and follows from its name alone: content hashes under a file's identity,
/// manifests, traces. What is lost is computed again.
pub trait Memo: Send + Sync {
    /// What was remembered under a name. What cannot be read counts as not remembered.
    fn recall(&self, name: Hash) -> Option<Hash>;

    /// Remembers something for `recall`. Never fails.
    fn remember(&self, name: Hash, value: Hash);

    /// The latest bytes that were kept under a name.
    fn blob(&self, name: Hash) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps bytes under a name, in place of what was there.
    fn put_blob(&self, name: Hash, bytes: &[u8]) -> Result<(), StoreError>;

    /// Whether there are bytes under a name.
    fn has_blob(&self, name: Hash) -> bool;
}

/// What was decided.
pub trait Journal: Send + Sync {
    /// Adds a decision to the log.
    fn log(&self, decision: &Decision) -> Result<(), StoreError>;

    /// Adds decisions to the log, in their order.
    fn log_all(&self, decisions: &[Decision]) -> Result<(), StoreError>;

    /// The last decisions, the newest last.
    fn decisions(&self, last: usize) -> Result<Vec<Decision>, StoreError>;

    /// The sums over all decisions since they were last set to zero.
    fn stats(&self) -> Result<Stats, StoreError>;

    /// Sets the sums to zero. The log stays.
    fn zero_stats(&self) -> Result<(), StoreError>;
}

/// Tests that are not to be treated as others are: those that missed a change, and those that we
/// disturb.
pub trait Quarantine: Send + Sync {
    /// Puts a test in quarantine, or changes its mark.
    fn mark(&self, mark: &Mark) -> Result<(), StoreError>;

    /// The mark of a test, if it is in quarantine. After an error the test must be treated as if it
    /// were.
    fn mark_of(&self, test: Hash) -> Result<Option<Mark>, StoreError>;

    /// All tests in quarantine.
    fn marks(&self) -> Result<Vec<Mark>, StoreError>;

    /// Takes a test out of quarantine.
    fn unmark(&self, test: Hash) -> Result<(), StoreError>;

    /// Remembers that a test is disturbed by us, and how to treat it.
    fn disturb(&self, disturbed: &Disturbed) -> Result<(), StoreError>;

    /// How to treat a test that was disturbed. One whose mark cannot be read is disturbed again,
    /// and noticed.
    fn disturbed(&self, test: Hash) -> Option<Disturbed>;

    /// All tests that were disturbed.
    fn all_disturbed(&self) -> Result<Vec<Disturbed>, StoreError>;

    /// Treats a test as any other again.
    fn forget_disturbance(&self, test: Hash) -> Result<(), StoreError>;
}
