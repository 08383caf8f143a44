//! Suites of Rust: `cargo test`, whose programs are tests, and nextest, beside themselves alone.

use super::{Ended, field, json};
use crate::run::Bench;
use crate::run::cargo::cargo;
use crate::workshop::{Outcome, TASTING, succeed, tools};
use std::process::Command;

const LIBRARY: &str = "pub fn one() -> u32 {
    1
}
pub fn two() -> u32 {
    2
}
#[cfg(test)]
mod tests {
    #[test]
    fn one() {
        assert_eq!(super::one(), 1);
    }
    #[test]
    fn two() {
        assert_eq!(super::two(), 2);
    }
    #[test]
    #[should_panic]
    fn panics() {
        assert_eq!(super::one(), 2);
    }
    #[test]
    #[ignore]
    fn ignored() {}
}
";

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    bench.write("src/lib.rs", LIBRARY);
    bench.write("tests/outside.rs", "#[test]\nfn outside() { assert_eq!(small::two(), 2); }\n");
    bench
}

/// A suite of cargo, with no runner but its own.
fn suite(bench: &Bench, options: &[&str], words: &[&str]) -> Outcome {
    Outcome::of(&mut suite_command(bench, options, words))
}

fn suite_command(bench: &Bench, options: &[&str], words: &[&str]) -> Command {
    let mut command = bench.command(TASTING);
    let like = cargo(bench);
    for (name, value) in like.get_envs() {
        let is_runner = name.to_string_lossy().ends_with("_RUNNER");
        match value.filter(|_| !is_runner) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(options).args(["--", "cargo"]).args(words);
    command
}

fn plainly(bench: &Bench, words: &[&str]) -> Outcome {
    Outcome::of(cargo(bench).args(words).env("TASTING_DISABLE", "1"))
}

const NEXTEST: [&str; 2] = ["nextest", "run"];
const CASES: [&str; 4] =
    ["small tests::one", "small tests::panics", "small tests::two", "small::outside outside"];

/// How the tests end under nextest alone, and how it ends.
fn nextest_plainly(bench: &Bench, words: &[&str]) -> Ended {
    let outcome =
        plainly(bench, &[&NEXTEST, words, &["--color", "never", "--status-level", "all"]].concat());
    let mut ends: Vec<(String, String)> = Vec::new();
    for line in outcome.stderr_text().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // With repetitions: TRY 1 FAIL.
        let verdict = words.iter().take(3).find(|word| ["PASS", "FAIL"].contains(*word));
        let end = match verdict {
            Some(&"PASS") => "passed",
            Some(_) => "failed",
            None => continue,
        };
        let name = words[words.len() - 2..].join(" ");
        if !ends.iter().any(|(known, _)| *known == name) {
            ends.push((name, end.to_owned()));
        }
    }
    ends.sort();
    (outcome.code, ends)
}

#[track_caller]
fn agrees(bench: &Bench, words: &[&str], executed: &[&str]) {
    let outcome = suite(bench, &["suite", "--json"], &[&NEXTEST, words].concat());
    super::agrees(&outcome, executed, nextest_plainly(bench, words));
}

#[test]
#[ignore = "needs cargo-nextest"]
fn results_and_exit_status_match_nextest() {
    tools(&["cargo-nextest"]);
    let bench = project();
    agrees(&bench, &["--no-fail-fast"], &CASES);
    agrees(&bench, &["--no-fail-fast"], &[]);
    agrees(&bench, &["--no-fail-fast"], &[]);
    bench.write("src/lib.rs", LIBRARY.replace("    2\n", "    3\n"));
    agrees(&bench, &["--no-fail-fast"], &["small tests::two", "small::outside outside"]);
    agrees(
        &bench,
        &["--no-fail-fast", "-E", "test(one) + test(two)", "--retries", "1"],
        &["small tests::one", "small tests::two"],
    );
    agrees(&bench, &["--no-fail-fast", "panics"], &[]);
    bench.write("src/lib.rs", LIBRARY);
    agrees(&bench, &["--no-fail-fast"], &[]);
    bench.write("tests/outside.rs", "#[test]\nfn inside() { assert_eq!(small::two(), 2); }\n");
    agrees(&bench, &["--no-fail-fast"], &["small::outside inside"]);
    agrees(&bench, &["no-such-test"], &[]);
}

