//! The hunt over random programs: workers, each with a program at a time, until the time is over.
//! What is done is kept, so that a run that was interrupted goes on where it was.

use crate::done::Done;
use crate::progress::Progress;
use crate::sums::Sums;
use crate::trial::{self, Plan};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What was done, in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HuntState {
    pub seed: u64,
    pub level: String,
    #[serde(default)]
    pub compilers: Vec<String>,
    pub steps: usize,
    /// The programs that were tried.
    done: Done,
    pub sums: Sums,
}

impl HuntState {
    /// What the file says, if it is of the same hunt; else a beginning.
    pub fn read(path: &Path, plan: &Plan) -> HuntState {
        let known =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<HuntState>(&bytes).ok());
        let compilers = plan.compilers.iter().map(|compiler| compiler.name().to_owned()).collect();
        let begin = HuntState {
            seed: plan.seed,
            level: plan.level.clone(),
            compilers,
            steps: plan.steps,
            ..HuntState::default()
        };
        known.filter(|state| state.is_of_same_hunt(&begin)).unwrap_or(begin)
    }

    fn is_of_same_hunt(&self, other: &HuntState) -> bool {
        let plan = |state: &HuntState| {
            (state.seed, state.level.clone(), state.compilers.clone(), state.steps)
        };
        plan(self) == plan(other)
    }

    fn add(&mut self, number: u64, sums: &Sums) {
        self.sums.add(sums);
        self.done.add(number);
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let temporary = path.with_extension("new");
        fs::write(&temporary, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", temporary.display()))?;
        Ok(fs::rename(temporary, path)?)
    }
}

/// Tries programs until the time is over, or `most` of them.
pub fn run(
    plan: &Plan,
    state_file: &Path,
    workers: usize,
    time: Duration,
    most: Option<u64>,
) -> anyhow::Result<Sums> {
    let start = Instant::now();
    let state = HuntState::read(state_file, plan);
    let before = state.sums.seconds;
    let progress = Progress::new("programs", time);
    let shared = Mutex::new((state, 0u64));
    let failed = AtomicBool::new(false);
    let work = || -> anyhow::Result<()> {
        while start.elapsed() < time && !failed.load(Ordering::Relaxed) {
            let Some(number) = take(&shared, most) else { break };
            let sums = trial::run(plan, number)
                .with_context(|| format!("program {number} of seed {}", plan.seed));
            let sums = sums.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let mut shared = shared.lock().expect("no worker panics while it counts");
            shared.0.add(number, &sums);
            shared.0.sums.seconds = before + start.elapsed().as_secs();
            shared.0.write(state_file)?;
            let sums = &shared.0.sums;
            progress.tell(&format!(
                "{} mutants, {} behaviour-changing, {} misses",
                sums.mutants,
                sums.changing,
                sums.misses()
            ));
        }
        Ok(())
    };
    let outcome: anyhow::Result<Vec<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    progress.end();
    outcome?;
    Ok(shared.into_inner().expect("no worker panics").0.sums)
}

/// The next program that nobody has tried.
fn take(shared: &Mutex<(HuntState, u64)>, most: Option<u64>) -> Option<u64> {
    let mut shared = shared.lock().expect("no worker panics while it counts");
    let (state, next) = &mut *shared;
    let number = state.done.take(next);
    most.is_none_or(|most| number < most).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_were_tried_are_not_tried_again() {
        let mut state = HuntState::default();
        let one = Sums { programs: 1, ..Sums::default() };
        for number in [1, 0, 3] {
            state.add(number, &one);
        }
        assert_eq!(state.sums.programs, 3);
        let shared = Mutex::new((state, 0));
        assert_eq!(
            [take(&shared, None), take(&shared, None), take(&shared, Some(5))],
            [Some(2), Some(4), None]
        );
    }
}
