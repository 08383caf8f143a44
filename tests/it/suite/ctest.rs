//! Suites of CTest: Debian's and a current one.

use super::json;
use crate::run::cmake::{Site, cmakes};
use crate::workshop::{Outcome, TASTING};
use std::path::Path;
use tasting::model::Verdict;
use tasting::store::Journal;

const MODULE: &str = concat!(
    "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=",
    env!("CARGO_MANIFEST_DIR"),
    "/cmake/tasting.cmake"
);

const LISTS: &str = r#"cmake_minimum_required(VERSION 3.10)
project(suite C)
enable_testing()
add_executable(t t.c part.c)
foreach(name one two fails skips)
  add_test(NAME ${name} COMMAND t ${name})
endforeach()
set_tests_properties(two PROPERTIES ENVIRONMENT "WHO=me;WHAT=a b" LABELS "fast;x" WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME never COMMAND t never)
set_tests_properties(never PROPERTIES DISABLED TRUE)
add_test(NAME matched COMMAND t matched)
set_tests_properties(matched PROPERTIES PASS_REGULAR_EXPRESSION "is mat.hed")
add_test(NAME setup COMMAND t write db 1)
add_test(NAME needs COMMAND t read db)
add_test(NAME cleanup COMMAND t write db 0)
set_tests_properties(setup PROPERTIES FIXTURES_SETUP DB)
set_tests_properties(needs PROPERTIES FIXTURES_REQUIRED DB)
set_tests_properties(cleanup PROPERTIES FIXTURES_CLEANUP DB)
if(EXISTS ${CMAKE_SOURCE_DIR}/more.cmake)
  include(more.cmake)
endif()
"#;
const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int part(const char *name);
static int file(char **v) {
    FILE *f = fopen(v[2], *v[1] == 'w' ? "w" : "r");
    if (!f) return 3;
    if (*v[1] == 'w') { fputs(v[3], f); return fclose(f); }
    int c = fgetc(f);
    printf("read %c\n", c);
    return fclose(f);
}
int main(int c, char **v) {
    printf("this is %s, %s\n", v[1], getenv("WHO") ? getenv("WHO") : "nobody");
    if (c > 2) return file(v);
    return part(v[1]);
}
"#;
const PART: &str = r#"#include <string.h>
int of_one(void) { return 0; }
int of_two(void) { return 0; }
int part(const char *name) {
    if (!strcmp(name, "one")) return of_one();
    if (!strcmp(name, "two")) return of_two();
    if (!strcmp(name, "fails")) return 1;
    return strcmp(name, "skips") ? 0 : 77;
}
"#;

fn site(bin: &Path) -> Site {
    let site = Site::new(bin, &[("CMakeLists.txt", LISTS), ("t.c", PROGRAM), ("part.c", PART)]);
    site.configure(&[MODULE]);
    site.build(&[]);
    site
}

impl Site {
    pub fn suite(&self, options: &[&str], words: &[&str]) -> Outcome {
        let ctest = self.bin.join("ctest");
        let mut command = self.command(TASTING);
        command
            .arg(options[0])
            .args(&options[1..])
            .arg("--")
            .arg(ctest)
            .args(["--test-dir", "build"])
            .args(words);
        Outcome::of(&mut command)
    }

    /// How the tests end under CTest alone, and how CTest ends.
    pub fn plainly(&self, words: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
        let file = self.bench.path("plain.xml");
        let mut command = self.command("ctest");
        command
            .args(["--test-dir", "build", "--output-junit"])
            .arg(&file)
            .args(words)
            .env("TASTING_DISABLE", "1");
        let outcome = Outcome::of(&mut command);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{outcome:?}"));
        let end = |(name, status): (String, String)| {
            let is_skipped = status == "disabled" || (status == "notrun" && name == "skips");
            let end = match status.as_str() {
                _ if is_skipped => "skipped",
                "run" => "passed",
                "fail" => "failed",
                _ => "not run",
            };
            (name, end.to_owned())
        };
        (outcome.code, crate::run::cmake::verdicts(&text).into_iter().map(end).collect())
    }

    /// The suite ends as under CTest alone; these tests are executed.
    #[track_caller]
    fn agrees(&self, words: &[&str], executed: &[&str]) {
        super::agrees(&self.suite(&["suite", "--json"], words), executed, self.plainly(words));
    }
}

const ALL: [&str; 8] = ["cleanup", "fails", "matched", "needs", "one", "setup", "skips", "two"];

#[test]
#[ignore = "needs cmake"]
fn results_and_exit_status_match_ctest() {
    for bin in cmakes() {
        let site = site(&bin);
        site.agrees(&["-j2"], &ALL);
        site.agrees(&["-j2"], &[]);
        site.bench.write(
            "part.c",
            PART.replace("of_one(void) { return 0; }", "of_one(void) { return 5; }"),
        );
        site.build(&[]);
        site.agrees(&[], &["one"]);
        site.agrees(&["-R", "one|two"], &["one"]);
        site.bench.write(
            "more.cmake",
            "add_test(NAME new COMMAND t new)\nset_tests_properties(one PROPERTIES DISABLED 1)\n",
        );
        site.configure(&[MODULE]);
        site.agrees(&[], &["new"]);
        std::fs::remove_file(site.bench.path("more.cmake")).unwrap();
        site.bench.write("part.c", PART);
        site.configure(&[MODULE]);
        site.build(&[]);
        site.agrees(&["-L", "fast"], &[]);
        site.agrees(&[], &[]);
    }
}

