//! Projects with ideas of their own: discovered tests, other machines, homes, editors, no Tasting.

use super::{ANSWER, GOOD, MODULE, SMALL_FILES, Site, cmakes};
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, shims, succeed, tools};
use serde_json::Value;
use std::path::Path;
use tasting::store::Journal;

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
fn builds_without_tasting_warn_and_work() {
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
