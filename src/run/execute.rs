//! Running a test: watched, with its output kept, or plainly.
//!
//! In: a session. Out: how the test ended, and all that was seen of it.

use super::capture::{Capture, Captured, end_unheard};
use super::{Session, harness, is_good, split, tracing};
use crate::model::{Exit, Refusal};
use crate::observe::tracing::Executed;
use crate::observe::{self, CannotWatch, Input, Use, Watch, agent};
use crate::process::spawn::{self, Program};
use crate::process::sys;
use rustix::fs::SeekFrom;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
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
}

impl Ran {
    /// Whether somebody ended it before its time.
    pub fn was_interrupted(&self) -> bool {
        const SENT: [i32; 6] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL, libc::SIGXCPU];
        sys::survived_signal().is_some() || matches!(self.exit, Exit::Signal(signal) if SENT.contains(&signal))
    }
}

fn command(words: &[OsString]) -> Command {
    let (program, arguments) = split(words);
    let mut command = Command::new(program);
    command.args(arguments);
    sys::start_as_given(&mut command);
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
    let (program, arguments) = split(words);
    match spawn::run(&Program::at(program), arguments, &[]) {
        Ok(status) => exit(status),
        Err(error) => spawn::fail_to_run(Path::new(program), &error),
    }
}

/// Runs a test that nobody hears.
pub fn silently(words: &[OsString]) -> Exit {
    let mut command = command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_or(Exit::Code(spawn::CANNOT_RUN), exit)
}

/// Runs a test and sees all that it uses.
pub fn watched(session: &Session) -> Ran {
    let words = &session.test.words;
    let mut command = command(words);
    let tracing = tracing::of(session);
    let is_traced = tracing.is_some();
    if let Some(tracing) = &tracing {
        command.env(agent::PRELOAD, agent::preloaded(&tracing.agent));
    }
    let how = Watch { memory: session.memory(), inherits_input: true, disturbed: Arc::default(), tracing };
    let limit = session.project.config.limits.output;
    let started = Instant::now();
    let capture = match Capture::connect(&mut command, session.connection, limit, how.disturbed.clone()) {
        Ok(capture) => capture,
        Err(error) => return unseen(words, started, format!("its output cannot be kept: {error}")),
    };
    let watching = match observe::start(command, &how) {
        Ok(watching) => watching,
        Err(CannotWatch::Unavailable { reason, command }) => {
            drop(command);
            capture.finish();
            return unseen(words, started, format!("it cannot be watched here: {reason}"));
        }
        Err(CannotWatch::CannotRun(error)) => spawn::fail_to_run(Path::new(split(words).0), &error),
    };
    let watched = match watching.wait() {
        Ok(watched) => watched,
        Err(error) => spawn::fail_to_run(Path::new(split(words).0), &error),
    };
    let mut captured = capture.finish();
    let mut refusals = watched.refusals;
    let mut exit = exit(watched.status);
    if watched.disturbed {
        tracing::disturbs(session);
    } else if !is_traced && !is_good(exit) {
        tracing::has_nothing_to_do_with_it(session);
    }
    let doubtful = (watched.disturbed || watched.traced) && !is_good(exit) && sys::survived_signal().is_none();
    let repeatable = watched.disturbed || can_be_repeated(&watched.used, &refusals);
    if doubtful && repeatable {
        let (plain, second) = again(session, &watched.input);
        if watched.traced && plain != exit {
            tracing::disturbs(session);
            refusals.push(Refusal::new("the test", "ends differently when its functions are traced"));
        }
        // A first attempt that was right is enough: the second one may have printed another address, another time.
        let heard = if plain == exit && !watched.disturbed { None } else { Some(second) };
        pass_on(&mut captured, heard);
        exit = plain;
    } else {
        if doubtful {
            // It is not known whether tracing has to do with it: a failure is better than a pass that is none.
            tracing::disturbs(session);
        }
        pass_on(&mut captured, None);
    }
    if watched.traced && is_good(exit) && harness::tells_of_failure(&captured.texts[0]) {
        tracing::disturbs(session);
        refusals.push(Refusal::new(
            "the test",
            "tells of a failure while its functions are traced; it is not traced next time",
        ));
    }
    if let Some(error) = captured.lost {
        refusals.push(Refusal::new("its output", format!("could not be written: {error}")));
        exit = if is_good(exit) { end_unheard(error) } else { exit };
    }
    if captured.is_cut {
        refusals.push(Refusal::new("its output", "is longer than what is kept (limits.output in tasting.toml)"));
    }
    if captured.is_open {
        refusals.push(Refusal::new("its output", "is still open in another process"));
    }
    let (used, executed, input) = (watched.used, watched.executed, watched.input);
    let input_end = matches!(input, Input::File { .. }).then(input_position).flatten();
    let ran = Ran { exit, duration: watched.duration, captured, used, executed, input, input_end, refusals };
    if ran.was_interrupted() && ran.refusals.is_empty() {
        let refusals = vec![Refusal::new("the test", "was ended by a signal from outside")];
        return Ran { refusals, ..ran };
    }
    ran
}

/// Whether a second attempt starts where the first one did. After a test that found no snapshot, wrote one and failed, or one
/// that has read a pipe to its end, the second attempt may pass where the test has failed.
fn can_be_repeated(used: &[Use], refusals: &[Refusal]) -> bool {
    refusals.is_empty() && !used.iter().any(|used| matches!(used, Use::Written { .. } | Use::Removed { .. }))
}

/// Where in standard input the next one reads, if it is a file.
pub fn input_position() -> Option<u64> {
    rustix::fs::tell(io::stdin()).ok()
}

/// Lets the next one read there.
pub fn read_on_from(position: u64) {
    let _ = rustix::fs::seek(io::stdin(), SeekFrom::Start(position));
}

/// Runs a test that cannot be seen.
fn unseen(words: &[OsString], started: Instant, reason: String) -> Ran {
    let exit = plainly(words);
    let refusals = vec![Refusal::new("the test", reason)];
    let (captured, used) = (Captured::default(), Vec::new());
    let (executed, input, input_end) = (Executed::default(), Input::Given, None);
    Ran { exit, duration: started.elapsed(), captured, used, executed, input, input_end, refusals }
}

/// Runs a test plainly after it failed while it was watched. Its output is held back.
fn again(session: &Session, input: &Input) -> (Exit, Captured) {
    if let Input::File { position, .. } = input {
        read_on_from(*position);
    }
    let mut command = command(&session.test.words);
    let limit = session.project.config.limits.output;
    let Ok(capture) = Capture::silently(&mut command, session.connection, limit) else {
        return (plainly(&session.test.words), Captured::default());
    };
    let status = command.status();
    drop(command);
    (status.map_or(Exit::Code(spawn::CANNOT_RUN), exit), capture.finish())
}

/// Passes on the output that was held back: of the second attempt, less what the first one printed already, or of the first.
fn pass_on(first: &mut Captured, second: Option<Captured>) {
    let Some(mut second) = second else {
        first.pass_on_rest();
        return;
    };
    for number in [0, 1] {
        let printed = &first.texts[number][..first.passed[number]];
        if second.passed[number] == 0 && second.texts[number].starts_with(printed) {
            second.passed[number] = printed.len();
        }
    }
    second.pass_on_rest();
}
