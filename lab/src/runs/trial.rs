//! The oracle over one scenario: its tests are run plainly and under Tasting from equal states, at
//! first, again, and after each change from outside. What Tasting gives has to be what the plain
//! run gives: status, output, files.

use super::counts::Counts;
use super::launch::{Seen, Test, Workspace, is_reused};
use super::scenario::Scenario;
use super::toolbox::Toolbox;
use super::world::World;
use std::io;
use std::time::{Duration, Instant};

/// How often a test is run plainly before it is said to be steady.
const REPEATS: usize = 8;
/// What Tasting says of runs that it does not keep since handlers without SA_RESTART can interrupt
/// calls that it stops.
const CAN_BE_INTERRUPTED: &str = "can interrupt watched calls";
/// How long a failure is made smaller.
const SHRINKING: Duration = Duration::from_secs(30);

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reused result that differs from the plain run.
    WrongReuse,
    /// An executed test that differs from the plain run.
    Disturbed,
    /// The same, where Tasting said that calls can be interrupted, and kept nothing; the status is
    /// that of the plain run.
    Doubtful,
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub fault: Fault,
    /// 0 for the first runs, else the round of changes.
    pub round: usize,
    pub lines: Vec<String>,
    pub plain: Seen,
    pub given: Seen,
    pub decisions: Vec<String>,
}

/// Plays scenarios in a place.
pub struct Trial<'t> {
    pub place: &'t mut Workspace,
    pub toolbox: &'t Toolbox,
    /// Takes the first result for that of every later run.
    pub blind: bool,
}

/// What was stopped by a difference: a failure, or a test that is not steady.
enum Stop {
    Failed(Box<Failure>),
    Unsteady,
}

