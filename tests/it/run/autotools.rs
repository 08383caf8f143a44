//! Automake's test driver, its TAP driver, expected failures, libtool's libraries and wrapper
//! scripts, and `make distcheck`.

use super::Bench;
use crate::workshop::{Outcome, shims, succeed, tools};
use std::process::Command;
use tasting::model::Verdict;
use tasting::store::Journal;

const CONFIGURE: &str = "AC_INIT([x], [1])
AC_CONFIG_AUX_DIR([build-aux])
AC_CONFIG_MACRO_DIRS([m4])
AC_REQUIRE_AUX_FILE([tap-driver.sh])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AC_PROG_AWK
AM_PROG_AR
LT_INIT
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
";
const MAKEFILE: &str = "ACLOCAL_AMFLAGS = -I m4
lib_LTLIBRARIES = libanswer.la
libanswer_la_SOURCES = answer.c
bin_PROGRAMS = tool
tool_SOURCES = main.c
tool_LDADD = libanswer.la
check_PROGRAMS = good bad tap.tap
good_SOURCES = main.c
good_LDADD = libanswer.la
bad_SOURCES = bad.c
bad_LDADD = libanswer.la
tap_tap_SOURCES = tap.c
tap_tap_LDADD = libanswer.la
TESTS = good bad tap.tap script.sh
XFAIL_TESTS = bad
TEST_EXTENSIONS = .tap .sh
TAP_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
EXTRA_DIST = script.sh
";
const ANSWER: &str = "int answer(void) { return 42; }\nint unused(void) { return 1; }\n";

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
    let bench = Bench::new();
    for (name, text) in [
        ("configure.ac", CONFIGURE),
        ("Makefile.am", MAKEFILE),
        ("m4/.keep", ""),
        ("answer.c", ANSWER),
        ("main.c", "int answer(void);\nint main(void) { return answer() - 42; }\n"),
        ("bad.c", "int answer(void);\nint main(void) { return answer() == 42; }\n"),
        (
            "tap.c",
            "#include <stdio.h>\nint answer(void);\nint main(void) { printf(\"1..3\\nok 1\\n%s 2\\nok 3 # SKIP\\n\", answer() == 42 ? \"ok\" : \"not ok\"); return 0; }\n",
        ),
    ] {
        bench.write(name, text);
    }
    bench.script("script.sh", "#!/bin/sh\n./tool\n");
    succeed(command(&bench, "autoreconf").arg("-i")).unwrap();
    succeed(command(&bench, "./configure").arg("CC=tasting-cc")).unwrap();
    bench
}

const RUNNERS: [&str; 3] = [
    "LOG_COMPILER=tasting run --",
    "TAP_LOG_COMPILER=tasting run --",
    "SH_LOG_COMPILER=tasting run -- sh",
];

/// What the driver says of each test, and how many tests were executed and reused.
fn check(bench: &Bench) -> (Vec<String>, usize, usize) {
    let before = bench.store().decisions(999).unwrap().len();
    let outcome = Outcome::of(command(bench, "make").args(["-j4", "check"]).args(RUNNERS));
    let is_verdict = |line: &&str| {
        let word = line.split_once(": ").map_or("", |(word, _)| word);
        ["PASS", "FAIL", "SKIP", "XPASS", "XFAIL", "ERROR"].contains(&word)
    };
    let mut results: Vec<String> =
        outcome.stdout_text().lines().filter(is_verdict).map(str::to_owned).collect();
    results.sort();
    let decisions = bench.store().decisions(999).unwrap().split_off(before);
    let count = |verdict| decisions.iter().filter(|decision| decision.decision == verdict).count();
    (results, count(Verdict::Executed), count(Verdict::Reused))
}

const TOOLS: [&str; 3] = ["autoreconf", "libtoolize", "make"];

#[test]
#[ignore = "needs autotools"]
fn drivers() {
    tools(&TOOLS);
    let bench = project();
    let good = [
        "PASS: good",
        "PASS: script.sh",
        "PASS: tap.tap 1",
        "PASS: tap.tap 2",
        "SKIP: tap.tap 3 # SKIP",
        "XFAIL: bad",
    ];
    assert_eq!(check(&bench), (good.map(str::to_owned).to_vec(), 4, 0));
    for name in ["good", "bad", "tap", "script"] {
        assert!(
            bench.path(&format!("{name}.trs")).exists()
                && bench.path(&format!("{name}.log")).exists(),
            "{name}"
        );
    }
    // What is expected to fail runs again, for it fails.
    assert_eq!(check(&bench), (good.map(str::to_owned).to_vec(), 1, 3));
    bench.write("answer.c", ANSWER.replace("return 1", "return 2"));
    assert_eq!(check(&bench), (good.map(str::to_owned).to_vec(), 1, 3));
    bench.write("answer.c", ANSWER.replace("42", "41"));
    let bad = [
        "FAIL: good",
        "FAIL: script.sh",
        "FAIL: tap.tap 2",
        "PASS: tap.tap 1",
        "SKIP: tap.tap 3 # SKIP",
        "XPASS: bad",
    ];
    assert_eq!(check(&bench), (bad.map(str::to_owned).to_vec(), 4, 0));
    bench.write("answer.c", ANSWER);
    assert_eq!(check(&bench), (good.map(str::to_owned).to_vec(), 1, 3));
}

/// A distribution is unpacked, built, tested, installed, uninstalled and cleaned, and nothing may
/// be left.
#[test]
#[ignore = "needs autotools"]
fn distributions() {
    tools(&TOOLS);
    let bench = project();
    let mut make = command(&bench, "make");
    make.env("TASTING_MANIFEST_DIR", bench.path("manifests"));
    make.args(["-j4", "distcheck", "DISTCHECK_CONFIGURE_FLAGS=CC=tasting-cc"]).args(RUNNERS);
    succeed(&mut make).unwrap();
    assert_eq!(bench.store().decisions(999).unwrap().len(), 4);
}
