//! Audits, quarantine, retries, tests that are never reused.

use super::Bench;
use std::fs;
use std::path::PathBuf;
use tasting::model::{Audit, Verdict};
use tasting::store::{Journal, Store};

/// A test whose verdict depends on something that no file shows: the age of a file.
const HIDDEN: [&str; 3] = ["sh", "-c", "test ! reference -nt data"];

fn age(bench: &Bench, is_old: bool) {
    let time = std::time::SystemTime::now()
        - std::time::Duration::from_secs(if is_old { 100_000 } else { 100 });
    fs::File::options().append(true).open(bench.path("data")).unwrap().set_modified(time).unwrap();
}

fn with_hidden_dependency() -> Bench {
    let bench = Bench::new();
    bench.write("data", "");
    bench.write("reference", "");
    age(&bench, false);
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    fs::File::options()
        .append(true)
        .open(bench.path("reference"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    bench
}

#[test]
fn an_audit_finds_a_missed_dependency() {
    let bench = with_hidden_dependency();
    bench.settles(&HIDDEN);
    let audit = |bench: &Bench| bench.run(&[&["--audit", "100%"], &HIDDEN[..]].concat());
    let ran = audit(&bench);
    assert_eq!((ran.decision.decision, ran.decision.audit), (Verdict::Executed, Some(Audit::Same)));
    age(&bench, true);
    let ran = audit(&bench);
    assert_eq!((ran.outcome.code, ran.decision.audit), (Some(1), Some(Audit::Missed)), "{ran:?}");
    let stats = bench.store().stats().unwrap();
    assert_eq!((stats.audits, stats.audits_missed), (2, 1));
    age(&bench, false);
    for _ in 0..5 {
        assert_eq!(bench.runs(&HIDDEN).decision.sort, "quarantine");
    }
    bench.reuses(&HIDDEN);
}

#[test]
fn an_audit_tells_an_unstable_test() {
    let bench = Bench::new();
    bench.write("tasting.toml", "quarantine-passes = 1");
    bench.script("flip", "#!/bin/sh\ntest $(($(date +%s%N) / 1000 % 2)) = 0\n");
    // Whatever it gives the first time: until it has passed once.
    for _ in 0..200 {
        let ran = bench.run(&["--audit", "100%", "./flip"]);
        if let Some(Audit::Unstable) = ran.decision.audit {
            return;
        }
    }
    panic!("no audit found it unstable: {:?}", bench.store().stats());
}

#[test]
fn a_pass_on_a_retry_is_not_reused() {
    let bench = with_hidden_dependency();
    age(&bench, true);
    assert_eq!(bench.runs(&HIDDEN).outcome.code, Some(1));
    age(&bench, false);
    bench.runs(&HIDDEN).not_kept("retry");
    for _ in 0..4 {
        assert_eq!(bench.runs(&HIDDEN).decision.sort, "quarantine");
    }
    bench.reuses(&HIDDEN);
}

#[test]
fn projects_set_the_length_of_quarantine() {
    let bench = with_hidden_dependency();
    bench.write("tasting.toml", "quarantine-passes = 2");
    age(&bench, true);
    bench.runs(&HIDDEN);
    age(&bench, false);
    bench.runs(&HIDDEN);
    bench.runs(&HIDDEN);
    bench.reuses(&HIDDEN);
}

#[test]
fn tests_that_are_never_reused() {
    let bench = Bench::new();
    bench.write("tasting.toml", "never-reuse = ['echo b*']");
    bench.settles(&["echo", "a"]);
    for _ in 0..2 {
        let ran = bench.runs(&["echo", "b"]);
        assert_eq!((ran.text().as_str(), ran.decision.sort.as_str()), ("b\n", "never-reuse"));
    }
}

/// The files of the store's entries with endings that fit.
fn entries(bench: &Bench, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let results = bench.store.path().join("results-1");
    for folder in fs::read_dir(&results).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        files.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
    }
    files.retain(|file| file.extension().is_some_and(|ending| fits(&ending.to_string_lossy())));
    files
}

#[test]
fn a_store_that_is_damaged_is_a_miss() {
    let bench = Bench::new();
    bench.write("data", "x");
    let words = ["cat", "data"];
    for ending in ["o", "s0"] {
        for damage in 0..5 {
            bench.settles(&words);
            let [file] = &entries(&bench, |found| found == ending)[..] else {
                panic!("there is one of each kind")
            };
            let mut content = fs::read(file).unwrap();
            match damage {
                0 => content[0] ^= 1,
                1 => content.truncate(content.len() / 2),
                2 => *content.last_mut().unwrap() ^= 1,
                3 => content = vec![0xff; 100],
                _ => content.clear(),
            }
            fs::write(file, &content).unwrap();
            let ran = bench.runs(&words);
            assert_eq!(
                (ran.text().as_str(), ran.decision.sort.as_str()),
                ("x", "store"),
                "{ran:?}"
            );
            bench.reuses(&words);
            bench.store().clear().unwrap();
        }
    }
}

#[test]
fn an_unwritable_store_is_no_failure() {
    let bench = Bench::new();
    for (name, content) in [("none", None), ("file", Some("a file"))] {
        let store = bench.path(name).join("store");
        if let Some(content) = content {
            fs::write(bench.path(name), content).unwrap();
        } else {
            fs::create_dir(bench.path(name)).unwrap();
            fs::write(&store, "").unwrap();
        }
        let mut command = bench.tasting(&["sh", "-c", "echo a; exit 3"]);
        let outcome = crate::workshop::Outcome::of(command.env("TASTING_DIR", store));
        assert_eq!(
            (outcome.code, outcome.stdout_text().as_str(), outcome.stderr_text().as_str()),
            (Some(3), "a\n", "")
        );
    }
}