impl Trial<'_> {
    /// Plays a scenario to its end or to its first failure.
    pub fn play(
        &mut self,
        scenario: &Scenario,
        counts: &mut Counts,
    ) -> io::Result<Option<Failure>> {
        counts.tests += 1;
        match self.rounds(scenario, counts)? {
            Ok(()) => Ok(None),
            Err(Stop::Unsteady) => {
                counts.unsteady += 1;
                Ok(None)
            }
            Err(Stop::Failed(failure)) => {
                match failure.fault {
                    Fault::WrongReuse => counts.wrong += 1,
                    Fault::Disturbed => counts.disturbed += 1,
                    Fault::Doubtful => {
                        counts.doubtful += 1;
                        return Ok(None);
                    }
                }
                for feature in scenario.features() {
                    counts.features.entry(feature).or_default().2 += 1;
                }
                Ok(Some(*failure))
            }
        }
    }

    fn rounds(&mut self, scenario: &Scenario, counts: &mut Counts) -> io::Result<Result<(), Stop>> {
        let tests = scenario.tests();
        let mut world = scenario.beginning();
        let mut plain = self.place.run_plainly(&world, &tests)?;
        let again = self.place.run_plainly(&world, &tests)?;
        if !plain.differences(&again).is_empty() || plain.hangs() {
            return Ok(Err(Stop::Unsteady));
        }
        let mut first = None;
        for _ in 0..2 {
            match self.compare(scenario, &world, &plain, 0, None)? {
                Ok((given, reused)) => {
                    counts.unchanged += 1;
                    counts.reused_unchanged += reused;
                    first = Some(given);
                }
                Err(stop) => return Ok(Err(stop)),
            }
        }
        for (number, round) in scenario.rounds.iter().enumerate() {
            if round.goes_on {
                world.tree = plain.tree.clone();
            }
            round.changes.iter().for_each(|change| change.apply(&mut world, self.toolbox));
            scenario.put_tests(&mut world);
            let before = std::mem::replace(&mut plain, self.place.run_plainly(&world, &tests)?);
            if plain.hangs() {
                return Ok(Err(Stop::Unsteady));
            }
            let blind = first.as_ref().filter(|_| self.blind);
            match self.compare(scenario, &world, &plain, number + 1, blind)? {
                Ok((_, reused)) => count(counts, scenario, before != plain, reused, tests.len()),
                Err(stop) => return Ok(Err(stop)),
            }
        }
        Ok(Ok(()))
    }

    /// Runs the tests under Tasting, and holds what it gives against the plain run. Gives how many
    /// were reused.
    fn compare(
        &mut self,
        scenario: &Scenario,
        world: &World,
        plain: &Seen,
        round: usize,
        blind: Option<&Seen>,
    ) -> io::Result<Result<(Seen, u64), Stop>> {
        let tests = scenario.tests();
        let options: &[&str] = if scenario.reuses_failures { &["--reuse-failures"] } else { &[] };
        let (given, decisions) = self.place.run_tasting(world, &tests, options)?;
        let reused = |test: &Test| blind.is_some() || is_reused(&decisions, test);
        let count = tests.iter().filter(|test| reused(test)).count() as u64;
        let given = blind.cloned().unwrap_or(given);
        let lines = plain.differences(&given);
        if lines.is_empty() {
            return Ok(Ok((given, count)));
        }
        for number in 0..REPEATS {
            let again = match number % 2 {
                0 => self.place.run_plainly(world, &tests)?,
                _ => self.place.run_on_one_processor(world, &tests)?,
            };
            if !plain.differences(&again).is_empty() {
                return Ok(Err(Stop::Unsteady));
            }
        }
        let ends_as_plainly =
            plain.ended.iter().zip(&given.ended).all(|(plain, given)| plain.end == given.end);
        let is_said = decisions.iter().any(|decision| decision.reason.contains(CAN_BE_INTERRUPTED));
        let fault = match count {
            0 if ends_as_plainly && is_said => Fault::Doubtful,
            0 => Fault::Disturbed,
            _ => Fault::WrongReuse,
        };
        let decisions = decisions
            .iter()
            .map(|decision| format!("{:?}: {}", decision.decision, decision.reason))
            .collect();
        let failure = Failure { fault, round, lines, plain: plain.clone(), given, decisions };
        Ok(Err(Stop::Failed(Box::new(failure))))
    }

    /// Takes parts away from a scenario that fails, as long as it fails in the same way. Each
    /// attempt has an empty store.
    pub fn shrink(&mut self, scenario: &Scenario) -> io::Result<Option<(Scenario, Failure)>> {
        let start = Instant::now();
        let Some(failure) = self.fails(scenario)? else { return Ok(None) };
        let (mut smallest, mut failure) = (scenario.clone(), failure);
        loop {
            let mut found = None;
            for less in smallest.smaller() {
                if start.elapsed() > SHRINKING {
                    return Ok(Some((smallest, failure)));
                }
                if let Some(other) = self.fails(&less)?.filter(|other| other.fault == failure.fault)
                {
                    found = Some((less, other));
                    break;
                }
            }
            match found {
                Some(found) => (smallest, failure) = found,
                None => return Ok(Some((smallest, failure))),
            }
        }
    }

    /// Whether a scenario fails with an empty store; what fails only now and then gets a second
    /// chance.
    fn fails(&mut self, scenario: &Scenario) -> io::Result<Option<Failure>> {
        for _ in 0..2 {
            self.place.forget()?;
            if let Some(failure) = self.play(scenario, &mut Counts::default())? {
                return Ok(Some(failure));
            }
        }
        Ok(None)
    }
}

fn count(counts: &mut Counts, scenario: &Scenario, is_changing: bool, reused: u64, tests: usize) {
    counts.scenarios += 1;
    counts.changing += u64::from(is_changing);
    counts.reused += u64::from(reused == tests as u64);
    for feature in scenario.features() {
        let sum = counts.features.entry(feature).or_default();
        sum.0 += 1;
        sum.1 += u64::from(reused == tests as u64);
    }
}
