//! Decisions by a comparison of two builds, in place of a walk for each execution. In these builds
//! each of them is checked by a walk, and one that is wrong ends the process.

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING};
use std::fs;
use tasting::model::{Step, Verdict};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) long one(long x) { return x + 10; }
__attribute__((noinline)) long other(long x) { return x + 20; }
struct entry { const char *name; long (*function)(long); };
const struct entry table[] = { { "one", one }, { "other", other } };
int main(int argc, char **argv) {
    for (int i = 0; i < 2; i++)
        if (!strcmp(table[i].name, argv[1])) printf("%s %ld\n", table[i].name, table[i].function(argc));
    return 0;
}
"#;

const TESTS: [[&str; 2]; 2] = [["./t", "one"], ["./t", "other"]];

fn bench() -> Bench {
    let bench = Bench::new();
    bench.compile(&["-O1", "-o", "t", "-"], PROGRAM);
    TESTS.iter().for_each(|test| _ = bench.settles(test));
    bench
}

/// Decides about both tests; says for how many of them builds were compared.
fn decisions(bench: &Bench) -> ([(Verdict, Option<Step>); 2], usize) {
    let log = bench.path("log");
    let decided = TESTS.map(|test| {
        let mut command = bench.command(TASTING);
        command.arg("run").arg("--").args(test).env("TASTING_LOGFILE", &log);
        assert_eq!(Outcome::of(&mut command).code, Some(0), "{:?}", bench.last());
        let last = bench.last();
        (last.decision, last.step)
    });
    let text = fs::read_to_string(&log).unwrap_or_default();
    (
        decided,
        text.lines().filter(|line| line.ends_with(": compared with an earlier build")).count(),
    )
}

const REUSED: (Verdict, Option<Step>) = (Verdict::Reused, Some(Step::Executed));
const RAN: (Verdict, Option<Step>) = (Verdict::Executed, None);

#[test]
fn one_function_of_a_table_is_changed() {
    let bench = bench();
    bench.compile(&["-O1", "-o", "t", "-"], &PROGRAM.replace("x + 20", "x * 20"));
    let (decided, compared) = decisions(&bench);
    assert_eq!(decided, [REUSED, RAN]);
    assert!(compared > 0);
}

#[test]
fn the_table_is_changed() {
    let bench = bench();
    bench.compile(&["-O1", "-o", "t", "-"], &PROGRAM.replace("\"other\", other", "\"other\", one"));
    assert_eq!(decisions(&bench).0, [RAN, RAN]);
}

/// What is kept for comparisons can be lost at any time: then each execution is walked.
#[test]
fn a_store_without_earlier_builds() {
    let bench = bench();
    for folder in fs::read_dir(bench.store_path().join("results-1")).unwrap().flatten() {
        for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|ending| ending == "b") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }
    bench.compile(&["-O1", "-o", "t", "-"], &PROGRAM.replace("x + 20", "x * 20"));
    let (decided, compared) = decisions(&bench);
    assert_eq!((decided, compared), ([REUSED, RAN], 0));
}