#[test]
#[ignore = "needs cmake"]
fn decisions_are_those_of_the_hook() {
    for bin in cmakes() {
        let site = site(&bin);
        let edit = |from: &str, to: &str| {
            site.bench.write("part.c", PART.replace(from, to));
            site.build(&[]);
        };
        for state in 0..4 {
            match state {
                2 => edit("of_two(void) { return 0; }", "of_two(void) { return 0 * 7 + 1; }"),
                3 => edit("return 77", "return  77"),
                _ => {}
            }
            let foreseen = json(&site.suite(&["suite", "--dry-run", "--json"], &[]));
            let before = site.bench.store().decisions(1000).unwrap().len();
            Outcome::of(site.command("ctest").args(["--test-dir", "build"]));
            let decisions = site.bench.store().decisions(1000).unwrap().split_off(before);
            for test in foreseen["tests"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|test| test["decision"] != "disabled")
            {
                let is_it = |argv: &[String]| {
                    argv.iter().eq(test["argv"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|word| word.as_str().unwrap()))
                };
                let decision = decisions
                    .iter()
                    .find(|decision| is_it(&decision.argv))
                    .expect("each test was decided");
                let is_reused = test["decision"] == "reused";
                let expected = decision.decision == Verdict::Reused;
                // What uses files of another test may be left to the hook, which sees them when its
                // turn comes.
                let has_others_files = ["setup", "needs", "cleanup", "matched"]
                    .contains(&test["name"].as_str().unwrap());
                assert!(
                    is_reused == expected || (!is_reused && has_others_files),
                    "{state} {test:#} {decision:#?}"
                );
            }
            let reused = foreseen["summary"]["reused"].as_u64().unwrap();
            assert_eq!(reused, [0, 4, 3, 4][state], "{foreseen:#}");
        }
    }
}

#[test]
#[ignore = "needs cmake"]
fn a_file_of_an_earlier_test_is_input() {
    for bin in cmakes() {
        let site = site(&bin);
        site.bench.write(
            "more.cmake",
            "add_test(NAME copy COMMAND sh -c \"cat ${CMAKE_SOURCE_DIR}/in > ${CMAKE_BINARY_DIR}/out\")\n\
             add_test(NAME look COMMAND grep good ${CMAKE_BINARY_DIR}/out)\n",
        );
        site.bench.write("in", "good");
        site.configure(&[MODULE]);
        let words = ["-R", "copy|look"];
        site.agrees(&words, &["copy", "look"]);
        site.agrees(&words, &[]);
        site.bench.write("in", "bad");
        site.agrees(&words, &["copy", "look"]);
    }
}

#[test]
#[ignore = "needs cmake"]
fn variables_that_test_files_set_count() {
    for bin in cmakes() {
        let site = site(&bin);
        let set = |value: &str| {
            site.bench.write("set.cmake", format!("set(ENV{{WHO}} {value})\n"));
        };
        site.bench.write(
            "more.cmake",
            "set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_SOURCE_DIR}/set.cmake)\n",
        );
        set("you");
        site.configure(&[MODULE]);
        site.agrees(&["-R", "one|two"], &["one", "two"]);
        site.agrees(&["-R", "one|two"], &[]);
        set("them");
        site.agrees(&["-R", "one|two"], &["one"]);
    }
}

#[test]
#[ignore = "needs cmake"]
fn selected_names_are_those_that_run() {
    let bin = cmakes().remove(0);
    let site = site(&bin);
    let names = site.suite(&["select"], &["-R", "needs"]);
    assert_eq!((names.code, names.stdout_text().as_str()), (Some(0), "setup\nneeds\ncleanup\n"));
    assert_eq!(
        site.suite(&["select", "--format", "ctest-regex"], &["-R", "one"]).stdout_text(),
        "^(one)$\n"
    );
    site.agrees(&["-R", "one"], &["one"]);
    assert_eq!(
        site.suite(&["select", "--format", "ctest-regex"], &["-R", "one"]).stdout_text(),
        "^$\n"
    );
    assert_eq!(json(&site.suite(&["select", "--json"], &["-R", "one"])), serde_json::json!([]));
}

#[test]
#[ignore = "needs cmake"]
fn other_uses_of_ctest_are_left_to_it() {
    let bin = cmakes().remove(0);
    let site = site(&bin);
    let outcome = site.suite(&["suite"], &["-N"]);
    assert_eq!(outcome.code, Some(0));
    let text = outcome.stdout_text();
    assert!(
        text.contains("Total Tests: 9") && text.contains("Nothing was decided beforehand"),
        "{text}"
    );
    let outcome = site.suite(&["suite"], &["--no-tests=error", "-R", "nothing-like-this"]);
    let plain = Outcome::of(site.command("ctest").args([
        "--test-dir",
        "build",
        "--no-tests=error",
        "-R",
        "nothing-like-this",
    ]));
    assert_eq!(outcome.code, plain.code, "{outcome:?}");
}

#[test]
#[ignore = "needs cmake"]
fn an_interrupted_suite_ends_as_ctest_does() {
    let bin = cmakes().remove(0);
    let site = site(&bin);
    site.bench.write(
        "more.cmake",
        "add_test(NAME long COMMAND sh -c \"touch ${CMAKE_SOURCE_DIR}/here; sleep 60\")\n",
    );
    site.configure(&[MODULE]);
    let interrupted = |program: &Path, words: &[&str]| {
        let _ = std::fs::remove_file(site.bench.path("here"));
        let here = site.bench.path("here");
        super::interrupted(&site.bench, site.command("setsid").arg(program).args(words), &here)
    };
    let ctest = site.bin.join("ctest");
    let words = ["--test-dir", "build", "-R", "long"];
    let plain = interrupted(&ctest, &words);
    let suite = interrupted(
        Path::new(TASTING),
        &[&["suite", "--", ctest.to_str().unwrap()][..], &words].concat(),
    );
    assert_eq!(suite, plain);
}
