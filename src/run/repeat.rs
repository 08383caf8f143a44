//! Runs a test so that it is not disturbed. A test that has failed, perhaps because of us, is
//! undone and run again, first without tracing, then without watching. If it passes then, it was
//! disturbed, and the pass is what is reported.
//!
//! In: a session. Out: how the test ended, with the output and the observations that belong to it.

use super::capture::{Captured, exit_of_failed_write};
use super::disturbed::{Earlier, Traced};
use super::execute::{
    self, Attempt, Ran, Unwatchable, attempt, input_position, read_on_from, unwatched,
};
use super::{Session, disturbed, exit_code, is_good, is_success, tracing};
use crate::model::{Exit, Refusal, Treatment, codes};
use crate::observe::tracing::Executed;
use crate::observe::{Input, Watched};
use crate::process::sys;
use std::ffi::OsString;
use std::time::Instant;

/// How a test ended, whatever it took to find out.
struct Settled {
    exit: Exit,
    captured: Captured,
    watched: Watched,
    /// Why the result is not to be kept, beside what the watcher says.
    refusals: Vec<Refusal<'static>>,
    disturbed: Option<String>,
}

/// Ways to end a test that has hung too long. People who interrupt one (SIGINT) are in no doubt
/// about it.
const TIMEOUTS: [i32; 5] =
    [libc::SIGTERM, libc::SIGKILL, libc::SIGALRM, libc::SIGQUIT, libc::SIGXCPU];

/// Runs a test and sees all that it uses, in as many attempts as it takes to know that we did not
/// disturb it.
pub fn watched(session: &Session) -> Ran {
    let started = Instant::now();
    let (tracing, note) = match tracing::of(session) {
        None => (None, None),
        Some(tracing) => match Traced::begin(session) {
            Earlier::Ended(note) => (Some(tracing), note),
            Earlier::Killed => {
                disturbed::remember(
                    session,
                    Treatment::Untraced,
                    "it was killed while it was traced",
                );
                (None, None)
            }
        },
    };
    let first = attempt(session, tracing, true);
    drop(note);
    match first {
        Ok(first) => finish(settle(session, first)),
        Err(Unwatchable(reason)) => unseen(&session.test.words, started, reason),
    }
}

/// What is known of a test in the end.
fn finish(settled: Settled) -> Ran {
    let Settled { mut exit, captured, watched, mut refusals, disturbed } = settled;
    refusals.extend(watched.refusals);
    if let Some(error) = captured.lost {
        let why = format!("could not be written: {error}");
        refusals.push(Refusal::of_run("its output", (codes::OUTPUT, why)));
        exit = if is_good(exit) { exit_of_failed_write(error) } else { exit };
    }
    if captured.is_cut {
        let why = "is longer than what is kept (limits.output in tasting.toml)";
        refusals.push(Refusal::of_run("its output", (codes::OUTPUT, why)));
    }
    if captured.is_unclear {
        let why = "is in a file that was written to in other ways than one behind the other";
        refusals.push(Refusal::of_run("its output", (codes::OUTPUT, why)));
    }
    if captured.is_open {
        refusals.push(Refusal::of_run(
            "its output",
            (codes::STILL_RUNNING, "is still open in another process"),
        ));
    }
    let (used, executed, input, duration) =
        (watched.used, watched.executed, watched.input, watched.duration);
    let input_end = matches!(input, Input::File { .. }).then(input_position).flatten();
    let mut ran =
        Ran { exit, duration, captured, used, executed, input, input_end, refusals, disturbed };
    if ran.was_interrupted() && ran.refusals.is_empty() {
        ran.refusals.push(Refusal::of_run(
            "the test",
            (codes::INTERRUPTED, "was ended by a signal from outside"),
        ));
    }
    ran
}

/// Runs a test that cannot be seen.
fn unseen(words: &[OsString], started: Instant, reason: String) -> Ran {
    let exit = execute::plainly(words);
    let refusals = vec![Refusal::of_run("the test", (codes::CANNOT_WATCH, reason))];
    let (captured, used) = (Captured::default(), Vec::new());
    let (executed, input, input_end, disturbed) = (Executed::default(), Input::Given, None, None);
    Ran {
        exit,
        duration: started.elapsed(),
        captured,
        used,
        executed,
        input,
        input_end,
        refusals,
        disturbed,
    }
}

/// Finds out whether a test has really failed that failed in its first attempt. All that it has
/// printed is passed on then.
fn settle(session: &Session, first: Attempt) -> Settled {
    let signal = match first.exit {
        // One that is sent to the whole group may end the test before it comes to us.
        Exit::Signal(signal @ (libc::SIGKILL | libc::SIGINT)) => Some(signal),
        // Its own alarm, or its own limit of time, may have come because of us.
        _ => sys::survived_signal(),
    };
    if let Some(signal) = signal.filter(|_| first.has_failed()) {
        return interrupted(session, first, signal);
    }
    if !first.has_failed() {
        return passed(session, first);
    }
    // Whoever fails because nobody reads its output does so in any case. It must not run again where
    // its output goes nowhere: one that prints until nobody listens would never end.
    if first.captured.lost.is_some() {
        return believed(first, None);
    }
    if !first.is_doubtful() {
        disturbed::forget(session);
        return believed(first, None);
    }
    match undo(&first) {
        // Watching is known to stand in its way: whatever it finds when it runs again, it cannot do
        // worse.
        Err(_) if first.watched.disturbed && !has_output(&first) => again(session, first),
        Ok(()) => again(session, first),
        Err(reason) => {
            // A failure is better than a pass that is none.
            let reason = format!("it failed while it was traced, and cannot be repeated: {reason}");
            disturbed::remember(session, Treatment::Untraced, &reason);
            believed(first, Some(reason))
        }
    }
}

