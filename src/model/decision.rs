//! What was decided about each test: the lines of `tasting log`, the sums of `tasting stats`, and the marks of tests that
//! are not trusted for a while.

use super::Hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One decision of `tasting run`. Its names are those of `tasting log --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Milliseconds since 1970.
    pub time: u64,
    pub argv: Vec<String>,
    pub cwd: String,
    pub decision: Verdict,
    pub step: Option<Step>,
    /// Why, in words for people.
    pub reason: String,
    /// The sort of reason, in few words that many decisions share: what `tasting stats` counts by.
    pub sort: String,
    /// As a shell would show it: 128 + the signal where there was one.
    pub exit_code: i32,
    pub duration_ms: u64,
    pub saved_ms: u64,
    /// What running it all the same showed, where that was done.
    pub audit: Option<Audit>,
    /// Whether the result came from another machine.
    #[serde(default)]
    pub shared: bool,
    /// How tracing or watching disturbed the test, where it did.
    #[serde(default)]
    pub disturbed: Option<String>,
}

/// Whether the test had to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Reused,
    Executed,
}

/// Which step of precision allowed the reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Static,
    Executed,
}

/// What came out when a result that could have been reused was computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audit {
    Same,
    /// The test gives this and that by itself.
    Unstable,
    /// The test depends on something that was not seen.
    Missed,
}

/// Sums over decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub reused: u64,
    pub executed: u64,
    pub reused_static: u64,
    pub reused_executed: u64,
    /// Of those that were reused, how many came from other machines.
    pub reused_shared: u64,
    pub saved_ms: u64,
    pub executed_ms: u64,
    pub audits: u64,
    pub audits_unstable: u64,
    pub audits_missed: u64,
    /// How often a test was disturbed by tracing or watching.
    pub disturbed_runs: u64,
    /// How often tests ran, by the sort of reason.
    pub reasons: BTreeMap<String, u64>,
}

/// How many sorts of reason are counted apart; the sums must not grow with what tests are called.
const MOST_REASONS: usize = 100;

impl Stats {
    /// Counts one decision.
    pub fn count(&mut self, decision: &Decision) {
        match decision.decision {
            Verdict::Reused => self.count_reused(decision),
            Verdict::Executed => self.count_executed(decision),
        }
        self.disturbed_runs += u64::from(decision.disturbed.is_some());
        let Some(audit) = decision.audit else { return };
        self.audits += 1;
        self.audits_unstable += u64::from(audit == Audit::Unstable);
        self.audits_missed += u64::from(audit == Audit::Missed);
    }

    fn count_reused(&mut self, decision: &Decision) {
        self.reused += 1;
        self.reused_shared += u64::from(decision.shared);
        self.saved_ms = self.saved_ms.saturating_add(decision.saved_ms);
        match decision.step {
            Some(Step::Static) => self.reused_static += 1,
            Some(Step::Executed) => self.reused_executed += 1,
            None => {}
        }
    }

    fn count_executed(&mut self, decision: &Decision) {
        self.executed += 1;
        self.executed_ms = self.executed_ms.saturating_add(decision.duration_ms);
        let known = self.reasons.len() < MOST_REASONS || self.reasons.contains_key(&decision.sort);
        let sort = if known { decision.sort.as_str() } else { "other" };
        *self.reasons.entry(sort.to_owned()).or_default() += 1;
    }
}

/// A test that is in quarantine: its results are not reused until it has passed often enough again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub test: Hash,
    /// Milliseconds since 1970.
    pub since: u64,
    pub reason: String,
    /// The command, for people.
    pub argv: Vec<String>,
    /// How many more times it has to pass.
    pub passes_left: u32,
}

/// A test that tracing or watching disturbs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Its name: the command and its place, whatever the circumstances.
    pub test: Hash,
    /// Milliseconds since 1970.
    pub since: u64,
    /// What happened.
    pub reason: String,
    /// The command, for people.
    pub argv: Vec<String>,
    pub treatment: Treatment,
}

/// How a test that was disturbed is run from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// Watched, with no function traced.
    Untraced,
    /// Not watched: its results are never reused.
    Unwatched,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(verdict: Verdict, step: Option<Step>, sort: &str) -> Decision {
        Decision {
            time: 1,
            argv: vec!["./t".into()],
            cwd: "/w".into(),
            decision: verdict,
            step,
            reason: "r".into(),
            sort: sort.into(),
            exit_code: 0,
            duration_ms: 3,
            saved_ms: 5,
            audit: None,
            shared: false,
            disturbed: None,
        }
    }

    #[test]
    fn the_names_are_those_of_the_contract() {
        let json = serde_json::to_value(decision(Verdict::Reused, Some(Step::Static), "")).unwrap();
        assert_eq!((json["decision"].as_str(), json["step"].as_str()), (Some("reused"), Some("static")));
        let json = serde_json::to_value(decision(Verdict::Executed, None, "")).unwrap();
        assert!(json["step"].is_null() && json["decision"] == "executed");
        for name in ["time", "argv", "cwd", "reason", "exit_code", "duration_ms", "saved_ms"] {
            assert!(!json[name].is_null(), "{name}");
        }
    }

    #[test]
    fn sums() {
        let mut stats = Stats::default();
        stats.count(&decision(Verdict::Reused, Some(Step::Executed), "same"));
        stats.count(&decision(Verdict::Executed, None, "new"));
        stats.count(&Decision { audit: Some(Audit::Missed), ..decision(Verdict::Executed, None, "audit") });
        assert_eq!((stats.reused, stats.reused_executed, stats.saved_ms), (1, 1, 5));
        assert_eq!((stats.executed, stats.executed_ms, stats.reasons["new"]), (2, 6, 1));
        assert_eq!((stats.audits, stats.audits_missed, stats.audits_unstable), (1, 1, 0));
    }

    #[test]
    fn the_sorts_of_reason_stay_few() {
        let mut stats = Stats::default();
        for number in 0..1000 {
            stats.count(&decision(Verdict::Executed, None, &number.to_string()));
        }
        assert_eq!((stats.reasons.len(), stats.reasons["other"]), (MOST_REASONS + 1, 900));
    }
}
