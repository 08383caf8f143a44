//! Tests listed in a file: one JSON object per line, with `name`, `argv`, and optionally `cwd` and
//! `env`. For harnesses that Tasting does not know.
//!
//! In: the file. Out: its tests; those that have to run are started through `tasting run`, several
//! at a time.

use crate::process::sys;
use crate::suite::probe::Folder;
use crate::suite::progress;
use crate::suite::start::{self, HarnessOptions};
use crate::suite::{Contexts, End, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What ends a suite with failures.
const FAILED: i32 = 1;

/// A file with tests.
pub struct List {
    pub path: PathBuf,
    /// How many tests run at a time.
    pub jobs: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
}

impl List {
    fn read(&self) -> Result<Vec<TestCase>, SuiteError> {
        let bad =
            |reason: String| SuiteError::BadList { path: self.path.display().to_string(), reason };
        let text = std::fs::read_to_string(&self.path).map_err(|error| bad(error.to_string()))?;
        let here = std::env::current_dir().map_err(|error| bad(error.to_string()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let test = |(number, line): (usize, &str)| {
            let line: Line = serde_json::from_str(line)
                .map_err(|error| bad(format!("line {}: {error}", number + 1)))?;
            if line.argv.is_empty() {
                return Err(bad(format!("line {}: argv is empty", number + 1)));
            }
            let change =
                |(name, value): (String, Option<String>)| (name.into(), value.map(OsString::from));
            Ok(TestCase {
                name: line.name,
                words: line.argv.into_iter().map(OsString::from).collect(),
                working: line.cwd.map_or(here.clone(), |folder| here.join(folder)),
                changes: line.env.into_iter().map(change).collect(),
                number: number + 1,
                ..TestCase::default()
            })
        };
        lines.map(test).collect()
    }

    fn start(&self, test: &TestCase) -> io::Result<(ExitStatus, Vec<u8>)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--"]).args(&test.words).current_dir(&test.working);
        for (name, value) in &test.changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        output_of(command)
    }
}

/// Runs a command with nothing to read, and both streams in one pipe. Gives what it printed.
fn output_of(mut command: Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    sys::start_as_given(&mut command);
    let mut child = command.spawn()?;
    drop(command);
    let mut output = Vec::new();
    io::Read::read_to_end(&mut reader, &mut output)?;
    Ok((child.wait()?, output))
}

impl Harness for List {
    fn list(&self, _: Output) -> Result<Listing, SuiteError> {
        let tests = self.read()?;
        let folder = Folder::new()?;
        let look = || {
            let [own, words @ ..] = folder.command()?;
            let mut command = start::command(&own);
            command.args(words);
            output_of(command).map_err(|error| error.to_string())?;
            folder.context()
        };
        Ok(Listing::new(tests, Contexts::OfAll(Box::new(look()))))
    }

    fn run(
        &self,
        tests: &[TestCase],
        chosen: &[usize],
        options: HarnessOptions,
    ) -> Result<HarnessRun, SuiteError> {
        sys::survive_signals();
        let (next, ends) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(index) = chosen.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                if sys::survived_signal().is_some() {
                    return;
                }
                progress::show(&format!(
                    "{} of {} ran; {}",
                    ends_so_far(&ends),
                    chosen.len(),
                    tests[index].name
                ));
                let end = self.start(&tests[index]);
                let mut ends = ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                ends.push((index, show(&tests[index], end, options.output)));
            }
        };
        std::thread::scope(|scope| (0..self.jobs.max(1)).for_each(|_| _ = scope.spawn(work)));
        let ends = ends.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let has_failed =
            ends.iter().any(|(_, end)| *end == End::Failed) || ends.len() < chosen.len();
        let status = match sys::survived_signal() {
            Some(signal) => ExitStatus::from_raw(signal),
            None => ExitStatus::from_raw(if has_failed { FAILED << 8 } else { 0 }),
        };
        Ok(HarnessRun { status, ends })
    }

    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError> {
        let tests = self.read()?;
        let all: Vec<usize> = (0..tests.len()).collect();
        self.run(&tests, &all, options).map(|run| run.status)
    }

    fn failure_code(&self) -> i32 {
        FAILED
    }
}

fn ends_so_far(ends: &Mutex<Vec<(usize, End)>>) -> usize {
    ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len()
}

/// Shows what a test printed, under its name if it failed.
fn show(test: &TestCase, end: io::Result<(ExitStatus, Vec<u8>)>, output: Output) -> End {
    let (printed, end) = match end {
        Ok((status, printed)) if status.success() => (printed, End::Passed),
        Ok((status, mut printed)) => {
            printed.extend(format!("{} failed: {status}\n", test.name).into_bytes());
            (printed, End::Failed)
        }
        Err(error) => {
            (format!("{} cannot be started: {error}\n", test.name).into_bytes(), End::Failed)
        }
    };
    progress::clear();
    // Who does not listen any more still wants to know how it ends.
    let _ = match output {
        Output::AsOurs => io::stdout().write_all(&printed),
        Output::ToMessages => io::stderr().write_all(&printed),
    };
    end
}
