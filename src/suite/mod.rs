//! A whole suite, decided in one process. The `harness` lists its tests. A `probe` finds out the
//! context in which it starts them, or `memory` knows it from an earlier time. `course` decides
//! about all of them, restores what the reused ones leave behind and has the harness run the
//! others, in the `order` that they have.
//!
//! In: a harness's command line. Out: what was decided and how each test ended, and the exit status
//! of the harness.

mod answers;
pub mod course;
pub mod failures;
mod harness;
mod memory;
mod options;
mod order;
pub mod probe;
mod progress;
pub mod select;
pub mod start;

use self::harness::{automake, cargo, ctest, list, meson, nextest};
use self::memory::Memory;
use self::start::HarnessOptions;
use crate::run::Options;
use crate::run::context::InvocationContext;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use thiserror::Error;

/// Why a suite cannot be decided about. The harness can still run it.
#[derive(Debug, Error)]
pub enum SuiteError {
    #[error("{0}")]
    Unknown(String),
    #[error("cannot run {program}: {error}")]
    NotStarted { program: String, error: io::Error },
    #[error("{program} does not tell what tests there are: {reason}")]
    NoList { program: String, reason: String },
    #[error("{path}: {reason}")]
    BadList { path: String, reason: String },
    #[error("no folder for temporary files: {0}")]
    NoFolder(io::Error),
}

/// A test that a harness knows.
#[derive(Clone, Debug, Default)]
pub struct TestCase {
    pub name: String,
    /// What is started, without `tasting run` before it.
    pub words: Vec<OsString>,
    /// Where it is started.
    pub working: PathBuf,
    /// Variables that it is given, or that are taken from it.
    pub changes: Vec<(OsString, Option<OsString>)>,
    pub options: Options,
    /// Tests that come before it, by their places in the list.
    pub after: Vec<usize>,
    /// Fixtures that it makes, needs and removes.
    pub sets_up: Vec<String>,
    pub requires: Vec<String>,
    pub cleans_up: Vec<String>,
    /// Why nothing can be decided about it before the harness starts it.
    pub left_to_harness: Option<String>,
    /// It never runs.
    pub is_disabled: bool,
    /// The exit code with which it says that it did nothing.
    pub skip_code: Option<i32>,
    /// A text in its output by which it says so.
    pub skip_text: Option<&'static str>,
    /// It passes if it fails.
    pub is_meant_to_fail: bool,
    /// The number by which the harness knows it.
    pub number: usize,
    /// A file in which the harness writes how it ended.
    pub trace: Option<PathBuf>,
}

/// What a harness says of its tests.
pub struct Listing {
    pub tests: Vec<TestCase>,
    pub contexts: Contexts,
    /// It runs all of its tests or none, and each is decided about when it is started.
    pub runs_all: bool,
}

/// What the tests that a harness starts can see.
pub enum Contexts {
    /// All the same, but for what is said of each; or why that is not known.
    OfAll(Box<Result<InvocationContext, String>>),
    /// What they were started with earlier.
    Remembered(Box<Memory>),
}

impl Listing {
    pub fn new(tests: Vec<TestCase>, contexts: Contexts) -> Listing {
        Listing { tests, contexts, runs_all: false }
    }
}

/// How a test ended, in the eyes of its harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    Skipped,
    /// It was not started, though it should have been.
    NotRun,
}

/// A run of some tests by their harness.
pub struct HarnessRun {
    pub status: ExitStatus,
    /// How tests ended, as far as the harness says so, by their places in the list.
    pub ends: Vec<(usize, End)>,
}

/// Where the output of a harness goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Where ours goes.
    AsOurs,
    /// To standard error: standard output is for somebody else.
    ToMessages,
}

/// Something that runs tests.
pub trait Harness: Sync {
    /// Asks for the tests that would run.
    fn list(&self, output: Output) -> Result<Listing, SuiteError>;
    /// Runs these tests, by their places in the list, and those that they cannot do without.
    fn run(
        &self,
        tests: &[TestCase],
        chosen: &[usize],
        options: HarnessOptions,
    ) -> Result<HarnessRun, SuiteError>;
    /// Runs what would run without us.
    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError>;
    /// The exit code that says that tests failed.
    fn failure_code(&self) -> i32;
}

/// The harness that a command line is about.
pub fn harness(words: &[OsString]) -> Result<Box<dyn Harness>, SuiteError> {
    let program = words.first().map(PathBuf::from).unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.as_str() {
        "ctest" | "ctest3" => Ok(Box::new(ctest::CTest::new(words))),
        "meson" if words.get(1).is_some_and(|word| word == "test") => {
            Ok(Box::new(meson::Meson::new(words)?))
        }
        "make" | "gmake" => Ok(Box::new(automake::Automake::new(words)?)),
        "cargo" if nextest::is_called(words) => Ok(Box::new(nextest::Nextest::new(words))),
        "cargo" if cargo::is_called(words, &["test"]) => Ok(Box::new(cargo::Cargo::new(words))),
        _ => Err(SuiteError::Unknown(format!(
            "{name:?} is no harness that is known (ctest, meson test, make check with Automake, cargo test, cargo nextest run, or --list FILE): put `tasting run` before its tests"
        ))),
    }
}

/// The tests of a file with one JSON object a line.
pub fn list_file(path: PathBuf, jobs: usize) -> Box<dyn Harness> {
    Box::new(list::List { path, jobs })
}
