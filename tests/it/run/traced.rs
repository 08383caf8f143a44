//! Reuse by what was executed: whatever changes in functions that a test does not execute, and in
//! nothing else.

mod code;
mod compared;
mod edits;
mod failures;
mod libcs;
mod libraries;
mod order;
mod preload;
mod raw_signals;
mod read_code;
mod sanitizers;
mod signals;
mod stacks;

use super::Bench;
use crate::workshop::{Outcome, TASTING};
use tasting::model::{Step, Verdict};

/// Runs a test plainly and twice with `tasting run`: it ends and prints alike.
#[track_caller]
fn is_unnoticed(bench: &Bench, words: &[&str]) -> Outcome {
    let limit = ["--kill-after=5", "60"];
    let plain = Outcome::of(bench.command("timeout").args(limit).args(words));
    for attempt in ["first", "second"] {
        let watched = Outcome::of(
            bench.command("timeout").args(limit).args([TASTING, "run", "--"]).args(words),
        );
        assert_eq!(watched, plain, "{words:?}, the {attempt} time: {:?}", bench.last());
    }
    plain
}

/// A program, before and after an edit. The part before the arrow is replaced by the part behind
/// it.
struct Edit<'a> {
    source: &'a str,
    edit: (&'a str, &'a str),
    flags: &'a [&'a str],
    arguments: &'a [&'a str],
}

impl Edit<'_> {
    /// The decision about the edited program, and both outputs.
    fn decide(&self) -> (Verdict, Option<Step>) {
        let bench = Bench::new();
        let flags = [self.flags, &["-o", "t", "-"][..]].concat();
        let words = [&["./t"], self.arguments].concat();
        bench.compile(&flags, self.source);
        bench.settles(&words);
        let edited = self.source.replace(self.edit.0, self.edit.1);
        assert_ne!(edited, self.source, "the edit changes something");
        bench.compile(&flags, &edited);
        let ran = bench.run(&words);
        // Whatever was decided has to be what the program does.
        let plain =
            crate::workshop::Outcome::of(bench.command(bench.path("t")).args(self.arguments));
        assert_eq!(ran.outcome.stdout_text(), plain.stdout_text());
        (ran.decision.decision, ran.decision.step)
    }

    #[track_caller]
    fn is_reused(&self) {
        assert_eq!(self.decide(), (Verdict::Reused, Some(Step::Executed)));
    }

    #[track_caller]
    fn runs(&self) {
        assert_eq!(self.decide(), (Verdict::Executed, None));
    }
}

fn edit<'a>(source: &'a str, from: &'a str, to: &'a str) -> Edit<'a> {
    Edit { source, edit: (from, to), flags: &["-O1"], arguments: &[] }
}

/// Numbers of 64 bits: with 32 the functions would be of 4 bytes, which are too short to be traced.
const BRANCHES: &str = r#"
#include <stdio.h>
__attribute__((noinline)) long used(long x) { return x + 10; }
__attribute__((noinline)) long unused(long x) { return x + 20; }
int main(int argc, char **argv) { printf("%ld\n", argc > 1 ? unused(argc) : used(argc)); return 0; }
"#;

#[test]
fn programs_of_a_script_each_by_its_own() {
    let bench = Bench::new();
    let source = |one: &str, two: &str| BRANCHES.replace("x + 10", one).replace("x + 20", two);
    bench.compile(&["-O1", "-o", "a", "-"], &source("x + 1", "x + 2"));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 4"));
    bench.script("test.sh", "#!/bin/sh\n./a\n./b other\n");
    bench.settles(&["./test.sh"]);
    bench.compile(&["-O1", "-o", "a", "-"], &source("x + 1", "x + 5"));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 6", "x + 4"));
    assert_eq!(bench.reuses(&["./test.sh"]).decision.step, Some(Step::Executed));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 7"));
    bench.runs(&["./test.sh"]);
    // Started once with its agent and once without: all of it counts.
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 4"));
    bench.script("test.sh", "#!/bin/sh\n./b\nenv -i ./b other\n");
    bench.settles(&["./test.sh"]);
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 8"));
    assert!(bench.runs(&["./test.sh"]).text().ends_with("10\n"));
}

#[test]
fn static_programs_count_by_all_that_they_reach() {
    let flags = ["-O1", "-static"];
    Edit { flags: &flags, ..edit(BRANCHES, "x + 20", "x + 21") }.runs();
    Edit { flags: &flags, ..edit(BRANCHES, "x + 10", "x + 11") }.runs();
}

#[test]
fn tracing_can_be_turned_off() {
    let bench = Bench::new();
    bench.compile(&["-O1", "-o", "t", "-"], BRANCHES);
    let run = || bench.finish(bench.tasting(&["./t"]).env("TASTING_NOTRACE", "1")).decision;
    run();
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 20", "x + 21"));
    assert_eq!(run().decision, Verdict::Executed);
}

#[test]
fn explain_names_the_executed_function_that_changed() {
    let bench = Bench::new();
    let build = |source: &str| bench.compile(&["-O1", "-g", "-o", "t", "-"], source);
    build(BRANCHES);
    bench.settles(&["./t"]);
    build(&BRANCHES.replace("x + 10", "x + 11").replace("x + 20", "x + 21"));
    let mut command = bench.command(crate::workshop::TASTING);
    let text = crate::workshop::Outcome::of(command.args(["explain", "--", "./t"])).stdout_text();
    assert!(
        text.contains("main → used") && text.contains("used (") && !text.contains("unused"),
        "{text}"
    );
}
