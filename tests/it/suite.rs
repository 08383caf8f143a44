//! `tasting suite` and `tasting select`: the same tests, ends and exit status as the harness gives without them, and the same
//! decisions as `tasting run` makes in the harness.

mod ctest;
mod list;

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING};
use serde_json::Value;
use std::process::Command;

/// `tasting suite`, or another subcommand, with these words.
fn tasting(bench: &Bench, words: &[&str]) -> Command {
    let mut command = bench.command(TASTING);
    command.args(words);
    command
}

/// What `--json` prints.
#[track_caller]
fn json(outcome: &Outcome) -> Value {
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// Name and one field of each test.
fn field(suite: &Value, name: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let tests = suite["tests"].as_array().expect("a list of tests");
    let mut fields: Vec<_> = tests.iter().map(|test| (text(&test["name"]), text(&test[name]))).collect();
    fields.sort();
    fields
}
