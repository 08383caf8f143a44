//! What was decided about each test: the lines of `tasting log`, the sums of `tasting stats`, and
//! the marks of tests that are not trusted for a while.

use super::envelope::FormatError;
use super::{Hash, codes};
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
    /// The code of the reason, which many decisions share: what `tasting stats` counts by.
    pub sort: String,
    /// As a shell would show it: 128 + the signal where there was one.
    pub exit_code: i32,
    /// Its output told of failures, in the Test Anything Protocol.
    #[serde(default, skip_serializing_if = "is_false")]
    pub told_failure: bool,
    pub duration_ms: u64,
    pub saved_ms: u64,
    /// What running it all the same showed, where that was done.
    pub audit: Option<Audit>,
    /// Whether the result came from another machine.
    #[serde(default)]
    pub shared: bool,
    /// The code of the refusal because of which the result is not kept, if so.
    #[serde(default)]
    pub not_kept: Option<String>,
    /// How tracing or watching disturbed the test, where it did.
    #[serde(default)]
    pub disturbed: Option<String>,
    /// What would have been done, where the test ran in shadow mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What would have been done about a test that ran all the same, at each granularity of change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    #[serde(flatten)]
    pub granularities: Granularities<Verdict>,
    /// Which test it is: one command can be two tests, by its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Hash>,
    /// How long the run took whose result would have been reused; 0 without one.
    pub saved_ms: u64,
    /// The commit of that run, where it is known.
    #[serde(default)]
    pub reused_from: Option<String>,
    /// The programs that changed since the run that the test is compared with: names of [`Rebuilt`]
    /// in the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Hash>,
    /// Other files that changed since then: paths for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// One value for each granularity of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granularities<T> {
    /// The loaded bytes of the binaries.
    pub whole: T,
    /// The object files that something reachable comes from.
    pub file: T,
    /// The functions and data that can be reached.
    #[serde(rename = "static")]
    pub reachable: T,
    /// The functions that were executed, and the data that they can see: what `tasting run` goes
    /// by.
    pub executed: T,
}

impl<T> Granularities<T> {
    /// The names, in the order of `values`.
    pub const NAMES: [&str; 4] = ["whole", "file", "static", "executed"];

    /// From the coarsest to the finest.
    pub fn values(&self) -> [&T; 4] {
        [&self.whole, &self.file, &self.reachable, &self.executed]
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> [&mut T; 4] {
        [&mut self.whole, &mut self.file, &mut self.reachable, &mut self.executed]
    }
}

/// Two builds of a program: where their manifests are in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    pub program: String,
    /// The libraries that have a manifest, in the order of the manifests.
    pub libraries: Vec<String>,
    pub entry: Option<String>,
    /// The program's own manifest is the first.
    pub before: Vec<Hash>,
    pub now: Vec<Hash>,
    /// What was executed of the first build; empty if all counts.
    pub executed: Vec<u8>,
}

impl Rebuilt {
    /// The builds as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((builds, [])) => Ok(builds),
            _ => Err(FormatError::Malformed),
        }
    }
}

/// Whether the test had to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Reused,
    #[default]
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
    /// Tests that ran in shadow mode.
    pub shadow_runs: u64,
    /// How many of them would have been reused, by granularity.
    pub shadow_reused: Granularities<u64>,
    /// The time that would have been saved.
    pub shadow_saved_ms: u64,
    /// How many ended otherwise than the result that would have been replayed.
    pub shadow_missed: u64,
    /// How often tests ran, by the code of the reason.
    pub reasons: BTreeMap<String, u64>,
    /// How often results were not kept, by the code of the refusal.
    #[serde(default)]
    pub not_kept: BTreeMap<String, u64>,
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
        self.count_shadow(decision);
        let Some(audit) = decision.audit else { return };
        self.audits += 1;
        self.audits_unstable += u64::from(audit == Audit::Unstable);
        self.audits_missed += u64::from(audit == Audit::Missed);
    }

    fn count_shadow(&mut self, decision: &Decision) {
        let Some(shadow) = &decision.shadow else { return };
        self.shadow_runs += 1;
        for (sum, verdict) in
            self.shadow_reused.values_mut().into_iter().zip(shadow.granularities.values())
        {
            *sum += u64::from(*verdict == Verdict::Reused);
        }
        self.shadow_missed += u64::from(decision.audit == Some(Audit::Missed));
        if decision.audit == Some(Audit::Same) {
            self.shadow_saved_ms = self.shadow_saved_ms.saturating_add(shadow.saved_ms);
        }
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
        for code in decision.not_kept.iter().filter(|code| codes::REFUSALS.contains(&code.as_str()))
        {
            *self.not_kept.entry(code.clone()).or_default() += 1;
        }
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
    /// Its name: the command and its place, whatever the invocation context.
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
            told_failure: false,
            duration_ms: 3,
            saved_ms: 5,
            audit: None,
            shared: false,
            not_kept: None,
            disturbed: None,
            shadow: None,
        }
    }

    #[test]
    fn the_names_are_those_of_the_contract() {
        let json = serde_json::to_value(decision(Verdict::Reused, Some(Step::Static), "")).unwrap();
        assert_eq!(
            (json["decision"].as_str(), json["step"].as_str()),
            (Some("reused"), Some("static"))
        );
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
        stats.count(&Decision {
            audit: Some(Audit::Missed),
            ..decision(Verdict::Executed, None, "audit")
        });
        assert_eq!((stats.reused, stats.reused_executed, stats.saved_ms), (1, 1, 5));
        assert_eq!((stats.executed, stats.executed_ms, stats.reasons["new"]), (2, 6, 1));
        assert_eq!((stats.audits, stats.audits_missed, stats.audits_unstable), (1, 1, 0));
    }

    #[test]
    fn shadow_runs_count_apart_from_reuses() {
        let mut stats = Stats::default();
        let granularities = Granularities { executed: Verdict::Reused, ..Granularities::default() };
        let shadow = Shadow { granularities, saved_ms: 7, ..Shadow::default() };
        for audit in [Audit::Same, Audit::Missed] {
            let ran = decision(Verdict::Executed, None, "shadow");
            stats.count(&Decision { shadow: Some(shadow.clone()), audit: Some(audit), ..ran });
        }
        assert_eq!((stats.shadow_runs, stats.shadow_missed, stats.shadow_saved_ms), (2, 1, 7));
        assert_eq!(
            (stats.shadow_reused.executed, stats.shadow_reused.whole, stats.reused),
            (2, 0, 0)
        );
        let json = serde_json::to_value(shadow).unwrap();
        assert_eq!((&json["static"], &json["executed"]), (&"executed".into(), &"reused".into()));
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
