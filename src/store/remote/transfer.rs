//! Transfers results between the local store and a remote one, in the background or on request:
//! upload jobs of the spool, `tasting push`, `tasting pull`.
//!
//! In: a local store, a remote store. Out: how much was transferred, what was not and why.

use super::location::Endpoint;
use super::spool::UploadJob;
use super::{Fetched, Listed, Name, Remote, RemoteError, ValueKind, outcome_safety};
use crate::model::{DependencySet, Hash, Outcome};
use crate::store::store_file::random;
use crate::store::{FileStore, MOST_DEPENDENCY_SETS, Results};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So many values are moved at one time.
const BATCH: usize = 64;

/// How often a list is written again that somebody else has overwritten.
const MOST_ATTEMPTS: usize = 4;

/// How many reasons are kept.
const MOST_REASONS: usize = 5;

/// How often, and how long each time, the process that does upload jobs waits for more.
const IDLE_ROUNDS: usize = 10;
const IDLE: Duration = Duration::from_millis(100);

/// One in so many who send something to a folder looks for what is old there.
const CLEANING_SHARE: u64 = 100;

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub outcomes: u64,
    pub tests: u64,
    pub objects: u64,
    pub bytes: u64,
    /// How many were not, and some of the reasons.
    pub left: u64,
    pub reasons: Vec<String>,
}

/// What a remote store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteVolume {
    pub outcomes: u64,
    pub tests: u64,
    pub objects: u64,
    pub bytes: u64,
}

impl Moved {
    /// Both together.
    pub fn and(mut self, other: Moved) -> Moved {
        self.outcomes += other.outcomes;
        self.tests += other.tests;
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.left += other.left;
        self.reasons.extend(other.reasons);
        self
    }