fn interrupted(session: &Session, first: Attempt, signal: i32) -> Settled {
    if !first.is_traced {
        disturbed::forget(session);
    } else if TIMEOUTS.contains(&signal) {
        let reason = format!("it was ended by signal {signal} while it was traced");
        disturbed::remember(session, Treatment::Untraced, &reason);
    }
    believed(first, None)
}

fn passed(session: &Session, first: Attempt) -> Settled {
    let disturbed = first.watched.disturbed.then(|| {
        let why = first.watched.refusals.first().map_or(String::new(), Refusal::to_string);
        format!("what it does may be different when it is watched: {why}")
    });
    match &disturbed {
        Some(reason) if first.is_traced => {
            disturbed::remember(session, Treatment::Untraced, reason)
        }
        None if first.is_traced => tracing::remember_passed(session),
        _ => {}
    }
    believed(first, disturbed)
}

/// An attempt that is what it seems.
fn believed(mut attempt: Attempt, disturbed: Option<String>) -> Settled {
    attempt.captured.pass_on_rest();
    let Attempt { exit, captured, watched, .. } = attempt;
    Settled { exit, captured, watched, refusals: Vec::new(), disturbed }
}

/// Whether the test was given its output itself, in place of a pipe.
fn has_output(attempt: &Attempt) -> bool {
    attempt.watched.refusals.iter().any(|refusal| refusal.code == codes::OUTPUT)
}

/// Makes everything as it was before an attempt; or says why that is not possible.
fn undo(attempt: &Attempt) -> Result<(), String> {
    let watched = &attempt.watched;
    // What was written to the output itself is there, and a repetition does not write there.
    let is_against_it = |refusal: &&Refusal| match refusal.code {
        codes::OUTPUT => true,
        codes::RENAMED_FOLDER => false,
        _ => !watched.disturbed,
    };
    if let Some(refusal) = watched.refusals.iter().find(is_against_it) {
        return Err(refusal.to_string());
    }
    watched.originals.put_back()?;
    if let Input::File { position, .. } = watched.input {
        read_on_from(position);
    }
    Ok(())
}

/// The second attempt, and a third if the second one does not settle it.
fn again(session: &Session, first: Attempt) -> Settled {
    // Without an empty file, more is in it in the end: that is no reason to believe a wrong end.
    let _ = session.context.connection.rewind();
    let second = if first.is_traced { attempt(session, None, false).ok() } else { None };
    let Some(second) = second else { return plainly(session, first) };
    if second.has_failed() && second.watched.disturbed && sys::survived_signal().is_none() {
        let _ = undo(&second)
            .and(session.context.connection.rewind().map_err(|error| error.to_string()));
        return plainly(session, first);
    }
    if second.exit == first.exit && second.has_failed() {
        disturbed::forget(session);
        return failed_twice(first, second.captured);
    }
    let [traced, untraced] = [&first, &second].map(|attempt| end(attempt.exit));
    let reason = format!(
        "it ends with {traced} while its functions are traced, and with {untraced} without"
    );
    if sys::survived_signal().is_none() {
        disturbed::remember(session, Treatment::Untraced, &reason);
    }
    let (exit, captured, watched) =
        (second.exit, heard(first.captured, second.captured), second.watched);
    Settled { exit, captured, watched, refusals: refused(&reason), disturbed: Some(reason) }
}

/// The last attempt.
fn plainly(session: &Session, first: Attempt) -> Settled {
    let (exit, captured) = unwatched(session);
    let has_failed = !is_success(exit, &captured.texts[0]);
    if exit == first.exit && has_failed {
        disturbed::forget(session);
        return failed_twice(first, captured);
    }
    let [watched, unwatched] = [first.exit, exit].map(end);
    let why =
        first.watched.refusals.first().map_or(String::new(), |refusal| format!(" ({refusal})"));
    let reason =
        format!("it ends with {watched} while it is watched, and with {unwatched} without{why}");
    if sys::survived_signal().is_none() {
        disturbed::remember(session, Treatment::Unwatched, &reason);
    }
    let (captured, watched) = (heard(first.captured, captured), first.watched);
    Settled { exit, captured, watched, refusals: refused(&reason), disturbed: Some(reason) }
}

/// A failure that has nothing to do with us. It is told once: what the first attempt has printed is
/// enough, since the last one may have printed another address, another time. The files are those
/// of the last one.
fn failed_twice(mut first: Attempt, last: Captured) -> Settled {
    if first.captured.passed == [0, 0] && !last.is_cut {
        let captured = heard(Captured::default(), last);
        let Attempt { exit, watched, .. } = first;
        return Settled { exit, captured, watched, refusals: Vec::new(), disturbed: None };
    }
    first.captured.pass_on_rest();
    believed(first, None)
}

/// Passes on the output of the last attempt, less what the first one has printed already.
fn heard(first: Captured, mut last: Captured) -> Captured {
    for number in [0, 1] {
        let printed = &first.texts[number][..first.passed[number]];
        if last.passed[number] == 0 && last.texts[number].starts_with(printed) {
            last.passed[number] = printed.len();
        }
    }
    last.pass_on_rest();
    last
}

fn refused(reason: &str) -> Vec<Refusal<'static>> {
    vec![Refusal::of_run("the test", (codes::DISTURBED, format!("was disturbed: {reason}")))]
}

fn end(exit: Exit) -> String {
    match exit {
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Code(_) => format!("status {}", exit_code(exit)),
    }
}
