//! Meson: every protocol of its tests, subprojects, repetitions, a test setup, and another
//! machine's programs.

use super::Bench;
use crate::workshop::{Outcome, shims, succeed, tools};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tasting::model::Verdict;
use tasting::store::Journal;

const NATIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/meson/tasting.ini");

const BUILD: &str = "project('x', 'c', 'cpp', 'rust')
add_test_setup('tasting', exe_wrapper: ['tasting', 'run', '--'])
subproject('sub')
answer = static_library('answer', 'answer.c')
test('exitcode', executable('exitcode', 'exitcode.c', link_with: answer))
test('fails', executable('fails', 'fails.c', link_with: answer), should_fail: true)
test('tap', executable('tap', 'tap.c', link_with: answer), protocol: 'tap')
test('gtest', executable('gtest', 'gtest.cc', link_with: answer, dependencies: dependency('gtest', main: true)), protocol: 'gtest')
test('rust', executable('rust', 'rust.rs', rust_args: ['--test']), protocol: 'rust')
test('script', find_program('script.sh'), args: ['a b'], env: ['X=1'])
";
const ANSWER: &str = "int answer(void) { return 42; }\nint unused(void) { return 1; }\n";
const FILES: &[(&str, &str)] = &[
    ("meson.build", BUILD),
    ("answer.c", ANSWER),
    ("exitcode.c", "int answer(void);\nint main(void) { return answer() - 42; }\n"),
    ("fails.c", "int answer(void);\nint main(void) { return answer() == 42; }\n"),
    (
        "tap.c",
        "#include <stdio.h>\nint answer(void);\nint main(void) { printf(\"1..2\\nok 1\\n%s 2\\n\", answer() == 42 ? \"ok\" : \"not ok\"); }\n",
    ),
    (
        "gtest.cc",
        "#include <gtest/gtest.h>\nextern \"C\" int answer(void);\nTEST(S, one) { EXPECT_EQ(answer(), 42); }\nTEST(S, two) {}\n",
    ),
    ("rust.rs", "#[test]\nfn one() { assert_eq!(1, 1); }\n#[test]\n#[ignore]\nfn two() {}\n"),
    (
        "subprojects/sub/meson.build",
        "project('sub', 'c')\ntest('insub', executable('insub', 'insub.c'))\n",
    ),
    ("subprojects/sub/insub.c", "int main(void) { return 0; }\n"),
];

fn command(bench: &Bench, program: &str) -> Command {
    let mut command = bench.command(program);
    let path = std::env::var("PATH").expect("PATH is set");
    command.env("PATH", format!("{}:{path}", shims().display()));
    command
}

fn build(bench: &Bench) {
    succeed(command(bench, "ninja").args(["-C", "build"])).unwrap();
}

/// Results by name, and how many tests were executed and reused.
fn tests(bench: &Bench, words: &[&str], log: &str) -> (BTreeMap<String, String>, usize, usize) {
    let before = bench.store().decisions(999).unwrap().len();
    let outcome = Outcome::of(
        command(bench, "meson").args(["test", "-C", "build", "--no-rebuild"]).args(words),
    );
    let log = std::fs::read_to_string(bench.path("build/meson-logs").join(log));
    let log = log.unwrap_or_else(|_| panic!("{outcome:?}"));
    let results = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let results = results.map(|test| (text(&test["name"]), text(&test["result"]))).collect();
    let decisions = bench.store().decisions(999).unwrap().split_off(before);
    let count = |verdict| decisions.iter().filter(|decision| decision.decision == verdict).count();
    (results, count(Verdict::Executed), count(Verdict::Reused))
}

#[test]
#[ignore = "needs meson"]
fn protocols() {
    tools(&["meson", "ninja", "rustc"]);
    let bench = Bench::new();
    FILES.iter().for_each(|(name, text)| _ = bench.write(name, text));
    bench.script("script.sh", "#!/bin/sh\ntest \"$1\" = 'a b' && test \"$X\" = 1\n");
    succeed(command(&bench, "meson").args(["setup", "--native-file", NATIVE, "build"])).unwrap();
    build(&bench);
    let (plain, ..) = tests(&bench, &[], "testlog.json");
    let setup: &[&str] = &["--setup", "x:tasting"];
    let log = "testlog-x_tasting.json";
    assert_eq!(plain.len(), 7);
    assert_eq!(tests(&bench, setup, log), (plain.clone(), 7, 0));
    // What is expected to fail runs again, for it fails.
    assert_eq!(tests(&bench, setup, log), (plain.clone(), 1, 6));
    // The report of GoogleTest is there again.
    std::fs::remove_file(bench.path("build/gtest.xml")).unwrap();
    let wrapper: &[&str] = &["--wrapper", "tasting run --"];
    assert_eq!(tests(&bench, wrapper, "testlog-tasting.json"), (plain.clone(), 1, 6));
    assert!(bench.path("build/gtest.xml").exists());
    let repeated = [setup, &["--repeat", "2", "--num-processes", "4"]].concat();
    assert_eq!(tests(&bench, &repeated, log), (plain.clone(), 2, 12));

    bench.write("answer.c", ANSWER.replace("42", "41"));
    build(&bench);
    let (failed, executed, reused) = tests(&bench, setup, log);
    let ends = |name: &str| failed[&format!("x / {name}")].as_str();
    assert_eq!(
        [ends("exitcode"), ends("fails"), ends("tap"), ends("gtest"), ends("rust")],
        ["FAIL", "UNEXPECTEDPASS", "FAIL", "FAIL", "OK"]
    );
    assert_eq!((executed, reused), (4, 3));
    // Failures run again, also the one that ends well and tells of it in its output.
    assert_eq!(tests(&bench, setup, log), (failed, 3, 4));
    bench.write("answer.c", ANSWER);
    build(&bench);
    assert_eq!(tests(&bench, setup, log), (plain, 1, 6));
}

#[test]
#[ignore = "needs meson and a cross compiler"]
fn another_machine() {
    tools(&["meson", "ninja", "aarch64-linux-gnu-gcc", "qemu-aarch64"]);
    let bench = Bench::new();
    bench
        .write("meson.build", "project('x', 'c')\ntest('t', executable('t', 't.c', 'answer.c'))\n");
    bench.write("t.c", "int answer(void);\nint main(void) { return answer() - 42; }\n");
    bench.write("answer.c", ANSWER);
    bench.write(
        "cross.ini",
        "[binaries]\nc = ['tasting-cc', 'aarch64-linux-gnu-gcc']\nstrip = 'aarch64-linux-gnu-strip'\n\
         exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu']\n\
         [host_machine]\nsystem = 'linux'\ncpu_family = 'aarch64'\ncpu = 'aarch64'\nendian = 'little'\n",
    );
    succeed(command(&bench, "meson").args(["setup", "--cross-file", "cross.ini", "build"]))
        .unwrap();
    let wrapper: &[&str] = &["--wrapper", "tasting run --"];
    let results = |end: &str| BTreeMap::from([("t".to_owned(), end.to_owned())]);
    // The emulator is static, and has handlers that would interrupt calls, but nobody sends a
    // signal.
    let states = [
        (ANSWER.to_owned(), "OK", 0),
        (ANSWER.to_owned(), "OK", 1),
        (ANSWER.replace("42", "41"), "FAIL", 0),
    ];
    for (text, end, reused) in states {
        bench.write("answer.c", text);
        build(&bench);
        assert_eq!(
            tests(&bench, wrapper, "testlog-tasting.json"),
            (results(end), 1 - reused, reused)
        );
    }
}
