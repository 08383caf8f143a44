//! The harnesses that people have, with `tasting run` in front of each test.

use super::Bench;
use crate::workshop::{TASTING, TASTING_CC, succeed, tool};
use std::process::Command;
use tasting::model::Verdict;
use tasting::store::Journal;

const TEST: &str = "#include <stdio.h>\nint answer(void);\nint main(void) { printf(\"%d\\n\", answer()); return answer() != 42; }\n";
const ANSWER: &str = "int answer(void) { return 42; }\nint unused(void) { return 1; }\n";

/// The verdicts of the latest decisions.
fn verdicts(bench: &Bench, last: usize) -> Vec<Verdict> {
    bench.store().decisions(last).unwrap().iter().map(|decision| decision.decision).collect()
}

/// Runs the harness three times: all tests run, none need to, and after a change of what they use
/// all do.
fn goes_round(bench: &Bench, tests: usize, build: impl Fn(), check: impl Fn() -> Command) {
    build();
    succeed(&mut check()).unwrap();
    assert_eq!(verdicts(bench, 99), vec![Verdict::Executed; tests]);
    succeed(&mut check()).unwrap();
    assert_eq!(verdicts(bench, tests), vec![Verdict::Reused; tests]);
    bench.write("answer.c", ANSWER.replace("return 1", "return 2"));
    build();
    succeed(&mut check()).unwrap();
    assert_eq!(verdicts(bench, tests), vec![Verdict::Reused; tests]);
    bench.write("answer.c", ANSWER.replace("42", "41"));
    build();
    assert!(succeed(&mut check()).is_err(), "the harness hears of the failure");
    assert_eq!(verdicts(bench, tests), vec![Verdict::Executed; tests]);
    bench.write("answer.c", ANSWER);
    build();
    succeed(&mut check()).unwrap();
    assert_eq!(verdicts(bench, tests), vec![Verdict::Reused; tests]);
}

#[test]
#[ignore = "needs cmake"]
fn ctest() {
    let (cmake, ctest) = (tool("cmake"), tool("ctest"));
    let bench = Bench::new();
    bench.write("answer.c", ANSWER);
    for test in ["a.c", "b.c"] {
        bench.write(test, TEST);
    }
    bench.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()\nforeach(test a b)\n\
         add_executable(${test} ${test}.c answer.c)\nadd_test(NAME ${test} COMMAND ${test})\nendforeach()\n",
    );
    let launcher = format!("-DCMAKE_CROSSCOMPILING_EMULATOR={TASTING};run;--");
    let compiler = format!("-DCMAKE_C_COMPILER={TASTING_CC}");
    succeed(bench.command(&cmake).args(["-B", "build", &launcher, &compiler])).unwrap();
    let build = || _ = succeed(bench.command(&cmake).args(["--build", "build"])).unwrap();
    goes_round(&bench, 2, build, || {
        let mut command = bench.command(&ctest);
        command.args(["--test-dir", "build", "-j4"]);
        command
    });
}

#[test]
#[ignore = "needs meson"]
fn meson() {
    let (meson, ninja) = (tool("meson"), tool("ninja"));
    let bench = Bench::new();
    bench.write("answer.c", ANSWER);
    bench.write("a.c", TEST);
    bench.write(
        "meson.build",
        "project('x', 'c')\nforeach name : ['a', 'b']\ntest(name, executable(name, ['a.c', 'answer.c']))\nendforeach\n",
    );
    succeed(bench.command(&meson).args(["setup", "build"]).env("CC", TASTING_CC)).unwrap();
    let build = || _ = succeed(bench.command(&ninja).args(["-C", "build"])).unwrap();
    goes_round(&bench, 2, build, || {
        let mut command = bench.command(&meson);
        command.args([
            "test",
            "-C",
            "build",
            "--no-rebuild",
            &format!("--wrapper={TASTING} run --"),
        ]);
        command
    });
}

#[test]
#[ignore = "needs autotools"]
fn automake() {
    let autoreconf = tool("autoreconf");
    let bench = Bench::new();
    bench.write("answer.c", ANSWER);
    bench.write("a.c", TEST);
    bench.write(
        "configure.ac",
        "AC_INIT([x], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    );
    bench.write(
        "Makefile.am",
        "check_PROGRAMS = a b\na_SOURCES = a.c answer.c\nb_SOURCES = a.c answer.c\nTESTS = $(check_PROGRAMS)\n",
    );
    succeed(bench.command(&autoreconf).arg("-i")).unwrap();
    succeed(bench.command("./configure").arg(format!("CC={TASTING_CC}"))).unwrap();
    let build = || _ = succeed(bench.command("make").args(["a", "b"])).unwrap();
    goes_round(&bench, 2, build, || {
        let mut command = bench.command("make");
        command.args(["-j4", "check", &format!("LOG_COMPILER={TASTING} run --")]);
        command
    });
}
