//! Replaying commits: check out, build, test in shadow mode, and gather what would have been done.
//!
//! In: commits, oldest first. Out: each with its tests. Whatever a commit does, the next one
//! follows.

use super::commands::{Commands, Done, Mode, Shell};
use super::decided::Decided;
use super::progress::Progress;
use super::repository::{Listed, Repository};
use super::state::ReplayState;
use super::tree::Tree;
use crate::cli::{init, now};
use crate::report::history::{Commit, Overhead, Text, Times};
use crate::run::config::{Config, FILE};
use crate::store::{FileStore, Journal, Options};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is to be done.
pub struct Plan<'p> {
    pub repository: &'p Repository,
    pub config: &'p Config,
    pub folder: &'p Path,
    pub clean: bool,
    /// Measure what building and testing takes without Tasting.
    pub overhead: bool,
    /// Measure at each commit what testing takes without Tasting and with results reused.
    pub times: Option<Reuse>,
    /// How finely the shims hash; `None`: as the settings say.
    pub level: Option<&'p str>,
    pub jobs: usize,
}

/// How results are reused where that is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// By each test's own `tasting run`.
    ByTest,
    /// By `tasting suite`, in front of the line that tests.
    BySuite,
}

/// Replays commits.
pub fn replay(plan: &Plan, commits: &[Listed]) -> anyhow::Result<Vec<Commit>> {
    let (mut state, mut done) = ReplayState::open(plan.folder, commits)?;
    let store = plan.folder.join("store");
    let tree = plan.repository.tree(&plan.folder.join("tree"))?;
    let prefix = init::installation(&plan.folder.join("prefix"))?;
    let mut replay = Replay {
        project: tree.project(),
        decided: Decided::new(&store, &tree.root),
        tree,
        progress: Progress::new(commits.len(), done.len(), tests_counted_in(&store)),
        store,
        settings: fs::read_to_string(plan.repository.project().join(FILE)).ok(),
        // An interrupted build may have left half a program, which make takes for a whole one.
        is_configured: false,
        path: init::path_with(&prefix)?,
        prefix,
        plan,
    };
    for listed in &commits[done.len()..] {
        let tests = done.iter().rev().map(|commit| commit.tests.len()).find(|tests| *tests > 0);
        replay.progress.commit(done.len(), listed, tests.unwrap_or(0));
        let measured = done.iter().any(|commit| commit.overhead.is_some());
        let tested = done.iter().rev().find(|commit| !commit.tests.is_empty());
        let mut commit = replay.commit(listed, &state, plan.overhead && !measured)?;
        if let Some(before) = tested.filter(|_| !commit.tests.is_empty()) {
            let files = replay.tree.differing(&before.sha, &commit.sha)?;
            commit.files = files.iter().map(|file| Text::from(&**file)).collect();
        }
        state.add(&commit)?;
        done.push(commit);
    }
    Ok(done)
}

/// Counts the tests since the sums were last set to zero.
fn tests_counted_in(store: &Path) -> impl Fn() -> usize + Send + use<> {
    let log = FileStore::new(store, Options::default());
    move || log.stats().map_or(0, |stats| stats.shadow_runs as usize)
}

struct Replay<'p> {
    plan: &'p Plan<'p>,
    tree: Tree,
    /// The project's folder in the tree.
    project: PathBuf,
    store: PathBuf,
    decided: Decided,
    progress: Progress,
    /// The project's settings as they are now, which count at every commit.
    settings: Option<String>,
    is_configured: bool,
    /// Where Tasting is installed, and the PATH that finds it there.
    prefix: PathBuf,
    path: OsString,
}

