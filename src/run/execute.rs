//! Running a test: watched, with its output kept, or plainly.
//!
//! In: a session. Out: how the test ended, and all that was seen of it.

use super::capture::{Capture, Captured, HeldBack};
use super::context::STARTED;
use super::{Session, become_test, is_success, split, tracing};
use crate::model::{Exit, Refusal};
use crate::observe::originals::ORIGINALS;
use crate::observe::tracing::{Executed, Tracing};
use crate::observe::{self, CannotWatch, Input, Use, Watch, Watched};
use crate::process::spawn;
use crate::process::sys;
use rustix::fs::{FileType, MemfdFlags, SeekFrom, fstat, memfd_create};
use rustix::termios::isatty;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A run that has ended.
pub struct Ran {
    pub exit: Exit,
    pub duration: Duration,
    pub captured: Captured,
    pub used: Vec<Use>,
    pub executed: Executed,
    pub input: Input,
    /// Where it stopped reading, if that is a file.
    pub input_end: Option<u64>,
    /// Why it cannot be reused.
    pub refusals: Vec<Refusal<'static>>,
    /// How we have disturbed it, if so.
    pub disturbed: Option<String>,
}

impl Ran {
    /// Whether somebody ended it before its time.
    pub fn was_interrupted(&self) -> bool {
        const SENT: [i32; 6] = [
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGKILL,
            libc::SIGXCPU,
        ];
        sys::survived_signal().is_some()
            || matches!(self.exit, Exit::Signal(signal) if SENT.contains(&signal))
    }
}

pub fn command(words: &[OsString]) -> Command {
    let (program, arguments) = split(words);
    let mut command = Command::new(program);
    // It is between the suite and us.
    command.args(arguments).env_remove(STARTED);
    sys::start_test_as_given(&mut command);
    command
}

fn exit(status: ExitStatus) -> Exit {
    match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.code().unwrap_or(1)),
    }
}

/// Runs a test that nobody looks at.
pub fn plainly(words: &[OsString]) -> Exit {
    match to_the_end(command(words)) {
        Ok(status) => exit(status),
        // What is lacking to start it beside us may be there to start it in our place.
        Err(_) => become_test(words),
    }
}

/// Starts a command that gets our signals, and waits for its end.
fn to_the_end(mut command: Command) -> io::Result<ExitStatus> {
    sys::pass_on_signals();
    let mut child = command.spawn()?;
    // Its ends of our pipes.
    drop(command);
    sys::wait_while_signals_are_passed_on(&mut child)
}

/// Runs a test that nobody hears. Gives what it printed to standard output, where that can be kept:
/// in a file, whose end need not be waited for.
pub fn captured(words: &[OsString]) -> (Exit, Vec<u8>) {
    let mut command = command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let file = memfd_create("output", MemfdFlags::CLOEXEC).map(File::from);
    if let Some(output) = file.as_ref().ok().and_then(|file| file.try_clone().ok()) {
        command.stdout(output);
    }
    let exit = command.status().map_or(Exit::Code(spawn::CANNOT_RUN), exit);
    let mut text = Vec::new();
    if let Ok(mut file) = file {
        let _ = file.rewind().and_then(|()| file.read_to_end(&mut text));
    }
    (exit, text)
}

/// One run of a test under watch.
pub struct Attempt {
    pub exit: Exit,
    pub captured: Captured,
    pub watched: Watched,
    /// The agent was preloaded.
    pub is_traced: bool,
}

impl Attempt {
    pub fn has_failed(&self) -> bool {
        !is_success(self.exit, &self.captured.texts[0])
    }

    /// Whether the test would perhaps not have failed without us.
    pub fn is_doubtful(&self) -> bool {
        self.has_failed() && (self.is_traced || self.watched.disturbed)
    }
}

/// Why a run cannot be watched; nothing has run.
pub struct Unwatchable(pub String);

/// Runs a test once under watch. What it prints goes on at once, or is held back to the end.
pub fn attempt(
    session: &Session,
    tracing: Option<Tracing>,
    is_heard: bool,
) -> Result<Attempt, Unwatchable> {
    let words = &session.test.words;
    let mut command = command(words);
    let is_traced = tracing.is_some();
    let disturbed = Arc::<AtomicBool>::default();
    let originals = session.settings.dir.as_ref().map(|folder| folder.join(ORIGINALS));
    let mut how = Watch {
        memory: session.memory(),
        inherits_input: true,
        disturbed,
        tracing,
        originals,
        stand_ins: None,
    };
    let (limit, connection) = (session.project.config.limits.output, session.context.connection);
    let held = HeldBack {
        disturbed: how.disturbed.clone(),
        until: is_traced.then(|| held_until(session)).flatten(),
    };
    let capture = match is_heard {
        true => Capture::connect(&mut command, connection, limit, held),
        false => Capture::buffered(&mut command, connection, limit),
    };
    let capture =
        capture.map_err(|error| Unwatchable(format!("its output cannot be kept: {error}")))?;
    how.stand_ins = Some(capture.stand_ins.clone());
    let watching = match observe::start(command, &how) {
        Ok(watching) => watching,
        Err(CannotWatch::Unavailable { reason, command }) => {
            drop(command);
            capture.finish();
            return Err(Unwatchable(format!("it cannot be watched here: {reason}")));
        }
        Err(CannotWatch::CannotRun(_)) => become_test(words),
    };
    let watched = match watching.wait() {
        Ok(watched) => watched,
        Err(error) => spawn::fail_to_run(Path::new(split(words).0), &error),
    };
    Ok(Attempt { exit: exit(watched.status), captured: capture.finish(), watched, is_traced })
}

/// Until when the output of a test that is traced for the first time is held back: most tests have
/// ended by then, and what is not believed is not heard. Whoever types to the test waits for its
/// output.
fn held_until(session: &Session) -> Option<Instant> {
    const WHILE: Duration = Duration::from_millis(250);
    let is_answered = fstat(io::stdin()).is_ok_and(|found| {
        let kind = FileType::from_raw_mode(found.st_mode);
        isatty(io::stdin()) || [FileType::Fifo, FileType::Socket].contains(&kind)
    });
    (!is_answered && !tracing::has_passed(session)).then(|| Instant::now() + WHILE)
}

/// Where in standard input the next one reads, if it is a file.
pub fn input_position() -> Option<u64> {
    rustix::fs::tell(io::stdin()).ok()
}

/// Lets the next one read there.
pub fn read_on_from(position: u64) {
    let _ = rustix::fs::seek(io::stdin(), SeekFrom::Start(position));
}

/// Runs a test without watching it after it has failed. Its output is held back.
pub fn unwatched(session: &Session) -> (Exit, Captured) {
    let mut command = command(&session.test.words);
    let limit = session.project.config.limits.output;
    let Ok(capture) = Capture::buffered(&mut command, session.context.connection, limit) else {
        return (plainly(&session.test.words), Captured::default());
    };
    (to_the_end(command).map_or(Exit::Code(spawn::CANNOT_RUN), exit), capture.finish())
}
