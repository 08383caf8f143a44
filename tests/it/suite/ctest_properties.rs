//! Properties and options of CTest keep their meaning in a suite, in every state in which a test
//! can be; and what CTest was asked is not asked again while nothing has changed.

use super::json;
use crate::run::cmake::{Site, cmakes};
use crate::workshop::{Outcome, TASTING};
use std::time::SystemTime;

const MODULE: &str = concat!(
    "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=",
    env!("CARGO_MANIFEST_DIR"),
    "/cmake/tasting.cmake"
);

const LISTS: &str = r#"cmake_minimum_required(VERSION 3.22)
project(properties C)
enable_testing()
add_executable(t t.c part.c)
foreach(name locked serial changed late costly printed refused skips fails broken user missing sleeps)
  add_test(NAME ${name} COMMAND t ${name})
endforeach()
add_test(NAME make COMMAND sh -c "cp ${CMAKE_SOURCE_DIR}/data ${CMAKE_BINARY_DIR}/made")
add_test(NAME use COMMAND grep -q good ${CMAKE_BINARY_DIR}/made)
add_test(NAME remove COMMAND rm ${CMAKE_BINARY_DIR}/made)
set_tests_properties(locked PROPERTIES RESOURCE_LOCK file LABELS "one;two")
set_tests_properties(serial PROPERTIES RUN_SERIAL TRUE LABELS two)
set_tests_properties(changed PROPERTIES ENVIRONMENT_MODIFICATION "WHO=set:me;PATH=path_list_prepend:/nowhere")
set_tests_properties(late PROPERTIES DEPENDS "serial;locked" ENVIRONMENT "WHO=late")
set_tests_properties(costly PROPERTIES COST 9 PROCESSORS 2)
set_tests_properties(printed PROPERTIES PASS_REGULAR_EXPRESSION "this is printed")
set_tests_properties(refused PROPERTIES FAIL_REGULAR_EXPRESSION "this is refused")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)
set_tests_properties(missing PROPERTIES REQUIRED_FILES ${CMAKE_SOURCE_DIR}/nothing)
set_tests_properties(sleeps PROPERTIES TIMEOUT 1 LABELS slow)
set_tests_properties(user PROPERTIES FIXTURES_REQUIRED BAD)
set_tests_properties(broken PROPERTIES FIXTURES_SETUP BAD)
set_tests_properties(make PROPERTIES FIXTURES_SETUP FILE)
set_tests_properties(use PROPERTIES FIXTURES_REQUIRED FILE)
set_tests_properties(remove PROPERTIES FIXTURES_CLEANUP FILE)
"#;
const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int part(const char *name);
int main(int c, char **v) {
    printf("this is %s, %s\n", v[1], getenv("WHO") ? getenv("WHO") : "nobody");
    fflush(stdout);
    if (!strcmp(v[1], "sleeps")) sleep(100);
    return part(v[1]);
}
"#;
const PART: &str = r#"#include <string.h>
int of_late(void) { return 0; }
int part(const char *name) {
    if (!strcmp(name, "fails") || !strcmp(name, "broken")) return 1;
    if (!strcmp(name, "late")) return of_late();
    return strcmp(name, "skips") ? 0 : 77;
}
"#;
const PASSING: [&str; 2] = ["-R", "locked|serial"];

fn sites() -> impl Iterator<Item = Site> {
    cmakes().into_iter().map(|bin| {
        let site = Site::new(
            &bin,
            &[("CMakeLists.txt", LISTS), ("t.c", PROGRAM), ("part.c", PART), ("data", "good\n")],
        );
        site.configure(&[MODULE]);
        site.build(&[]);
        site
    })
}

/// The tests end as under CTest alone, and so does the suite.
#[track_caller]
fn is_alike(site: &Site, words: &[&str]) {
    let outcome = site.suite(&["suite", "--json"], words);
    let suite = json(&outcome);
    let plain = site.plainly(words);
    assert_eq!(
        (outcome.code, super::field(&suite, "end")),
        plain,
        "{words:?} {suite:#} {}",
        outcome.stderr_text()
    );
}

