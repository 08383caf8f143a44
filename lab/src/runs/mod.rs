//! The laboratory for the run side: random tests, plainly and under `tasting run`, with changes
//! from outside in between.
//!
//! `steps` (tables of what tests do) → `scenario` (tests, `world`, `change`s) → `trial` (the
//! oracle), over `launch` (both ways of running) and `tree` (a folder in memory) → `counts`,
//! evidence. `toolbox` builds the C programs.

mod change;
mod counts;
mod launch;
mod scenario;
mod steps;
mod toolbox;
mod tree;
mod trial;
mod world;

pub use counts::Counts;
pub use steps::Feature;

use crate::done::Done;
use crate::progress::Progress;
use crate::setup::Tools;
use anyhow::Context;
use clap::ValueEnum;
use launch::Workspace;
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steps::Maker;
use toolbox::Toolbox;
use trial::{Failure, Fault, Trial};

/// The first port that tests may find busy; each worker has one.
const FIRST_PORT: u16 = 24_000;
/// How many failures are kept with everything that belongs to them.
const MOST_EVIDENCE: usize = 200;

/// What to hunt for, and where.
pub struct Plan {
    pub tools: Tools,
    pub seed: u64,
    pub features: Vec<Feature>,
    pub most: Option<u64>,
    /// Where tests are run: on a disk.
    pub scratch: PathBuf,
    /// Where stores are: in memory.
    pub stores: PathBuf,
    /// Where the programs are kept that tests start.
    pub toolbox: PathBuf,
    pub failures: PathBuf,
    pub blind: bool,
}

/// All features, less those that are not wanted.
pub fn features(only: &[Feature], without: &[Feature]) -> Vec<Feature> {
    let is_wanted = |feature: &Feature| {
        (only.is_empty() || only.contains(feature)) && !without.contains(feature)
    };
    Feature::value_variants().iter().copied().filter(is_wanted).collect()
}

/// What was done, in a file.
#[derive(Default, Serialize, Deserialize)]
struct RunsState {
    seed: u64,
    features: Vec<Feature>,
    done: Done,
    counts: Counts,
}

struct Shared {
    state: RunsState,
    next: u64,
    /// Lines of steps that are known to fail by themselves: they are counted, and not looked into
    /// again.
    known: HashSet<(bool, &'static str)>,
    kept: usize,
}

/// Plays scenarios until the time is over.
pub fn run(
    plan: &Plan,
    state_file: &Path,
    workers: usize,
    time: Duration,
) -> anyhow::Result<(Counts, Vec<String>)> {
    let toolbox = Toolbox::build(&plan.tools, &plan.toolbox)?;
    let start = Instant::now();
    let state = read(state_file, plan);
    let before = state.counts.seconds;
    let shared = Mutex::new(Shared { state, next: 0, known: HashSet::new(), kept: 0 });
    let progress = Progress::new("runs", time);
    let failed = AtomicBool::new(false);
    let work = |worker: usize| -> anyhow::Result<()> {
        let port = FIRST_PORT + (std::process::id() % 500) as u16 * 16 + worker as u16;
        let folder = plan.scratch.join(format!("worker-{worker}"));
        let are_times_compared = plan.features.contains(&Feature::Times);
        let in_memory = plan.stores.join(format!("worker-{worker}"));
        let mut place =
            Workspace::new(&folder, &in_memory, &plan.tools.tasting, port, are_times_compared)?;
        let maker = Maker { toolbox: &toolbox, features: &plan.features, port, own: None };
        while start.elapsed() < time && !failed.load(Ordering::Relaxed) {
            let number = {
                let mut shared = shared.lock().expect("no worker panics while it counts");
                if plan.most.is_some_and(|most| shared.state.counts.scenarios >= most) {
                    break;
                }
                let Shared { state, next, .. } = &mut *shared;
                state.done.take(next)
            };
            let Some(scenario) = Scenario::new(plan.seed, number, &maker) else { break };
            let counts = play(plan, &mut place, &toolbox, &scenario, number, &shared);
            let counts = counts.with_context(|| format!("scenario {number} of seed {}", plan.seed));
            let counts = counts.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let mut shared = shared.lock().expect("no worker panics while it counts");
            let state = &mut shared.state;
            state.done.add(number);
            state.counts.add(&counts);
            state.counts.seconds = before + start.elapsed().as_secs();
            if number % 16 == 0 {
                write(state_file, state)?;
            }
            let Counts { scenarios, reused, wrong, disturbed, .. } = state.counts;
            progress.tell(&format!(
                "{scenarios} scenarios, {reused} reused, {wrong} wrong, {disturbed} disturbed"
            ));
        }
        Ok(())
    };
    let outcome: anyhow::Result<Vec<()>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    progress.end();
    outcome?;
    let state = shared.into_inner().expect("no worker panics").state;
    write(state_file, &state)?;
    Ok((state.counts, toolbox.left_out))
}

fn play(
    plan: &Plan,
    place: &mut Workspace,
    toolbox: &Toolbox,
    scenario: &Scenario,
    number: u64,
    shared: &Mutex<Shared>,
) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    let mut trial = Trial { place, toolbox, blind: plan.blind };
    let Some(failure) = trial.play(scenario, &mut counts)? else { return Ok(counts) };
    let is_wrong = failure.fault == Fault::WrongReuse;
    {
        let shared = shared.lock().expect("no worker panics while it counts");
        if let Some(step) =
            scenario.steps().find(|step| shared.known.contains(&(is_wrong, step.line)))
        {
            *counts.failures.entry(name(is_wrong, &[step.line])).or_default() += 1;
            return Ok(counts);
        }
    }
    let smaller = if plan.blind { None } else { trial.shrink(scenario)? };
    let (smallest, last) =
        smaller.as_ref().map_or((scenario, &failure), |(smallest, last)| (smallest, last));
    let lines: Vec<&'static str> = smallest.steps().map(|step| step.line).collect();
    *counts.failures.entry(name(is_wrong, &lines)).or_default() += 1;
    let mut shared = shared.lock().expect("no worker panics while it counts");
    if let [line] = lines[..] {
        shared.known.insert((is_wrong, line));
    }
    shared.kept += 1;
    if shared.kept <= MOST_EVIDENCE {
        keep(plan, number, smallest, last, smaller.is_some())?;
    }
    Ok(counts)
}

