//! The laboratory itself: that it would find what is wrong, and that it goes on where it was.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the laboratory; what it leaves behind is in the folder.
fn lab(folder: &Path, part: &str, words: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_lab"));
    let built = program.parent().expect("the program lies in a folder");
    assert!(
        built.join("tasting").is_file(),
        "Tasting is not built: `cargo build --bins` first, or `cargo test --workspace`"
    );
    let mut command = Command::new(program);
    command.args([part, "--workers", "1", "--folder"]).arg(folder).args(words);
    command.output().expect("the laboratory can be started")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn sums(folder: &Path, part: &str) -> serde_json::Value {
    let report = std::fs::read(folder.join("report.json")).expect("there is a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("the report is JSON");
    report[part].clone()
}

#[test]
fn the_oracle_finds_blind_reuse() {
    let folder = folder("lab-blind");
    let done = lab(
        &folder,
        "programs",
        &["--programs", "1", "--steps", "3", "--level", "code", "--blind"],
    );
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let sums = sums(&folder, "programs");
    for kind in ["static_misses", "executed_misses", "scorched_differ"] {
        assert!(sums[kind].as_u64() > Some(0), "{kind} in {sums}");
    }
    let evidence =
        std::fs::read_dir(folder.join("misses")).expect("contradictions are kept").count();
    assert!(evidence > 0);
}

#[test]
fn finished_trials_are_skipped() {
    let folder = folder("lab-resumed");
    let first = lab(&folder, "programs", &["--programs", "1", "--steps", "2"]);
    assert!(first.status.success(), "{first:?}");
    let mut before = sums(&folder, "programs");
    let second = lab(&folder, "programs", &["--programs", "1", "--steps", "2"]);
    assert!(second.status.success(), "{second:?}");
    let after = sums(&folder, "programs");
    before["seconds"] = after["seconds"].clone();
    assert_eq!(before, after);
    assert_eq!(
        after["programs"].as_u64().unwrap_or(0) + after["programs_left_out"].as_u64().unwrap_or(0),
        1
    );
}

#[test]
fn reuse_after_any_change_is_found_out() {
    let folder = folder("lab-runs-blind");
    let words = ["--only", "files,folders", "--scenarios", "6", "--minutes", "3", "--blind"];
    let done = lab(&folder, "runs", &words);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let counts = sums(&folder, "runs");
    assert!(counts["wrong"].as_u64() > Some(0), "{counts}");
    let evidence = std::fs::read_dir(folder.join("failures")).expect("failures are kept").count();
    assert!(evidence > 0);
}
