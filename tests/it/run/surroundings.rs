//! The place of a checkout, its folders and ignored variables: an outcome that mentions them is of
//! use where they are the same.

use super::{Bench, Ran};
use crate::workshop::TASTING;
use std::fs;
use std::path::{Path, PathBuf};
use tasting::model::Verdict;

/// Checkouts of the same project.
fn checkouts<const N: usize>(bench: &Bench, names: [&str; N]) -> [PathBuf; N] {
    names.map(|name| {
        let folder = bench.path(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tasting.toml"), "").unwrap();
        folder
    })
}

fn run_in(bench: &Bench, folder: &Path, words: &[&str]) -> Ran {
    let mut command = bench.command(TASTING);
    command.arg("run").args(words).current_dir(folder).env_remove("PWD");
    bench.finish(&mut command)
}

fn decided(bench: &Bench, folder: &Path, words: &[&str]) -> (String, Verdict) {
    let ran = run_in(bench, folder, words);
    (ran.text(), ran.decision.decision)
}

#[test]
fn a_printed_folder_name_is_not_shared() {
    let bench = Bench::new();
    let [one, other] = checkouts(&bench, ["here/ab", "here/cd"]);
    let words = ["sh", "-c", "basename \"$(pwd)\""];
    assert_eq!(decided(&bench, &one, &words), ("ab\n".to_owned(), Verdict::Executed));
    assert_eq!(decided(&bench, &other, &words), ("cd\n".to_owned(), Verdict::Executed));
    assert_eq!(decided(&bench, &one, &words), ("ab\n".to_owned(), Verdict::Reused));
}

#[test]
fn files_that_name_their_folder_are_not_shared() {
    let bench = Bench::new();
    let [one, other] = checkouts(&bench, ["first/x", "second/x"]);
    let words = ["sh", "-c", "basename \"$(dirname \"$(pwd)\")\" > report"];
    assert_eq!(run_in(&bench, &one, &words).decision.decision, Verdict::Executed);
    assert_eq!(run_in(&bench, &other, &words).decision.decision, Verdict::Executed);
    assert_eq!(fs::read_to_string(other.join("report")).unwrap(), "second\n");
}

#[test]
fn a_printed_path_length_is_not_shared() {
    let bench = Bench::new();
    let [one, other, same] = checkouts(&bench, ["abc", "abcdef", "xyz"]);
    for script in ["pwd | wc -c", "p=$(pwd); echo ${#p}"] {
        let words = ["sh", "-c", script];
        let (length, verdict) = decided(&bench, &one, &words);
        assert_eq!(verdict, Verdict::Executed);
        let (longer, verdict) = decided(&bench, &other, &words);
        assert!(verdict == Verdict::Executed && longer != length);
        assert_eq!(decided(&bench, &same, &words), (length, Verdict::Reused));
    }
}

#[test]
fn the_name_of_equal_folders_is_shared() {
    let bench = Bench::new();
    let [one, other, third] = checkouts(&bench, ["ann/zlib", "bob/src/zlib", "bob/other"]);
    let words = ["echo", "zlib 1.2"];
    assert_eq!(run_in(&bench, &one, &words).decision.decision, Verdict::Executed);
    assert_eq!(run_in(&bench, &other, &words).decision.decision, Verdict::Reused);
    assert_eq!(run_in(&bench, &third, &words).decision.decision, Verdict::Executed);
}

#[test]
fn a_printed_tmpdir_counts() {
    let bench = Bench::new();
    let with = |folder: &str, script: &str| {
        fs::create_dir_all(bench.path(folder)).unwrap();
        let ran =
            bench.finish(bench.tasting(&["sh", "-c", script]).env("TMPDIR", bench.path(folder)));
        (ran.text(), ran.decision.decision)
    };
    let (one, verdict) = with("t1", "echo $TMPDIR");
    assert!(verdict == Verdict::Executed && one.ends_with("/t1\n"));
    let (other, verdict) = with("t2", "echo $TMPDIR");
    assert!(verdict == Verdict::Executed && other.ends_with("/t2\n"));
    assert_eq!(with("t1", "echo $TMPDIR").1, Verdict::Reused);
    // Who does not say where it was is reused.
    assert_eq!(with("t1", "echo x > $TMPDIR/f; rm $TMPDIR/f").1, Verdict::Executed);
    assert_eq!(with("t2", "echo x > $TMPDIR/f; rm $TMPDIR/f").1, Verdict::Reused);
}

#[test]
fn variables_of_build_servers_count_unless_listed() {
    let bench = Bench::new();
    let with = |name: &str, value: &str, script: &str| {
        let ran = bench.finish(bench.tasting(&["sh", "-c", script]).env(name, value));
        (ran.text(), ran.decision.decision)
    };
    let connects = "echo $CI_DB";
    assert_eq!(with("CI_DB", "postgres", connects), ("postgres\n".to_owned(), Verdict::Executed));
    assert_eq!(with("CI_DB", "mysql", connects), ("mysql\n".to_owned(), Verdict::Executed));
    assert_eq!(with("CI_PIPELINE_ID", "1234567", "echo a"), ("a\n".to_owned(), Verdict::Executed));
    assert_eq!(with("CI_PIPELINE_ID", "1234568", "echo a"), ("a\n".to_owned(), Verdict::Reused));
}

#[test]
fn an_ignored_variable_counts_when_it_is_printed() {
    let bench = Bench::new();
    let with = |value: &str| {
        let ran = bench.finish(
            bench.tasting(&["sh", "-c", "echo run $GITHUB_RUN_ID"]).env("GITHUB_RUN_ID", value),
        );
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(with("777111"), ("run 777111\n".to_owned(), Verdict::Executed));
    assert_eq!(with("777222"), ("run 777222\n".to_owned(), Verdict::Executed));
    assert_eq!(with("777111"), ("run 777111\n".to_owned(), Verdict::Reused));
}

#[test]
fn files_named_by_ignored_variables_are_followed() {
    let bench = Bench::new();
    let with = |file: &str| {
        let mut command = bench.tasting(&["sh", "-c", "echo done > $GITHUB_STEP_SUMMARY"]);
        bench.finish(command.env("GITHUB_STEP_SUMMARY", bench.path(file))).decision.decision
    };
    assert_eq!(with("summary-1"), Verdict::Executed);
    assert_eq!(with("summary-2"), Verdict::Executed);
    assert!(bench.path("summary-2").exists());
    assert_eq!(with("summary-1"), Verdict::Reused);
}

#[test]
fn reports_go_to_the_new_job_folder() {
    let bench = Bench::new();
    let with = |folder: &str| {
        fs::create_dir_all(bench.path(folder)).unwrap();
        let mut command = bench.tasting(&["sh", "-c", "echo fine > $RUNNER_TEMP/report"]);
        bench.finish(command.env("RUNNER_TEMP", bench.path(folder))).decision.decision
    };
    assert_eq!(with("job-1"), Verdict::Executed);
    assert_eq!(with("job-2"), Verdict::Reused);
    assert_eq!(fs::read_to_string(bench.path("job-2/report")).unwrap(), "fine\n");
}
