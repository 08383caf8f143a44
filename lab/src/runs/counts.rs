//! What was counted of random tests. Everything adds up, over workers and interrupted hunts.

use super::steps::Feature;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Random tests, or pairs of them.
    pub tests: u64,
    /// Comparisons after a change from outside.
    pub scenarios: u64,
    /// … in which the change made the plain run end otherwise, print something else or leave other
    /// files.
    pub changing: u64,
    /// Comparisons of first runs and of runs again without a change.
    pub unchanged: u64,
    /// Tests that were reused after a change, and without one.
    pub reused: u64,
    pub reused_unchanged: u64,
    /// A reused result that differs from the plain run.
    pub wrong: u64,
    /// An executed test that differs from the plain run.
    pub disturbed: u64,
    /// Executed tests that ended as they do plainly and printed or left something else, of which
    /// Tasting said that their calls can be interrupted, and which it did not keep.
    pub doubtful: u64,
    /// Tests and scenarios that differ from themselves when they are run plainly.
    pub unsteady: u64,
    /// Of each feature: scenarios, reused, wrong or disturbed.
    pub features: BTreeMap<Feature, (u64, u64, u64)>,
    /// Why tests were executed, by sort.
    pub reasons: BTreeMap<String, u64>,
    /// What failed, by its smallest form.
    pub failures: BTreeMap<String, u64>,
    pub seconds: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        macro_rules! add {
            ($($field:ident)*) => { $( self.$field += other.$field; )* };
        }
        add!(tests scenarios changing unchanged reused reused_unchanged wrong disturbed doubtful unsteady seconds);
        for (feature, (scenarios, reused, failed)) in &other.features {
            let sum = self.features.entry(*feature).or_default();
            *sum = (sum.0 + scenarios, sum.1 + reused, sum.2 + failed);
        }
        for (mine, others) in
            [(&mut self.reasons, &other.reasons), (&mut self.failures, &other.failures)]
        {
            others.iter().for_each(|(name, count)| *mine.entry(name.clone()).or_default() += count);
        }
    }

    pub fn is_clean(&self) -> bool {
        self.wrong == 0 && self.disturbed == 0
    }

    /// The lines of the report.
    pub fn lines(&self, line: &mut dyn FnMut(&str, String)) {
        line("random tests, runs without a change", format!("{}, {}", self.tests, self.unchanged));
        line("scenarios (plain and Tasting compared after a change)", self.scenarios.to_string());
        line("  the change made a difference", self.changing.to_string());
        line("  reused", self.reused.to_string());
        line("  WRONG REUSES", self.wrong.to_string());
        line("  VERDICTS CHANGED", self.disturbed.to_string());
        line("  interrupted and therefore not kept", self.doubtful.to_string());
        line("reused without a change", self.reused_unchanged.to_string());
        line("unsteady: they differ from themselves (not counted)", self.unsteady.to_string());
        let minutes = self.seconds as f64 / 60.0;
        line(
            "minutes, scenarios a minute",
            format!("{minutes:.1}, {:.0}", self.scenarios as f64 / minutes.max(0.01)),
        );
        for (feature, (scenarios, reused, failed)) in &self.features {
            line(
                &format!("  {feature:?}: scenarios, reused, failed").to_lowercase(),
                format!("{scenarios}, {reused}, {failed}"),
            );
        }
        for (reason, count) in &self.reasons {
            line(&format!("  executed: {reason}"), count.to_string());
        }
        for (failure, count) in &self.failures {
            line(&format!("  {count} ×"), failure.clone());
        }
    }
}
