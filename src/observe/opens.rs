//! Calls that open files: whether the run sees the file's content, and whether it changes it.
//!
//! In: stopped calls. Out: entries in the ledger, made before the call can take effect.

use super::call::Call;
use super::entries::Sight;
use super::facts::{self, Fact};
use super::known::Effect;
use super::loaders;
use super::memory;
use super::policy;
use super::resolve::{Found, Place, Trail};
use super::supervisor::Supervisor;
use super::targets::{self, Target};
use super::used::Kind;
use crate::model::codes;
use std::fs;
use std::io;
use std::path::Path;

const RESOLVE_IN_ROOT: u64 = 0x10;
const TERMINAL: &str = "/dev/tty";

/// What is asked for.
struct Opening<'a> {
    call: &'a Call<'a>,
    path: &'a [u8],
    flags: i32,
    mode: u64,
}

impl Opening<'_> {
    fn has(&self, flag: i32) -> bool {
        self.flags & flag == flag
    }

    fn has_any(&self, flags: i32) -> bool {
        self.flags & flags != 0
    }

    /// It is to be made, and to be new.
    fn is_exclusive(&self) -> bool {
        self.has(libc::O_CREAT | libc::O_EXCL)
    }

    /// By its descriptor it can only be asked for its attributes, or it has no name.
    fn is_without_content(&self) -> bool {
        self.has(libc::O_PATH) || self.has(libc::O_TMPFILE)
    }

    /// Whether it can change anything.
    fn may_change(&self) -> bool {
        const MAKES: i32 = libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);
        self.flags & libc::O_ACCMODE != libc::O_RDONLY || self.has_any(MAKES)
    }

    fn reads(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY
    }

    fn writes(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY || self.has(libc::O_TRUNC)
    }

    /// Only to be read, as loaders open libraries.
    fn only_reads(&self) -> bool {
        let matters = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_PATH;
        self.flags & matters == libc::O_RDONLY
    }
}

impl Supervisor {
    pub(super) fn open_how(&mut self, call: &Call) -> io::Result<()> {
        let how = memory::bytes(call.thread(), call.argument(2), 24)?;
        if memory::number_in(&how, 16) & RESOLVE_IN_ROOT != 0 {
            let subject = call.program_name();
            self.ledger.refuse(
                subject,
                (codes::OTHER_ROOT, "opens files below a root of its own (openat2)"),
            );
        }
        self.open(call, Some(0), 1, memory::number_in(&how, 0) as i32, memory::number_in(&how, 8))
    }

    pub(super) fn open(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        flags: i32,
        mode: u64,
    ) -> io::Result<()> {
        let text =
            memory::string(call.thread(), call.argument(path))?.filter(|text| !text.is_empty());
        let Some(text) = text else { return Ok(()) };
        let opening = Opening { call, path: &text, flags, mode };
        if self.is_for_the_agent(call, &text, opening.has(libc::O_PATH)) {
            return Ok(());
        }
        if !opening.may_change() {
            self.effect = Effect::Nothing;
        }
        let follow = !opening.has(libc::O_NOFOLLOW) && !opening.is_exclusive();
        if let Some((place, trail)) = self.walk(call, folder, &text, follow) {
            self.opens(&opening, &place, trail);
        }
        Ok(())
    }

    /// A file is going to be opened for reading by who makes this call, and nobody will see it.
    pub(super) fn opens_unseen(&mut self, call: &Call, path: &[u8]) {
        if let Some((place, trail)) = self.walk(call, None, path, true) {
            self.opens(&Opening { call, path, flags: libc::O_RDONLY, mode: 0 }, &place, trail);
        }
    }

    /// Something is opened, whether it is there or not.
    fn opens(&mut self, opening: &Opening, place: &Place, trail: Trail) {
        let is_library = self.passes(opening, place, trail);
        self.opens_preloads(opening.call, &place.path);
        if matches!(place.kind(), Some(Kind::Device | Kind::Fifo | Kind::Socket)) {
            // Whatever goes through it, no file and no name changes.
            self.effect = Effect::Nothing;
        }
        if opening.is_without_content() {
            return self.saw(place, Sight::Details);
        }
        if policy::is_memory_of_process(&place.path)
            && let Some(process) = place.path.to_str().and_then(policy::process_of)
        {
            self.shows_memory(opening.call, process);
        }
        let only_reads = !opening.has_any(libc::O_ACCMODE);
        if only_reads && self.shows_process_file(opening.call, place, opening.path, opening.flags) {
            return;
        }
        if let (Some(lead), Found::There(found)) = (&mut self.lead, &place.found) {
            lead.opens(opening.path, &place.path, found);
        }
        self.meets_outsiders(opening, place);
        self.gets(opening, place, is_library);
    }

