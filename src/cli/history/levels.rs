//! A second replay at another level, shown beside the first.
//!
//! In: the same commits, replayed twice. Out: the tests of the first replay, each with its result
//! in the second.

use crate::report::history::{AtLevel, Commit, Test};
use std::collections::HashMap;

/// Takes over what came of each test. A commit that does not build at that level has nothing to
/// take over.
pub fn take_over(shown: &mut [Commit], other: &[Commit]) {
    for (shown, other) in shown.iter_mut().zip(other) {
        let found: HashMap<&str, AtLevel> =
            other.tests.iter().map(|test| (&*test.name, at_level(test))).collect();
        for test in &mut shown.tests {
            test.ast = found.get(&*test.name).copied();
        }
    }
}

fn at_level(test: &Test) -> AtLevel {
    AtLevel { decision: test.decision.executed, exit_code: test.exit_code, audit: test.audit }
}
