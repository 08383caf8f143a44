//! Suites of Meson: every state in which one can be, beside `meson test` alone.

use super::{Ended, field, json};
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, shims, succeed, tools};
use serde_json::Value;
use std::process::Command;

const NATIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/meson/tasting.ini");

const BUILD: &str = "project('x', 'c')
subproject('sub')
part = static_library('part', 'part.c')
t = executable('t', 't.c', link_with: part)
foreach name : ['one', 'two']
  test(name, t, args: name, suite: name)
endforeach
test('named', t, args: 'one', env: ['WHO=me'], suite: ['one', 'more'])
test('fails', t, args: 'fails', should_fail: true)
test('skips', t, args: 'skips', is_parallel: false)
test('tap', t, args: 'tap', protocol: 'tap', workdir: meson.current_source_dir(), priority: 9)
e = environment()
e.prepend('PATH', '/nowhere')
test('path', t, args: 'path', env: e)
";
const PROGRAM: &str = r##"#include <stdio.h>
#include <stdlib.h>
int part(const char *name);
int main(int c, char **v) {
    printf("# this is %s, %s\n", v[1], getenv("WHO") ? getenv("WHO") : "nobody");
    return part(v[1]);
}
"##;
const PART: &str = r#"#include <stdio.h>
#include <string.h>
int of_one(void) { return 0; }
int of_two(void) { return 0; }
int part(const char *name) {
    if (!strcmp(name, "one")) return of_one();
    if (!strcmp(name, "two")) return of_two();
    if (!strcmp(name, "fails")) return 1;
    if (!strcmp(name, "tap")) puts("1..2\nok 1\nok 2 # SKIP not today");
    return strcmp(name, "skips") ? 0 : 77;
}
"#;
const ALL: [&str; 8] = ["fails", "insub", "named", "one", "path", "skips", "tap", "two"];
/// A failure is not reused, though it is expected.
const ALWAYS: [&str; 1] = ["fails"];

fn command(bench: &Bench, program: &str) -> Command {
    let mut command = bench.command(program);
    let path = std::env::var("PATH").expect("PATH is set");
    command.env("PATH", format!("{}:{path}", shims().display()));
    command
}

fn project() -> Bench {
    tools(&["meson", "ninja"]);
    let bench = Bench::new();
    for (name, text) in [("meson.build", BUILD), ("t.c", PROGRAM), ("part.c", PART)] {
        bench.write(name, text);
    }
    bench.write(
        "subprojects/sub/meson.build",
        "project('sub', 'c')\ntest('insub', executable('insub', 'insub.c'))\n",
    );
    bench.write("subprojects/sub/insub.c", "int main(void) { return 0; }\n");
    succeed(command(&bench, "meson").args(["setup", "--native-file", NATIVE, "build"])).unwrap();
    bench
}

fn suite(bench: &Bench, options: &[&str], words: &[&str]) -> Outcome {
    let mut command = command(bench, TASTING);
    Outcome::of(command.args(options).args(["--", "meson", "test", "-C", "build"]).args(words))
}

/// How the tests end under Meson alone, and how Meson ends.
fn plainly(bench: &Bench, words: &[&str]) -> Ended {
    let mut command = command(bench, "meson");
    let outcome =
        Outcome::of(command.args(["test", "-C", "build", "--logbase", "plain"]).args(words));
    let text =
        std::fs::read_to_string(bench.path("build/meson-logs/plain.json")).unwrap_or_default();
    let end = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = line["name"].as_str().unwrap().rsplit(" / ").next().unwrap().to_owned();
        let end = match line["result"].as_str().unwrap() {
            "OK" | "EXPECTEDFAIL" => "passed",
            "SKIP" => "skipped",
            _ => "failed",
        };
        (name, end.to_owned())
    };
    let mut ends: Vec<_> = text.lines().map(end).collect();
    ends.sort();
    let _ = std::fs::remove_file(bench.path("build/meson-logs/plain.json"));
    (outcome.code, ends)
}

#[track_caller]
fn agrees(bench: &Bench, words: &[&str], executed: &[&str]) {
    let outcome = suite(bench, &["suite", "--json"], words);
    super::agrees(&outcome, executed, plainly(bench, words));
}

#[test]
#[ignore = "needs meson"]
fn results_and_exit_status_match_meson() {
    let bench = project();
    agrees(&bench, &[], &ALL);
    agrees(&bench, &[], &ALWAYS);
    agrees(&bench, &["--suite", "one", "two"], &[]);
    agrees(&bench, &["--suite", "one", "--suite", "x:two"], &[]);
    agrees(&bench, &["--no-suite", "one", "x:"], &ALWAYS);
    agrees(&bench, &["insub", "x:tap"], &[]);
    bench.write("part.c", PART.replace("of_one(void) { return 0; }", "of_one(void) { return 5; }"));
    agrees(&bench, &[], &["fails", "named", "one"]);
    agrees(&bench, &["two", "one"], &["one"]);
    bench.write("meson.build", BUILD.replace("test('tap'", "test('new', t, args: 'new')\n#"));
    agrees(&bench, &[], &["fails", "named", "new", "one"]);
    bench.write("part.c", PART);
    bench.write("meson.build", BUILD);
    agrees(&bench, &[], &ALWAYS);
}