#[test]
#[ignore = "needs cargo-nextest"]
fn known_tests_are_not_started_by_nextest() {
    tools(&["cargo-nextest"]);
    let bench = project();
    let run =
        |options: &[&str]| suite(&bench, options, &[&NEXTEST[..], &["--no-fail-fast"]].concat());
    let started = || run(&["suite"]).stderr_text().matches("PASS").count();
    assert_eq!([started(), started()], [4, 0]);
    assert_eq!(run(&["select"]).stdout_text(), "");
    bench.write(
        "src/lib.rs",
        LIBRARY.replace("    1\n", "    1 + 0 * 7 + 4 - 4 + std::process::id().min(0)\n"),
    );
    assert_eq!(run(&["select"]).stdout_text(), "small tests::one\nsmall tests::panics\n");
    let filter = run(&["select", "--format", "nextest"]).stdout_text();
    assert_eq!(
        filter,
        "(binary_id(=small) & test(=tests::one)) | (binary_id(=small) & test(=tests::panics))\n"
    );
    assert_eq!([started(), started()], [2, 0]);
    // What says more about single tests leaves them all to nextest.
    bench.write(
        ".config/nextest.toml",
        "[[profile.default.overrides]]\nfilter = 'test(one)'\nretries = 2\n",
    );
    assert_eq!([started(), started()], [4, 4]);
}

#[test]
#[ignore = "needs cargo-nextest"]
fn a_read_only_store_changes_no_test_result() {
    tools(&["cargo-nextest"]);
    let bench = project();
    for (name, value) in [("TASTING_READONLY", "1"), ("TASTING_DIR", "/dev/null/store")] {
        for words in [&["nextest", "run"][..], &["test", "--tests"]] {
            let mut command = suite_command(&bench, &["suite", "--json"], words);
            let outcome = Outcome::of(command.env(name, value));
            let ends = field(&json(&outcome), "end");
            assert!(outcome.code == Some(0) && !ends.is_empty(), "{outcome:?}");
            assert!(ends.iter().all(|(_, end)| end == "passed"), "{ends:?}");
        }
    }
    bench.write("src/lib.rs", LIBRARY.replace("    2\n", "    3\n"));
    let mut command = suite_command(&bench, &["suite", "--json"], &["nextest", "run"]);
    assert_eq!(Outcome::of(command.env("TASTING_READONLY", "1")).code, Some(100));
}

#[test]
fn programs_of_cargo_are_tests() {
    let bench = project();
    let words = ["test", "--tests", "--no-fail-fast"];
    let decisions = |outcome: &Outcome| field(&json(outcome), "decision");
    let all = |decision: &str| {
        ["small lib small", "small test outside"].map(|name| (name.to_owned(), decision.to_owned()))
    };
    for decision in ["executed", "reused"] {
        let outcome = suite(&bench, &["suite", "--json"], &words);
        assert_eq!(
            (outcome.code, decisions(&outcome)),
            (Some(0), all(decision).to_vec()),
            "{outcome:?}"
        );
    }
    assert_eq!(suite(&bench, &["select"], &words).stdout_text(), "");
    bench.write("src/lib.rs", LIBRARY.replace("    2\n", "    3\n"));
    let failed = suite(&bench, &["suite", "--json"], &words);
    assert_eq!(
        (failed.code, decisions(&failed)),
        (Some(101), all("executed").to_vec()),
        "{failed:?}"
    );
    assert_eq!(plainly(&bench, &words).code, Some(101));
    bench.write("src/lib.rs", "broken\n");
    let broken = suite(&bench, &["suite"], &words);
    assert_eq!(broken.code, plainly(&bench, &words).code, "{broken:?}");
    succeed(cargo(&bench).args(["clean"])).unwrap();
}
