//! Suites of Automake: every state in which one can be, beside `make check` alone.

use super::{Ended, json};
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, shims, succeed, tools};
use std::collections::BTreeMap;
use std::process::Command;

const CONFIGURE: &str = "AC_INIT([x], [1])
AC_CONFIG_AUX_DIR([build-aux])
AC_REQUIRE_AUX_FILE([tap-driver.sh])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AC_PROG_AWK
AC_CONFIG_FILES([Makefile sub/Makefile])
AC_OUTPUT
";
const MAKEFILE: &str = "SUBDIRS = . sub
check_PROGRAMS = good bad tap.tap
good_SOURCES = main.c part.c
bad_SOURCES = bad.c
tap_tap_SOURCES = tap.c
TESTS = good bad tap.tap script.sh skips.sh
XFAIL_TESTS = bad
AM_TESTS_ENVIRONMENT = WHO=me; export WHO;
TEST_EXTENSIONS = .tap .sh
TAP_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_COMPILER = $(SHELL)
EXTRA_DIST = script.sh
";
const PART: &str = "int part(void) { return 0; }\nint unused(void) { return 1; }\n";
/// A failure is not reused, though it is expected.
const ALWAYS: [&str; 1] = ["bad"];
const ALL: [&str; 6] = ["bad", "good", "script.sh", "skips.sh", "sub/inside", "tap.tap"];

fn command(bench: &Bench, program: &str) -> Command {
    let mut command = bench.command(program);
    let path = std::env::var("PATH").expect("PATH is set");
    command
        .env("PATH", format!("{}:{path}", shims().display()))
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    command
}

fn project() -> Bench {
    tools(&["automake", "autoconf"]);
    let bench = Bench::new();
    for (name, text) in [
        ("configure.ac", CONFIGURE),
        ("Makefile.am", MAKEFILE),
        ("part.c", PART),
        ("main.c", "int part(void);\nint main(void) { return part(); }\n"),
        ("bad.c", "int main(void) { return 1; }\n"),
        (
            "tap.c",
            "#include <stdio.h>\nint main(void) { puts(\"1..2\\nok 1\\nok 2 # SKIP\"); return 0; }\n",
        ),
        ("script.sh", "test \"$WHO\" = me && cat \"${srcdir:-.}/data\"\n"),
        ("skips.sh", "exit 77\n"),
        ("data", "one\n"),
        ("sub/Makefile.am", "check_PROGRAMS = inside\ninside_SOURCES = inside.c\nTESTS = inside\n"),
        ("sub/inside.c", "int main(void) { return 0; }\n"),
    ] {
        bench.write(name, text);
    }
    succeed(command(&bench, "autoreconf").arg("-i")).unwrap();
    bench.write("build/.keep", "");
    succeed(command(&bench, "sh").args(["-c", "cd build && ../configure CC=tasting-cc"])).unwrap();
    bench
}

fn suite(bench: &Bench, options: &[&str], words: &[&str]) -> Outcome {
    let mut command = command(bench, TASTING);
    Outcome::of(command.args(options).args(["--", "make", "-C", "build"]).args(words))
}

/// What drivers have written, by test.
fn traces(bench: &Bench) -> BTreeMap<String, String> {
    let mut traces = BTreeMap::new();
    for folder in ["", "sub"] {
        for entry in std::fs::read_dir(bench.path("build").join(folder)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if let Some(name) = name.strip_suffix(".trs") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                traces.insert(
                    std::path::Path::new(folder).join(name).to_str().unwrap().to_owned(),
                    text,
                );
            }
        }
    }
    traces
}

/// How the tests end under make alone, and how make ends; what the drivers write is what they wrote
/// under the suite.
#[track_caller]
fn plainly(bench: &Bench, words: &[&str], tests: &[&str]) -> Ended {
    let before = traces(bench);
    let outcome = Outcome::of(command(bench, "make").args(["-C", "build"]).args(words));
    let traces = traces(bench);
    assert_eq!(before, traces);
    let end = |test: &&str| {
        let log = test.trim_end_matches(".tap").trim_end_matches(".sh");
        let text = traces.get(log).map(String::as_str).unwrap_or_default();
        let result = text.lines().find_map(|line| line.strip_prefix(":global-test-result: "));
        let end = match result {
            Some("PASS" | "XFAIL") => "passed",
            Some("SKIP") => "skipped",
            Some(_) => "failed",
            None => "not run",
        };
        ((*test).to_owned(), end.to_owned())
    };
    (outcome.code, tests.iter().map(end).collect())
}

