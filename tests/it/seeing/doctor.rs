//! `tasting doctor`.

use super::contains;
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING};
use serde_json::Value;
use std::path::Path;

fn findings(bench: &Bench, change: impl Fn(&mut std::process::Command)) -> (Option<i32>, Value) {
    let mut command = bench.command(TASTING);
    command.args(["doctor", "--json"]);
    change(&mut command);
    let outcome = Outcome::of(&mut command);
    let found = serde_json::from_slice(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    (outcome.code, found)
}

/// State and text of what was found.
#[track_caller]
fn finding(found: &Value, subject: &str) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = found["findings"].as_array().unwrap();
    let one = all.iter().find(|finding| text(&finding["subject"]).starts_with(subject));
    let one = one.unwrap_or_else(|| panic!("nothing about {subject} in {found:#}"));
    (text(&one["state"]), text(&one["text"]))
}

#[test]
fn doctor_accepts_a_good_folder_and_changes_nothing() {
    let bench = Bench::new();
    let scratch = bench.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let (code, found) = findings(&bench, |command| _ = command.env("TMPDIR", &scratch));
    assert_eq!((code, &found["works"]), (Some(0), &Value::Bool(true)), "{found:#}");
    for subject in [
        "kernel ",
        "watching",
        "shims",
        "tasting-cc",
        "tasting-cxx",
        "ld.bfd",
        "tasting run",
        "store",
        "project",
    ] {
        assert_eq!(finding(&found, subject).0, "works", "{subject}: {found:#}");
    }
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "nothing is left behind");
    assert_eq!(bench.says(&["log"]), "", "and nothing is in the store");
    contains(&bench.says(&["doctor"]), &["\nEverything essential works.\n"]);
}

#[test]
fn a_broken_compiler_breaks_it() {
    let bench = Bench::new();
    bench.script("broken-cc", "#!/bin/sh\necho 'no licence' >&2\nexit 1\n");
    let (code, found) =
        findings(&bench, |command| _ = command.env("TASTING_CC", bench.path("broken-cc")));
    assert_eq!((code, &found["works"]), (Some(1), &Value::Bool(false)));
    assert_eq!(
        finding(&found, "tasting-cc"),
        ("broken".to_owned(), "cannot build C: no licence".to_owned())
    );
    assert_eq!(finding(&found, "tasting run").0, "broken");
    assert_eq!(finding(&found, "tasting-cxx").0, "works");
}

#[test]
fn settings_that_are_not_understood_break_it() {
    let bench = Bench::new();
    bench.write("tasting.toml", "nonsense = 1");
    let outcome = bench.asks(&["doctor"]);
    assert_eq!(outcome.code, Some(1));
    contains(
        &outcome.stdout_text(),
        &[
            "unknown field `nonsense`",
            "every test runs, and none is reused",
            "\n1 thing that is essential does not work.\n",
        ],
    );
}

#[test]
fn a_store_that_cannot_be_there_breaks_it() {
    let bench = Bench::new();
    let file = bench.write("file", "");
    let (code, found) = findings(&bench, |command| _ = command.env("TASTING_DIR", &file));
    assert_eq!((code, finding(&found, "store").0.as_str()), (Some(1), "broken"), "{found:#}");
    let (code, found) =
        findings(&bench, |command| _ = command.env("TASTING_DIR", bench.path("not/yet/there")));
    assert_eq!((code, finding(&found, "store").0.as_str()), (Some(0), "works"), "{found:#}");
    assert!(!bench.path("not").exists());
    // No user can make folders there, not even root.
    let (code, found) = findings(&bench, |command| _ = command.env("TASTING_DIR", "/proc/tasting"));
    assert_eq!((code, finding(&found, "store").0.as_str()), (Some(1), "broken"), "{found:#}");
}

#[test]
fn tasting_without_its_shims_is_of_little_use() {
    let bench = Bench::new();
    let alone = bench.path("alone");
    std::fs::copy(TASTING, &alone).unwrap();
    let outcome = Outcome::of(bench.command(&alone).arg("doctor"));
    assert_eq!(outcome.code, Some(1));
    contains(
        &outcome.stdout_text(),
        &["broken  shims", "tasting-cc, tasting-cxx, tasting-ld missing beside"],
    );
}

#[test]
fn the_order_of_path_is_told() {
    let bench = Bench::new();
    let shims = bench.path("shims");
    std::fs::create_dir(&shims).unwrap();
    std::os::unix::fs::symlink(crate::workshop::TASTING_CC, shims.join("cc")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let with = |path: String| findings(&bench, |command| _ = command.env("PATH", &path)).1;
    let shims = |shims: &Path| shims.display().to_string();
    let first = with(format!("{}:{path}", shims(&bench.path("shims"))));
    assert_eq!(
        finding(&first, "PATH: cc"),
        ("works".to_owned(), "is a shim: every build goes through it".to_owned())
    );
    let last = with(format!("{path}:{}", shims(&bench.path("shims"))));
    let (state, text) = finding(&last, "PATH: cc");
    assert!(state == "note" && text.ends_with("and is not used"), "{text}");
}
