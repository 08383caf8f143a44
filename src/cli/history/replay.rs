//! Replaying commits: check out, build, test in shadow mode, and gather what would have been done.
//!
//! In: commits, oldest first. Out: each with its tests. Whatever a commit does, the next one follows.

use super::commands::{Commands, Done, Shell};
use super::names;
use super::repository::{Listed, Repository, Tree};
use super::state::State;
use crate::change;
use crate::cli::now;
use crate::fingerprint::walk::NodeSet;
use crate::model::{Audit, Decision, Hash, Manifest, Rebuilt, Verdict};
use crate::report::history::{Changed, Commit, Overhead, Test, Text, changes, short};
use crate::report::units::{duration, visible};
use crate::run::config::{Config, FILE};
use crate::store::{FileStore, Options, Store};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be done.
pub struct Plan<'p> {
    pub repository: &'p Repository,
    pub config: &'p Config,
    pub folder: &'p Path,
    pub clean: bool,
    /// Measure what building and testing takes without Tasting.
    pub overhead: bool,
    pub jobs: usize,
}

/// Replays commits.
pub fn replay(plan: &Plan, commits: &[Listed]) -> anyhow::Result<Vec<Commit>> {
    let (mut state, mut done) = State::open(plan.folder, commits)?;
    let store = plan.folder.join("store");
    let tree = plan.repository.tree(&plan.folder.join("tree"))?;
    let mut replay = Replay {
        project: tree.project(),
        tree,
        log: FileStore::new(&store, Options::default()),
        store,
        settings: fs::read_to_string(plan.repository.project().join(FILE)).ok(),
        is_configured: done.last().is_some_and(|commit| commit.built),
        compared: HashMap::new(),
        plan,
    };
    let mut progress = Progress::new(commits.len(), done.len());
    for listed in &commits[done.len()..] {
        progress.show(done.len(), listed);
        let measured = done.iter().any(|commit| commit.overhead.is_some());
        let commit = replay.commit(listed, &state, plan.overhead && !measured)?;
        state.add(&commit)?;
        done.push(commit);
    }
    progress.end();
    Ok(done)
}

struct Replay<'p> {
    plan: &'p Plan<'p>,
    tree: Tree,
    /// The project's folder in the tree.
    project: PathBuf,
    store: PathBuf,
    log: FileStore,
    /// The project's settings as they are now, which count at every commit.
    settings: Option<String>,
    is_configured: bool,
    /// Two builds of a program, compared.
    compared: HashMap<Hash, Vec<Changed>>,
}

