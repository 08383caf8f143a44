//! Calls about files, folders and programs: what each call shows to the run, and what it changes.
//!
//! In: stopped calls. Out: entries in the ledger, made before the call can take effect.

use super::act::Act;
use super::call::Call;
use super::content::same_file;
use super::entries::Sight;
use super::known::Effect;
use super::resolve::{Place, Trail};
use super::supervisor::Supervisor;
use super::used::Kind;
use std::fs;
use std::io;

pub(super) const NO_FOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;

impl Act {
    /// Whether `note_file` knows it.
    pub(super) fn is_about_files(&self) -> bool {
        use Act::*;
        matches!(
            self,
            Open { .. }
                | Create { .. }
                | OpenHow
                | Ask { .. }
                | ReadLink { .. }
                | Execute { .. }
                | ChangeFolder { .. }
        ) || matches!(self, AskExtended { .. } | AskExtendedOf)
            || matches!(
                self,
                List | Rename { .. } | HardLink { .. } | Make { .. } | MakeFolder { .. }
            )
            || matches!(self, Remove { .. } | RemoveFolder { .. } | Change { .. })
    }

    /// What a call does to looks that are known, as far as the kind of call tells.
    pub(super) fn effect(&self) -> Effect {
        use Act::*;
        match self {
            Ask { .. }
            | AskExtended { .. }
            | AskExtendedOf
            | ReadLink { .. }
            | Execute { .. }
            | List => Effect::Nothing,
            Socket | Connect | Listen | SendTo | SendMessage { .. } | Key(_) | Accept => {
                Effect::Nothing
            }
            CloneHow
            | Debug
            | LookInto { .. }
            | Priority { .. }
            | Handler
            | Signals
            | Lock
            | Control
            | Inherited => Effect::Nothing,
            ChangeFolder { .. } | EnterFolder => Effect::Moves,
            Filter { .. } => Effect::TurnsOff,
            _ => Effect::Changes,
        }
    }
}

impl Supervisor {
    pub(super) fn note_file(&mut self, call: &Call, act: Act) -> io::Result<()> {
        match act {
            Act::Open { folder, path, flags } => {
                self.open(call, folder, path, call.int(flags), call.argument(flags + 1))
            }
            Act::Create { path } => {
                let flags = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY;
                self.open(call, None, path, flags, call.argument(path + 1))
            }
            Act::OpenHow => self.open_how(call),
            Act::Ask { folder, path, follow, flags } => {
                let follow = follow && !has(call, flags, NO_FOLLOW);
                let place = self.place(call, folder, path, follow)?;
                if let Some(place) = &place {
                    self.notes_cache(call, &place.path);
                    self.asks_for_preloads(call, &place.path);
                }
                self.saw_if_any(place, Sight::Details)
            }
            Act::AskExtended { folder, path, follow, flags } => {
                let follow = follow && !has(call, flags, NO_FOLLOW);
                let place = self.place(call, folder, path, follow)?;
                self.extended(place)
            }
            Act::AskExtendedOf => {
                let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
                let place = self.place_of(call, None, link.as_bytes(), true);
                self.extended(place)
            }
            Act::ChangeFolder { path } => {
                let place = self.place(call, None, path, true)?;
                self.saw_if_any(place, Sight::Kind)
            }
            Act::ReadLink { folder, path } => self.read_link(call, folder, path),
            Act::Execute { folder, path, flags } => self.execute_call(call, folder, path, flags),
            Act::List => self.list(call),
            Act::Rename { .. } | Act::HardLink { .. } => self.two_names(call, act),
            Act::Make { folder, path } => self.make(call, folder, path, false),
            Act::MakeFolder { folder, path } => self.make(call, folder, path, true),
            Act::Remove { folder, path, flags } => {
                self.remove(call, folder, path, has(call, flags, libc::AT_REMOVEDIR))
            }
            Act::RemoveFolder { path } => self.remove(call, None, path, true),
            Act::Change { folder, path, follow, flags } => {
                let place =
                    self.place(call, folder, path, follow && !has(call, flags, NO_FOLLOW))?;
                self.change(place)
            }
            _ => Ok(()),
        }
    }

    fn saw_if_any(&mut self, place: Option<Place>, sight: Sight) -> io::Result<()> {
        if let Some(place) = place {
            self.saw(&place, sight);
        }
        Ok(())
    }

    fn extended(&mut self, place: Option<Place>) -> io::Result<()> {
        if let Some(place) = &place {
            self.ledger.asks_for_extended(place, &|process| self.processes.has(process));
        }
        self.saw_if_any(place, Sight::Details)
    }

    fn read_link(&mut self, call: &Call, folder: Option<usize>, path: usize) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        match fs::read_link(&place.path) {
            Ok(target) if place.kind() == Some(Kind::Link) => {
                let trail = Trail { links: vec![(place.path, target)], ..Trail::default() };
                self.ledger.passed(trail, &|process| self.processes.has(process));
            }
            _ => self.saw(&place, Sight::Kind),
        }
        Ok(())
    }

    fn list(&mut self, call: &Call) -> io::Result<()> {
        let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
        let path = match fs::read_link(&link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            path => path?,
        };
        let Ok(found) = fs::metadata(&link) else { return Ok(()) };
        match fs::symlink_metadata(&path) {
            Ok(named) if same_file(&named, &found) => {
                self.ledger.lists(&path, &found, &|process| self.processes.has(process));
            }
            // A folder that was removed while it was open has no entries.
            _ => {}
        }
        Ok(())
    }
}

/// Whether an argument of a call has a flag.
pub(super) fn has(call: &Call, flags: Option<usize>, flag: i32) -> bool {
    flags.is_some_and(|index| call.int(index) & flag != 0)
}
