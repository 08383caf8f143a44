//! A test that fails because it is traced: it is undone and run again, and what it leaves is what
//! it would have left.

use super::Bench;
use super::forwarded::IS_TRACED;
use crate::workshop::{Outcome, TASTING};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program that passes or fails after it has run a line of shell.
fn program(line: &str, end: &str) -> String {
    format!(
        "{IS_TRACED}\nint main(void) {{ if (system({line:?})) abort(); fflush(stdout); {end} }}"
    )
}

/// Fails only while it is traced.
const DISTURBED: &str = "return is_traced();";

/// What is there, with contents, modes and times of last change.
fn tree(folder: &Path) -> BTreeMap<String, (u32, String, i64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, data) = (entry.path(), entry.metadata().unwrap());
        let name = entry.file_name().to_string_lossy().into_owned();
        let content = match data.file_type() {
            kind if kind.is_dir() => format!("{:?}", tree(&path)),
            kind if kind.is_symlink() => {
                fs::read_link(&path).unwrap().to_string_lossy().into_owned()
            }
            _ => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        };
        // What was changed a long time ago is so in both; what is new is not compared to the
        // second.
        let time = if data.mtime() < 2_000_000 { data.mtime() } else { 0 };
        found.insert(name, (data.mode(), content, time));
    }
    found
}

