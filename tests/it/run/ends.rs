//! How a test ends and what it leaves is the same, replayed or not.

use super::Bench;
use crate::workshop::{TASTING, tool};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tasting::model::Verdict;

#[test]
fn output_of_both_kinds_comes_back() {
    let bench = Bench::new();
    let ran = bench.settles(&["sh", "-c", "printf 'a\\000b'; echo c >&2; echo d"]);
    assert_eq!(ran.outcome.stdout, b"a\0bd\n");
    assert_eq!(ran.outcome.stderr, b"c\n");
}

#[test]
fn output_to_one_file_stays_in_order() {
    let bench = Bench::new();
    let run = || {
        let log = bench.path("log");
        let file = fs::File::create(&log).unwrap();
        let mut command =
            bench.tasting(&["sh", "-c", "for i in 1 2 3 4; do echo $i; echo -$i >&2; done"]);
        command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        fs::read_to_string(log).unwrap()
    };
    let plain = "1\n-1\n2\n-2\n3\n-3\n4\n-4\n";
    assert_eq!(run(), plain);
    assert_eq!(run(), plain);
    assert_eq!(bench.last().decision, Verdict::Reused);
}

#[test]
fn exit_codes_keep_their_meaning() {
    let bench = Bench::new();
    for (code, verdict) in [
        (0, Verdict::Reused),
        (77, Verdict::Reused),
        (1, Verdict::Executed),
        (99, Verdict::Executed),
    ] {
        let script = format!("exit {code}");
        for _ in 0..2 {
            assert_eq!(bench.run(&["sh", "-c", &script]).outcome.code, Some(code));
        }
        assert_eq!(bench.last().decision, verdict, "{code}");
    }
}

#[test]
fn failures_are_reused_only_on_request() {
    let bench = Bench::new();
    bench.write("data", "bad");
    let words = ["sh", "-c", "grep good data"];
    bench.runs(&words);
    let ran = bench.reuses(&[&["--reuse-failures"], &words[..]].concat());
    assert_eq!(ran.outcome.code, Some(1));
    bench.runs(&words);
    bench.write("data", "good");
    bench.settles(&words);
    bench.write("data", "bad");
    assert_eq!(bench.runs(&words).outcome.code, Some(1));
    bench.write("data", "good");
    bench.reuses(&words);
}

#[test]
fn a_crash_is_a_crash() {
    let bench = Bench::with("#include <stdlib.h>\nint main(void) { abort(); }");
    for _ in 0..2 {
        assert_eq!(bench.runs(&["./t"]).outcome.signal, Some(libc::SIGABRT));
    }
    assert_eq!(bench.reuses(&["--reuse-failures", "./t"]).outcome.signal, Some(libc::SIGABRT));
}

#[test]
fn a_command_that_is_not_there() {
    let bench = Bench::new();
    assert_eq!(bench.tasting(&["./nothing"]).output().unwrap().status.code(), Some(127));
    bench.write("text", "no program");
    assert_eq!(bench.tasting(&["./text"]).output().unwrap().status.code(), Some(126));
}

#[test]
fn a_test_that_hangs_and_is_killed() {
    let bench = Bench::new();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        // Whoever runs us in the background has us ignore SIGINT.
        let mut command = bench.command("env");
        command.args([
            "--default-signal=INT,TERM",
            TASTING,
            "run",
            "sh",
            "-c",
            "echo begun; exec sleep 60",
        ]);
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let group = format!("-{}", child.id());
        std::process::Command::new("kill")
            .args([format!("-{signal}"), "--".into(), group])
            .status()
            .unwrap();
        let start = Instant::now();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal));
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let words = ["sh", "-c", "echo begun; sleep 0; echo done"];
    assert_eq!(bench.runs(&words).text(), "begun\ndone\n");
    let store = bench.store();
    assert_eq!(tasting::store::Store::volume(&store).unwrap().outcomes, 1, "nothing half was kept");
}

