//! `tasting init --try`: builds and tests a copy of the project in a temporary folder.
//!
//! In: the project's folder. Out: how many of its tests were reused when nothing had changed, and
//! why the others were not.

use super::{ProjectFolder, copy, lines_with, path_with};
use crate::cli::history::{commands::Commands, names};
use crate::cli::scratch::Scratch;
use crate::model::{Decision, Verdict};
use crate::process::sys;
use crate::report::trial::{NotReused, Trial};
use crate::run::config::Config;
use crate::store::{FileStore, Journal, Options};
use anyhow::{Context, bail};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How often the tests run at the most. One that clears the folder of the run before is reused from
/// its third run on; whatever is not by then never is.
const RUNS: usize = 4;

/// Lines of output that say why something does not build.
const SHOWN: usize = 15;

pub fn run(folder: &Path, place: &ProjectFolder) -> anyhow::Result<Trial> {
    let scratch = Scratch::new("try").context("no temporary folder can be made")?;
    let project = scratch.path("project");
    copy::project(folder, &project)?;
    let prefix = place.installation(&scratch.path("prefix"))?;
    let place =
        ProjectFolder { prefix: Some(prefix.clone()), on_path: true, store: scratch.path("store") };
    let config = Config::read(&project).map_err(anyhow::Error::msg)?;
    let commands = Commands::new(lines_with(&project, &place), &config.history);
    let attempt = Attempt { scratch: &scratch, project, path: path_with(&prefix)? };
    attempt.build_and_test(&commands)
}

/// A copy of the project, and where things are tried.
struct Attempt<'s> {
    scratch: &'s Scratch,
    project: PathBuf,
    path: OsString,
}

/// A line that has run.
struct Done {
    success: bool,
    milliseconds: u64,
    /// The end of its output.
    tail: String,
}

impl Attempt<'_> {
    fn build_and_test(&self, commands: &Commands) -> anyhow::Result<Trial> {
        let mut trial = Trial {
            build_ms: 0,
            test_ms: Vec::new(),
            total: 0,
            reused: 0,
            executed: Vec::new(),
            problem: None,
            notes: Vec::new(),
        };
        let jobs = format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from));
        for line in commands.configure.iter().chain([&commands.build]) {
            let done = self
                .shell(line, &[("MAKEFLAGS", &jobs), ("CMAKE_BUILD_PARALLEL_LEVEL", &jobs[2..])])?;
            trial.build_ms += done.milliseconds;
            if !done.success {
                trial.problem = Some(format!("it does not build: {line}\n{}", done.tail));
                return Ok(trial);
            }
        }
        self.test(&commands.test, &mut trial)?;
        Ok(trial)
    }

    /// Tests until the results settle.
    fn test(&self, line: &str, trial: &mut Trial) -> anyhow::Result<()> {
        let log = FileStore::new(&self.scratch.path("store"), Options::default());
        let mut seen = 0;
        for _ in 0..RUNS {
            let done = self.shell(line, &[])?;
            trial.test_ms.push(done.milliseconds);
            let all = log.decisions(usize::MAX)?;
            let latest = latest(&all[seen.min(all.len())..]);
            seen = all.len();
            if latest.is_empty() {
                trial.problem =
                    Some(format!("no test went through tasting run: {line}\n{}", done.tail));
                return Ok(());
            }
            if !done.success && trial.test_ms.len() == 1 {
                let plain = self.shell(line, &[("TASTING_DISABLE", "1")])?;
                trial.notes.push(failing(plain.success, &done.tail));
            }
            self.count(&latest, trial);
            // Once is to know the tests. What they left themselves has gone with the run after.
            let may_settle =
                trial.executed.iter().any(|test| test.code == "own-files" || test.code == "new");
            if trial.test_ms.len() > 1 && !may_settle {
                break;
            }
        }
        Ok(())
    }

    fn count(&self, latest: &[&Decision], trial: &mut Trial) {
        let executed = latest.iter().filter(|decision| decision.decision == Verdict::Executed);
        trial.executed = executed.map(|decision| self.not_reused(decision)).collect();
        trial.total = latest.len() as u64;
        trial.reused = trial.total - trial.executed.len() as u64;
    }

    fn not_reused(&self, decision: &Decision) -> NotReused {
        let code = decision.not_kept.as_ref().unwrap_or(&decision.sort).clone();
        let name = names::of(&decision.argv, &decision.cwd, &self.project);
        // Why its last run was not kept, and the same once more of this one: once is enough.
        let reason = decision
            .reason
            .rsplit_once("; not kept: ")
            .map_or(&*decision.reason, |(_, reason)| reason);
        let reason = reason.trim_end_matches(&format!(" [{code}]")).to_owned();
        NotReused { name, code, reason }
    }

    /// Runs a line with its output in a file: a test's own children may hold on to it.
    fn shell(&self, line: &str, variables: &[(&str, &str)]) -> anyhow::Result<Done> {
        let started = Instant::now();
        let output = self.scratch.path("output");
        let file =
            File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        let mut command = self.scratch.command(Path::new("sh"));
        command.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(&self.project).stdout(file);
        command
            .env("PATH", &self.path)
            .env("TASTING_ROOT", &self.project)
            .env("TASTING_REMOTE", "none");
        command.envs(variables.iter().copied());
        let success = finish(command)?;
        let milliseconds = started.elapsed().as_millis() as u64;
        let text = String::from_utf8_lossy(&fs::read(&output).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        Ok(Done {
            success,
            milliseconds,
            tail: lines[lines.len().saturating_sub(SHOWN)..].join("\n"),
        })
    }
}

/// Runs a command. Ctrl-C ends it, and then us, but not before the temporary folder is gone.
fn finish(mut command: Command) -> anyhow::Result<bool> {
    sys::survive_signals();
    let mut child = command.spawn().context("cannot start sh")?;
    sys::forward_signals_to(Some(child.id()));
    let status = child.wait();
    sys::forward_signals_to(None);
    if sys::survived_signal().is_some() {
        bail!("interrupted");
    }
    Ok(status.context("cannot wait for sh")?.success())
}

/// Of each test the latest decision, in their order.
fn latest(decisions: &[Decision]) -> Vec<&Decision> {
    let place: HashMap<_, _> =
        decisions.iter().enumerate().map(|(index, one)| ((&one.argv, &one.cwd), index)).collect();
    let is_last = |(index, one): &(usize, &Decision)| place[&(&one.argv, &one.cwd)] == *index;
    decisions.iter().enumerate().filter(is_last).map(|(_, one)| one).collect()
}

fn failing(passes_plainly: bool, tail: &str) -> String {
    match passes_plainly {
        true => {
            format!(
                "the tests fail through Tasting and pass without it: {}",
                tail.lines().last().unwrap_or_default()
            )
        }
        false => "there are tests that fail, without Tasting as well".to_owned(),
    }
}
