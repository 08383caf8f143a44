//! The thread that answers stopped calls: it receives each one, records it, and lets it continue.
//!
//! The kernel then executes the call with arguments that it reads again, so a program could change
//! a path between our look and the kernel's. One that does so on purpose is out of scope: this
//! records what honest programs do, and is not a sandbox. Threads that open files at the same time
//! are no problem, since none of them writes into the path that another one is opening.
//!
//! In: notifications. Out: the ledger, complete when no process is left.

use super::act::{Act, When};
use super::arch;
use super::call::Call;
use super::calls;
use super::content::{Identity, same_file};
use super::entries::Sight;
use super::inherited::Foreign;
use super::interrupts::Interrupts;
use super::kernel::{Listener, Notification};
use super::known::Effect;
use super::lead::Lead;
use super::ledger::Ledger;
use super::loaders::Loaders;
use super::memory;
use super::originals::Originals;
use super::processes::Processes;
use super::programs::Head;
use super::resolve::{Place, Resolver, Trail};
use super::sockets::Sockets;
use super::stand_ins::StandIns;
use super::tracing::Tracer;
use crate::model::codes;
use crate::process::sys;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tasting_agent::protocol::{GRANTED, GRANTED_CHANGE};

/// So long after the test's end its processes may take to be gone.
const GRACE: Duration = Duration::from_millis(100);

/// What the supervisor knows of the run.
pub struct Supervisor {
    /// The thread that starts the test: what it does is ours.
    pub launcher: u32,
    pub ledger: Ledger,
    pub foreign: Vec<Foreign>,
    /// The filter took away the power of set-user-id programs.
    pub powerless: bool,
    /// Watching can have changed what the test does: its verdict is to be had without.
    pub disturbed: Arc<AtomicBool>,
    /// Why the test's memory cannot be read, if that is so.
    pub blind: Option<io::Error>,
    pub processes: Processes,
    /// Paths may mean something else to the test than to us. They are not looked up from then on:
    /// the file system may even be one that the test itself serves, and waits for us.
    pub(super) lost: bool,
    pub(super) resolver: Resolver,
    pub(super) sockets: Sockets,
    pub(super) loaders: Loaders,
    pub tracer: Option<Tracer>,
    pub originals: Originals,
    /// Calls are led past the filter, where they can be.
    pub lead: Option<Lead>,
    pub stand_ins: Option<Arc<StandIns>>,
    pub(super) interrupts: Interrupts,
    /// Some processes may have debuggers, which would stop at breakpoints that are not their own.
    pub(super) has_debuggers: bool,
    pub(super) heads: FxHashMap<Identity, (Head, bool)>,
    pub(super) keys: FxHashSet<(&'static str, u64)>,
    pub(super) queues: FxHashSet<Vec<u8>>,
    pub(super) user: u32,
    pub(super) group: u32,
    /// What the present call does to looks that are known.
    pub(super) effect: Effect,
    proven: bool,
}

impl Supervisor {
    /// For a test that is about to be started.
    pub fn new(ledger: Ledger, foreign: Vec<Foreign>, disturbed: Arc<AtomicBool>) -> Supervisor {
        Supervisor {
            launcher: 0,
            ledger,
            foreign,
            powerless: false,
            disturbed,
            blind: None,
            processes: Processes::default(),
            lost: false,
            resolver: Resolver::default(),
            sockets: Sockets::default(),
            loaders: Loaders::default(),
            tracer: None,
            originals: Originals::default(),
            lead: None,
            stand_ins: None,
            interrupts: Interrupts::default(),
            has_debuggers: has_debugger(std::process::id()),
            heads: FxHashMap::default(),
            keys: FxHashSet::default(),
            queues: FxHashSet::default(),
            user: sys::user(),
            group: sys::group(),
            effect: Effect::Nothing,
            proven: false,
        }
    }

    /// Answers until nobody is left, or until the far end of `stop` is closed and a little longer.
    /// Says whether nobody is left.
    pub fn serve(&mut self, listener: &Listener, stop: BorrowedFd) -> bool {
        let mut end: Option<Instant> = None;
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let ready = listener.wait(end.is_none().then_some(stop), left);
            if ready.call {
                if let Some(notification) = listener.receive() {
                    self.answer(listener, &notification);
                }
            } else if ready.nobody_left {
                return true;
            }
            if ready.told_to_stop && end.is_none() {
                end = Some(Instant::now() + GRACE);
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return false;
            }
        }
    }

