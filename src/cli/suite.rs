//! `tasting suite`: all tests of a harness, decided in one process.

use super::{exit, is_colourful};
use crate::model::{Step, Verdict};
use crate::report::json;
use crate::report::suite::{self as shown, ShownSuite, ShownTest};
use crate::suite::course::{self, Course, Plan, TestResult};
use crate::suite::{self, End, Harness, Output, SuiteError};
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

/// Run a whole suite: reuse what can be reused, let the harness run the rest.
///
/// The harness is asked which tests there are; all of them are decided about in this process, and it runs only those that have to
/// run, through `tasting run`. Its output, its filters and its exit status keep their meaning. At the end it is told what was
/// reused, what ran and why, and what failed.
#[derive(clap::Args)]
#[command(
    override_usage = "tasting suite [OPTIONS] -- HARNESS [ARGUMENT]...\n       tasting suite [OPTIONS] --list FILE",
    after_help = "Harnesses: ctest; or a file with one JSON object a line (name, argv, cwd, env).\n\n  \
        tasting suite -- ctest --test-dir build -j8\n  \
        tasting suite --dry-run -- ctest --test-dir build -L fast\n  \
        tasting suite --list tests.jsonl -j8"
)]
pub struct Arguments {
    /// Tell what would run and why; run nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON; what the harness prints goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// The tests that are meant.
#[derive(clap::Args)]
pub struct Which {
    /// Take the tests from a file: a JSON object a line with `name`, `argv`, `cwd`, `env`
    #[arg(long, value_name = "FILE", conflicts_with = "harness", required_unless_present = "harness")]
    list: Option<PathBuf>,
    /// How many tests of a list run at a time
    #[arg(short, long, value_name = "N", default_value_t = 1, requires = "list")]
    jobs: usize,
    /// The harness and its arguments
    #[arg(last = true, value_name = "HARNESS")]
    harness: Vec<OsString>,
}

impl Which {
    pub fn harness(&self) -> Result<Box<dyn Harness>, SuiteError> {
        match &self.list {
            Some(file) => Ok(suite::list_file(file.clone(), self.jobs)),
            None => suite::harness(&self.harness),
        }
    }
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let harness = arguments.which.harness()?;
    if arguments.dry_run {
        let plan = Plan::new(harness.list()?, false);
        show(&ShownSuite::new(plan.foreseen().into_iter().map(shown_test).collect(), true), arguments.json)?;
        return Ok(exit::OK);
    }
    let output = if arguments.json { Output::ToMessages } else { Output::AsOurs };
    let run = match course::run(&*harness, Course { output, keeps_output: false }) {
        Ok(run) => run,
        Err(error @ (SuiteError::BadList { .. } | SuiteError::NotStarted { .. })) => return Err(error.into()),
        Err(error) => {
            let status = harness.run_all(output)?;
            show(&ShownSuite::closed(error.to_string()), arguments.json)?;
            return end(Some(status), 0);
        }
    };
    show(&ShownSuite::new(run.tests.into_iter().map(shown_test).collect(), false), arguments.json)?;
    end(run.status, run.code)
}

/// Ends as the harness ended.
fn end(status: Option<std::process::ExitStatus>, code: i32) -> anyhow::Result<u8> {
    match status {
        Some(status) if status.signal().is_some() => crate::process::spawn::end_like(status),
        Some(status) if !status.success() => Ok(status.code().unwrap_or(1) as u8),
        _ => Ok(code as u8),
    }
}

/// Prints it. A reader that is gone does not change how the suite ended.
fn show(suite: &ShownSuite, as_json: bool) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match as_json {
        true => json::write(&mut out, suite).map_err(io::Error::other),
        false => shown::write(&mut out, suite, is_colourful()),
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot print what came of the suite")
        }
        _ => Ok(()),
    }
}

pub fn shown_test(test: TestResult) -> ShownTest {
    ShownTest {
        name: test.name,
        argv: test.argv,
        decision: match test.verdict {
            Some(Verdict::Reused) => "reused",
            Some(Verdict::Executed) => "executed",
            None => "disabled",
        },
        step: test.step.map(|step| match step {
            Step::Static => "static",
            Step::Executed => "executed",
        }),
        reason: test.reason.text,
        sort: test.reason.sort,
        exit_code: test.exit_code,
        duration_ms: test.duration_ms,
        saved_ms: test.saved_ms,
        end: test.end.map(|end| match end {
            End::Passed => "passed",
            End::Failed => "failed",
            End::Skipped => "skipped",
            End::NotRun => "not run",
        }),
    }
}
