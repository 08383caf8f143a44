//! Watching one execution from its start to its end.
//!
//! In: a command. Out: how it ended, what it used, and why the run cannot be reused if it cannot.
//!
//! Three threads of this process work together. The *launcher* puts the filter on itself and starts
//! the command, which inherits it: so the listening end is ours at once, and need not be passed
//! between processes. It stays until the command has ended, because the command is to die with it.
//! The *supervisor* answers the calls. The caller's thread waits for the command.

use super::content::{Contents, Forgetful, Memory};
use super::filter;
use super::inherited::{self, Input, MOST_FOREIGN};
use super::kernel::{self, Listener};
use super::lead::Lead;
use super::ledger::{CHANGED, Ledger};
use super::originals::Originals;
use super::stand_ins::StandIns;
use super::supervisor::Supervisor;
use super::tracing::{Executed, Tracer, Tracing};
use super::used::Use;
use crate::model::{Refusal, codes};
use crate::process::sys;
use std::fmt;
use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How to watch.
#[derive(Clone)]
pub struct Watch {
    /// What remembers the contents of files between runs.
    pub memory: Arc<dyn Memory>,
    /// The command gets our own standard input, as `Command` does it unless told otherwise. If not,
    /// the caller gives it something, and has to account for it.
    pub inherits_input: bool,
    /// Set as soon as watching can have changed what the command does.
    pub disturbed: Arc<AtomicBool>,
    /// Whether and how the agent is loaded into programs: to lead their calls past the filter, and
    /// to note which functions are executed.
    pub tracing: Option<Tracing>,
    /// Below which folder the originals of files that the run changes are kept, if they are.
    pub originals: Option<PathBuf>,
    /// Pipes that the command has in the place of its output.
    pub stand_ins: Option<Arc<StandIns>>,
}

impl Default for Watch {
    fn default() -> Self {
        let (disturbed, tracing, originals, stand_ins) = (Arc::default(), None, None, None);
        Watch {
            memory: Arc::new(Forgetful),
            inherits_input: true,
            disturbed,
            tracing,
            originals,
            stand_ins,
        }
    }
}

/// Why there is nothing to watch.
pub enum CannotWatch {
    /// Watching is not possible here, and the command has not run: the caller can run it plainly.
    Unavailable { reason: String, command: Box<Command> },
    /// The command cannot be started, watched or not.
    CannotRun(io::Error),
}

impl fmt::Debug for CannotWatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotWatch::Unavailable { reason, .. } => {
                write!(out, "watching is not possible: {reason}")
            }
            CannotWatch::CannotRun(error) => write!(out, "the command cannot be started: {error}"),
        }
    }
}

/// A command that runs and is watched. Dropping it kills the command.
pub struct Watching {
    /// The command's process, for its pipes. Waiting is for `Watching::wait`.
    pub child: Child,
    started: Instant,
    input: Input,
    launcher: JoinHandle<()>,
    /// Dropping them tells the launcher and the supervisor that the command has ended.
    hold: Sender<()>,
    stop: PipeWriter,
    supervisor: JoinHandle<Option<(Supervisor, Listener, bool)>>,
}

/// What was seen of a run.
#[derive(Debug)]
pub struct Watched {
    pub status: ExitStatus,
    pub duration: Duration,
    /// Standard input, as it was when the command started.
    pub input: Input,
    /// All that the run used, sorted.
    pub used: Vec<Use>,
    /// Which functions were executed, of the modules of which it is known.
    pub executed: Executed,
    /// Functions were watched.
    pub traced: bool,
    /// Why the run must not be reused; none if it can be.
    pub refusals: Vec<Refusal<'static>>,
    /// Watching can have changed the verdict: before anyone hears of a failure, run it again
    /// plainly.
    pub disturbed: bool,
    /// What the run has changed, to be undone before it is repeated.
    pub originals: Originals,
}

/// What the launcher reports once the filter is in place.
struct Installed {
    listener: Listener,
    thread: u32,
    powerless: bool,
}