#[test]
#[ignore = "needs meson"]
fn known_tests_are_not_started() {
    let bench = project();
    let started = |words: &[&str]| {
        suite(&bench, &["suite"], words);
        let log = std::fs::read_to_string(bench.path("build/meson-logs/testlog-tasting.json"))
            .unwrap_or_default();
        let _ = std::fs::remove_file(bench.path("build/meson-logs/testlog-tasting.json"));
        log.lines().count()
    };
    assert_eq!([started(&[]), started(&[]), started(&[])], [8, 1, 1]);
    assert_eq!(started(&["one", "two"]), 2, "another command line is another suite");
    assert_eq!(started(&["one", "two"]), 0);
    let dry = suite(&bench, &["suite", "--dry-run", "--json"], &[]);
    let foreseen: Vec<_> =
        field(&json(&dry), "decision").into_iter().filter(|(_, text)| text == "executed").collect();
    assert_eq!(foreseen.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ALWAYS);
    assert_eq!(suite(&bench, &["select"], &["one", "two"]).stdout_text(), "");
    // A variable that the tests are given makes them run.
    let mut command = command(&bench, TASTING);
    command
        .args(["suite", "--json", "--", "meson", "test", "-C", "build", "one", "two"])
        .env("WHO", "you");
    let outcome = Outcome::of(&mut command);
    assert_eq!(json(&outcome)["summary"]["executed"], 2, "{outcome:?}");
}

#[test]
#[ignore = "needs meson"]
fn broken_builds_and_other_uses_go_to_meson() {
    let bench = project();
    agrees(&bench, &["one"], &["one"]);
    bench.write("part.c", "broken\n");
    let outcome = suite(&bench, &["suite"], &["one"]);
    assert_eq!(outcome.code, plainly(&bench, &["one"]).0, "{outcome:?}");
    assert!(outcome.stdout_text().contains("Nothing was decided beforehand"), "{outcome:?}");
    bench.write("part.c", PART);
    let outcome = suite(&bench, &["suite"], &["--list"]);
    assert!(
        outcome.code == Some(0) && outcome.stdout_text().contains("x:one / one"),
        "{outcome:?}"
    );
    let outcome = suite(&bench, &["suite"], &["no-such-test"]);
    assert_eq!(outcome.code, plainly(&bench, &["no-such-test"]).0, "{outcome:?}");
}

#[test]
#[ignore = "needs meson"]
fn an_interrupted_suite_ends_as_meson_does() {
    let bench = project();
    bench.script("long.sh", "#!/bin/sh\ntouch \"$0.here\"\nsleep 60\n");
    bench.write("meson.build", format!("{BUILD}test('long', find_program('long.sh'))\n"));
    let here = bench.path("long.sh.here");
    let interrupted = |words: &[&str]| {
        let _ = std::fs::remove_file(&here);
        super::interrupted(&bench, command(&bench, "setsid").args(words), &here)
    };
    let words = ["meson", "test", "-C", "build", "long"];
    let plain = interrupted(&words);
    assert_eq!(interrupted(&[&[TASTING, "suite", "--"], &words[..]].concat()), plain);
}

#[test]
#[ignore = "needs meson"]
fn a_meson_that_crashes_ends_the_suite_alike() {
    let bench = project();
    agrees(&bench, &["one"], &["one"]);
    let crashing = bench.script(
        "bin/meson",
        "#!/bin/sh\ncase \"$*\" in *--list*) exec meson.real \"$@\";; esac\nkill -SEGV $$\n",
    );
    let real = which::which("meson").unwrap();
    std::os::unix::fs::symlink(real, bench.path("bin/meson.real")).unwrap();
    let path = format!(
        "{}:{}:{}",
        crashing.parent().unwrap().display(),
        shims().display(),
        std::env::var("PATH").unwrap()
    );
    let words = ["meson", "test", "-C", "build", "one", "two"];
    let with = |words: &[&str]| {
        Outcome::of(command(&bench, words[0]).args(&words[1..]).env("PATH", &path)).code
    };
    let script = crashing.to_str().unwrap();
    assert_eq!(
        with(&[&[TASTING, "suite", "--"], &words[..]].concat()),
        with(&[&[script], &words[1..]].concat())
    );
}
