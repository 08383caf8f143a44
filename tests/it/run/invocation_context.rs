//! Arguments, environment, working folder, standard input.

use super::Bench;
use crate::workshop::{TASTING, tool};
use std::fs::File;
use std::process::Stdio;
use tasting::model::Verdict;

#[test]
fn arguments_count() {
    let bench = Bench::new();
    assert_eq!(bench.settles(&["echo", "a"]).text(), "a\n");
    assert_eq!(bench.settles(&["echo", "b"]).text(), "b\n");
    bench.settles(&["echo", "a b"]);
    bench.settles(&["echo", "a", "b"]);
    bench.reuses(&["echo", "a"]);
    bench.reuses(&["--", "echo", "a"]);
}

#[test]
fn variables_count_except_those_that_are_ignored() {
    let bench = Bench::new();
    let with = |name: &str, value: &str| {
        let mut command = bench.tasting(&["sh", "-c", "echo $COUNTED"]);
        command.env_remove("MAKEFLAGS").env("COUNTED", "1").env(name, value);
        bench.finish(&mut command).decision.decision
    };
    assert_eq!(with("COUNTED", "1"), Verdict::Executed);
    for ignored in
        ["MALLOC_PERTURB_", "MESON_TEST_ITERATION", "MAKEFLAGS", "PWD", "SHLVL", "TERM", "SSH_TTY"]
    {
        assert_eq!(with(ignored, "77"), Verdict::Reused, "{ignored}");
    }
    assert_eq!(with("COUNTED", "2"), Verdict::Executed);
    assert_eq!(with("OTHER", "1"), Verdict::Executed);
    assert_eq!(with("COUNTED", "1"), Verdict::Reused);
    bench
        .write("tasting.toml", "environment.ignore = ['OTHE?']\nenvironment.count = ['MAKEFLAGS']");
    assert_eq!(with("OTHER", "3"), Verdict::Reused);
    assert_eq!(with("MAKEFLAGS", "-j"), Verdict::Executed);
}

#[test]
fn the_working_folder_counts() {
    let bench = Bench::new();
    for folder in ["one", "two"] {
        bench.write(&format!("{folder}/data"), folder);
    }
    let within = |folder: &str| {
        let mut command = bench.tasting(&["cat", "data"]);
        let ran = bench.finish(command.current_dir(bench.path(folder)));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(within("one"), ("one".to_owned(), Verdict::Executed));
    assert_eq!(within("two"), ("two".to_owned(), Verdict::Executed));
    assert_eq!(within("one"), ("one".to_owned(), Verdict::Reused));
}

#[test]
fn a_file_as_standard_input() {
    let bench = Bench::new();
    let with = |text: &str| {
        let file = bench.write("input", text);
        let mut command = bench.tasting(&["cat"]);
        let ran = bench.finish(command.stdin(File::open(file).unwrap()));
        assert_eq!(ran.text(), text);
        ran.decision.decision
    };
    assert_eq!(with("a"), Verdict::Executed);
    assert_eq!(with("a"), Verdict::Reused);
    assert_eq!(with("b"), Verdict::Executed);
    assert_eq!(with("a"), Verdict::Reused);
}

/// One job of `make -j` gets make's standard input, the others a pipe at its end, as it comes.
#[test]
fn the_standard_input_of_a_parallel_make() {
    let bench = Bench::new();
    let with = |level: Option<&str>, input: Stdio| {
        let mut command = bench.tasting(&["cat"]);
        command.env_remove("MAKELEVEL").envs(level.map(|level| ("MAKELEVEL", level)));
        bench.finish(command.stdin(input))
    };
    let ended = || Stdio::from(std::io::pipe().unwrap().0);
    let filled = || {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"text").unwrap();
        Stdio::from(reader)
    };
    assert_eq!(with(Some("1"), Stdio::null()).decision.decision, Verdict::Executed);
    assert_eq!(with(Some("1"), ended()).decision.decision, Verdict::Reused);
    with(Some("1"), filled()).not_kept("standard input");
    with(None, ended()).not_kept("standard input");
}