#[test]
#[ignore = "needs cmake"]
fn properties_and_filters_mean_the_same() {
    for site in sites() {
        let choices: [&[&str]; 11] = [
            &["-LE", "slow", "-j3"],
            &["-L", "two"],
            &["-L", "one", "-L", "two"],
            &["-E", "late|sleeps|user|broken"],
            &["-E", "late|slee", "-L", "two"],
            &["-E", "late", "-R", "late|locked|use"],
            &["-I", "1,5,2"],
            &["-R", "late"],
            &["-R", "use", "-FC", ".*"],
            &["-R", "use", "-FA", ".*"],
            &["--rerun-failed"],
        ];
        is_alike(&site, &["-j4"]);
        for words in choices {
            is_alike(&site, words);
        }
        let edits: [(&str, String); 3] = [
            ("part.c", PART.replace("of_late(void) { return 0; }", "of_late(void) { return 3; }")),
            ("data", "bad\n".to_owned()),
            ("part.c", PART.replace("? 0 : 77", "? 0 : 3")),
        ];
        for (file, text) in edits {
            site.bench.write(file, text);
            site.build(&[]);
            is_alike(&site, &["-LE", "slow", "-j2"]);
            is_alike(&site, &["--rerun-failed"]);
        }
        for words in [
            &["--repeat", "until-pass:2", "-LE", "slow"][..],
            &["--stop-on-failure", "-R", "late|use"],
        ] {
            let plain =
                Outcome::of(site.command("ctest").args(["--test-dir", "build"]).args(words)).code;
            assert_eq!(site.suite(&["suite"], words).code, plain, "{words:?}");
        }
    }
}

/// When CTest was asked or run in the build folder the last time.
fn last_call(site: &Site) -> SystemTime {
    let log = std::fs::metadata(site.bench.path("build/Testing/Temporary/LastTest.log"));
    log.and_then(|log| log.modified()).expect("CTest writes a log")
}

#[test]
#[ignore = "needs cmake"]
fn a_known_suite_starts_no_ctest() {
    for site in sites() {
        let suite =
            || json(&site.suite(&["suite", "--json"], &PASSING))["summary"]["executed"].clone();
        assert_eq!([suite(), suite()], [2, 0]);
        let before = last_call(&site);
        assert_eq!((suite(), last_call(&site)), (0.into(), before));
        let file = site.bench.path("build/CTestTestfile.cmake");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}\nset(ENV{{WHO}} you)\n")).unwrap();
        assert_eq!(suite(), 2, "a test file sets a variable");
        assert_ne!(last_call(&site), before);
        std::fs::write(
            &file,
            format!("{text}\nset_tests_properties(serial PROPERTIES DISABLED 1)\n"),
        )
        .unwrap();
        let disabled = json(&site.suite(&["suite", "--json"], &PASSING));
        assert_eq!(super::field(&disabled, "decision")[1].1, "disabled", "{disabled:#}");
        std::fs::write(&file, text).unwrap();
        assert_eq!(suite(), 0);
        let mut command = site.command(TASTING);
        command
            .args(["suite", "--json", "--"])
            .arg(site.bin.join("ctest"))
            .args(["--test-dir", "build"])
            .args(PASSING);
        let outcome = Outcome::of(command.env("WHO", "them"));
        assert_eq!(json(&outcome)["summary"]["executed"], 2, "{outcome:?}");
    }
}

#[test]
#[ignore = "needs cmake"]
fn questions_to_ctest_are_not_in_the_log() {
    use tasting::store::Journal;
    let site = sites().next().unwrap();
    for _ in 0..2 {
        site.suite(&["suite"], &PASSING);
    }
    assert_eq!(site.bench.store().decisions(100).unwrap().len(), 4);
}

#[test]
#[ignore = "needs cmake"]
fn commands_around_tests_leave_everything_to_ctest() {
    let site = sites().next().unwrap();
    site.suite(&["suite"], &PASSING);
    let all_ran =
        |text: &str| text.contains("2 tests passed") || text.contains("0 tests failed out of 2");
    let mut command = site.command(TASTING);
    command
        .args(["suite", "--"])
        .arg(site.bin.join("ctest"))
        .args(["--test-dir", "build"])
        .args(PASSING);
    let text = Outcome::of(command.env("TASTING_DISABLE", "1")).stdout_text();
    assert!(all_ran(&text) && text.contains("TASTING_DISABLE is set"), "{text}");
    let here = site.bench.path("here");
    let custom = format!("set(CTEST_CUSTOM_PRE_TEST \"touch {}\")\n", here.display());
    site.bench.write("build/CTestCustom.cmake", custom);
    let text = site.suite(&["suite"], &PASSING).stdout_text();
    assert!(all_ran(&text) && text.contains("before or after tests") && here.exists(), "{text}");
}

#[test]
#[ignore = "needs cmake"]
fn a_ctest_that_crashes_ends_the_suite_alike() {
    let site = sites().next().unwrap();
    let real = site.bin.join("ctest");
    let asked = "*--show-only*|*tasting-context*|*' -N'*)";
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in {asked} exec {} \"$@\";; esac\nkill -SEGV $$\n",
        real.display()
    );
    let script = site.bench.script("bin/ctest", &script);
    let words = ["--test-dir", "build", "-R", "locked"];
    let plain = Outcome::of(site.bench.command(&script).args(words));
    let suite = Outcome::of(site.command(TASTING).args(["suite", "--"]).arg(&script).args(words));
    assert_eq!((suite.code, suite.signal), (plain.code, plain.signal), "{suite:?}");
}
