//! Tests that are disturbed by tracing or watching, and how they are run from then on.
//!
//! In: the results of running a test in several ways. Out: how to run it next time, and a note in
//! the store, for `tasting stats`.

use super::{Session, now};
use crate::model::{Disturbed, Treatment};
use crate::store::Quarantine;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// After two weeks it is tried again whether the test is still disturbed.
const VALID_MS: u64 = 14 * 24 * 3600 * 1000;

/// How a test is to be run, if not as any other.
pub fn of(session: &Session) -> Option<Disturbed> {
    session
        .store
        .disturbed(session.test.name)
        .filter(|disturbed| now() < disturbed.since.saturating_add(VALID_MS))
}

/// Remembers how to run a test from now on.
pub fn remember(session: &Session, treatment: Treatment, reason: &str) {
    let disturbed = Disturbed {
        test: session.test.name,
        since: now(),
        reason: reason.to_owned(),
        argv: session.test.argv(),
        treatment,
    };
    if let Err(error) = session.store.disturb(&disturbed) {
        session.settings.log(format_args!("not remembered that the test is disturbed: {error}"));
    }
}

/// The test fails in this way as well: it is not our doing.
pub fn forget(session: &Session) {
    if session.store.disturbed(session.test.name).is_some()
        && let Err(error) = session.store.forget_disturbance(session.test.name)
    {
        session.settings.log(format_args!("not forgotten that the test was disturbed: {error}"));
    }
}

/// A note that a test is being traced. It is removed in the end, so that one that is found at the
/// next run says that we were killed: perhaps by somebody who waited for a test that hangs because
/// it is traced.
pub struct Traced {
    path: PathBuf,
    _lock: File,
}

/// What is found of an earlier run.
pub enum Earlier {
    /// It ended, or nothing is known; the note for this one, if one can be made.
    Ended(Option<Traced>),
    Killed,
}

impl Traced {
    /// Leaves a note for a test that is about to be traced.
    pub fn begin(session: &Session) -> Earlier {
        let Some(folder) = session.settings.dir.as_ref().map(|folder| folder.join("traced")) else {
            return Earlier::Ended(None);
        };
        let path = folder.join(session.test.name.to_string());
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let made =
            || DirBuilder::new().recursive(true).mode(0o700).create(&folder).and_then(|()| open());
        let Ok(mut file) = open().or_else(|_| made()) else { return Earlier::Ended(None) };
        // The same test can run several times at once.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Earlier::Ended(None);
        }
        if file.metadata().is_ok_and(|found| found.len() > 0) {
            let _ = fs::remove_file(&path);
            return Earlier::Killed;
        }
        match file.write_all(b"traced\n") {
            Ok(()) => Earlier::Ended(Some(Traced { path, _lock: file })),
            Err(_) => Earlier::Ended(None),
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
