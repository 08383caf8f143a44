//! The end of a run: checks that every input still has the state in which it was first seen, and
//! collects what the run leaves behind.
//!
//! In: the ledger of a run that has ended. Out: its uses, sorted, and its refusals.

use super::content::Identity;
use super::entries::{Entry, First, Sight, uses};
use super::ledger::{CHANGED, Ledger, Touch};
use super::policy;
use super::targets::{self, Target};
use super::used::{Kind, Use, is_absence};
use crate::model::{Hash, Refusal, codes};
use rustc_hash::FxHashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// More files than this are not worth keeping.
const MOST_LEFT_BEHIND: usize = 10_000;

impl Ledger {
    /// Closes the account.
    pub fn close(mut self) -> (Vec<Use>, Vec<Refusal<'static>>) {
        let mut changed: Vec<PathBuf> = self.changed_by_others();
        changed.extend(self.changed_unseen());
        for path in changed {
            self.refuse_path(&path, (codes::CHANGED_MEANWHILE, CHANGED));
        }
        self.refuse_pipes_of_others();
        let mut used = self.left_behind();
        used.extend(self.copied_times(&used));
        used.extend(self.made_and_gone());
        used.extend(
            self.entries
                .iter()
                .flat_map(|(path, entry)| uses(path, entry, &self.loads, &self.library_names)),
        );
        let names = self.library_names.links();
        self.links.retain(|link, _| !names.contains(link.as_path()));
        used.extend(self.links.drain().map(|(path, target)| Use::Link { path, target }));
        used.extend(self.targets.drain().map(|((target, path), state)| Use::Target {
            path,
            target,
            state,
        }));
        used.extend(
            self.extended.drain().map(|(path, attributes)| Use::Extended { path, attributes }),
        );
        used.extend(self.facts.drain().map(|(path, value)| Use::Fact { path, value }));
        used.sort_unstable();
        used.dedup();
        self.contents.remember();
        (used, self.refusals)
    }

    /// A pipe with one end in the run has had its other end outside.
    fn refuse_pipes_of_others(&mut self) {
        let is_half = |(_, ends): &(&PathBuf, &[bool; 2])| ends[0] != ends[1];
        let half: Vec<PathBuf> =
            self.pipes.iter().filter(is_half).map(|(path, _)| path.clone()).collect();
        for path in half {
            let why = (
                codes::OUTSIDE_PROCESS,
                "is a named pipe, and somebody outside the test has its other end",
            );
            self.refuse_path(&path, why);
        }
    }

    /// What is not as it was met, and not by the run's own doing.
    fn changed_by_others(&self) -> Vec<PathBuf> {
        let entries = self
            .entries
            .iter()
            .filter(|(path, entry)| !self.still_holds(path, entry))
            .map(|(path, _)| path);
        let links = self.links.iter().filter(|(path, target)| {
            !self.is_own(path) && !fs::read_link(path).is_ok_and(|now| now == **target)
        });
        entries.chain(links.map(|(path, _)| path)).cloned().collect()
    }

    /// What has changed although its times are the same.
    fn changed_unseen(&mut self) -> Vec<PathBuf> {
        let seen = self.entries.iter().filter_map(|(path, entry)| Some((path, entry.content?)));
        let mut seen: Vec<(PathBuf, Hash)> = seen
            .filter(|(path, _)| {
                fs::symlink_metadata(path).is_ok_and(|now| self.contents.is_unsteady(&now))
            })
            .filter(|(path, _)| !self.is_own(path))
            .map(|(path, content)| (path.clone(), content))
            .collect();
        let contents = &mut self.contents;
        seen.retain(|(path, content)| {
            fs::symlink_metadata(path).is_ok_and(|now| !contents.is(path, &now, *content))
        });
        seen.into_iter().map(|(path, _)| path).collect()
    }