    /// Notes what was met on the way. Whether it is a library that the loader opens.
    fn passes(&mut self, opening: &Opening, place: &Place, trail: Trail) -> bool {
        let is_file = place.kind() == Some(Kind::File);
        let is_library =
            opening.only_reads() && is_file && self.is_for_the_loader(opening.call, &place.path);
        let is_own: policy::IsOwn = &|process| self.processes.has(process);
        match is_library {
            true => self.ledger.passed_by_loader(trail, &place.path, is_own),
            false => self.ledger.passed(trail, is_own),
        }
        is_library
    }

    /// What is opened may lead to somebody outside.
    fn meets_outsiders(&mut self, opening: &Opening, place: &Place) {
        self.meets_foreign_at(place);
        if place.path == Path::new(TERMINAL) {
            self.opens_terminal(opening.call, opening.flags);
        }
        let is_pipe = place.kind() == Some(Kind::Fifo) && !policy::is_for_debuggers(&place.path);
        if is_pipe && self.ledger.is_own(&place.path) {
            self.ledger.opens_own_pipe(&place.path, opening.reads(), opening.writes());
        }
    }

    /// What the run gets to see of a place, and what it does there.
    fn gets(&mut self, opening: &Opening, place: &Place, is_library: bool) {
        let creates = opening.has(libc::O_CREAT);
        let empties = opening.has(libc::O_TRUNC);
        match (&place.found, place.kind()) {
            // Whatever was there is gone without a look at it, and a leftover of an earlier run is
            // as good as nothing.
            (Found::Missing, _) | (_, Some(Kind::File))
                if creates && empties && !opening.is_exclusive() =>
            {
                self.overwrites(opening, place);
            }
            (Found::Missing, _) => {
                self.saw(place, Sight::Kind);
                if creates {
                    self.touches(place);
                }
            }
            (Found::There(_), Some(Kind::Folder | Kind::Link)) => self.saw(place, Sight::Kind),
            (Found::There(_), _) if opening.is_exclusive() => self.saw(place, Sight::Kind),
            (Found::There(_), Some(Kind::File)) if empties => {
                self.saw(place, Sight::Kind);
                self.overwrites(opening, place);
            }
            (Found::There(_), _) if is_library => self.saw(place, Sight::Library),
            (Found::There(_), _) => {
                self.saw(place, Sight::Content);
                if opening.writes() && place.kind() == Some(Kind::File) {
                    self.writes_to(place, Target::Overwritten);
                    self.ledger.shares(place);
                    self.touches(place);
                }
            }
            _ => self.saw(place, Sight::Kind),
        }
    }

    /// A file is written from its start: what it held does not matter, but whether it can be
    /// written does; and its permissions do, which it keeps, unless a new file would get the same
    /// ones.
    fn overwrites(&mut self, opening: &Opening, place: &Place) {
        self.writes_to(place, Target::Overwritten);
        if matches!(&place.found, Found::There(found) if !targets::is_made_so(found, opening.call.thread(), opening.mode))
        {
            self.writes_to(place, Target::Permissions);
        }
        self.touches(place);
    }

    pub(super) fn writes_to(&mut self, place: &Place, target: Target) {
        self.ledger.writes_to(&place.path, target, &|process| self.processes.has(process));
    }

    pub(super) fn needs_folder_of(&mut self, place: &Place) {
        self.ledger.needs_folder_of(&place.path, &|process| self.processes.has(process));
    }

    /// The controlling terminal is opened. Bash does so to see whether there is one; whoever else
    /// does is about to use it.
    fn opens_terminal(&mut self, call: &Call, flags: i32) {
        let [theirs, ours] = [call.thread().to_string(), "self".to_owned()]
            .map(|process| facts::terminal_of(&process));
        // In a session of its own, a process has the terminal that the test has made, or none.
        if theirs != ours {
            return;
        }
        let is_probe =
            flags & (libc::O_ACCMODE | libc::O_NONBLOCK) == libc::O_RDWR | libc::O_NONBLOCK;
        if theirs.is_some_and(|terminal| terminal != 0) && !is_probe {
            self.ledger.refuse(
                TERMINAL,
                (codes::INHERITED, "is used, and belongs to the user who runs the test"),
            );
        }
        self.ledger.learns(&Fact::Terminal);
    }

    /// Whether it is the dynamic loader that opens a library. It notes for which program then.
    fn is_for_the_loader(&mut self, call: &Call, path: &Path) -> bool {
        let makes = |loaders: &mut loaders::Loaders| match call.is_question {
            true => call.argument(5) == 1,
            false => loaders.makes(call.thread(), call.notification.instruction),
        };
        if !loaders::can_be_a_library(path) || !makes(&mut self.loaders) {
            return false;
        }
        let Ok(program) = self.loaders.program_of(call.thread()) else { return false };
        if !call.listener.still_waits(call.notification) {
            return false;
        }
        let is_counted = self.ledger.loads(program, path);
        self.loads_library(call.thread(), path);
        is_counted
    }

    fn meets_foreign_at(&mut self, place: &Place) {
        match &place.found {
            Found::There(found) => self.meets_foreign(found),
            Found::Nameless => {
                if let Ok(found) = fs::metadata(&place.path) {
                    self.meets_foreign(&found);
                }
            }
            _ => {}
        }
    }
}
