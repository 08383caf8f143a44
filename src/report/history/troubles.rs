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
    found.extend(test.disturbed.as_deref().map(|how| ("disturbed", how)));
    // One in quarantine is not kept either: that needs nobody.
    if &*test.sort == "quarantine" {
        let why = test.reason.split_once("; not kept: ").map_or(&*test.reason, |(why, _)| why);
        found.push(("quarantine", why));
    } else if let Some((_, refusal)) = test.reason.split_once("not kept: ") {
        found.push(("refused", refusal));
    } else if &*test.sort == "refused" {
        found.push(("refused", &*test.reason));
    }
    found
}

fn advice(what: &str) -> &'static str {
    match what {
        "unstable" => "make it end the same way each time: it depends on time, chance or order",
        "quarantine" => {
            "find out why it ended in two ways; it is trusted again when it has passed often enough"
        }
        "disturbed" => "nothing: it runs without tracing; TASTING_NOTRACE=1 shows the same",
        _ => "`tasting help CODE`, with the code in brackets, says what to do",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Commit;
    use super::*;

    #[test]
    fn each_trouble_is_there_once_with_advice() {
        let test = |name: &str, sort: &str, reason: &str, audit| Test {
            name: name.into(),
            decision: Default::default(),
            exit_code: 0,
            failed: None,
            reason: reason.into(),
            sort: sort.into(),
            duration_ms: 1,
            audit,
            disturbed: (name == "d").then(|| "it ended otherwise".into()),
            ast: None,
            changed: Vec::new(),
        };
        let tests = vec![
            test("q", "quarantine", "in quarantine; not kept: the test is [x]", None),
            test("q", "quarantine", "in quarantine; not kept: the test is [x]", None),
            test("u", "shadow", "unstable", Some(Audit::Unstable)),
            test("n", "new", "it has not run before; not kept: the clock [clock]", None),
            test("r", "refused", "the last run could not be kept", None),
            test("d", "new", "it has not run before", None),
        ];
        let history = History::new("p".into(), vec![Commit { tests, ..Commit::default() }]);
        let found: Vec<_> = of(&history)
            .iter()
            .map(|found| (found.what, found.test, found.why, found.times))
            .collect();
        assert_eq!(
            found,
            [
                ("disturbed", "d", "it ended otherwise", 1),
                ("quarantine", "q", "in quarantine", 2),
                ("refused", "n", "the clock [clock]", 1),
                ("refused", "r", "the last run could not be kept", 1),
                ("unstable", "u", "unstable", 1),
            ]
        );
    }
}
