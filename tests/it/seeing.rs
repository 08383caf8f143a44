//! What people are told: `tasting log`, `stats`, `explain`, `gc`, `clear`, `config`, `doctor`,
//! `init`.

mod doctor;
mod explain;
mod first_contact;
mod init;
mod log;
mod objects;
mod settings;
mod trial;
mod whole;

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed};
use serde_json::Value;

impl Bench {
    /// What a command of `tasting` prints.
    #[track_caller]
    fn says(&self, words: &[&str]) -> String {
        let outcome = succeed(self.command(TASTING).args(words));
        outcome.unwrap_or_else(|error| panic!("{error}")).stdout_text()
    }

    /// The same as JSON.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.says(words)).expect("JSON")
    }

    /// A command of `tasting` that may fail.
    fn asks(&self, words: &[&str]) -> Outcome {
        Outcome::of(self.command(TASTING).args(words))
    }
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Every command teaches: what it is for, and what its options mean.
#[test]
fn every_command_has_its_help() {
    let bench = Bench::new();
    for command in [
        "init",
        "run",
        "explain",
        "log",
        "stats",
        "fingerprint",
        "show",
        "doctor",
        "config",
        "gc",
        "clear",
    ] {
        let help = bench.says(&[command, "--help"]);
        assert!(
            help.lines().take_while(|line| !line.starts_with("Usage:")).count() >= 3,
            "{command}: {help}"
        );
    }
    assert_eq!(bench.asks(&["explain"]).code, Some(2));
    assert_eq!(bench.asks(&["explain", "t", "--", "./t"]).code, Some(2));
}