#[track_caller]
fn agrees(bench: &Bench, words: &[&str], tests: &[&str], executed: &[&str]) {
    let outcome = suite(bench, &["suite", "--json"], words);
    super::agrees(&outcome, executed, plainly(bench, words, tests));
}

#[test]
#[ignore = "needs automake"]
fn results_logs_and_status_match_automake() {
    let bench = project();
    agrees(&bench, &["check"], &ALL, &ALL);
    agrees(&bench, &["check", "-j2"], &ALL, &ALWAYS);
    bench.write("part.c", PART.replace("part(void) { return 0", "part(void) { return 3"));
    agrees(&bench, &["check", "-k"], &ALL, &["bad", "good"]);
    bench.write("part.c", PART.replace("part(void) { return 0", "part(void) { return 99"));
    agrees(&bench, &["check", "-k"], &ALL, &["bad", "good"]);
    bench.write("part.c", PART);
    bench.write("data", "two\n");
    agrees(&bench, &["check"], &ALL, &["bad", "script.sh"]);
    bench.write(
        "Makefile.am",
        MAKEFILE
            .replace("script.sh skips.sh", "script.sh new.sh")
            .replace("bad tap.tap script", "tap.tap script"),
    );
    bench.write("new.sh", "exit 0\n");
    let tests = ["good", "new.sh", "script.sh", "sub/inside", "tap.tap"];
    for file in ["bad", "skips"] {
        for ending in ["log", "trs"] {
            std::fs::remove_file(bench.path(&format!("build/{file}.{ending}"))).unwrap();
        }
    }
    agrees(&bench, &["check"], &tests, &["new.sh"]);
    agrees(&bench, &["check"], &tests, &[]);
}

#[test]
#[ignore = "needs automake"]
fn a_dry_run_predicts_make_check() {
    let bench = project();
    // A variable that the project sets is seen twice before it counts as known.
    for _ in 0..2 {
        suite(&bench, &["suite"], &["check"]);
    }
    let selected = |bench: &Bench| suite(bench, &["select"], &["check"]).stdout_text();
    assert_eq!(selected(&bench), "bad\n");
    bench.write("data", "two\n");
    assert_eq!(selected(&bench), "bad\nscript.sh\n");
}

#[test]
#[ignore = "needs automake"]
fn failures_alone_are_run_again() {
    let bench = project();
    bench.write("data", "one\n");
    bench.write("script.sh", "grep two \"${srcdir:-.}/data\"\n");
    let first = suite(&bench, &["suite", "--json"], &["check", "-k"]);
    assert_eq!((first.code, &json(&first)["summary"]["failed"]), (Some(2), &1.into()), "{first:?}");
    let ran = |outcome: &Outcome| super::field(&json(outcome), "end");
    let again = suite(&bench, &["suite", "--json", "--failed"], &["check", "-k"]);
    assert_eq!(
        (again.code, ran(&again)),
        (Some(2), vec![("script.sh".to_owned(), "failed".to_owned())]),
        "{again:?}"
    );
    bench.write("data", "two\n");
    let good = suite(&bench, &["suite", "--json", "--failed"], &["check", "-k"]);
    assert_eq!(
        (good.code, ran(&good)),
        (Some(0), vec![("script.sh".to_owned(), "passed".to_owned())]),
        "{good:?}"
    );
    let none = suite(&bench, &["suite", "--failed"], &["check", "-k"]);
    assert!(none.code == Some(0) && none.stdout_text().starts_with("0 tests"), "{none:?}");
}

#[test]
#[ignore = "needs automake"]
fn an_interrupted_suite_ends_as_make_does() {
    let bench = project();
    bench.write("script.sh", "touch here\nsleep 60\n");
    let here = bench.path("build/here");
    let interrupted = |words: &[&str]| {
        let _ = std::fs::remove_file(&here);
        super::interrupted(&bench, command(&bench, "setsid").args(words), &here)
    };
    let words = ["make", "-C", "build", "check"];
    let plain = interrupted(&words);
    assert_eq!(interrupted(&[&[TASTING, "suite", "--"], &words[..]].concat()), plain);
}

#[test]
fn a_makefile_without_automake_goes_to_make() {
    let bench = Bench::new();
    bench.write("Makefile", "check:\n\t@echo checked; exit 3\n");
    let mut command = command(&bench, TASTING);
    let outcome = Outcome::of(command.args(["suite", "--", "make", "check"]));
    assert_eq!(outcome.code, Some(2));
    let text = outcome.stdout_text();
    assert!(text.contains("checked") && text.contains("not Automake's"), "{text}");
}