impl Replay<'_> {
    fn commit(
        &mut self,
        listed: &Listed,
        state: &ReplayState,
        measure: bool,
    ) -> anyhow::Result<Commit> {
        let Listed { sha, time, subject } = listed;
        let commit =
            Commit { sha: sha.clone(), time: *time, subject: subject.clone(), ..Commit::default() };
        self.progress.step("checking out", false);
        if let Err(error) = self.check_out(sha) {
            return Ok(Commit { error: Some(format!("{error:#}")), ..commit });
        }
        let found = init::lines(&self.project, &self.prefix, &self.store);
        let commands = Commands::new(found, &self.plan.config.history);
        self.progress.step("building", false);
        let built = self.build(&commands)?;
        if !built.success {
            self.is_configured = false;
            return Ok(Commit {
                error: Some(format!("it does not build\n{}", built.tail)),
                ..commit
            });
        }
        let mut overhead = if measure { self.measure_build(&commands)? } else { None };
        let begun = state.begin(sha, now())?;
        let _ = FileStore::new(&self.store, Options::default()).zero_stats();
        self.progress.step("testing", true);
        let tested = self.shell(Mode::Shadow).run(&commands.test)?;
        let tests = self.decided.since(begun)?;
        let error =
            tests.is_empty().then(|| format!("no test went through tasting run\n{}", tested.tail));
        if let Some(overhead) = overhead.as_mut().filter(|_| !tests.is_empty()) {
            self.progress.step("testing without Tasting", false);
            overhead.test_ms = tested.milliseconds;
            overhead.plain_test_ms = self.shell(Mode::Plain).run(&commands.test)?.milliseconds;
        }
        let times = match self.plan.times {
            Some(reuse) if !tests.is_empty() => Some(self.measure_tests(&commands, reuse)?),
            _ => None,
        };
        let (build_ms, test_ms) = (built.milliseconds, tested.milliseconds);
        Ok(Commit { built: true, error, build_ms, test_ms, tests, overhead, times, ..commit })
    }

    fn check_out(&self, sha: &str) -> anyhow::Result<()> {
        self.tree.check_out(sha)?;
        if let Some(settings) = &self.settings {
            fs::create_dir_all(&self.project)?;
            fs::write(self.project.join(FILE), settings)?;
        }
        Ok(())
    }

    fn shell(&self, mode: Mode) -> Shell<'_> {
        let Plan { jobs, level, .. } = *self.plan;
        let (folder, store, path) = (&*self.project, &*self.store, &*self.path);
        Shell { folder, store, path, jobs, mode, level }
    }

    /// Tests without Tasting, and as a user would who has tested every commit until now.
    fn measure_tests(&mut self, commands: &Commands, reuse: Reuse) -> anyhow::Result<Times> {
        let line = match reuse {
            Reuse::ByTest => commands.test.clone(),
            Reuse::BySuite => format!("tasting suite -- {}", commands.test),
        };
        self.progress.step("testing without Tasting", false);
        let plain = self.shell(Mode::Plain).run(&commands.test)?;
        self.progress.step("testing with results reused", false);
        let store = self.plan.folder.join("reuse");
        let with = Shell { store: &store, ..self.shell(Mode::Reusing) }.run(&line)?;
        Ok(Times {
            plain_ms: plain.milliseconds,
            reusing_ms: with.milliseconds,
            plain_cpu_ms: plain.cpu_ms,
            reusing_cpu_ms: with.cpu_ms,
            other_ends: u64::from(plain.success != with.success),
        })
    }

    /// Builds on top of what is there; where that fails, or is not wanted, from nothing.
    fn build(&mut self, commands: &Commands) -> anyhow::Result<Done> {
        if self.is_configured && !self.plan.clean {
            let built = self.run(&commands.build, Mode::Shadow)?;
            if built.success {
                return Ok(built);
            }
        }
        let built = self.build_anew(commands, Mode::Shadow)?;
        self.is_configured = built.success;
        Ok(built)
    }

    fn build_anew(&self, commands: &Commands, mode: Mode) -> anyhow::Result<Done> {
        self.tree.clean()?;
        if let Some(settings) = &self.settings {
            fs::write(self.project.join(FILE), settings)?;
        }
        if let Some(configure) = &commands.configure {
            let configured = self.run(configure, mode)?;
            if !configured.success {
                return Ok(configured);
            }
        }
        Ok(self.run(&commands.build, mode)?)
    }

    fn run(&self, line: &str, mode: Mode) -> io::Result<Done> {
        self.shell(mode).run(line)
    }

    /// Builds without Tasting and with it once more. `None` if that does not build.
    fn measure_build(&mut self, commands: &Commands) -> anyhow::Result<Option<Overhead>> {
        self.progress.step("building twice, once without Tasting", false);
        let plain = self.build_anew(commands, Mode::Plain)?;
        let with = self.build_anew(commands, Mode::Shadow)?;
        let both = plain.success && with.success;
        let (plain_build_ms, build_ms) = (plain.milliseconds, with.milliseconds);
        Ok(both.then(|| Overhead { plain_build_ms, build_ms, ..Overhead::default() }))
    }
}