    /// Notes a call down and lets it go. Whatever goes wrong with the note, the call goes on.
    fn answer(&mut self, listener: &Listener, notification: &Notification) {
        let is_question =
            self.lead.as_ref().is_some_and(|lead| lead.asks(notification.instruction));
        if notification.thread != self.launcher {
            let call = Call { listener, notification, is_question, answered: Cell::new(false) };
            self.effect = Effect::Changes;
            if let Some(lead) = &mut self.lead {
                lead.looks.begins(notification.thread);
            }
            let noted = catch_unwind(AssertUnwindSafe(|| self.note(&call)));
            match noted {
                // The launcher makes such a call between fork and exec; nothing is read for it.
                Ok(Ok(())) => self.proven |= notification.number != libc::SYS_prctl,
                Ok(Err(error)) if !self.proven => {
                    // The first call of the test: better not to start it than to watch it blindly.
                    self.blind = Some(error);
                    return listener.fail(notification, libc::EPERM);
                }
                Ok(Err(error)) => {
                    self.effect = Effect::Changes;
                    self.ledger.refuse("a process", format!("cannot be looked into: {error}"));
                }
                Err(_) => {
                    self.effect = Effect::Changes;
                    self.ledger.refuse("the watcher", "failed; please report it");
                }
            }
            if call.answered.get() {
                return;
            }
        }
        match notification.thread == self.launcher {
            true => listener.let_go(notification),
            false => self.go_on(listener, notification, is_question),
        }
    }

    /// Lets a call go, or grants it to the agent that makes it.
    fn go_on(&mut self, listener: &Listener, notification: &Notification, is_question: bool) {
        let changes = self.effect == Effect::Changes;
        if let Some(lead) = &mut self.lead {
            lead.looks.takes(self.effect);
        }
        // A debugger would see both the question and the call.
        let is_question = is_question && !(self.has_debuggers && has_debugger(notification.thread));
        let is_granted = is_question
            && listener.answer_with(notification, if changes { GRANTED_CHANGE } else { GRANTED });
        if !is_question {
            listener.let_go(notification);
        }
        if let Some(lead) = self.lead.as_mut().filter(|_| changes) {
            match is_granted {
                true => lead.looks.grants(notification.thread),
                false if is_question => {}
                false => lead.looks.lets_go(notification.thread),
            }
        }
    }

    fn note(&mut self, call: &Call) -> io::Result<()> {
        self.processes.saw(call.thread());
        self.sockets.goes_on(call.thread());
        if call.notification.architecture != arch::ARCHITECTURE {
            let why =
                (codes::FOREIGN_PROGRAM, "is of another architecture, whose calls are not watched");
            self.ledger.refuse("a program", why);
            return Ok(());
        }
        let Some((_, act, whens)) = calls::row(call.notification.number) else {
            let number = call.notification.number;
            match number >= calls::X32 {
                true => self
                    .ledger
                    .refuse("a program", "makes calls of the x32 interface, which are not watched"),
                false => self.ledger.refuse(
                    call.program_name(),
                    format!("makes system call {number}, which is unknown"),
                ),
            }
            return Ok(());
        };
        if self.interrupts.is_about_parents_end(call) {
            return Ok(());
        }
        self.effect = act.effect();
        for when in *whens {
            match when {
                When::Foreign(index) => self.uses_descriptor(call, *index),
                When::AnyForeign => self.waits_for_descriptors(call)?,
                _ => {}
            }
        }
        let is_exposed = !call.is_question && !matches!(act, Act::Inherited);
        if is_exposed && !matches!(act, Act::Handler) {
            self.interrupts.exposes(call.thread(), || call.program_name());
        }
        self.note_noticing(call);
        let noted = self.note_act(call, act);
        if is_exposed && matches!(act, Act::Handler) {
            self.interrupts.exposes(call.thread(), || call.program_name());
        }
        while let Some(subject) = self.interrupts.interrupted() {
            self.disturb(subject, "has signal handlers that can interrupt watched calls");
        }
        noted
    }

