//! Shadow mode: every test runs, and what would have been done about it is noted.

use super::{Bench, Ran};
use crate::workshop::{Outcome, TASTING};
use tasting::model::{Audit, Granularities, Verdict};
use tasting::store::Journal;

const TWO: &str = "int used(void); int unused(void);\n\
    int main(int n, char **a) { return n > 5 ? unused() : used(); }\n";

fn shadowed(bench: &Bench, words: &[&str]) -> Ran {
    let ran = bench.finish(bench.tasting(words).env("TASTING_SHADOW", "1"));
    assert_eq!(ran.decision.decision, Verdict::Executed, "{ran:?}");
    assert!(ran.decision.shadow.is_some(), "{ran:?}");
    ran
}

fn verdicts(ran: &Ran) -> [bool; 4] {
    let granularities = ran.decision.shadow.as_ref().unwrap().granularities;
    granularities.values().map(|verdict| *verdict == Verdict::Reused)
}

/// A program of three object files, two of which have two functions.
fn build(bench: &Bench, [used, beside, unused]: [&str; 3]) {
    bench.write("main.c", TWO);
    bench.write(
        "used.c",
        format!("int used(void) {{ return {used}; }}\nint beside(void) {{ return {beside}; }}\n"),
    );
    bench.write(
        "unused.c",
        format!("int beside(void);\nint unused(void) {{ return {unused} + beside(); }}\n"),
    );
    bench.compile(&["-O0", "-c", "main.c", "used.c", "unused.c"], "");
    bench.compile(&["main.o", "used.o", "unused.o", "-o", "t"], "");
}

#[test]
fn every_test_runs_and_each_granularity_decides() {
    let bench = Bench::new();
    let edits = [
        (["0", "1", "1"], [false; 4]),
        (["0", "1", "1"], [true; 4]),
        // A function that the test does not execute, in a file of its own and beside one that it
        // executes.
        (["0", "1", "2"], [false, false, false, true]),
        (["0", "3", "2"], [false, false, false, true]),
        // Back to what was seen: nothing of it is forgotten, though the results would have been
        // reused.
        (["0", "1", "2"], [true; 4]),
        (["0 * 7 + 0 * 9", "1", "2"], [true; 4]),
    ];
    for (number, (functions, expected)) in edits.into_iter().enumerate() {
        build(&bench, functions);
        let ran = shadowed(&bench, &["./t"]);
        assert_eq!(verdicts(&ran), expected, "edit {number}: {ran:?}");
        assert_eq!(ran.decision.audit, (number > 0).then_some(Audit::Same));
    }
    let stats = bench.store().stats().unwrap();
    assert_eq!(
        (stats.reused, stats.executed, stats.shadow_runs, stats.shadow_missed),
        (0, 6, 6, 0)
    );
    assert_eq!(stats.shadow_reused, Granularities { whole: 3, file: 3, reachable: 3, executed: 5 });
}

#[test]
fn unreachable_function_counts_by_file_only() {
    let bench = Bench::new();
    let build = |value: &str| {
        let source =
            format!("int lonely(void) {{ return {value}; }}\nint main(void) {{ return 0; }}\n");
        bench.compile(&["-O0", "-o", "t", "-x", "c", "-"], &source);
    };
    build("1");
    shadowed(&bench, &["./t"]);
    build("2");
    assert_eq!(verdicts(&shadowed(&bench, &["./t"])), [false, false, true, true]);
}

#[test]
fn a_changed_function_runs_at_every_granularity() {
    let bench = Bench::new();
    build(&bench, ["0", "1", "1"]);
    shadowed(&bench, &["./t"]);
    build(&bench, ["5", "1", "1"]);
    let ran = shadowed(&bench, &["./t"]);
    assert_eq!((ran.outcome.code, verdicts(&ran)), (Some(5), [false; 4]));
    assert_eq!((ran.decision.audit, ran.decision.sort.as_str()), (None, "program-changed"));
    assert_eq!(ran.decision.shadow.unwrap().programs.len(), 1);
}

#[test]
fn a_missed_dependency_is_a_miss() {
    let bench = Bench::new();
    bench.write("tasting.toml", "shadow = true\n[environment]\nignore = ['HOLE']\n");
    let run =
        |value: &str| bench.finish(bench.tasting(&["sh", "-c", "exit $HOLE"]).env("HOLE", value));
    assert_eq!(run("0").decision.audit, None);
    assert_eq!(run("0").decision.audit, Some(Audit::Same));
    let ran = run("3");
    assert_eq!((ran.outcome.code, ran.decision.audit), (Some(3), Some(Audit::Missed)), "{ran:?}");
    assert!(ran.outcome.stdout.is_empty() && ran.outcome.stderr.is_empty(), "{ran:?}");
    assert!(ran.decision.reason.contains("missed dependency"), "{ran:?}");
    let shown = Outcome::of(bench.command(TASTING).arg("stats")).stdout_text();
    assert!(shown.contains("2 of 3 runs would have been reused (66.7%)"), "{shown}");
    assert!(shown.contains("1 would have been wrong"), "{shown}");
}

/// A test that speaks TAP may fail and end with 0.
#[test]
fn another_failure_in_tap_is_a_miss() {
    let script = "echo 1..3; echo ok 1 - took $$ ms; echo \"$HOLE\"";
    let audits = |told: [&str; 3]| {
        let bench = Bench::new();
        bench.write(
            "tasting.toml",
            "shadow = true\nreuse-failures = true\n[environment]\nignore = ['HOLE']\n",
        );
        let runs =
            told.map(|told| bench.finish(bench.tasting(&["sh", "-c", script]).env("HOLE", told)));
        assert!(runs.iter().all(|ran| ran.outcome.code == Some(0)), "{runs:?}");
        runs.map(|ran| (ran.decision.audit, ran.decision.told_failure))
    };
    let (same, missed) = (Some(Audit::Same), Some(Audit::Missed));
    assert_eq!(
        audits(["ok 2", "ok 2 - again", "not ok 2"]),
        [(None, false), (same, false), (missed, true)]
    );
    // Failures are compared one by one, what they say is not.
    assert_eq!(
        audits(["not ok 2 - a", "not ok 2 - b", "not ok 3"]),
        [(None, true), (same, true), (missed, true)]
    );
}

#[test]
fn an_unstable_test_is_no_miss() {
    let bench = Bench::new();
    bench.write("tasting.toml", "shadow = true\nquarantine-passes = 1\n");
    bench.script("flip", "#!/bin/sh\ntest $(($(date +%s%N) / 1000 % 2)) = 0\n");
    let found = (0..200).any(|_| bench.run(&["./flip"]).decision.audit == Some(Audit::Unstable));
    assert!(found, "no shadow run found it unstable: {:?}", bench.store().stats());
}

#[test]
fn a_read_only_store_still_runs_tests() {
    let bench = Bench::new();
    bench.script("count", "#!/bin/sh\necho ran\n");
    bench.settles(&["./count"]);
    let logged = bench.store().decisions(99).unwrap().len();
    let ran = Outcome::of(
        bench.tasting(&["./count"]).env("TASTING_SHADOW", "1").env("TASTING_READONLY", "1"),
    );
    assert_eq!((ran.code, ran.stdout_text().as_str()), (Some(0), "ran\n"));
    assert_eq!(bench.store().decisions(99).unwrap().len(), logged);
}
