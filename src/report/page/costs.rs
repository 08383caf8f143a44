//! What tests cost, and which changes made them run.
//!
//! In: a history. Out: tests, functions and files, the dearest first.

use crate::model::Verdict;
use crate::report::history::{Changed, History, Test};
use std::collections::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What one test costs over all commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub all: u64,
    pub ran: u64,
    pub total_ms: u64,
    /// Of the runs that would still have been made.
    pub spent_ms: u64,
}

/// Tests, the dearest first.
pub fn of_tests(history: &History) -> Vec<(&str, Cost)> {
    let mut costs: HashMap<&str, Cost> = HashMap::new();
    for test in history.commits.iter().flat_map(|commit| &commit.tests) {
        let cost = costs.entry(&test.name).or_default();
        cost.all += 1;
        cost.total_ms += test.duration_ms;
        if has_run(test) {
            cost.ran += 1;
            cost.spent_ms += test.duration_ms;
        }
    }
    let mut costs: Vec<(&str, Cost)> = costs.into_iter().collect();
    let cost = |cost: &Cost| (cost.spent_ms, cost.total_ms);
    costs.sort_by(|(name, one), (other_name, other)| {
        (cost(other), name).cmp(&(cost(one), other_name))
    });
    costs
}

/// What the changes of one function or file have caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caused {
    pub spent_ms: u64,
    pub runs: u64,
    /// How many of the tests it made run at one commit, at the most.
    pub share: String,
}

/// Functions and data, the dearest first.
pub fn of_functions(history: &History) -> Vec<(String, Caused)> {
    caused(history, |test| {
        let named =
            test.changed.iter().filter(|changed| !changed.is_file()).map(|changed| match &changed
                .source
            {
                Some(source) => {
                    format!("{} ({})", &*changed.name, source.rsplit('/').next().unwrap_or(source))
                }
                None => changed.name.to_string(),
            });
        named.collect()
    })
}

/// Source files of functions, and files that tests read, the dearest first.
pub fn of_files(history: &History) -> Vec<(String, Caused)> {
    caused(history, |test| {
        let source =
            |source: &str| source.rsplit_once(':').map_or(source, |(file, _)| file).to_owned();
        let file = |changed: &Changed| match changed.is_file() {
            true => Some(changed.name.to_string()),
            false => changed.source.as_deref().map(source),
        };
        test.changed.iter().filter_map(file).collect()
    })
}

fn caused(history: &History, causes: impl Fn(&Test) -> BTreeSet<String>) -> Vec<(String, Caused)> {
    let mut all: BTreeMap<String, (Caused, f64)> = BTreeMap::new();
    for commit in &history.commits {
        let mut here: BTreeMap<String, u64> = BTreeMap::new();
        for test in commit.tests.iter().filter(|test| has_run(test)) {
            for cause in causes(test) {
                let (caused, _) = all.entry(cause.clone()).or_default();
                caused.spent_ms += test.duration_ms;
                caused.runs += 1;
                *here.entry(cause).or_default() += 1;
            }
        }
        for (cause, runs) in here {
            let share = runs as f64 / commit.tests.len() as f64;
            all.entry(cause).and_modify(|(_, most)| *most = most.max(share));
        }
    }
    let mut all: Vec<(String, Caused)> = all
        .into_iter()
        .map(|(cause, (caused, most))| {
            (cause, Caused { share: format!("{:.0}%", most * 100.0), ..caused })
        })
        .collect();
    all.sort_by(|(name, one), (other_name, other)| {
        (other.spent_ms, name).cmp(&(one.spent_ms, other_name))
    });
    all
}

fn has_run(test: &Test) -> bool {
    test.decision.executed == Verdict::Executed
}
