//! The latest run of tests as a trace for chrome://tracing and Perfetto: which tests ran in
//! parallel, and for how long.
//!
//! In: decisions, from the log. Out: those of the latest run, and events in Chrome's format, one
//! lane for each test that ran at the same time.

use crate::model::{Decision, Verdict};
use serde_json::{Value, json};

/// Tests with a longer pause between them belong to different runs, in milliseconds.
const PAUSE: u64 = 60_000;

/// What was decided last, back to the latest pause. Oldest first.
pub fn latest_run(mut decisions: Vec<Decision>) -> Vec<Decision> {
    decisions.sort_by_key(|decision| decision.time);
    let mut begin = u64::MAX;
    let belongs = |decision: &&Decision| {
        let belongs = decision.time.saturating_add(PAUSE) >= begin || begin == u64::MAX;
        begin = begin.min(start(decision));
        belongs
    };
    let count = decisions.iter().rev().take_while(belongs).count();
    decisions.split_off(decisions.len() - count)
}

/// The events. `name` is what a test is called.
pub fn events(decisions: &[Decision], name: impl Fn(&Decision) -> String) -> Value {
    let mut by_start: Vec<&Decision> = decisions.iter().collect();
    by_start.sort_by_key(|decision| (start(decision), decision.time));
    let mut lanes: Vec<u64> = Vec::new();
    let mut events = Vec::with_capacity(by_start.len());
    for decision in by_start {
        let lane = lanes.iter().position(|end| *end <= start(decision)).unwrap_or(lanes.len());
        match lanes.get_mut(lane) {
            Some(end) => *end = decision.time,
            None => lanes.push(decision.time),
        }
        events.push(event(decision, name(decision), lane));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}

fn event(decision: &Decision, name: String, lane: usize) -> Value {
    let Decision { duration_ms, reason, sort, exit_code, saved_ms, .. } = decision;
    let category = match decision.decision {
        Verdict::Reused => "reused",
        Verdict::Executed => "executed",
    };
    json!({
        "name": name, "cat": category, "ph": "X", "pid": 1, "tid": lane + 1,
        "ts": start(decision) * 1000,
        // What takes no time is not drawn.
        "dur": (duration_ms * 1000).max(100),
        "args": { "reason": reason, "sort": sort, "exit_code": exit_code, "saved_ms": saved_ms },
    })
}

/// When a test was started: decisions are logged when it has ended.
fn start(decision: &Decision) -> u64 {
    decision.time.saturating_sub(decision.duration_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(name: &str, start: u64, end: u64) -> Decision {
        Decision {
            time: end,
            argv: vec![name.to_owned()],
            cwd: "/w".into(),
            decision: if start == end { Verdict::Reused } else { Verdict::Executed },
            step: None,
            reason: "r".into(),
            sort: "new".into(),
            exit_code: 0,
            told_failure: false,
            duration_ms: end - start,
            saved_ms: 0,
            audit: None,
            shared: false,
            not_kept: None,
            disturbed: None,
            shadow: None,
        }
    }

    #[test]
    fn simultaneous_tests_have_their_own_lanes() {
        let decisions = [
            decision("a", 100, 300),
            decision("b", 150, 200),
            decision("c", 250, 400),
            decision("d", 400, 400),
        ];
        let shown = events(&decisions, |decision| decision.argv[0].clone());
        let lanes: Vec<(&str, u64, u64)> =
            shown["traceEvents"].as_array().unwrap().iter().map(lane).collect();
        assert_eq!(
            lanes,
            [("a", 1, 100_000), ("b", 2, 150_000), ("c", 2, 250_000), ("d", 1, 400_000)]
        );
        assert_eq!(
            (&shown["traceEvents"][3]["cat"], &shown["traceEvents"][3]["dur"]),
            (&json!("reused"), &json!(100))
        );
    }

    fn lane(event: &Value) -> (&str, u64, u64) {
        (
            event["name"].as_str().unwrap(),
            event["tid"].as_u64().unwrap(),
            event["ts"].as_u64().unwrap(),
        )
    }

    #[test]
    fn a_long_pause_ends_a_run() {
        let long = PAUSE * 10;
        let log = vec![
            decision("yesterday", 0, 10),
            decision("short", long, long + 5),
            decision("slow", long - 50, long + 3 * PAUSE),
            decision("last", long + 3 * PAUSE, long + 4 * PAUSE),
        ];
        let names: Vec<String> =
            latest_run(log).into_iter().map(|decision| decision.argv[0].clone()).collect();
        assert_eq!(names, ["short", "slow", "last"]);
        assert!(latest_run(Vec::new()).is_empty());
    }
}