fn prepare(bench: &Bench) {
    let script = "mkdir -p w/old/deep w/empty w/dir w/gone; echo a > w/old/deep/a; echo log > w/log; echo keep > w/keep; chmod 640 w/keep
        echo removed > w/removed; ln -s keep w/link; ln -s keep w/other; echo one > w/one; ln w/one w/two; echo r > w/r; echo s > w/s
        touch -d @1000000 w/* w/old/deep/a w/old/deep w/old; touch -h -d @1000000 w/link w/other; touch -d @1000000 w";
    assert!(bench.command("sh").args(["-c", script]).status().unwrap().success());
}

/// Runs a program that does this, under `tasting run` and plainly. Both leave the same.
#[track_caller]
fn same_as_plainly(line: &str, end: &str) -> Outcome {
    let [watched, plain] = [(), ()].map(|()| {
        let bench = Bench::with(&program(&format!("cd w && {{ {line}; }}"), end));
        prepare(&bench);
        bench
    });
    let ran = Outcome::of(&mut watched.tasting(&["./t"]));
    let expected = Outcome::of(&mut plain.command(plain.path("t")));
    assert_eq!(ran, expected, "{line}: {:?}", watched.last());
    assert_eq!(tree(&watched.path("w")), tree(&plain.path("w")), "{line}");
    assert!(
        !watched.store.path().join("originals").exists()
            || fs::read_dir(watched.store.path().join("originals")).unwrap().next().is_none()
    );
    ran
}

const LINES: [&str; 12] = [
    "echo more >> log; echo more >> log",
    "echo new > new; mkdir -p made/deep; echo x > made/deep/x; ln -s x made/deep/l",
    "echo changed > keep; chmod 600 keep; touch -d @2000000 keep",
    "rm removed link; rmdir empty; mkdir removed; echo x > removed/x",
    "mv keep moved; echo other > keep; mv r s",
    "mv old renamed",
    "echo both >> one",
    "mkdir m; echo a > m/a; mv m n; echo b > n/b; rm n/a",
    "ln -sf log link; ln log hard",
    "rm -r old; mkdir old; echo other > old/a",
    "chmod 700 dir; touch -d @1500000 dir; touch dir/new",
    "sed -i s/log/LOG/ log; head -c 300000 /dev/zero > big; truncate -s 10 log; rmdir gone",
];

#[test]
fn a_disturbed_test_passes_with_the_same_files() {
    for line in LINES {
        assert_eq!(
            same_as_plainly(&format!("echo printed; {line}"), DISTURBED).stdout_text(),
            "printed\n"
        );
    }
}

#[test]
fn a_failing_test_fails_with_the_same_files() {
    for line in LINES {
        let outcome = same_as_plainly(&format!("echo printed; {line}"), "return 3;");
        assert_eq!((outcome.code, outcome.stdout_text().as_str()), (Some(3), "printed\n"));
    }
}

#[test]
fn a_snapshot_that_is_made_fails_once() {
    let bench = Bench::with(&program(
        "true",
        "if (!access(\"snapshot\", F_OK)) return 0; FILE *f = fopen(\"snapshot\", \"a\"); fputs(\"x\", f); return 1;",
    ));
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(1));
    assert_eq!(fs::read_to_string(bench.path("snapshot")).unwrap(), "x");
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(0));
}

#[test]
fn disturbed_tests_are_counted_and_then_stored() {
    let bench = Bench::with(&program("echo x >> log", DISTURBED));
    let ran = bench.runs(&["./t"]);
    assert_eq!(ran.outcome.code, Some(0));
    ran.not_kept("disturbed");
    assert!(ran.decision.disturbed.is_some_and(|how| how.contains("traced")));
    let say = |words: &[&str]| Outcome::of(bench.command(TASTING).args(words)).stdout_text();
    let stats = say(&["stats"]);
    assert!(
        stats.contains("disturbed   1 test\n            ./t: it ends with status 1"),
        "{stats}"
    );
    let json: serde_json::Value = serde_json::from_str(&say(&["stats", "--json"])).unwrap();
    assert_eq!(
        (&json["disturbed"][0]["treatment"], &json["disturbed_runs"]),
        (&"untraced".into(), &1.into())
    );
    assert!(
        say(&["log"]).contains("; disturbed: it ends with status 1 while"),
        "{}",
        say(&["log"])
    );
    // What it appends to is an input; with the same input it is reused.
    fs::remove_file(bench.path("log")).unwrap();
    assert_eq!(bench.runs(&["./t"]).decision.disturbed, None);
    fs::remove_file(bench.path("log")).unwrap();
    bench.reuses(&["./t"]);
}

#[test]
fn oversized_results_are_believed_but_not_stored() {
    let bench = Bench::with(&program("echo x >> big", DISTURBED));
    let big = fs::File::create(bench.path("big")).unwrap();
    big.set_len(65 << 20).unwrap();
    drop(big);
    let ran = bench.runs(&["./t"]);
    if ran.outcome.code == Some(0) {
        // The file system shares the blocks of files.
        return;
    }
    assert!(
        ran.decision.disturbed.is_some_and(|how| how.contains("too large")),
        "{:?}",
        bench.last()
    );
    assert_eq!(fs::metadata(bench.path("big")).unwrap().len(), (65 << 20) + 2);
    assert_eq!(bench.runs(&["./t"]).outcome.code, Some(0), "it is not traced again");
}

#[test]
fn killed_tests_are_not_traced_again() {
    let source = format!(
        "{IS_TRACED}\nint main(void) {{ if (is_traced()) {{ fclose(fopen(\"ready\", \"w\")); pause(); }} return 0; }}"
    );
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let bench = Bench::with(&source);
        let mut child = bench.tasting(&["./t"]).spawn().unwrap();
        crate::workshop::wait_for(&bench.path("ready"));
        let mut kill = std::process::Command::new("kill");
        kill.args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
        assert_eq!(bench.runs(&["./t"]).outcome.code, Some(0));
        bench.reuses(&["./t"]);
    }
}

/// Others put files into folders that a test has made. They are not removed to run the test again.
#[test]
fn files_of_others_are_left_alone() {
    let bench = Bench::with(&program(
        "mkdir made && echo own > made/own && echo begun && read line < fifo",
        DISTURBED,
    ));
    assert!(bench.command("mkfifo").arg("fifo").status().unwrap().success());
    let mut child = bench.tasting(&["./t"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    while !bench.path("made/own").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    bench.write("made/foreign", "foreign");
    bench.write("fifo", "go on\n");
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(bench.path("made/foreign")).unwrap(), "foreign");
}

/// Frameworks end tests that take too long by an alarm of their own.
#[test]
fn an_alarm_of_the_tests_own_is_doubted() {
    let source = format!(
        "{IS_TRACED}\nint main(void) {{ if (is_traced()) raise(SIGALRM); puts(\"passed\"); return 0; }}"
    );
    let bench = Bench::with(&source);
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), "passed\n"));
}
