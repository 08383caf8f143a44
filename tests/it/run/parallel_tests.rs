//! Tests that run at the same time and write into the same folders.

use super::Bench;
use crate::workshop::succeed;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Waits until something is there.
fn wait_for(path: &std::path::Path) {
    let end = Instant::now() + Duration::from_secs(20);
    while !path.exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
}

const MAKES_FOLDER: &str = "mkdir -p reports; sleep 1; echo a > reports/a.xml";

/// Runs a test that makes the folder `reports`, into which `others` writes meanwhile.
fn run_beside(bench: &Bench, script: &str, others: impl FnOnce(&Bench) + Send) -> super::Ran {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(&bench.path("reports"));
            others(bench);
        });
        bench.runs(&["sh", "-c", script])
    })
}

fn clean(bench: &Bench) {
    fs::remove_dir_all(bench.path("reports")).unwrap();
}

#[test]
fn files_of_another_test_are_not_put_back() {
    let bench = Bench::new();
    run_beside(&bench, MAKES_FOLDER, |bench| _ = bench.write("reports/b.xml", "b"));
    clean(&bench);
    bench.reuses(&["sh", "-c", MAKES_FOLDER]);
    assert_eq!(fs::read_to_string(bench.path("reports/a.xml")).unwrap(), "a\n");
    assert!(!bench.path("reports/b.xml").exists(), "it was not this test that wrote it");
}

#[test]
fn a_file_of_another_test_is_an_input() {
    let bench = Bench::new();
    let script = format!("{MAKES_FOLDER}; cat reports/b.xml");
    let ran = run_beside(&bench, &script, |bench| _ = bench.write("reports/b.xml", "one"));
    assert_eq!(ran.text(), "one");
    clean(&bench);
    let ran = run_beside(&bench, &script, |bench| _ = bench.write("reports/b.xml", "two"));
    assert_eq!(ran.text(), "two");
}

#[test]
fn listings_with_foreign_files_are_refused() {
    let bench = Bench::new();
    let script = format!("{MAKES_FOLDER}; ls reports");
    let ran = run_beside(&bench, &script, |bench| _ = bench.write("reports/b.xml", "b"));
    assert_eq!(ran.text(), "a.xml\nb.xml\n");
    ran.not_kept("others write");
}

#[test]
fn a_folder_that_is_renamed_keeps_its_files() {
    let bench = Bench::new();
    let words = [
        "sh",
        "-c",
        "rm -rf out; mkdir -p new/deep; echo x > new/deep/file; mv new out; ls out/deep",
    ];
    bench.runs(&words);
    fs::remove_dir_all(bench.path("out")).unwrap();
    bench.reuses(&words);
    assert_eq!(fs::read_to_string(bench.path("out/deep/file")).unwrap(), "x\n");
}

#[test]
fn a_folder_made_anew_is_no_input() {
    let bench = Bench::new();
    bench.write("out/old", "x");
    let words =
        ["sh", "-c", "rm -rf out && mkdir out && echo x > out/new && ls out && cat out/new"];
    assert_eq!(bench.runs(&words).text(), "new\nx\n");
    assert!(!bench.last().reason.contains("not kept"), "{:?}", bench.last());
    fs::remove_file(bench.path("out/new")).unwrap();
    bench.write("out/old", "x");
    bench.reuses(&words);
    assert!(bench.path("out/new").exists() && !bench.path("out/old").exists());
}

/// Results, misses, failures and what is asked of the store, all at the same time.
#[test]
fn nothing_is_written_while_many_run_read_only() {
    let bench = Bench::new();
    bench.settles(&["echo", "known"]);
    let content = || {
        let list = "find . -type f -printf '%p %T@ %s ' -exec cat {} + ; find . -type d -printf '%p %T@\\n' | sort";
        let mut command = bench.command("sh");
        succeed(command.current_dir(bench.store_path()).args(["-c", list])).unwrap().stdout
    };
    let before = content();
    let children = (0..16).map(|number| {
        let end = format!("exit {}", number % 2);
        let words: &[&str] = match number % 3 {
            0 => &["echo", "known"],
            1 => &["echo", "new"],
            _ => &["sh", "-c", &end],
        };
        bench.tasting(words).env("TASTING_READONLY", "1").stdout(Stdio::null()).spawn().unwrap()
    });
    for mut child in children.collect::<Vec<_>>() {
        child.wait().unwrap();
    }
    assert!(content() == before, "the store has changed");
    bench.reuses(&["echo", "known"]);
}
