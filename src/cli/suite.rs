//! `tasting suite`: all tests of a harness, decided in one process.

use super::report::write_file;
use super::{exit, is_colourful};
use crate::model::{Granularities, Step, Verdict};
use crate::process::Settings;
use crate::report::history::{Commit, History, Test, Text};
use crate::report::suite::{self as shown, ShownSuite, ShownTest};
use crate::report::{json, junit, page};
use crate::suite::course::{self, Course, Plan, TestResult};
use crate::suite::failures::Failures;
use crate::suite::start::HarnessOptions;
use crate::suite::{self, End, Harness, Output, SuiteError};
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Run a whole suite: reuse what can be reused, let the harness run the rest.
///
/// The harness is asked which tests there are; all of them are decided about in this process, and
/// it runs only those that have to run, through `tasting run`. Its output, its filters and its exit
/// status keep their meaning. At the end it is told what was reused, what ran and why, and what
/// failed.
#[derive(clap::Args)]
#[command(
    override_usage = "tasting suite [OPTIONS] -- HARNESS [ARGUMENT]...\n       tasting suite [OPTIONS] --list FILE",
    after_help = "Harnesses: ctest, meson test, make check (Automake), cargo test, cargo nextest run; or a file with one JSON object a line\n\
        (name, argv, cwd, env).\n\n  \
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
    /// Write a JUnit file with all tests; those that were reused have the property
    /// `tasting.reused`
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    junit: Option<PathBuf>,
    /// Write a page that shows what became of the tests, and why (as `tasting report` does)
    #[arg(long, value_name = "FILE.html", conflicts_with = "dry_run")]
    report: Option<PathBuf>,
    /// Run only the tests that failed the last time that this suite was run here
    #[arg(long, conflicts_with = "dry_run")]
    failed: bool,
    #[command(flatten)]
    which: Which,
}

/// The tests that are meant.
#[derive(clap::Args)]
pub struct Which {
    /// Take the tests from a file: a JSON object a line with `name`, `argv`, `cwd`, `env`
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "harness",
        required_unless_present = "harness"
    )]
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

impl Which {
    /// What the suite is known by.
    fn words(&self) -> Vec<OsString> {
        let list = self.list.iter().map(|file| file.clone().into_os_string());
        self.harness.iter().cloned().chain(list).collect()
    }

    /// What people call the harness.
    fn name(&self) -> String {
        let program = self.harness.first().map(PathBuf::from).unwrap_or_else(|| "list".into());
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let harness = arguments.which.harness()?;
    let output = if arguments.json { Output::ToMessages } else { Output::AsOurs };
    if Settings::from_environment().disable && !arguments.dry_run {
        return run_all(&*harness, output, "TASTING_DISABLE is set", arguments.json);
    }
    if arguments.dry_run {
        let plan = Plan::new(harness.list(output)?, false);
        show(
            &ShownSuite::new(plan.foreseen().into_iter().map(shown_test).collect(), true),
            arguments.json,
        )?;
        return Ok(exit::OK);
    }
    let failures = Failures::of(&arguments.which.words());
    let only = arguments
        .failed
        .then(|| failures.names())
        .map(|names| names.context("no earlier run is known here"));
    let course =
        Course { output, keeps_output: arguments.junit.is_some(), only: only.transpose()? };
    let run = match course::run(&*harness, course) {
        Ok(run) => run,
        Err(error @ (SuiteError::BadList { .. } | SuiteError::NotStarted { .. })) => {
            return Err(error.into());
        }
        Err(error) => return run_all(&*harness, output, &error.to_string(), arguments.json),
    };
    failures.remember(&run.tests);
    let suite = ShownSuite::new(run.tests.into_iter().map(shown_test).collect(), false);
    show(&suite, arguments.json)?;
    write_files(&arguments, &suite)?;
    end(run.status, run.code)
}

/// Has the harness run everything, as without us.
fn run_all(harness: &dyn Harness, output: Output, why: &str, as_json: bool) -> anyhow::Result<u8> {
    let status = harness.run_all(HarnessOptions { output, notes: None })?;
    show(&ShownSuite::closed(why.to_owned()), as_json)?;
    end(Some(status), 0)
}

/// Writes what is to be kept of a suite.
fn write_files(arguments: &Arguments, suite: &ShownSuite) -> anyhow::Result<()> {
    if let Some(path) = &arguments.junit {
        write_file(path, |file| junit::write(file, suite, &arguments.which.name()))?;
    }
    if let Some(path) = &arguments.report {
        let history = history(suite, &format!("the suite of {}", arguments.which.name()));
        write_file(path, |file| page::write(file, &page::PageContent::of_decisions(&history)))?;
    }
    Ok(())
}

/// The suite as a history of one commit, which pages are made of.
fn history(suite: &ShownSuite, subject: &str) -> History {
    let test = |test: &ShownTest| {
        let verdict = if test.decision == "reused" { Verdict::Reused } else { Verdict::Executed };
        Test {
            name: Text::from(&*test.name),
            decision: Granularities { executed: verdict, ..Granularities::default() },
            exit_code: test.exit_code.unwrap_or_default(),
            failed: test.end.map(|end| end == "failed"),
            reason: Text::from(&*test.reason),
            sort: Text::from(test.sort),
            // What was reused took as long as the run that it comes from.
            duration_ms: test.duration_ms + test.saved_ms,
            audit: None,
            disturbed: None,
            ast: None,
            changed: Vec::new(),
        }
    };
    let tests = suite.tests.iter().filter(|test| test.decision != "disabled").map(test).collect();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let (sha, subject) = ("latest".to_owned(), subject.to_owned());
    let commit = Commit { sha, subject, time, built: true, tests, ..Commit::default() };
    History::new(std::env::current_dir().unwrap_or_default().display().to_string(), vec![commit])
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
        output: test.output,
    }
}
