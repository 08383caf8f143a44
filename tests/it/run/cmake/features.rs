//! The features of CTest that look at more than the end of a test.

use super::{MODULE, Site, cmakes};
use std::path::Path;
use tasting::model::Verdict;

/// Fixtures, locks, expected failures, skips, matched output, timeouts: each test ends as it does
/// without Tasting, at first, when it is reused, and when it is repeated.
const FEATURES: &str = r#"cmake_minimum_required(VERSION 3.10)
project(features C)
include(CTest)
add_executable(t t.c)
function(add name)
  add_test(NAME ${name} COMMAND t ${ARGN} ${name})
endfunction()
add(setup write data)
set_tests_properties(setup PROPERTIES FIXTURES_SETUP data)
add(uses read data)
set_tests_properties(uses PROPERTIES FIXTURES_REQUIRED data RESOURCE_LOCK one)
add(locked read data)
set_tests_properties(locked PROPERTIES FIXTURES_REQUIRED data RESOURCE_LOCK one)
add(cleanup remove data)
set_tests_properties(cleanup PROPERTIES FIXTURES_CLEANUP data)
add(will_fail exit 3)
set_tests_properties(will_fail PROPERTIES WILL_FAIL TRUE)
add(skipped exit 5)
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 5)
add(matched say hello)
set_tests_properties(matched PROPERTIES PASS_REGULAR_EXPRESSION "^hello\n$")
add(unmatched say hello)
set_tests_properties(unmatched PROPERTIES FAIL_REGULAR_EXPRESSION "ell")
add(no_measurement say nothing)
set_tests_properties(no_measurement PROPERTIES FAIL_REGULAR_EXPRESSION "Tasting|easure|reused")
add(slow sleep 30)
set_tests_properties(slow PROPERTIES TIMEOUT 1)
add(second_try once tried)
add(variable variable)
set_tests_properties(variable PROPERTIES ENVIRONMENT "VALUE=a b;OTHER=1" LABELS "x;y")
"#;

const FEATURES_C: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int once(const char *name) {
    FILE *file = fopen(name, "r");
    if (file) return fclose(file);
    return fclose(fopen(name, "w")), 1;
}
int main(int count, char **words) {
    const char *what = words[1], *with = count > 2 ? words[2] : "";
    if (!strcmp(what, "say")) return puts(with) < 0;
    if (!strcmp(what, "exit")) return atoi(with);
    if (!strcmp(what, "write")) return fclose(fopen(with, "w"));
    if (!strcmp(what, "read")) return fopen(with, "r") == 0;
    if (!strcmp(what, "remove")) return remove(with) != 0;
    if (!strcmp(what, "sleep")) return sleep(atoi(with)), 0;
    if (!strcmp(what, "variable")) return strcmp(getenv("VALUE"), "a b") != 0;
    return once(with);
}
"#;

const FEATURES_ENDS: [(&str, &str); 12] = [
    ("cleanup", "run"),
    ("locked", "run"),
    ("matched", "run"),
    ("no_measurement", "run"),
    ("second_try", "fail"),
    ("setup", "run"),
    ("skipped", "notrun"),
    ("slow", "fail"),
    ("unmatched", "fail"),
    ("uses", "run"),
    ("variable", "run"),
    ("will_fail", "run"),
];

pub(super) fn features(bin: &Path) -> Site {
    let site = Site::new(bin, &[("CMakeLists.txt", FEATURES), ("t.c", FEATURES_C)]);
    site.configure(&["-G", "Ninja", "--toolchain", MODULE]);
    site.build(&[]);
    site
}

#[test]
#[ignore = "needs cmake"]
fn features_of_ctest() {
    for bin in cmakes() {
        let site = features(&bin);
        // One that was killed is in no log.
        site.expects(&["-j4"], &FEATURES_ENDS, 11, 0);
        let ends =
            FEATURES_ENDS.map(|(name, end)| (name, if name == "second_try" { "run" } else { end }));
        // Again: what failed, what CTest took for a failure, and what ended with a status that says
        // nothing to us.
        site.expects(&["-j4"], &ends, 3, 8);
        site.expects(&["-j4"], &ends, 2, 9);
        // The first attempt of one test fails, and CTest makes a second one.
        std::fs::remove_file(site.bench.path("build/tried")).unwrap();
        let (verdicts, decisions) =
            site.tests(&["-R", "second_try|^matched", "--repeat", "until-pass:3"]);
        assert_eq!(
            verdicts.iter().map(|(_, end)| end.as_str()).collect::<Vec<_>>(),
            ["run", "run"]
        );
        let codes: Vec<_> = decisions
            .iter()
            .map(|one| (one.argv[1].as_str(), one.decision, one.exit_code))
            .collect();
        let (ran, reused) = (Verdict::Executed, Verdict::Reused);
        assert_eq!(
            codes,
            [("say", ran, 0), ("once", ran, 1), ("once", reused, 0)],
            "with the file, it has passed before"
        );
    }
}

/// Whoever repeats a test until it fails, or looks for errors in memory, wants it to run.
#[test]
#[ignore = "needs cmake"]
fn tests_that_have_to_run() {
    for bin in cmakes() {
        let site = features(&bin);
        site.expects(&["-R", "^variable$"], &[("variable", "run")], 1, 0);
        site.expects(&["-R", "^variable$"], &[("variable", "run")], 0, 1);
        site.expects(
            &["-R", "^variable$", "--repeat", "until-fail:3"],
            &[("variable", "run")],
            3,
            0,
        );
        let checker = site.bench.script("valgrind", "#!/bin/sh\necho \"$@\" >>checked\n");
        let option = format!("-DMEMORYCHECK_COMMAND={}", checker.display());
        site.configure(&[&option]);
        let before = site.decisions().len();
        let outcome = site.ctest(&["-T", "MemCheck", "-R", "^variable$"]);
        let checked = std::fs::read_to_string(site.bench.path("build/checked"));
        let checked = checked.unwrap_or_else(|_| panic!("{outcome:?}"));
        assert!(
            checked.contains("build/t variable") && !checked.contains("tasting run"),
            "{checked}"
        );
        assert_eq!(site.decisions().len(), before);
    }
}
