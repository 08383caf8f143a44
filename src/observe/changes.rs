//! What the run itself creates, changes and removes. From then on such a path belongs to the run
//! and is not an input.
//!
//! In: paths, in the state they have just before the change. Out: the run's own paths, and what its
//! changes depended on.

use super::content::{Identity, device_and_inode};
use super::entries::Sight;
use super::ledger::{Ledger, Touch};
use super::policy::{self, Treatment};
use super::resolve::{Found, Place};
use super::targets::{self, Target};
use super::used::Kind;
use crate::model::codes;
use std::fs;
use std::path::{Path, PathBuf};

impl Ledger {
    /// Whether what is at a path now is the run's own doing. A change that was tried need not have
    /// happened: what still is as it was is not the run's.
    pub fn is_own(&self, path: &Path) -> bool {
        match self.touched.get(path) {
            Some(Touch::Made) => true,
            // A folder whose attributes were changed still has the entries that it had; one that
            // was removed has not.
            Some(Touch::Changed(Kind::Folder, _)) => self.own_folders.contains(path),
            Some(Touch::Changed(_, before)) => {
                !fs::symlink_metadata(path).is_ok_and(|now| Identity::of(&now) == *before)
            }
            // Other processes may put files into a folder that the run has made. Those are inputs.
            None => {
                let is_below = || path.ancestors().any(|folder| self.own_folders.contains(folder));
                !self.own_folders.is_empty() && is_below() && fs::symlink_metadata(path).is_err()
            }
        }
    }

    /// The run changes or makes what is at a place, without getting to see what was there.
    pub fn touches(&mut self, place: &Place, is_own: policy::IsOwn) {
        if matches!(place.found, Found::Nameless | Found::MissingFolder | Found::Blocks(_)) {
            return;
        }
        match policy::of(&place.path, is_own) {
            Treatment::Ignored => return,
            Treatment::Refused(reason) => {
                return self.refuse_path(&place.path, (codes::DEVICE, reason));
            }
            Treatment::ByContent => {
                return self
                    .refuse_path(&place.path, (codes::DEVICE, "changes the machine's settings"));
            }
            Treatment::Ordinary => {}
        }
        // The second change does not make the first one undone.
        if self.touched.contains_key(&place.path) {
            return;
        }
        let touch = match &place.found {
            Found::There(found) => {
                self.changed.insert(device_and_inode(found));
                Touch::Changed(Kind::of(found.file_type()), Identity::of(found))
            }
            _ => {
                self.needs_folder_of(&place.path, is_own);
                Touch::Made
            }
        };
        self.touched.insert(place.path.clone(), touch);
    }

    /// The run may write into a file without a trace: one in memory, which others may share as
    /// well.
    pub fn shares(&mut self, place: &Place) {
        let Found::There(found) = &place.found else { return };
        if !self.is_own(&place.path) && self.contents.is_in_memory(&place.path, found) {
            let why = "is a file in memory that others may share, and open for writing";
            self.refuse_path(&place.path, (codes::OUTSIDE_PROCESS, why));
        }
    }

    /// Nothing can be made or removed where there is no folder, or one that may not be written to.
    pub fn needs_folder_of(&mut self, path: &Path, is_own: policy::IsOwn) {
        let Some(folder) = path.parent() else { return };
        if let Ok(found) = fs::symlink_metadata(folder) {
            self.saw(
                &Place { path: folder.to_owned(), found: Found::There(found) },
                Sight::Kind,
                is_own,
            );
            self.writes_to(folder, Target::Writable, is_own);
        }
    }

    /// The run writes to a place in this way, which depends on what is there.
    pub fn writes_to(&mut self, path: &Path, target: Target, is_own: policy::IsOwn) {
        if self.targets.contains_key(&(target, path.to_owned())) || self.is_own(path) {
            return;
        }
        if policy::of(path, is_own) == Treatment::Ordinary {
            self.targets.insert((target, path.to_owned()), targets::state(target, path));
        }
    }

    /// The run locks a file, or asks who has locked it. Only one that does not wait sees that; but
    /// the state is that of the first time, when the run itself had no lock. A file that the run
    /// has made counts only if it might have been there.
    pub fn locks(&mut self, path: &Path, waits: bool, is_own: policy::IsOwn) {
        if policy::of(path, is_own) != Treatment::Ordinary {
            return;
        }
        let state = self.locks.entry(path.to_owned());
        let state = *state.or_insert_with(|| targets::state(Target::Locked, path));
        let may_be_of_others = match self.touched.get(path) {
            Some(Touch::Made) => self.targets.contains_key(&(Target::Overwritten, path.to_owned())),
            Some(_) => true,
            None => !self.is_own(path),
        };
        if !waits && may_be_of_others {
            self.targets.insert((Target::Locked, path.to_owned()), state);
        }
    }

    /// The run opens a named pipe of its own.
    pub fn opens_own_pipe(&mut self, path: &Path, reads: bool, writes: bool) {
        let ends = self.pipes.entry(path.to_owned()).or_default();
        *ends = [ends[0] | reads, ends[1] | writes];
    }

    /// The run makes or removes a folder: what is not there below it is not there by the run's own
    /// doing.
    pub fn owns_folder(&mut self, path: &Path) {
        self.own_folders.insert(path.to_owned());
    }

    /// The run renames a folder of its own: what it has made there goes with it.
    pub fn renames_folder(&mut self, old: &Path, new: &Path) {
        let below = |path: &PathBuf| {
            path.strip_prefix(old).ok().filter(|rest| *rest != Path::new("")).map(Path::to_owned)
        };
        let moved = |path: &PathBuf| Some(new.join(below(path)?));
        let touched: Vec<PathBuf> = self.touched.keys().filter_map(moved).collect();
        let folders: Vec<PathBuf> = self.own_folders.iter().filter_map(moved).collect();
        self.touched.extend(touched.into_iter().map(|path| (path, Touch::Made)));
        self.own_folders.extend(folders);
        self.own_folders.extend([old.to_owned(), new.to_owned()]);
    }
}
