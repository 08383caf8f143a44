//! CMake and CTest: Debian's and a current one, with every generator and every way in, and the
//! features of CTest that look at more than the end of a test.

use super::Bench;
use crate::workshop::{Outcome, TASTING, shims, succeed, tool, tools};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tasting::model::{Decision, Verdict};
use tasting::store::Journal;

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cmake/tasting.cmake");

/// The folders with `cmake` and `ctest`: Debian's, and the one that scripts/install-test-tools.sh
/// puts beside the build.
pub fn cmakes() -> Vec<PathBuf> {
    let current = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("tools")
        .join("cmake/cmake/data/bin/cmake");
    let current = tool(current.to_str().expect("a path of ours is a text"));
    [tool("cmake"), current]
        .into_iter()
        .filter_map(|cmake| Some(cmake.parent()?.to_owned()))
        .collect()
}

/// A project with its build folder, seen through one CMake.
pub struct Site {
    pub bench: Bench,
    pub bin: PathBuf,
}

impl Site {
    pub fn new(bin: &Path, files: &[(&str, &str)]) -> Site {
        let site = Site { bench: Bench::new(), bin: bin.to_owned() };
        files.iter().for_each(|(name, text)| _ = site.bench.write(name, text));
        site
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = self.bench.command(self.bin.join(program));
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", shims().display()));
        command
    }

    pub fn configure(&self, words: &[&str]) {
        succeed(self.command("cmake").args(["-S", ".", "-B", "build"]).args(words)).unwrap();
    }

    pub fn build(&self, words: &[&str]) {
        succeed(self.command("cmake").args(["--build", "build", "-j2"]).args(words)).unwrap();
    }

    fn ctest(&self, words: &[&str]) -> Outcome {
        Outcome::of(self.command("ctest").args(["--test-dir", "build"]).args(words))
    }

    /// What a run of `ctest` said, test by test, and what was decided meanwhile.
    fn tests(&self, words: &[&str]) -> (Vec<(String, String)>, Vec<Decision>) {
        let before = self.decisions().len();
        let junit = self.bench.path("junit.xml");
        let outcome =
            self.ctest(&[&["--output-junit", junit.to_str().expect("a text")], words].concat());
        let text = std::fs::read_to_string(&junit).unwrap_or_else(|_| panic!("{outcome:?}"));
        (verdicts(&text), self.decisions().split_off(before))
    }

    fn decisions(&self) -> Vec<Decision> {
        self.bench.store().decisions(10_000).unwrap()
    }

    /// Runs all tests: they end as they should, and so many of them are run and reused.
    #[track_caller]
    fn expects(&self, words: &[&str], ends: &[(&str, &str)], executed: usize, reused: usize) {
        let (verdicts, decisions) = self.tests(words);
        let ends: Vec<_> =
            ends.iter().map(|(name, end)| ((*name).to_owned(), (*end).to_owned())).collect();
        assert_eq!(verdicts, ends);
        let count =
            |verdict| decisions.iter().filter(|decision| decision.decision == verdict).count();
        let counts = (count(Verdict::Executed), count(Verdict::Reused));
        assert_eq!(counts, (executed, reused), "{decisions:#?}");
    }
}

/// Names and ends of the tests in a JUnit file, by name.
pub fn verdicts(junit: &str) -> Vec<(String, String)> {
    let attribute = |text: &str, name: &str| {
        let start = text.find(&format!(" {name}=\"")).expect("an attribute") + name.len() + 3;
        text[start..].split('"').next().expect("a value").to_owned()
    };
    let cases = junit.split("<testcase").skip(1);
    let mut cases: Vec<_> =
        cases.map(|case| (attribute(case, "name"), attribute(case, "status"))).collect();
    cases.sort();
    cases
}