impl Replay<'_> {
    fn commit(&mut self, listed: &Listed, state: &State, measure: bool) -> anyhow::Result<Commit> {
        let Listed { sha, time, subject } = listed;
        let commit = Commit { sha: sha.clone(), time: *time, subject: subject.clone(), ..Commit::default() };
        if let Err(error) = self.check_out(sha) {
            return Ok(Commit { error: Some(format!("{error:#}")), ..commit });
        }
        let commands = Commands::of(&self.project, &self.plan.config.history);
        let built = self.build(&commands)?;
        if !built.success {
            self.is_configured = false;
            return Ok(Commit { error: Some(format!("it does not build\n{}", built.tail)), ..commit });
        }
        let mut overhead = if measure { self.measure_build(&commands)? } else { None };
        let begun = state.begin(sha, now())?;
        let tested = self.shell(false).run(&commands.test)?;
        let tests = self.tests(begun)?;
        let error = tests.is_empty().then(|| format!("no test went through tasting run\n{}", tested.tail));
        if let Some(overhead) = overhead.as_mut().filter(|_| !tests.is_empty()) {
            overhead.test_ms = tested.milliseconds;
            overhead.plain_test_ms = self.shell(true).run(&commands.test)?.milliseconds;
        }
        let (build_ms, test_ms) = (built.milliseconds, tested.milliseconds);
        Ok(Commit { built: true, error, build_ms, test_ms, tests, overhead, ..commit })
    }

    fn check_out(&self, sha: &str) -> anyhow::Result<()> {
        self.tree.check_out(sha)?;
        if let Some(settings) = &self.settings {
            fs::create_dir_all(&self.project)?;
            fs::write(self.project.join(FILE), settings)?;
        }
        Ok(())
    }

    fn shell(&self, is_plain: bool) -> Shell<'_> {
        Shell { folder: &self.project, store: &self.store, jobs: self.plan.jobs, is_plain }
    }

    /// Builds on top of what is there; where that fails, or is not wanted, from nothing.
    fn build(&mut self, commands: &Commands) -> anyhow::Result<Done> {
        if self.is_configured && !self.plan.clean {
            let built = self.run(&commands.build, false)?;
            if built.success {
                return Ok(built);
            }
        }
        let built = self.build_anew(commands, false)?;
        self.is_configured = built.success;
        Ok(built)
    }

    fn build_anew(&self, commands: &Commands, is_plain: bool) -> anyhow::Result<Done> {
        self.tree.clean()?;
        if let Some(settings) = &self.settings {
            fs::write(self.project.join(FILE), settings)?;
        }
        if let Some(configure) = &commands.configure {
            let configured = self.run(configure, is_plain)?;
            if !configured.success {
                return Ok(configured);
            }
        }
        Ok(self.run(&commands.build, is_plain)?)
    }

    fn run(&self, line: &str, is_plain: bool) -> io::Result<Done> {
        self.shell(is_plain).run(line)
    }

    /// Builds without Tasting and with it once more. `None` if that does not build.
    fn measure_build(&self, commands: &Commands) -> anyhow::Result<Option<Overhead>> {
        let plain = self.build_anew(commands, true)?;
        let with = self.build_anew(commands, false)?;
        let both = plain.success && with.success;
        let (plain_build_ms, build_ms) = (plain.milliseconds, with.milliseconds);
        Ok(both.then(|| Overhead { plain_build_ms, build_ms, ..Overhead::default() }))
    }

    /// What was decided about the tests since then. Of one that ran twice, the first decision counts.
    fn tests(&mut self, since: u64) -> anyhow::Result<Vec<Test>> {
        let decisions = self.log.decisions(usize::MAX)?;
        let mut seen = HashSet::new();
        let decisions = decisions.into_iter().filter(|decision| decision.time >= since && decision.shadow.is_some());
        let first: Vec<Decision> =
            decisions.filter(|decision| seen.insert((decision.argv.clone(), decision.cwd.clone()))).collect();
        Ok(first.iter().map(|decision| self.test(decision)).collect())
    }

    fn test(&mut self, decision: &Decision) -> Test {
        let shadow = decision.shadow.as_ref();
        let granularities = shadow.map(|shadow| shadow.granularities).unwrap_or_default();
        let programs = shadow.map(|shadow| shadow.programs.as_slice()).unwrap_or_default();
        let is_reused = granularities.executed == Verdict::Reused;
        let changed: Vec<Changed> = programs.iter().flat_map(|name| self.changed(*name)).collect();
        let reason = match (is_reused, decision.audit) {
            (true, Some(Audit::Same)) => {
                let from = shadow.and_then(|shadow| shadow.reused_from.as_deref()).unwrap_or("an earlier run");
                format!("unchanged since {}", short(from))
            }
            _ => decision.reason.clone(),
        };
        let name = names::of(&decision.argv, &decision.cwd, &self.tree.root);
        Test {
            name: Text::from(&*name),
            decision: granularities,
            exit_code: decision.exit_code,
            reason: Text::from(&*reason),
            sort: Text::from(&*decision.sort),
            duration_ms: decision.duration_ms,
            audit: decision.audit,
            disturbed: decision.disturbed.as_deref().map(Text::from),
            changed,
        }
    }

    fn changed(&mut self, name: Hash) -> Vec<Changed> {
        if let Some(known) = self.compared.get(&name) {
            return known.clone();
        }
        let changed = compare(&self.log, name).unwrap_or_default();
        self.compared.insert(name, changed.clone());
        changed
    }
}

/// What has changed between two builds of a program, as they are in the store.
fn compare(store: &FileStore, name: Hash) -> Option<Vec<Changed>> {
    let builds = Rebuilt::from_bytes(&store.blob(name).ok()??).ok()?;
    let read = |names: &[Hash]| names.iter().map(|name| store.blob(*name).ok()?).collect::<Option<Vec<_>>>();
    let (before, now) = (read(&builds.before)?, read(&builds.now)?);
    let (before, now) = (manifests(&before)?, manifests(&now)?);
    let set = NodeSet::from_bytes(&builds.executed);
    let executed = (!builds.executed.is_empty()).then_some(&set);
    let narrowed = change::compare(&before, &now, builds.entry.as_deref(), executed);
    Some(changes::of(&narrowed))
}

fn manifests(bytes: &[Vec<u8>]) -> Option<Vec<Manifest<'_>>> {
    bytes.iter().map(|bytes| Manifest::decode(bytes).ok()).collect()
}

/// What people see on a terminal while they wait.
struct Progress {
    started: Instant,
    all: usize,
    before: usize,
    is_seen: bool,
}

impl Progress {
    fn new(all: usize, before: usize) -> Self {
        Progress { started: Instant::now(), all, before, is_seen: io::stderr().is_terminal() }
    }

    fn show(&mut self, done: usize, listed: &Listed) {
        if !self.is_seen {
            return;
        }
        let passed = self.started.elapsed().as_millis() as u64;
        let left = match done - self.before {
            0 => String::new(),
            here => format!(", about {} left", duration(passed / here as u64 * (self.all - done) as u64)),
        };
        let subject: String = visible(&listed.subject).chars().take(50).collect();
        let _ = write!(io::stderr(), "\r\x1b[K[{}/{}] {} {subject}{left}", done + 1, self.all, short(&listed.sha));
    }

    fn end(&self) {
        if self.is_seen {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
