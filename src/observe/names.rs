//! Calls that create, change and remove names: files, folders, links, attributes.
//!
//! In: stopped calls. Out: entries in the ledger, made before the call can take effect.

use super::act::Act;
use super::call::Call;
use super::entries::Sight;
use super::files::has;
use super::resolve::{Found, Place};
use super::supervisor::Supervisor;
use super::targets::Target;
use super::used::Kind;
use crate::model::codes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const RENAME_NOREPLACE: u64 = 1;
const RENAME_EXCHANGE: u64 = 2;
/// No reason against repeating the run: the folder can be renamed back.
const RENAMED: &str = "is a folder from before the test, which renames it";

impl Supervisor {
    pub(super) fn make(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        is_folder: bool,
    ) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        self.saw(&place, Sight::Kind);
        if matches!(place.found, Found::Missing) {
            self.touches(&place);
            if is_folder {
                self.ledger.owns_folder(&place.path);
            }
        }
        Ok(())
    }

    pub(super) fn remove(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        is_folder: bool,
    ) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        self.saw(&place, Sight::Kind);
        let Found::There(found) = &place.found else { return Ok(()) };
        if is_folder && found.is_dir() {
            // Whether it can be removed depends on what is in it.
            self.ledger.lists(&place.path, found, &|process| self.processes.has(process));
            if is_empty(&place.path) {
                self.needs_folder_of(&place);
                self.touches(&place);
                self.ledger.owns_folder(&place.path);
            }
        } else if !is_folder && !found.is_dir() {
            self.needs_folder_of(&place);
            self.touches(&place);
        }
        if found.is_dir() || found.is_symlink() {
            self.resolver.forget(&place.path);
        }
        Ok(())
    }

    /// Content or attributes change. The content counts even then, because it is taken for the
    /// run's own later.
    pub(super) fn change(&mut self, place: Option<Place>) -> io::Result<()> {
        if let Some(place) = place {
            self.saw(
                &place,
                if place.kind() == Some(Kind::File) { Sight::Content } else { Sight::Details },
            );
            if matches!(place.found, Found::There(_)) {
                if place.kind() == Some(Kind::File) {
                    self.writes_to(&place, Target::Permissions);
                }
                self.touches(&place);
            }
        }
        Ok(())
    }

    pub(super) fn two_names(&mut self, call: &Call, act: Act) -> io::Result<()> {
        let (Act::Rename { from, old, to, new, flags }
        | Act::HardLink { from, old, to, new, flags }) = act
        else {
            return Ok(());
        };
        let renames = matches!(act, Act::Rename { .. });
        let follow = !renames && has(call, flags, libc::AT_SYMLINK_FOLLOW);
        let old = match self.place(call, from, old, follow)? {
            Some(old) => old,
            // By its descriptor alone: a file that was made without a name (O_TMPFILE).
            None if has(call, flags, libc::AT_EMPTY_PATH) && !renames => {
                Place { path: PathBuf::new(), found: Found::Nameless }
            }
            None => return Ok(()),
        };
        let Some(new) = self.place(call, to, new, false)? else { return Ok(()) };
        let flags = flags.map_or(0, |index| call.argument(index));
        if !self.ledger.is_own(&old.path) && old.kind() == Some(Kind::Folder) {
            self.ledger.refuse_path(&old.path, (codes::RENAMED_FOLDER, RENAMED));
        }
        self.change(Some(old.clone()))?;
        if renames {
            // It keeps its extended attributes under the new name.
            self.ledger.asks_for_extended(&old, &|process| self.processes.has(process));
            self.needs_folder_of(&old);
            self.writes_to(&new, Target::Replaced);
        }
        self.needs_folder_of(&new);
        if !renames || flags & RENAME_NOREPLACE != 0 {
            self.saw(&new, Sight::Kind);
        } else if flags & RENAME_EXCHANGE != 0 {
            self.change(Some(new.clone()))?;
        }
        if old.kind() == Some(Kind::Folder) && self.is_in_the_way(&new, flags) {
            return Ok(());
        }
        if matches!(old.found, Found::There(_) | Found::Nameless) {
            self.touches(&new);
            if renames && old.kind() == Some(Kind::Folder) {
                self.originals.before_move(&old.path, &new.path, flags & RENAME_EXCHANGE != 0);
            }
            if old.kind() == Some(Kind::Folder) {
                self.ledger.renames_folder(&old.path, &new.path);
                if flags & RENAME_EXCHANGE != 0 {
                    self.ledger.renames_folder(&new.path, &old.path);
                }
            }
        }
        let is_on_the_way =
            |place: &&Place| matches!(place.kind(), Some(Kind::Folder | Kind::Link));
        if renames && [&old, &new].iter().any(is_on_the_way) {
            [&old, &new].iter().for_each(|place| self.resolver.forget(&place.path));
        }
        Ok(())
    }

    /// Whether a folder cannot get a name, because what has it already is no empty folder.
    fn is_in_the_way(&mut self, new: &Place, flags: u64) -> bool {
        let Found::There(found) = &new.found else { return false };
        self.saw(new, Sight::Kind);
        if flags & RENAME_EXCHANGE != 0 {
            if found.is_dir() && !self.ledger.is_own(&new.path) {
                self.ledger.refuse_path(&new.path, (codes::RENAMED_FOLDER, RENAMED));
            }
            return false;
        }
        if found.is_dir() {
            self.ledger.lists(&new.path, found, &|process| self.processes.has(process));
        }
        flags & RENAME_NOREPLACE != 0 || !is_empty(&new.path)
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