#[test]
fn files_that_are_left_behind_are_put_back() {
    let bench = Bench::new();
    bench.write("old", "old");
    let script = "mkdir -p out/deep; echo report > out/deep/report.xml; chmod 640 out/deep/report.xml; ln -s deep out/link; rm old; echo ok";
    let words = ["sh", "-c", script];
    bench.runs(&words);
    bench.write("old", "old");
    fs::remove_dir_all(bench.path("out")).unwrap();
    bench.reuses(&words);
    assert_eq!(fs::read_to_string(bench.path("out/link/report.xml")).unwrap(), "report\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(bench.path("out/deep/report.xml")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o640);
    assert!(!bench.path("old").exists());
    let ran = bench.runs(&words);
    assert!(ran.outcome.stderr_text().contains("cannot remove 'old'"), "{ran:?}");
}

#[test]
fn unrestorable_changes_make_the_test_run() {
    let bench = Bench::new();
    let words = ["sh", "-c", "echo x > report && cat report"];
    bench.runs(&words);
    fs::remove_file(bench.path("report")).unwrap();
    fs::create_dir(bench.path("report")).unwrap();
    bench.write("report/inside", "");
    let ran = bench.run(&words);
    assert_ne!(ran.decision.decision, Verdict::Reused, "{ran:?}");
}

#[test]
fn a_test_that_leaves_too_much() {
    let bench = Bench::new();
    bench.write("tasting.toml", "limits.files = 1000\nlimits.output = 1000");
    bench.runs(&["sh", "-c", "head -c 2000 /dev/zero > big"]).not_kept("too large");
    bench.settles(&["sh", "-c", "head -c 900 /dev/zero > small"]);
    bench.settles(&["sh", "-c", "head -c 900 /dev/zero"]);
    let ran = bench.runs(&["sh", "-c", "head -c 2000 /dev/zero"]);
    assert_eq!(ran.outcome.stdout.len(), 2000);
    ran.not_kept("longer than what is kept");
}

#[test]
fn fifty_megabytes_of_output() {
    let bench = Bench::new();
    let script =
        "i=0; while [ $i -lt 50 ]; do head -c 1048576 /dev/zero; echo $i >&2; i=$((i + 1)); done";
    for _ in 0..2 {
        let ran = bench.runs(&["sh", "-c", script]);
        assert_eq!((ran.outcome.stdout.len(), ran.outcome.code), (50 << 20, Some(0)));
        assert_eq!(ran.outcome.stderr_text().lines().count(), 50);
    }
}

#[test]
fn coverage_goes_on_counting() {
    tool("gcov");
    let bench = Bench::new();
    bench.write("x.c", "int main(void) { return 0; }");
    crate::workshop::succeed(bench.command(crate::workshop::TASTING_CC).args([
        "--coverage",
        "x.c",
        "-o",
        "t",
    ]))
    .unwrap();
    for _ in 0..3 {
        bench.runs(&["./t"]).not_kept("coverage");
    }
}

#[test]
fn a_terminal_stays_a_terminal() {
    let script = tool("script");
    let bench = Bench::new();
    let run = |redirect: &str| {
        let line = format!(
            "{TASTING} run -- sh -c 'test -t 1 && echo out; test -t 2 && echo err; stty size <&1' {redirect}"
        );
        let mut command = bench.command(&script);
        command.args(["-qec", &line, "/dev/null"]);
        let text = crate::workshop::Outcome::of(&mut command).stdout_text();
        (text.replace('\r', ""), bench.last().decision)
    };
    let (first, second) = (run(""), run(""));
    assert!(first.0.starts_with("out\nerr\n"), "{first:?}");
    assert_eq!((first.1, second.1), (Verdict::Executed, Verdict::Reused));
    assert_eq!(first.0, second.0);
    let (text, verdict) = run("| cat");
    assert!(text.contains("err") && !text.contains("out"), "{text}");
    assert_eq!(verdict, Verdict::Executed);
}

#[test]
fn a_reader_that_goes_away() {
    let bench = Bench::new();
    for _ in 0..2 {
        let mut command = bench.command("bash");
        let line = format!(
            "set -o pipefail; {TASTING} run -- sh -c 'i=0; while [ $i -lt 30000 ]; do echo $i; i=$((i+1)); done' | head -1"
        );
        let outcome = crate::workshop::Outcome::of(command.args(["-c", &line]));
        assert_eq!(outcome.stdout_text(), "0\n");
        assert_eq!(outcome.code, Some(128 + libc::SIGPIPE));
    }
}

/// What it prints goes nowhere when it runs again: nobody would end it there.
#[test]
fn endless_output_ends_with_its_reader() {
    let bench = Bench::new();
    for _ in 0..2 {
        let mut command = bench.command("bash");
        let line = format!("set -o pipefail; timeout 60 {TASTING} run -- yes | head -1");
        let outcome = crate::workshop::Outcome::of(command.args(["-c", &line]));
        assert_eq!(outcome.stdout_text(), "y\n");
        assert_eq!(outcome.code, Some(128 + libc::SIGPIPE));
    }
}

#[test]
fn surviving_processes_keep_their_output() {
    let bench = Bench::new();
    let start = Instant::now();
    let mut command = bench.command("sh");
    let line = format!("{TASTING} run -- sh -c '(sleep 1; echo late) & echo early'; echo after");
    let outcome = crate::workshop::Outcome::of(command.args(["-c", &line]));
    assert_eq!(outcome.stdout_text(), "early\nafter\nlate\n");
    assert!(start.elapsed() < Duration::from_secs(15));
    assert!(bench.last().reason.contains("still runs"), "{:?}", bench.last());
}

#[test]
fn a_failure_is_told_once() {
    let bench = Bench::with(
        "#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\nint main(void) { fprintf(stderr, \"%d\\n\", (int)getpid());\n\
         puts(\"failed\"); return 1; }",
    );
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(1), "failed\n"));
    assert_eq!(ran.outcome.stderr_text().lines().count(), 1, "{ran:?}");
}