/// Runs a command to its end.
pub fn watch(command: Command, how: &Watch) -> Result<Watched, CannotWatch> {
    start(command, how)?.wait().map_err(CannotWatch::CannotRun)
}

/// Starts a command under watch.
pub fn start(command: Command, how: &Watch) -> Result<Watching, CannotWatch> {
    let mut contents = Contents::new(how.memory.clone());
    let (input, foreign) = match how.inherits_input {
        true => inherited::standard_input(&mut contents),
        false => (Input::Given, None),
    };
    let mut foreign: Vec<_> = foreign.into_iter().chain(inherited::others()).collect();
    let tracer = how.tracing.clone().map(Tracer::new);
    let mut ledger = Ledger::new(contents);
    if foreign.len() > MOST_FOREIGN {
        let why = format!("more than {MOST_FOREIGN} are inherited from outside");
        ledger.refuse("descriptors", (codes::INHERITED, why));
        foreign.truncate(MOST_FOREIGN);
    }
    let numbers = inherited::watched_numbers(&foreign);
    // Without the board nothing is led.
    let sites = how.tracing.as_ref().map(|tracing| tracing.sites.clone());
    let lead = sites.and_then(|sites| Lead::new(sites, &numbers).ok());
    let program = filter::program(&numbers, lead.as_ref().map(Lead::passes));
    let (stop_seen, stop) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return Err(unavailable(command, format!("no pipe: {error}"))),
    };

    let (installed, is_installed) = mpsc::channel();
    let (spawned, is_spawned) = mpsc::channel();
    let (hold, held) = mpsc::channel();
    let mut supervisor = Supervisor::new(ledger, foreign, how.disturbed.clone());
    (supervisor.tracer, supervisor.lead) = (tracer, lead);
    supervisor.originals = Originals::new(how.originals.clone());
    supervisor.stand_ins.clone_from(&how.stand_ins);
    // First of all: a command whose calls nobody answers would wait for ever.
    let (begin, begins) = mpsc::channel::<Installed>();
    let serving = thread::Builder::new().spawn(move || {
        let Installed { listener, thread, powerless } = begins.recv().ok()?;
        (supervisor.launcher, supervisor.powerless) = (thread, powerless);
        let nobody_left = supervisor.serve(&listener, stop_seen.as_fd());
        Some((supervisor, listener, nobody_left))
    });
    let serving = match serving {
        Ok(serving) => serving,
        Err(error) => return Err(unavailable(command, no_thread(&error))),
    };
    sys::pass_on_signals();
    let started = Instant::now();
    let (given, taken) = mpsc::channel();
    let launching = move || {
        if let Ok(command) = taken.recv() {
            launch(command, &program, &installed, &spawned, held);
        }
    };
    let launcher = match thread::Builder::new().spawn(launching) {
        Ok(launcher) => launcher,
        Err(error) => return Err(unavailable(command, no_thread(&error))),
    };
    let _ = given.send(command);
    match is_installed.recv() {
        Ok(Ok(installed)) => _ = begin.send(installed),
        Ok(Err((error, command))) => return Err(unavailable(*command, why(&error))),
        Err(_) => {
            return Err(CannotWatch::CannotRun(io::Error::other("the launching thread failed")));
        }
    }
    match is_spawned.recv() {
        Ok(Ok(child)) => {
            sys::forward_signals_to(Some(child.id()));
            Ok(Watching { child, started, input, launcher, hold, stop, supervisor: serving })
        }
        Ok(Err((error, command))) => {
            drop((hold, stop));
            let (supervisor, ..) = serving.join().ok().flatten().ok_or_else(failed)?;
            match supervisor.blind {
                Some(blind) => {
                    Err(unavailable(*command, format!("the test's memory cannot be read: {blind}")))
                }
                None => Err(CannotWatch::CannotRun(error)),
            }
        }
        Err(_) => Err(failed()),
    }
}

