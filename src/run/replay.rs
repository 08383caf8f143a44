//! Replays an outcome: its files, its output, its exit status.

use super::choice::Hit;
use super::execute::read_on_from;
use super::{Session, capture, exit_code, leftovers, now};
use crate::harness::{self, HarnessHints, MEASUREMENT};
use crate::model::{Decision, Exit, Step, Stream, Verdict};
use crate::store::Results;
use std::io;
use std::time::Duration;

/// Replays an outcome. After an error, nothing was printed, and the test has to run.
pub fn replay(session: &Session, hit: &Hit, hints: HarnessHints) -> io::Result<Exit> {
    let outcome = &hit.outcome;
    leftovers::put_back(&session.project, outcome, &hit.dependency_set)?;
    let measurement = hints.measurement.then_some((Stream::Stdout, MEASUREMENT.as_bytes()));
    for (stream, text) in outcome.chunks().into_iter().chain(measurement) {
        if let Err(error) = capture::pass_on(usize::from(stream == Stream::Stderr), text) {
            return Ok(capture::exit_of_failed_write(error));
        }
    }
    if let Some(position) = outcome.input_end {
        read_on_from(position);
    }
    session.store.used(session.test.identity, &hit.dependency_set, hit.key);
    session.log(&decision(session, hit, session.started.elapsed()));
    Ok(outcome.exit)
}

/// What is logged of a test whose outcome was replayed in this time.
pub fn decision(session: &Session, hit: &Hit, duration: Duration) -> Decision {
    let outcome = &hit.outcome;
    Decision {
        time: now(),
        argv: session.test.argv(),
        cwd: session.project.working.to_string_lossy().into_owned(),
        decision: Verdict::Reused,
        step: Some(hit.step),
        reason: format!("{} has changed since it ran {}", what(hit.step), origin(outcome)),
        sort: "unchanged".to_owned(),
        exit_code: exit_code(outcome.exit),
        told_failure: harness::tells_of_failure(&outcome.stdout),
        duration_ms: duration.as_millis() as u64,
        saved_ms: outcome.duration.saturating_sub(duration).as_millis() as u64,
        audit: None,
        shared: outcome.origin.is_shared(),
        not_kept: None,
        disturbed: None,
        shadow: None,
    }
}

fn what(step: Step) -> &'static str {
    match step {
        Step::Static => "nothing that it uses",
        Step::Executed => "nothing that it executes or reads",
    }
}

/// Where a result comes from.
fn origin(outcome: &crate::model::Outcome) -> String {
    let origin = &outcome.origin;
    let commit = origin
        .commit
        .as_deref()
        .map(|commit| format!(", commit {}", commit.get(..12).unwrap_or(commit)));
    // What comes from another machine does not say in which folder it came about.
    let root =
        (!origin.root.is_empty()).then(|| format!(" in {}", String::from_utf8_lossy(&origin.root)));
    format!("on {}{}{}", origin.host, root.unwrap_or_default(), commit.unwrap_or_default())
}
