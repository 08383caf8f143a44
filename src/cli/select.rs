//! `tasting select`: the tests that have to run, for other harnesses.

use super::suite::{Which, shown_test};
use super::{exit, print};
use crate::report::suite::ShownTest;
use crate::suite::Output;
use crate::suite::course::Plan;
use crate::suite::select::{self, Form};
use std::io::Write;

/// Print which tests of a harness have to run. Nothing is run.
///
/// What is printed belongs together: a test that another one needs, such as a fixture, is named
/// with it. Without any test that has to run nothing is printed, or an expression that chooses
/// nothing.
#[derive(clap::Args)]
#[command(
    override_usage = "tasting select [OPTIONS] -- HARNESS [ARGUMENT]...\n       tasting select [OPTIONS] --list FILE",
    after_help = "  tasting select -- ctest --test-dir build\n  \
        ctest --test-dir build -R \"$(tasting select --format ctest-regex -- ctest --test-dir build)\""
)]
pub struct Arguments {
    /// Print JSON: a list of tests, each with the reason
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How to print the names
    #[arg(long, value_enum, default_value_t = Format::Names)]
    format: Format,
    #[command(flatten)]
    which: Which,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// One a line
    Names,
    /// A regular expression for `ctest -R`
    CtestRegex,
    /// A filterset for `cargo nextest run -E`
    Nextest,
    /// For `--gtest_filter`, of tests that are called as their cases are
    GtestFilter,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let plan = Plan::new(arguments.which.harness()?.list(Output::AsOurs)?, false);
    let results = plan.foreseen();
    let tests: Vec<ShownTest> =
        plan.started().into_iter().map(|index| shown_test(results[index].clone())).collect();
    let form = match arguments.format {
        Format::Names => Form::Names,
        Format::CtestRegex => Form::CTestRegex,
        Format::Nextest => Form::Nextest,
        Format::GtestFilter => Form::GoogleTest,
    };
    print(arguments.json, &tests, |out, tests, _| {
        let names: Vec<String> = tests.iter().map(|test| test.name.clone()).collect();
        let text = select::text(&names, form);
        if text.is_empty() { Ok(()) } else { writeln!(out, "{text}") }
    })?;
    Ok(exit::OK)
}