    fn note_act(&mut self, call: &Call, act: &Act) -> io::Result<()> {
        match *act {
            Act::Inherited => Ok(()),
            Act::Handler => self.interrupts.installs(call.thread(), call.int(0), call.argument(1)),
            Act::Lock => self.locks(call),
            Act::Signals => self.note_signal(call),
            Act::Refuse(reason) => {
                self.lost |= reason == calls::MOUNTS;
                self.refuse_if(call, true, reason)
            }
            act if act.is_about_files() && self.lost => self.note_loader(call, act),
            act if act.is_about_files() => self.note_file(call, act),
            act => self.note_other(call, act),
        }
    }

    /// Watching stands in the test's way.
    pub(super) fn disturb(&mut self, subject: String, reason: &str) {
        self.disturbed.store(true, Ordering::Relaxed);
        self.ledger.refuse_first(subject, (codes::DISTURBED, reason));
    }

    /// What a path argument means.
    pub(super) fn place(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        follow: bool,
    ) -> io::Result<Option<Place>> {
        let Some(text) = memory::string(call.thread(), call.argument(path))? else {
            return Ok(None);
        };
        if text.is_empty() {
            return Ok(None);
        }
        Ok(self.place_of(call, folder, &text, follow))
    }

    /// What a path means that starts at the folder of an argument, or at the working folder.
    pub(super) fn place_of(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        text: &[u8],
        follow: bool,
    ) -> Option<Place> {
        let (place, trail) = self.walk(call, folder, text, follow)?;
        self.ledger.passed(trail, &|process| self.processes.has(process));
        Some(place)
    }

    /// The same, with what was met on the way, which is not noted down yet.
    pub(super) fn walk(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        text: &[u8],
        follow: bool,
    ) -> Option<(Place, Trail)> {
        if self.lost {
            return None;
        }
        let lead = self.lead.as_mut().filter(|_| call.is_question);
        let can_know = lead.is_some_and(|lead| lead.looks.can_know(call.notification));
        let start = match text.first() {
            Some(b'/') => PathBuf::new(),
            _ => match self.start(call, folder) {
                Ok(start) => start?,
                Err(error) => {
                    let subject = call.program_name();
                    self.ledger
                        .refuse(subject, format!("is in a folder that cannot be named: {error}"));
                    return None;
                }
            },
        };
        // What was read so far was the memory of the caller only if it still waits.
        if !call.listener.still_waits(call.notification) {
            return None;
        }
        self.interrupts.opens(text);
        let (place, trail) = self.resolver.walk(call.thread(), start.clone(), text, follow);
        let known =
            self.lead.as_ref().filter(|_| can_know).and_then(|lead| {
                lead.looks.effect(call.notification, &start, text, &place, &trail)
            });
        self.effect = known.unwrap_or(self.effect);
        if trail.is_of_a_process {
            self.meets_stand_in(call, &place);
        }
        Some((place, trail))
    }

    /// The folder that a relative path starts from; `None` if it is gone, and an error if its path
    /// is longer than the kernel would tell.
    fn start(&self, call: &Call, folder: Option<usize>) -> io::Result<Option<PathBuf>> {
        let descriptor =
            folder.map(|index| call.int(index)).filter(|&number| number != libc::AT_FDCWD);
        let link = match descriptor {
            Some(number) => format!("/proc/{}/fd/{number}", call.thread()),
            None => format!("/proc/{}/cwd", call.thread()),
        };
        // A removed folder has nothing in it; a descriptor that is no folder leads nowhere.
        let is_removed = |path: &PathBuf| {
            path.as_os_str().as_bytes().ends_with(b" (deleted)")
                && !fs::metadata(&link)
                    .is_ok_and(|found| fs::metadata(path).is_ok_and(|it| same_file(&it, &found)))
        };
        match fs::read_link(&link) {
            Ok(path) => Ok(Some(path).filter(|path| path.is_absolute() && !is_removed(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The run gets to see something of a place.
    pub(super) fn saw(&mut self, place: &Place, sight: Sight) {
        self.ledger.saw(place, sight, &|process| self.processes.has(process));
    }

    /// The run changes what is at a place.
    pub(super) fn touches(&mut self, place: &Place) {
        self.originals.before_change(place);
        self.ledger.touches(place, &|process| self.processes.has(process));
    }
}

/// Whether a debugger sees a process.
pub(super) fn has_debugger(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .is_some_and(|tracer| tracer.trim() != "0")
}
