//! What the laboratory found, as text and as JSON.

use crate::runs::Counts;
use crate::sums::{Sums, share};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// All parts of a run; those that were not asked for are absent.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub command: String,
    pub seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<Sums>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suites: Option<Suites>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<Fuzzed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<Faults>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Counts>,
    /// What random tests could not try here, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_left_out: Vec<String>,
}

/// Real suites.
#[derive(Debug, Default, Serialize)]
pub struct Suites {
    /// Of each project: tests whose binaries were scorched, and those that noticed.
    pub scorched: BTreeMap<String, (u64, u64)>,
    /// Tests that gave nothing to scorch.
    pub not_scorched: u64,
    pub bytes: (u64, u64),
    /// Whether the mutation check (`scripts/lab/mutate.py`) found nothing; absent if it was not
    /// asked for.
    pub mutations: Option<bool>,
}

/// Readers of foreign bytes.
#[derive(Debug, Default, Serialize)]
pub struct Fuzzed {
    /// Of each reader: inputs.
    pub inputs: BTreeMap<String, u64>,
    pub failures: Vec<String>,
}

/// Faults that were injected.
#[derive(Debug, Default, Serialize)]
pub struct Faults {
    pub injected: BTreeMap<String, u64>,
    /// Entries of stores that were read afterwards.
    pub entries: u64,
    /// Results that were wrong or lost, entries that were damaged.
    pub lost: Vec<String>,
    /// What could not be tried here, and why.
    pub left_out: Vec<String>,
}

impl Report {
    /// Whether anything was found that must not be.
    pub fn is_clean(&self) -> bool {
        self.programs.as_ref().is_none_or(|sums| sums.misses() == 0)
            && self.suites.as_ref().is_none_or(|suites| {
                suites.scorched.values().all(|(_, noticed)| *noticed == 0)
                    && suites.mutations != Some(false)
            })
            && self.fuzz.as_ref().is_none_or(|fuzzed| fuzzed.failures.is_empty())
            && self.faults.as_ref().is_none_or(|faults| faults.lost.is_empty())
            && self.runs.as_ref().is_none_or(Counts::is_clean)
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}\nseed {}\n", self.command, self.seed);
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<58} {value}");
        };
        if let Some(sums) = &self.programs {
            programs(sums, &mut line);
        }
        if let Some(suites) = &self.suites {
            for (project, (tests, noticed)) in &suites.scorched {
                line(
                    &format!("{project}: tests with scorched binaries, differing"),
                    format!("{tests}, {noticed}"),
                );
            }
            line("bytes destroyed in them", share(suites.bytes.0, suites.bytes.1));
            line("tests that could not be scorched", suites.not_scorched.to_string());
            if let Some(clean) = suites.mutations {
                line(
                    "mutations of real projects",
                    if clean { "no miss" } else { "MISSES" }.to_owned(),
                );
            }
        }
        if let Some(fuzzed) = &self.fuzz {
            line("inputs fuzzed", fuzzed.inputs.values().sum::<u64>().to_string());
            for failure in &fuzzed.failures {
                line("FAILURE", failure.clone());
            }
        }
        if let Some(faults) = &self.faults {
            line("faults injected", faults.injected.values().sum::<u64>().to_string());
            for (name, count) in &faults.injected {
                line(&format!("  {name}"), count.to_string());
            }
            line("entries of stores read afterwards", faults.entries.to_string());
            line("results lost", faults.lost.len().to_string());
            faults.lost.iter().for_each(|lost| line("LOST", lost.clone()));
            faults.left_out.iter().for_each(|left| line("left out", left.clone()));
        }
        if let Some(counts) = &self.runs {
            counts.lines(&mut line);
        }
        self.runs_left_out.iter().for_each(|left| line("left out", left.clone()));
        text
    }
}

fn programs(sums: &Sums, line: &mut dyn FnMut(&str, String)) {
    let counted = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    line("programs tried (left out)", format!("{} ({})", sums.programs, sums.programs_left_out));
    line(
        "mutants tried (refused by compiler or linker)",
        format!("{} ({})", sums.mutants, sums.refused),
    );
    line("behaviour-changing mutants", sums.changing.to_string());
    line("  by compiler", counted(&sums.changing_by_compiler));
    line("  by linker", counted(&sums.linkers));
    line("  by level", counted(&sums.changing_by_level));
    line("hanging, unsteady (not counted)", format!("{}, {}", sums.hangs, sums.unsteady));
    line("misses: one fingerprint for two behaviours", sums.static_misses.to_string());
    line("misses: a result reused wrongly", sums.executed_misses.to_string());
    line(
        "misses: other object code, same fingerprint",
        format!("{} of {}", sums.object_misses, sums.touched),
    );
    line("scorched runs, differing", format!("{}, {}", sums.scorched, sums.scorched_differ));
    line("  bytes destroyed in them", share(sums.scorched_bytes.0, sums.scorched_bytes.1));
    line("disturbed by tracing", sums.disturbed.to_string());
    line(
        "nothing that is linked differs: selected by fingerprint",
        share(sums.untouched_selected, sums.untouched),
    );
    line(
        "behaviour unchanged: selected by fingerprint",
        share(sums.equal_selected_by_fingerprint, sums.equal),
    );
    line(
        "behaviour unchanged: selected by execution",
        share(sums.equal_selected_by_execution, sums.equal_asked),
    );
    let minutes = sums.seconds as f64 / 60.0;
    line(
        "minutes, mutants a minute",
        format!("{minutes:.1}, {:.0}", sums.mutants as f64 / minutes.max(0.01)),
    );
    for (kind, (tried, changing)) in &sums.kinds {
        line(&format!("  {kind}: tried, changing"), format!("{tried}, {changing}"));
    }
    for (sort, (programs, changing)) in &sums.sorts {
        line(
            &format!("  {sort}: programs, behaviour-changing mutants"),
            format!("{programs}, {changing}"),
        );
    }
}