    pub(super) fn leave(&mut self, reason: String) {
        self.left += 1;
        if self.reasons.len() < MOST_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// What is to be written.
#[derive(Default)]
struct Cargo {
    outcomes: Vec<(Hash, bool)>,
    tests: BTreeMap<Hash, Vec<DependencySet>>,
    /// The process that ran the tests has decided to share the results; settings may have changed
    /// since.
    is_decided: bool,
}

impl Remote {
    /// Why an outcome is not for others, by the project's settings.
    pub fn private_reason(&self, outcome: &Outcome) -> Option<&'static str> {
        if outcome.checkout_specific && !self.usage.checkout_specific {
            return Some(
                "its output names the folder of its checkout (sharing.same-path in tasting.toml)",
            );
        }
        let is_failure = !outcome.exit.is_good() && !self.usage.failures;
        is_failure.then_some("it is a failure, and those are not reused")
    }

    /// The value of an outcome as others get it: without the folder that it came about in. Or the
    /// reason why they do not.
    fn shared_value(&self, name: Name, outcome: &Outcome) -> Result<Vec<u8>, String> {
        if let Some(reason) = outcome_safety::of(outcome) {
            return Err(reason);
        }
        let mut shared = outcome.clone();
        shared.origin.root.clear();
        self.keys.outcome(name, &shared)
    }

    /// Does what waits in the spool, and for a while what comes to wait there. For a process that
    /// nobody waits for.
    pub fn serve(&self, near: &FileStore) -> Result<(), RemoteError> {
        while !self.spool.is_empty() {
            let Some(_lock) = self.spool.uploader_lock() else { break };
            let mut idle = 0;
            while idle < IDLE_ROUNDS {
                if self.spool.is_empty() {
                    idle += 1;
                    std::thread::sleep(IDLE);
                } else {
                    idle = 0;
                    self.upload_waiting(near)?;
                    self.clean_occasionally();
                }
            }
        }
        Ok(())
    }

    /// Nobody else removes what is old from a folder.
    fn clean_occasionally(&self) {
        let attributes = &self.location.attributes;
        let has_end = attributes.expire.is_some() || attributes.expire_objects.is_some();
        if has_end
            && matches!(self.location.endpoint, Endpoint::Folder(_))
            && random().is_multiple_of(CLEANING_SHARE)
        {
            // If it fails, somebody else's will not.
            let _ = self.clean();
        }
    }

    /// Does what waits in the spool.
    pub fn upload_waiting(&self, near: &FileStore) -> Result<Moved, RemoteError> {
        let _turn = self.spool.turn();
        let mut moved = Moved::default();
        for jobs in self.spool.jobs().chunks(BATCH) {
            let done = self.do_batch(near, jobs, &mut moved);
            match &done {
                Ok(()) => self.writing.succeeded(),
                Err(failure) => self.writing.failed(&failure.reason),
            }
            done?;
            jobs.iter().for_each(|job| self.spool.done(job));
        }
        Ok(moved)
    }

    fn do_batch(
        &self,
        near: &FileStore,
        jobs: &[UploadJob],
        moved: &mut Moved,
    ) -> Result<(), RemoteError> {
        let mut cargo = Cargo { is_decided: true, ..Cargo::default() };
        let (mut used, mut dropped, mut objects) = (BTreeSet::new(), Vec::new(), Vec::new());
        for job in jobs {
            match *job {
                UploadJob::Put { test, dependency_set, key, replace } => {
                    let dependency_sets = near.dependency_sets(test).unwrap_or_default();
                    let meant = dependency_sets
                        .into_iter()
                        .find(|known| known.hash() == Ok(dependency_set));
                    cargo.outcomes.push((key, replace));
                    cargo.tests.entry(test).or_default().extend(meant);
                }
                UploadJob::Used { test, key } => {
                    used.extend([Name::dependency_sets(test), Name::outcome(key)])
                }
                UploadJob::Drop { key } => dropped.push(Name::outcome(key)),
                UploadJob::Object { key, replace } => objects.push((key, replace)),
            }
        }
        if !dropped.is_empty() {
            self.with(move |server| server.remove(&dropped))?;
        }
        if !used.is_empty() {
            let used: Vec<Name> = used.into_iter().collect();
            self.with(move |server| server.touch(&used))?;
        }
        self.send(near, &cargo, moved)?;
        self.send_objects(&objects, moved)
    }

    /// Writes outcomes, and then the lists of dependency sets that lead to them.
    fn send(&self, near: &FileStore, cargo: &Cargo, moved: &mut Moved) -> Result<(), RemoteError> {
        for replace in [false, true] {
            let mut values = Vec::new();
            for (key, _) in cargo.outcomes.iter().filter(|(_, wanted)| *wanted == replace) {
                let name = Name::outcome(*key);
                // What has been cleaned away in the meantime is nobody's loss.
                let Ok(Some(outcome)) = near.outcome(*key) else { continue };
                let private = if cargo.is_decided { None } else { self.private_reason(&outcome) };
                match private.map_or_else(
                    || self.shared_value(name, &outcome),
                    |reason| Err(reason.to_owned()),
                ) {
                    Ok(bytes) => values.push((name, bytes)),
                    Err(reason) => moved.leave(reason),
                }
            }
            moved.outcomes += values.len() as u64;
            moved.bytes += values.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
            if !values.is_empty() {
                self.with(move |server| server.put(&values, replace))?;
            }
        }
        self.merge(&cargo.tests, moved)
    }

    /// Adds dependency sets to the lists of their tests. Two who do so at one time overwrite each
    /// other's; so each looks again.
    fn merge(
        &self,
        tests: &BTreeMap<Hash, Vec<DependencySet>>,
        moved: &mut Moved,
    ) -> Result<(), RemoteError> {
        let mut written = BTreeSet::new();
        for _ in 0..MOST_ATTEMPTS {
            let names: Vec<Name> = tests.keys().map(|test| Name::dependency_sets(*test)).collect();
            if names.is_empty() {
                break;
            }
            let lists = self.get(&names, false)?;
            let mut changed = Vec::new();
            for ((name, dependency_sets), list) in names.into_iter().zip(tests.values()).zip(lists)
            {
                let there = match list {
                    // What cannot be read is of no use to anyone.
                    Fetched::Value(bytes) => {
                        self.keys.read_dependency_sets(name, &bytes).unwrap_or_default()
                    }
                    Fetched::Missing | Fetched::Bad(_) => Vec::new(),
                };
                let mut merged: Vec<DependencySet> = Vec::new();
                for dependency_set in
                    dependency_sets.iter().filter(|dependency_set| !there.contains(dependency_set))
                {
                    if !merged.contains(dependency_set) {
                        merged.push(dependency_set.clone());
                    }
                }
                if merged.is_empty() {
                    continue;
                }
                merged.extend(there);
                merged.truncate(MOST_DEPENDENCY_SETS);
                match self.keys.dependency_sets(name, &merged) {
                    Ok(bytes) => changed.push((name, bytes)),
                    Err(reason) => moved.leave(reason),
                }
            }
            if changed.is_empty() {
                break;
            }
            written.extend(changed.iter().map(|(name, _)| *name));
            moved.bytes += changed.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
            self.with(move |server| server.put(&changed, true))?;
        }
        moved.tests += written.len() as u64;
        Ok(())
    }

    /// Writes everything that this machine has, or what of it was used lately.
    pub fn push(
        &self,
        near: &FileStore,
        used_within: Option<Duration>,
    ) -> Result<Moved, RemoteError> {
        let mut moved = Moved::default();
        let entries = near.entries(used_within).map_err(|error| self.error(error.to_string()))?;
        for names in entries.chunks(BATCH) {
            let mut cargo = Cargo::default();
            for name in names {
                match name.kind {
                    ValueKind::Outcome => cargo.outcomes.push((name.hash, false)),
                    ValueKind::DependencySets => {
                        _ = cargo
                            .tests
                            .insert(name.hash, near.dependency_sets(name.hash).unwrap_or_default())
                    }
                    // They do not lie in this store.
                    ValueKind::Object => {}
                }
            }
            self.send(near, &cargo, &mut moved)?;
        }
        self.with(|server| server.finish())?;
        Ok(moved)
    }

    /// Fetches everything that is there.
    pub fn pull(&self, near: &FileStore) -> Result<Moved, RemoteError> {
        let mut moved = Moved::default();
        let mut names = self.list()?;
        // Outcomes before the dependency sets that lead to them.
        names.sort_by_key(|listed| std::cmp::Reverse(listed.name.kind));
        let is_wanted = |listed: &&Listed| match listed.name.kind {
            ValueKind::DependencySets => true,
            ValueKind::Outcome => !near.has_outcome(listed.name.hash),
            ValueKind::Object => false,
        };
        let names: Vec<Name> = names.iter().filter(is_wanted).map(|listed| listed.name).collect();
        for names in names.chunks(BATCH) {
            for (name, fetched) in names.iter().zip(self.get(names, false)?) {
                let Fetched::Value(bytes) = fetched else { continue };
                match self.keep(near, *name, &bytes) {
                    Ok(()) => moved.bytes += bytes.len() as u64,
                    Err(reason) => {
                        moved.leave(reason);
                        continue;
                    }
                }
                match name.kind {
                    ValueKind::Outcome => moved.outcomes += 1,
                    ValueKind::DependencySets => moved.tests += 1,
                    ValueKind::Object => moved.objects += 1,
                }
            }
        }
        Ok(moved)
    }

    fn keep(&self, near: &FileStore, name: Name, bytes: &[u8]) -> Result<(), String> {
        match name.kind {
            ValueKind::Outcome => {
                let outcome = self.read_outcome(name, bytes)?;
                near.put_outcome(name.hash, &outcome).map_err(|error| error.to_string())
            }
            ValueKind::DependencySets => {
                let dependency_sets = self.keys.read_dependency_sets(name, bytes)?;
                // The latest is added last.
                let added = dependency_sets.iter().rev().try_for_each(|dependency_set| {
                    near.put_dependency_set(name.hash, dependency_set)
                });
                added.map_err(|error| error.to_string())
            }
            ValueKind::Object => Err("it is no result".to_owned()),
        }
    }

    /// An outcome that somebody wrote, if it can be believed and does no harm.
    pub fn read_outcome(&self, name: Name, bytes: &[u8]) -> Result<Outcome, String> {
        let mut outcome = self.keys.read_outcome(name, bytes)?;
        // It marks what comes from elsewhere.
        outcome.origin.root.clear();
        match outcome_safety::of(&outcome) {
            Some(reason) => Err(reason),
            None => Ok(outcome),
        }
    }

    /// The dependency sets that somebody wrote.
    pub fn read_dependency_sets(
        &self,
        name: Name,
        bytes: &[u8],
    ) -> Result<Vec<DependencySet>, String> {
        self.keys.read_dependency_sets(name, bytes)
    }

    fn list(&self) -> Result<Vec<Listed>, RemoteError> {
        self.with(|server| {
            let mut all = Vec::new();
            server.list(&mut |listed| all.push(listed))?;
            Ok(all)
        })
    }

    /// What there is.
    pub fn volume(&self) -> Result<RemoteVolume, RemoteError> {
        let mut volume = RemoteVolume::default();
        for listed in self.list()? {
            volume.bytes += listed.bytes;
            match listed.name.kind {
                ValueKind::Outcome => volume.outcomes += 1,
                ValueKind::DependencySets => volume.tests += 1,
                ValueKind::Object => volume.objects += 1,
            }
        }
        Ok(volume)
    }

    /// Removes what has not been used for longer than it is to be kept; how many values.
    pub fn clean(&self) -> Result<u64, RemoteError> {
        self.with(|server| server.clean())
    }

    /// Whether the server answers.
    pub fn answers(&self) -> Result<(), RemoteError> {
        self.get(&[Name::outcome(Hash::default())], false).map(|_| ())
    }
}