    fn still_holds(&self, path: &Path, entry: &Entry) -> bool {
        if policy::is_pseudo(path) {
            return true;
        }
        let now = fs::symlink_metadata(path);
        if let (Some((first, identity)), Ok(now)) = (&entry.listing, &now) {
            let same = || self.effective_listing(path).is_ok_and(|now| now == *first);
            if !self.is_own(path) && Identity::of(now) != *identity && !same() {
                return false;
            }
        }
        if self.is_own(path) {
            return true;
        }
        match (&entry.first, now) {
            (First::Absent, now) => now.is_err_and(|error| is_absence(&error)),
            (First::Denied, _) => true,
            (First::There(..), Err(_)) => false,
            (First::There(identity, what), Ok(now)) => match entry.sight {
                sight if sight > Sight::Kind && what.kind == Kind::File => {
                    Identity::of(&now) == *identity
                }
                _ => Kind::of(now.file_type()) == what.kind,
            },
        }
    }

    /// What is there of the run's doing, and what is gone.
    fn left_behind(&mut self) -> Vec<Use> {
        let mut left = Vec::new();
        let touched: Vec<(PathBuf, Touch)> =
            self.touched.iter().map(|(path, touch)| (path.clone(), *touch)).collect();
        for (path, touch) in touched {
            match (fs::symlink_metadata(&path), touch) {
                (Ok(now), Touch::Changed(_, before)) if Identity::of(&now) == before => {}
                (Ok(now), _) if now.is_dir() => {
                    left.push(Use::Written { path, kind: Kind::Folder })
                }
                (Ok(now), _) => left.push(Use::Written { path, kind: Kind::of(now.file_type()) }),
                (Err(_), Touch::Changed(..)) => left.push(Use::Removed { path }),
                (Err(_), Touch::Made) => {}
            }
        }
        if left.len() > MOST_LEFT_BEHIND {
            let why = format!("leaves more than {MOST_LEFT_BEHIND} files behind");
            self.refuse("files", (codes::LEFT_BEHIND, why));
            left.truncate(MOST_LEFT_BEHIND);
        }
        left
    }

    /// What the run has made and removed again was not there before. Were it there, the run would
    /// write to it and remove it, which a replay does not. Below a folder of the run's own, that
    /// folder's absence says so already.
    fn made_and_gone(&self) -> Vec<Use> {
        let is_gone =
            |path: &Path| fs::symlink_metadata(path).is_err_and(|error| is_absence(&error));
        let is_below_own =
            |path: &Path| path.ancestors().skip(1).any(|folder| self.own_folders.contains(folder));
        let made =
            self.touched.iter().filter(|(_, touch)| **touch == Touch::Made).map(|(path, _)| path);
        let gone = made.filter(|path| is_gone(path) && !is_below_own(path));
        gone.map(|path| Use::Absent { path: path.clone() }).collect()
    }

    /// The times of files from before the run that files have which it leaves behind: after
    /// `cp -p`, `touch -r`, `mv` or `chmod`.
    fn copied_times(&self, left: &[Use]) -> Vec<Use> {
        let modified = |used: &Use| match used {
            Use::Written { path, kind: Kind::File } => {
                Some(Identity::of(&fs::symlink_metadata(path).ok()?).modified())
            }
            _ => None,
        };
        let times: FxHashSet<(i64, i64)> = left.iter().filter_map(modified).collect();
        let met = self.entries.iter().filter_map(|(path, entry)| match &entry.first {
            First::There(identity, what) if what.kind == Kind::File => Some((path, *identity)),
            _ => None,
        });
        let changed = self.touched.iter().filter_map(|(path, touch)| match touch {
            Touch::Changed(Kind::File, before) => Some((path, *before)),
            _ => None,
        });
        let copied =
            met.chain(changed).filter(|(_, identity)| times.contains(&identity.modified()));
        let used = copied.map(|(path, identity)| Use::Target {
            path: path.clone(),
            target: Target::Time,
            state: targets::time(Some(identity.modified())),
        });
        used.collect()
    }
}