const SMALL: &str = r#"cmake_minimum_required(VERSION 3.10)
project(small C)
enable_testing()
add_subdirectory(tests)
"#;
/// A target, a path, a shell, the old form, and what a generator makes during the build.
const SMALL_TESTS: &str = r#"add_executable(generator generator.c)
add_custom_command(OUTPUT table.h COMMAND generator > table.h)
add_executable(a a.c answer.c table.h)
target_include_directories(a PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
add_test(NAME target COMMAND a)
add_test(NAME path COMMAND $<TARGET_FILE:a> "" "x;y" "q\"u o\te")
add_test(NAME shell COMMAND sh -c "\"$0\" && echo good" $<TARGET_FILE:a>)
add_test(NAME missing COMMAND ${CMAKE_CURRENT_BINARY_DIR}/not-there)
"#;
const SMALL_FILES: &[(&str, &str)] = &[
    ("CMakeLists.txt", SMALL),
    ("tests/CMakeLists.txt", SMALL_TESTS),
    (
        "tests/generator.c",
        "#include <stdio.h>\nint main(void) { puts(\"#define TABLE 7\"); return 0; }\n",
    ),
    (
        "tests/a.c",
        "#include <stdio.h>\n#include \"table.h\"\nint answer(void);\n\
         int main(int c, char **v) { while (*++v) printf(\"[%s]\", *v); return answer() - 42 + TABLE - 7; }\n",
    ),
    ("tests/answer.c", ANSWER),
];
const ANSWER: &str = "int answer(void) { return 42; }\nint unused(void) { return 1; }\n";
const MISSING: (&str, &str) = ("missing", "notrun");
const GOOD: [(&str, &str); 4] = [MISSING, ("path", "run"), ("shell", "run"), ("target", "run")];
const BAD: [(&str, &str); 4] = [MISSING, ("path", "fail"), ("shell", "fail"), ("target", "fail")];

/// All tests run, none need to; nor after an edit that they cannot see; they do after another one,
/// and fail.
fn goes_round(bin: &Path, generator: &str, way: &str, configuration: &[&str]) {
    let site = Site::new(bin, SMALL_FILES);
    let module = format!("-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={MODULE}");
    let folder =
        format!("-DTasting_DIR={}", Path::new(MODULE).parent().expect("a folder").display());
    let entry: &[&str] = match way {
        "toolchain" => &["--toolchain", MODULE],
        "include" => &[&module],
        _ => {
            let with =
                SMALL.replace("enable_testing", "find_package(Tasting REQUIRED)\nenable_testing");
            site.bench.write("CMakeLists.txt", with);
            &[&folder]
        }
    };
    site.configure(&[&["-G", generator][..], entry].concat());
    let built: Vec<&str> = configuration.first().map_or(vec![], |name| vec!["--config", name]);
    let tested: Vec<&str> =
        configuration.first().map_or(vec!["-j4"], |name| vec!["-j4", "-C", name]);
    site.build(&built);
    assert_eq!(site.decisions().len(), 0, "a generator is not a test");
    site.expects(&tested, &GOOD, 3, 0);
    site.expects(&tested, &GOOD, 0, 3);
    for (text, ends, executed, reused) in [
        (ANSWER.replace("return 1", "return 2"), &GOOD, 0, 3),
        (ANSWER.replace("42", "41"), &BAD, 3, 0),
        (ANSWER.to_owned(), &GOOD, 0, 3),
    ] {
        site.bench.write("tests/answer.c", text);
        site.build(&built);
        site.expects(&tested, ends, executed, reused);
    }
    // From a folder below, too.
    let below =
        Outcome::of(site.command("ctest").args(["--test-dir", "build/tests"]).args(&tested));
    assert!(
        below.stdout_text().contains("4 tests") || below.stdout_text().contains("out of 4"),
        "{below:?}"
    );
    assert_eq!(
        site.decisions().iter().rev().take(3).filter(|one| one.decision == Verdict::Reused).count(),
        3
    );
}

#[test]
#[ignore = "needs cmake"]
fn makefiles() {
    for (bin, way) in cmakes().iter().zip(["include", "toolchain"]) {
        goes_round(bin, "Unix Makefiles", way, &[]);
    }
}

#[test]
#[ignore = "needs cmake"]
fn ninja() {
    for bin in cmakes() {
        for way in ["toolchain", "include", "package"] {
            goes_round(&bin, "Ninja", way, &[]);
        }
    }
}

#[test]
#[ignore = "needs cmake"]
fn several_configurations() {
    for (bin, way) in cmakes().iter().zip(["toolchain", "include"]) {
        goes_round(bin, "Ninja Multi-Config", way, &["Release"]);
    }
}

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

fn features(bin: &Path) -> Site {
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

/// CTest shows that a test was reused, as a measurement, and its output is what it always is.
#[test]
#[ignore = "needs cmake"]
fn reuse_is_shown() {
    for bin in cmakes() {
        let site = Site::new(&bin, SMALL_FILES);
        site.configure(&["-G", "Ninja", "--toolchain", MODULE, "-DDART_TESTING_TIMEOUT=60"]);
        site.build(&[]);
        let output = |round: &str| {
            let junit = site.bench.path(round);
            site.ctest(&["-R", "path", "--output-junit", junit.to_str().unwrap()]);
            let text = std::fs::read_to_string(junit).unwrap();
            text.split("<system-out>")
                .nth(1)
                .unwrap()
                .split("</system-out>")
                .next()
                .unwrap()
                .to_owned()
        };
        let (first, second) = (output("1.xml"), output("2.xml"));
        assert_eq!(first, second);
        assert!(first.contains("[x;y][q\"u o"), "{first}");
        let log = std::fs::read_to_string(site.bench.path("build/Testing/Temporary/LastTest.log"))
            .unwrap();
        assert!(log.contains(r#"name="Tasting">reused<"#), "{log}");
    }
}

/// A project that sets its own launchers, and overrides add_test() itself.
#[test]
#[ignore = "needs cmake"]
fn a_project_with_its_own_ideas() {
    let top = r#"cmake_minimum_required(VERSION 3.10)
project(own C)
enable_testing()
set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/launcher)
function(add_test)
  message(STATUS "adding a test")
  _add_test(${ARGV})
endfunction()
add_executable(a a.c)
add_test(NAME a COMMAND a)
set_property(DIRECTORY PROPERTY TEST_INCLUDE_FILES ${CMAKE_SOURCE_DIR}/more.cmake)
"#;
    for bin in cmakes() {
        let files = [
            ("CMakeLists.txt", top),
            ("a.c", "int main(void) { return 0; }\n"),
            ("more.cmake", "add_test(more sh -c :)\n"),
        ];
        let site = Site::new(&bin, &files);
        site.bench
            .script("launcher", "#!/bin/sh\necho launched >>\"${0%/*}/launches\"\nexec \"$@\"\n");
        site.configure(&["-G", "Ninja", "--toolchain", MODULE]);
        site.build(&[]);
        assert!(
            site.bench.path("launches").exists() && site.bench.path("build/a.tasting").exists()
        );
        let object = std::fs::read(site.bench.path("build/CMakeFiles/a.dir/a.c.o")).unwrap();
        assert!(object.windows(9).any(|bytes| bytes == b".tasting\0"), "the object has no record");
        site.expects(&[], &[("a", "run"), ("more", "run")], 2, 0);
        site.expects(&[], &[("a", "run"), ("more", "run")], 0, 2);
    }
}

/// Without the shims, or after they have gone, everything still works.
#[test]
#[ignore = "needs cmake"]
fn without_tasting_there_is_a_warning_and_a_build() {
    for bin in cmakes() {
        let site = Site::new(&bin, SMALL_FILES);
        let lonely = site.bench.path("lonely");
        std::fs::create_dir(&lonely).unwrap();
        for name in ["tasting.cmake", "ctest.cmake.in"] {
            std::fs::copy(Path::new(MODULE).with_file_name(name), lonely.join(name)).unwrap();
        }
        let mut command = site.bench.command(bin.join("cmake"));
        command.args([
            "-S",
            ".",
            "-B",
            "build",
            "-G",
            "Ninja",
            "--toolchain",
            lonely.join("tasting.cmake").to_str().unwrap(),
        ]);
        // Whoever runs this may have it installed.
        let path = std::env::var_os("PATH").unwrap();
        let others =
            std::env::split_paths(&path).filter(|folder| !folder.join("tasting-cc").exists());
        command.env("PATH", std::env::join_paths(others).unwrap());
        let warned = succeed(&mut command).unwrap().stderr_text();
        assert_eq!(warned.matches("CMake Warning").count(), 1, "{warned}");
        let flat = warned.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("tasting-cc, tasting-c++, tasting: neither beside"), "{warned}");
        site.build(&[]);
        site.expects(&[], &GOOD, 0, 0);
        // Installed later, it is found.
        site.configure(&[]);
        site.build(&[]);
        site.expects(&[], &GOOD, 3, 0);
        assert!(!site.bench.path("build/a.tasting").exists());
        assert!(site.bench.path("build/tests/a.tasting").exists());
        // Gone, tests run by themselves.
        let script = site.bench.path("build/CMakeFiles/tasting/ctest.cmake");
        let text = std::fs::read_to_string(&script).unwrap();
        std::fs::write(&script, text.replace(shims().to_str().unwrap(), "/nowhere")).unwrap();
        site.expects(&[], &GOOD, 0, 0);
    }
}

/// Test programs that list their cases: at build time, within five seconds, and without being taken
/// for tests.
#[test]
#[ignore = "needs cmake"]
fn discovered_tests() {
    let top = r#"cmake_minimum_required(VERSION 3.14)
project(discovered CXX)
enable_testing()
find_package(GTest REQUIRED)
find_package(Catch2 REQUIRED)
find_package(doctest REQUIRED)
include(GoogleTest)
include(Catch)
include(doctest)
add_library(answer STATIC answer.cc)
foreach(kind gtest catch doctest)
  add_executable(${kind} ${kind}.cc)
  target_link_libraries(${kind} answer)
endforeach()
target_link_libraries(gtest GTest::gtest_main)
target_link_libraries(catch Catch2::Catch2)
target_link_libraries(doctest doctest::doctest)
if(LATE)
  gtest_discover_tests(gtest DISCOVERY_MODE PRE_TEST)
else()
  gtest_discover_tests(gtest)
endif()
catch_discover_tests(catch)
doctest_discover_tests(doctest)
"#;
    let gtest = "#include <gtest/gtest.h>\nint one(); int two();\nTEST(S, one) { EXPECT_EQ(one(), 1); }\nTEST(S, two) { EXPECT_EQ(two(), 2); }\n";
    let catch = "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\nint one(); int two();\n\
        TEST_CASE(\"catch one\") { CHECK(one() == 1); }\nTEST_CASE(\"catch, two\") { CHECK(two() == 2); }\n";
    let doctest = "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\nint one(); int two();\n\
        TEST_CASE(\"doctest one\") { CHECK(one() == 1); }\nTEST_CASE(\"doctest two\") { CHECK(two() == 2); }\n";
    let answer = "int one() { return 1; }\nint two() { return 2; }\n";
    let sources = [
        ("CMakeLists.txt", top),
        ("gtest.cc", gtest),
        ("catch.cc", catch),
        ("doctest.cc", doctest),
    ];
    let ends = |one: &'static str, two: &'static str| {
        [
            ("S.one", one),
            ("S.two", two),
            ("catch one", one),
            ("catch, two", two),
            ("doctest one", one),
            ("doctest two", two),
        ]
    };
    for (bin, late) in cmakes().iter().zip(["-DLATE=OFF", "-DLATE=ON"]) {
        let site = Site::new(bin, &[&sources[..], &[("answer.cc", answer)]].concat());
        site.configure(&["-G", "Ninja", "--toolchain", MODULE, late]);
        site.build(&[]);
        assert_eq!(site.decisions().len(), 0, "to list tests is no test");
        site.expects(&["-j4"], &ends("run", "run"), 6, 0);
        site.expects(&["-j4"], &ends("run", "run"), 0, 6);
        site.bench.write("answer.cc", answer.replace("return 2", "return 3"));
        site.build(&[]);
        // Only the cases that executed what changed.
        site.expects(&["-j4"], &ends("run", "fail"), 3, 3);
        site.bench.write("answer.cc", answer);
        site.build(&[]);
        site.expects(&["-j4"], &ends("run", "run"), 0, 6);
    }
}

/// As an emulator or a launcher that the user sets, `tasting run` gets the calls that list cases,
/// too.
#[test]
fn a_call_that_lists_cases_is_no_test() {
    let bench = Bench::with("#include <stdio.h>\nint main(void) { puts(\"case\"); return 0; }\n");
    for option in ["--gtest_list_tests", "--list-test-names-only", "--list-test-cases"] {
        let outcome = Outcome::of(&mut bench.tasting(&["--", "./t", option]));
        assert_eq!((outcome.code, outcome.stdout_text().as_str()), (Some(0), "case\n"));
    }
    assert_eq!(bench.store().decisions(9).unwrap().len(), 0);
}

/// Another machine's programs, with a toolchain file of the project's own and an emulator.
#[test]
#[ignore = "needs cmake and a cross compiler"]
fn another_machine() {
    tools(&["aarch64-linux-gnu-gcc", "qemu-aarch64"]);
    let toolchain = "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n\
        set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\n\
        set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)\n";
    let top = "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()\nadd_executable(a a.c answer.c)\n\
        add_test(NAME a COMMAND a)\n";
    let program = "int answer(void);\nint main(void) { return answer() - 42; }\n";
    for bin in cmakes() {
        let files = [
            ("cross.cmake", toolchain),
            ("CMakeLists.txt", top),
            ("a.c", program),
            ("answer.c", ANSWER),
        ];
        let site = Site::new(&bin, &files);
        let module = format!("-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={MODULE}");
        site.configure(&["-G", "Ninja", "--toolchain", "cross.cmake", &module]);
        site.build(&[]);
        assert!(site.bench.path("build/a.tasting").exists());
        site.expects(&[], &[("a", "run")], 1, 0);
        // The emulator is static, and has handlers that would interrupt calls, but nobody sends a
        // signal.
        site.expects(&[], &[("a", "run")], 0, 1);
        site.bench.write("answer.c", ANSWER.replace("42", "41"));
        site.build(&[]);
        site.expects(&[], &[("a", "fail")], 1, 0);
    }
}

/// Tests that are given a home of their own find the results of the user's.
#[test]
#[ignore = "needs cmake"]
fn a_home_for_each_test() {
    let top = "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\nenable_testing()\nadd_test(NAME a COMMAND sh -c \"ls $HOME\")\n\
        file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/home)\n\
        set_tests_properties(a PROPERTIES ENVIRONMENT HOME=${CMAKE_BINARY_DIR}/home)\n";
    for bin in cmakes() {
        let site = Site::new(&bin, &[("CMakeLists.txt", top)]);
        site.configure(&["-G", "Ninja", "--toolchain", MODULE]);
        for _ in 0..2 {
            let mut ctest = site.command("ctest");
            ctest
                .args(["--test-dir", "build"])
                .env_remove("TASTING_DIR")
                .env_remove("XDG_CACHE_HOME");
            succeed(ctest.env("HOME", site.bench.path("user"))).unwrap();
        }
        assert_eq!(std::fs::read_dir(site.bench.path("build/home")).unwrap().count(), 0);
        let log = succeed(
            site.bench
                .command(TASTING)
                .arg("log")
                .env("TASTING_DIR", site.bench.path("user/.cache/tasting")),
        );
        let log = log.unwrap().stdout_text();
        assert!(log.contains("executed") && log.contains("reused"), "{log}");
    }
}

/// Editors build and debug what `ctest --show-only=json-v1` names: the test's own command and the
/// line that added it, while `ctest` itself, which they call to run a test, goes through
/// `tasting run`.
#[test]
#[ignore = "needs cmake"]
fn editors_see_the_commands_of_tests() {
    for bin in cmakes() {
        let site = Site::new(&bin, SMALL_FILES);
        site.configure(&[
            "-G",
            "Ninja",
            "--toolchain",
            MODULE,
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        ]);
        site.build(&[]);
        let shown: Value =
            serde_json::from_slice(&site.ctest(&["--show-only=json-v1"]).stdout).unwrap();
        let path =
            shown["tests"].as_array().unwrap().iter().find(|test| test["name"] == "path").unwrap();
        let words: Vec<&str> =
            path["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let [program, rest @ ..] = &words[..] else { panic!("{words:?}") };
        assert!(program.ends_with("build/tests/a"), "{words:?}");
        assert_eq!(rest, ["", "x;y", "q\"u o\te"]);
        let graph = &shown["backtraceGraph"];
        let node = &graph["nodes"][path["backtrace"].as_u64().unwrap() as usize];
        assert_eq!(
            graph["commands"][node["command"].as_u64().unwrap() as usize],
            "add_test",
            "{node}"
        );
        let file = graph["files"][node["file"].as_u64().unwrap() as usize].as_str().unwrap();
        assert!(file.ends_with("CMakeLists.txt"), "{file}");
        // What clangd and others read names the compiler, without a launcher before it.
        let commands = std::fs::read(site.bench.path("build/compile_commands.json")).unwrap();
        let commands: Value = serde_json::from_slice(&commands).unwrap();
        for entry in commands.as_array().unwrap() {
            let command = entry["command"].as_str().unwrap();
            assert!(!command.split(' ').next().unwrap().contains("tasting"), "{command}");
        }
        site.ctest(&["-R", "^path$"]);
        assert_eq!(
            site.bench.store().decisions(9).unwrap().len(),
            1,
            "the test went through tasting run"
        );
    }
}

/// Below policy CMP0065 CMake links every program with -rdynamic. Current versions have only the new behaviour.
const EXPORTS: &str = r"cmake_minimum_required(VERSION 3.10)
cmake_policy(SET CMP0065 ${EXPORTS_POLICY})
project(exports C)
enable_testing()
add_executable(plain plain.c kit.c)
add_executable(asks asks.c kit.c)
target_link_libraries(asks ${CMAKE_DL_LIBS})
add_test(NAME plain COMMAND plain)
add_test(NAME asks COMMAND asks)
";
const KIT: &str = "int used(void) { return 42; }\nint unused(void) { return 1; }\n";
const EXPORTS_FILES: &[(&str, &str)] = &[
    ("CMakeLists.txt", EXPORTS),
    ("kit.c", KIT),
    (
        "plain.c",
        "int used(void);\nint table[3] = {1, 2, 3};\nint main(void) { return used() - 42; }\n",
    ),
    (
        "asks.c",
        "#include <dlfcn.h>\nint used(void);\n\
         int main(void) { return used() - 42 + !dlsym(dlopen(0, RTLD_NOW), \"unused\"); }\n",
    ),
];

/// Whoever asks for a symbol by name runs when the exports go away or come back; nobody else does.
#[test]
#[ignore = "needs cmake"]
fn exports_count_only_for_programs_that_ask() {
    let site = Site::new(&cmakes()[0], EXPORTS_FILES);
    let module = format!("-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={MODULE}");
    let build = |policy: &str, exports: bool| {
        site.configure(&["-G", "Unix Makefiles", &module, &format!("-DEXPORTS_POLICY={policy}")]);
        site.build(&[]);
        let link = std::fs::read_to_string(site.bench.path("build/CMakeFiles/plain.dir/link.txt"))
            .unwrap();
        assert_eq!(link.contains("-rdynamic"), exports, "{link}");
    };
    let found = [("asks", "run"), ("plain", "run")];
    let missing = [("asks", "fail"), ("plain", "run")];
    build("OLD", true);
    site.expects(&[], &found, 2, 0);
    site.expects(&[], &found, 0, 2);
    build("NEW", false);
    site.expects(&[], &missing, 1, 1);
    build("OLD", true);
    site.expects(&[], &found, 0, 2);
    site.bench.write("kit.c", KIT.replace("return 1", "return 2"));
    build("OLD", true);
    site.expects(&[], &found, 0, 2);
    site.bench.write("kit.c", KIT.replace("unused", "renamed"));
    build("OLD", true);
    site.expects(&[], &missing, 1, 1);
}