#[test]
fn a_pipe_as_standard_input_counts_when_used() {
    let bench = Bench::new();
    let with_pipe = |words: &[&str]| bench.finish(bench.tasting(words).stdin(Stdio::piped()));
    assert_eq!(with_pipe(&["true"]).decision.decision, Verdict::Executed);
    assert_eq!(with_pipe(&["true"]).decision.decision, Verdict::Reused);
    with_pipe(&["cat"]).not_kept("standard input");
    assert_eq!(with_pipe(&["cat"]).decision.decision, Verdict::Executed);
}

#[test]
fn unknown_settings_make_every_test_run() {
    let bench = Bench::new();
    bench.settles(&["echo", "a"]);
    bench.write("tasting.toml", "never-reuse = 3");
    let ran = bench.runs(&["echo", "a"]);
    assert_eq!(ran.text(), "a\n");
    ran.not_kept("tasting.toml");
}

#[test]
fn the_switches() {
    let bench = Bench::new();
    bench.settles(&["echo", "a"]);
    let with = |name: &str| bench.finish(bench.tasting(&["echo", "a"]).env(name, "1"));
    assert_eq!(with("TASTING_RECACHE").decision.decision, Verdict::Executed);
    assert_eq!(bench.reuses(&["echo", "a"]).text(), "a\n");
    let before = bench.last();
    assert_eq!(with("TASTING_DISABLE").text(), "a\n");
    assert_eq!(with("TASTING_READONLY").text(), "a\n");
    assert_eq!(bench.last(), before, "neither of them writes");
}

#[test]
fn limits_and_masks_count() {
    let bench = Bench::new();
    let with = |setting: &str| {
        let line = format!("{setting}; exec {} run -- sh -c 'ulimit -s; umask'", TASTING);
        let ran = bench.finish(bench.command("sh").args(["-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    let (plain, verdict) = with("umask 022; ulimit -s 8000");
    assert_eq!(verdict, Verdict::Executed);
    assert_eq!(with("umask 022; ulimit -s 8000"), (plain, Verdict::Reused));
    assert_eq!(with("umask 022; ulimit -s 4000").1, Verdict::Executed);
    assert_eq!(with("umask 077; ulimit -s 8000").1, Verdict::Executed);
}

#[test]
fn a_folder_that_is_entered_by_a_link() {
    let bench = Bench::new();
    bench.write("real/deep/file", "");
    bench.write("real/name", "real");
    bench.write("name", "link");
    std::os::unix::fs::symlink("real/deep", bench.path("link")).unwrap();
    let within = |folder: &str| {
        let line = format!("cd {folder} && exec {} run -- bash -c 'cd .. && cat name'", TASTING);
        let ran = bench.finish(bench.command("bash").args(["-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(within("real/deep"), ("real".to_owned(), Verdict::Executed));
    assert_eq!(within("link"), ("link".to_owned(), Verdict::Executed));
    assert_eq!(within("real/deep"), ("real".to_owned(), Verdict::Reused));
}

/// As in a container that forbids filters, or on an old kernel.
#[test]
#[ignore = "needs strace"]
fn without_watching_tests_run_plainly() {
    let strace = tool("strace");
    let bench = Bench::new();
    for error in ["EPERM", "ENOSYS"] {
        let inject = format!("inject=seccomp:error={error}");
        let run = || {
            let mut command = bench.command(&strace);
            command.args(["-f", "-o", "/dev/null", "-e", "trace=seccomp", "-e", &inject]);
            bench.finish(command.args([TASTING, "run", "--", "sh", "-c", "echo a; exit 3"]))
        };
        for _ in 0..2 {
            let ran = run();
            assert_eq!((ran.text().as_str(), ran.outcome.code), ("a\n", Some(3)));
            assert_eq!(ran.decision.decision, Verdict::Executed);
            assert!(ran.decision.reason.contains("cannot be watched here"), "{ran:?}");
        }
    }
    // What was stored elsewhere can be reused all the same.
    bench.settles(&["echo", "a"]);
    let mut command = bench.command(&strace);
    command.args([
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "trace=seccomp",
        "-e",
        "inject=seccomp:error=EPERM",
    ]);
    let ran = bench.finish(command.args([TASTING, "run", "--", "echo", "a"]));
    assert_eq!((ran.text().as_str(), ran.decision.decision), ("a\n", Verdict::Reused));
}
