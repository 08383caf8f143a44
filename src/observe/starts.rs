//! Calls that start programs: the file, what the kernel opens with it, and the privileges that it
//! would have.
//!
//! In: stopped calls. Out: entries in the ledger, made before the call can have any effect.

use super::call::Call;
use super::content::Identity;
use super::entries::Sight;
use super::files::{NO_FOLLOW, has};
use super::programs;
use super::resolve::{Found, Place};
use super::supervisor::Supervisor;
use super::used::is_executable;
use crate::model::codes;
use std::fs;
use std::io;

/// As many scripts as the kernel lets interpret each other.
const MOST_INTERPRETERS: usize = 5;

impl Supervisor {
    pub(super) fn execute_call(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        flags: Option<usize>,
    ) -> io::Result<()> {
        let place = match self.place(call, folder, path, !has(call, flags, NO_FOLLOW))? {
            Some(place) => Some(place),
            // By its descriptor alone.
            None if has(call, flags, libc::AT_EMPTY_PATH) => {
                let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
                self.place_of(call, None, link.as_bytes(), true)
            }
            None => None,
        };
        self.limits_output(call);
        self.loaders.forget();
        self.forgets_preloads(call.thread());
        match place {
            Some(place) => self.execute(call, place, 0),
            None => Ok(()),
        }
    }

    /// A program is started: the file, and what the kernel opens with it.
    fn execute(&mut self, call: &Call, place: Place, depth: usize) -> io::Result<()> {
        let Found::There(found) = &place.found else {
            self.saw(&place, Sight::Kind);
            let why = (codes::FOREIGN_PROGRAM, "starts a program that has no name");
            return self.refuse_if(call, matches!(place.found, Found::Nameless), why);
        };
        if !found.is_file() || !is_executable(found) {
            self.saw(&place, Sight::Details);
            return Ok(());
        }
        self.saw(&place, Sight::Program);
        if depth == 0 {
            self.interrupts.starts_program(call.thread());
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.starts(&place.path);
        }
        let Some((head, privileged)) = self.head(&place, found) else {
            self.ledger.refuse_path(
                &place.path,
                (codes::FOREIGN_PROGRAM, "is a program that cannot be read"),
            );
            return Ok(());
        };
        if privileged {
            self.gives_privileges(&place);
        }
        if head.is_32_bit {
            let why =
                (codes::FOREIGN_PROGRAM, "is of another architecture, whose calls are not watched");
            self.ledger.refuse_path(&place.path, why);
        }
        if !head.known && has_other_formats() {
            let why = (
                codes::FOREIGN_PROGRAM,
                "may be run by an interpreter that is registered with the kernel",
            );
            self.ledger.refuse_path(&place.path, why);
        }
        match head.interpreter {
            Some(interpreter) if depth < MOST_INTERPRETERS => {
                match self.place_of(call, None, &interpreter, true) {
                    Some(place) => {
                        if let (Some(lead), Found::There(found)) = (&mut self.lead, &place.found) {
                            lead.opens(&interpreter, &place.path, found);
                        }
                        self.execute(call, place, depth + 1)
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// What kind of program it is, and whether it has privileges to give; each file is looked at
    /// once.
    fn head(&mut self, place: &Place, found: &fs::Metadata) -> Option<(programs::Head, bool)> {
        let identity = Identity::of(found);
        if let Some(known) = self.heads.get(&identity) {
            return Some(known.clone());
        }
        let head =
            (programs::head(&place.path).ok()?, programs::gives_privileges(&place.path, found));
        self.heads.insert(identity, head.clone());
        Some(head)
    }

    fn gives_privileges(&mut self, place: &Place) {
        let path = place.path.to_string_lossy().into_owned();
        match self.powerless {
            true => self
                .disturb(path, "needs privileges that a watched program cannot get (set-user-id)"),
            false => self.ledger.refuse(
                path,
                (codes::ANOTHER_USER, "runs with privileges of another user (set-user-id)"),
            ),
        }
    }
}

/// Whether the kernel knows program formats beside ELF and `#!`.
fn has_other_formats() -> bool {
    const OWN_FILES: usize = 2;
    fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|entries| entries.count() > OWN_FILES)
}
