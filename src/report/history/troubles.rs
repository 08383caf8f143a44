//! Tests that need somebody: why, and what can be done.
//!
//! In: a history. Out: each trouble of each test once.

use super::{History, Test};
use crate::model::Audit;
use serde::Serialize;
use std::collections::BTreeMap;

/// More are not kept.
const MOST: usize = 100;

/// One trouble of one test.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Trouble<'h> {
    pub test: &'h str,
    /// `unstable`, `quarantine`, `disturbed` or `refused`.
    pub what: &'static str,
    pub why: &'h str,
    pub advice: &'static str,
    pub times: u64,
}

/// All troubles, by what they are.
pub fn of(history: &History) -> Vec<Trouble<'_>> {
    let mut found: BTreeMap<(&str, &str), Trouble> = BTreeMap::new();
    for test in history.commits.iter().flat_map(|commit| &commit.tests) {
        for (what, why) in trouble(test) {
            let new = Trouble { test: &test.name, what, why, advice: advice(what), times: 0 };
            found.entry((what, &test.name)).or_insert(new).times += 1;
        }
    }
    found.into_values().take(MOST).collect()
}

fn trouble(test: &Test) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    if test.audit == Some(Audit::Unstable) {
        found.push(("unstable", &*test.reason));
    }
    if &*test.sort == "quarantine" {
        found.push(("quarantine", &*test.reason));
    }
    found.extend(test.disturbed.as_deref().map(|how| ("disturbed", how)));
    if let Some((_, refusal)) = test.reason.split_once("not kept: ") {
        found.push(("refused", refusal));
    } else if &*test.sort == "refused" {
        found.push(("refused", &*test.reason));
    }
    found
}

fn advice(what: &str) -> &'static str {
    match what {
        "unstable" => "make it end the same way each time: it depends on time, chance or order",
        "quarantine" => "it is trusted again when it has passed often enough",
        "disturbed" => "nothing: it runs without tracing; TASTING_NOTRACE=1 shows the same",
        _ => "`tasting help CODE`, with the code in brackets, says what to do",
    }
}