fn name(is_wrong: bool, lines: &[&str]) -> String {
    format!("{}: {}", if is_wrong { "wrong reuse" } else { "verdict changed" }, lines.join(" ⏎ "))
}

/// Keeps a failure: the tests, the changes, both results.
fn keep(
    plan: &Plan,
    number: u64,
    scenario: &Scenario,
    failure: &Failure,
    is_smallest: bool,
) -> anyhow::Result<()> {
    let sort = if failure.fault == Fault::WrongReuse { "wrong-reuse" } else { "verdict-changed" };
    let folder = plan.failures.join(format!("{sort}-{}-{number}", plan.seed));
    fs::create_dir_all(&folder)?;
    let mut text =
        format!("{sort}: seed {}, number {number}, in round {}\n", plan.seed, failure.round);
    if !is_smallest {
        text += "It did not happen again with an empty store.\n";
    }
    text += &scenario.describe();
    text += &format!("== decisions\n{}\n", failure.decisions.join("\n"));
    text += &format!("== differences\n{}\n", failure.lines.join("\n"));
    for (name, seen) in [("plainly", &failure.plain), ("given", &failure.given)] {
        for ended in &seen.ended {
            text += &format!("== {name}\n{}\n", ended.describe());
        }
    }
    fs::write(folder.join("README"), text)?;
    for (name, node) in &scenario.beginning().tree.nodes {
        if let tree::NodeKind::File(bytes) = &node.kind {
            let path = folder.join("tree").join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, bytes)?;
        }
    }
    eprintln!("lab: {sort}: {}", folder.display());
    Ok(())
}

/// What the file says, if it is of the same hunt; else a beginning.
fn read(path: &Path, plan: &Plan) -> RunsState {
    let known =
        fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<RunsState>(&bytes).ok());
    let is_same = |state: &RunsState| (state.seed, &state.features) == (plan.seed, &plan.features);
    known.filter(is_same).unwrap_or_else(|| RunsState {
        seed: plan.seed,
        features: plan.features.clone(),
        ..RunsState::default()
    })
}

fn write(path: &Path, state: &RunsState) -> anyhow::Result<()> {
    let temporary = path.with_extension("new");
    fs::write(&temporary, serde_json::to_vec_pretty(state)?)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    Ok(fs::rename(temporary, path)?)
}