/// Whether this process is itself watched, by us or by somebody else.
pub fn is_watched() -> bool {
    kernel::is_filtered() && availability() == Err(why(&io::Error::from_raw_os_error(libc::EBUSY)))
}

/// Whether watching is possible here, or why not.
pub fn availability() -> Result<(), String> {
    let attempt = thread::Builder::new().spawn(|| kernel::install(&filter::harmless()));
    match attempt.map_err(|error| no_thread(&error))?.join() {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(why(&error)),
        Err(_) => Err("the attempt failed".to_owned()),
    }
}

fn no_thread(error: &io::Error) -> String {
    format!("no thread can be started: {error}")
}

fn failed() -> CannotWatch {
    CannotWatch::CannotRun(io::Error::other("a watching thread failed"))
}

fn unavailable(command: Command, reason: String) -> CannotWatch {
    CannotWatch::Unavailable { reason, command: Box::new(command) }
}

/// What the kernel's refusal of a filter means.
fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EBUSY) => "this process is itself watched".to_owned(),
        Some(libc::ENOSYS | libc::EINVAL) => {
            "the kernel has no seccomp notifications (Linux 5.5 has)".to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => "seccomp filters are not allowed here".to_owned(),
        _ => format!("the filter cannot be installed: {error}"),
    }
}

type Failure = (io::Error, Box<Command>);

/// The launcher's life.
fn launch(
    mut command: Command,
    program: &[libc::sock_filter],
    installed: &Sender<Result<Installed, Failure>>,
    spawned: &Sender<Result<Child, Failure>>,
    held: Receiver<()>,
) {
    let listener = match kernel::install(program) {
        Ok(listener) => listener,
        Err(error) => {
            let _ = installed.send(Err((error, Box::new(command))));
            return;
        }
    };
    let (thread, powerless) = (kernel::own_thread(), kernel::has_no_new_privileges());
    let _ = installed.send(Ok(Installed { listener, thread, powerless }));
    kernel::dies_with_us(&mut command);
    let child = command.spawn();
    let started = child.is_ok();
    let _ = spawned.send(child.map_err(|error| (error, Box::new(command))));
    if started {
        // Nothing is ever sent: it ends when the other side is dropped.
        let _ = held.recv();
    }
}

impl Watching {
    /// Waits for the command's end, and closes the account. What the command has started and left
    /// running is not waited for.
    pub fn wait(mut self) -> io::Result<Watched> {
        let status = sys::wait_while_signals_are_passed_on(&mut self.child);
        let duration = self.started.elapsed();
        drop(self.hold);
        let _ = self.launcher.join();
        drop(self.stop);
        let (mut supervisor, listener, nobody_left) = self
            .supervisor
            .join()
            .ok()
            .flatten()
            .ok_or_else(|| io::Error::other("the watching thread failed"))?;
        supervisor.refuse_what_is_shared();
        let Supervisor { mut ledger, disturbed, processes, tracer, originals, .. } = supervisor;
        let mut disturbed = disturbed.load(Ordering::Relaxed);
        if !nobody_left {
            disturbed |= listener.leave_behind().is_err();
            ledger.refuse(
                processes.alive().join(", "),
                (codes::STILL_RUNNING, "still runs after the test's end"),
            );
        }
        if !self.input.is_unchanged() {
            ledger.refuse("standard input", (codes::CHANGED_MEANWHILE, CHANGED));
        }
        if let Some(signal) = sys::survived_signal() {
            ledger.refuse(
                "the test",
                (codes::INTERRUPTED, format!("was interrupted by signal {signal}")),
            );
        }
        let (used, refusals) = ledger.close();
        let traced = tracer.as_ref().is_some_and(Tracer::is_used);
        let executed = tracer.map(Tracer::close).unwrap_or_default();
        let (status, input) = (status?, self.input);
        Ok(Watched {
            status,
            duration,
            input,
            used,
            executed,
            traced,
            refusals,
            disturbed,
            originals,
        })
    }
}
