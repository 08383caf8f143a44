//! Audits: a test runs although its result could be reused, and the two results are compared. A
//! test whose results differ is put into quarantine.

use super::choice;
use super::reason::Reason;
use super::shadow::Foreseen;
use super::{Options, Session, execute, executed, now, repeat};
use crate::harness::{ReportedFailure, reported_failures};
use crate::model::{Audit, Exit, Mark};
use crate::store::{Quarantine, Results};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher as _, RandomState};

/// How a test in quarantine gets out, unless the project says otherwise.
pub const QUARANTINE_PASSES: u32 = 5;

/// How often a test that surprised an audit is run again, to see whether it makes up its mind anew
/// each time.
const REPEATS: usize = 3;

/// Why a test runs although its result could be reused: the sort of reason, and the reason.
pub(super) const AUDIT: [&str; 2] =
    ["audit", "its result could have been reused; it ran to see whether it is the same"];
pub(super) const SHADOW: [&str; 2] =
    ["shadow", "its result would have been reused; it ran because of shadow mode"];

/// How a test ended, as its harness sees it. What else it prints may differ from run to run.
#[derive(PartialEq, Eq)]
struct End {
    exit: Exit,
    told: BTreeSet<ReportedFailure>,
}

impl End {
    fn of(exit: Exit, output: &[u8]) -> End {
        End { exit, told: reported_failures(output) }
    }
}

impl Session {
    /// Runs a test although its result could be reused, and compares.
    pub(super) fn audit(
        &self,
        hit: choice::Hit,
        [sort, why]: [&'static str; 2],
        foreseen: Option<Foreseen>,
    ) -> Exit {
        let ran = repeat::watched(self);
        let reason = Reason::new(sort, why);
        let mut decision =
            executed(self.test.argv(), &self.project.working, &reason, ran.exit, ran.duration);
        let end = End::of(ran.exit, &ran.captured.texts[0]);
        decision.told_failure = !end.told.is_empty();
        let is_other = |_| {
            let (exit, output) = execute::captured(&self.test.words);
            End::of(exit, &output) != end
        };
        let audit = match () {
            () if ran.was_interrupted() => None,
            () if end == End::of(hit.outcome.exit, &hit.outcome.stdout) => Some(Audit::Same),
            // It gives this and that without anything having changed.
            () if (0..REPEATS).any(is_other) => Some(Audit::Unstable),
            () => Some(Audit::Missed),
        };
        decision.audit = audit;
        if let Some(found) = audit.filter(|audit| *audit != Audit::Same) {
            let what = match found {
                Audit::Unstable => "unstable test: it ends differently from run to run",
                _ => {
                    "missed dependency: it ends differently although nothing that it was seen to use has changed"
                }
            };
            decision.reason = format!("{sort}: {what}");
            // An entry that cannot be dropped is not reused either: the test is in quarantine.
            let _ = self.store.drop_outcome(hit.key);
            self.quarantine(what, self.quarantine_passes());
        }
        if let Some(foreseen) = foreseen.filter(|_| audit == Some(Audit::Same)) {
            foreseen.confirm(self);
        }
        self.log(&decision);
        ran.exit
    }

    pub(super) fn is_audited(&self, options: Options) -> bool {
        let share = options.audit.map_or(0.0, |share| share.0);
        !self.settings.readonly && share > 0.0 && dice() < share
    }

    pub(super) fn quarantine_passes(&self) -> u32 {
        self.project.config.quarantine_passes.unwrap_or(QUARANTINE_PASSES)
    }

    /// Does not trust the test until it has passed so often.
    pub(super) fn quarantine(&self, reason: &str, passes_left: u32) {
        let mark = Mark {
            test: self.test.identity,
            since: now(),
            reason: reason.to_owned(),
            argv: self.test.argv(),
            passes_left,
        };
        if let Err(error) = self.store.mark(&mark) {
            self.settings.log(format_args!("cannot put the test in quarantine: {error}"));
        }
    }
}

/// A number from 0 to 1, another one each time.
fn dice() -> f64 {
    let number = RandomState::new().build_hasher().finish() as u32;
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}
