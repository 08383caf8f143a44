//! One program and its mutants under the oracle.
//!
//! In: the number of a program. Out: sums; and whatever contradicts them in a folder of its own
//! (`evidence`). What the oracle says of each test of the program:
//! - behaviours differ → fingerprints differ, and `tasting run` gives the behaviour at hand,
//!   whatever it remembers;
//! - object code differs where the linker kept it → fingerprints differ;
//! - nothing differs that the linker kept → the fingerprint should be the same; what is not is
//!   counted.

mod build;
mod change;
mod judge;

use self::change::Change;
use crate::bench::{Bench, Built};
use crate::dice::Dice;
use crate::evidence::Evidence;
use crate::generate;
use crate::mutate::{self, Mutation, Step};
use crate::objects::{self, Sections};
use crate::process::{End, Ended};
use crate::program::{Packaging, Test};
use crate::scorch;
use crate::setup::{Compiler, Setup, Tools};
use crate::sums::Sums;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that takes longer hangs. Those with fuel never do, but for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const LITTLE_PATIENCE: Duration = Duration::from_millis(1500);

/// How often the program as it is runs under other circumstances before it is changed.
const STEADY_RUNS: usize = 5;

const RUN: [&str; 2] = ["run", "--reuse-failures"];
const EXPLAIN: [&str; 3] = ["explain", "--reuse-failures", "--json"];

/// What to try, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tools: Tools,
    pub seed: u64,
    pub level: String,
    /// What programs are compiled with.
    pub compilers: Vec<Compiler>,
    /// How many times a program is changed.
    pub steps: usize,
    /// Memory rather than a disk.
    pub scratch: PathBuf,
    /// Where contradictions are kept.
    pub misses: PathBuf,
    /// Take every mutant for unchanged, to see that the oracle finds what is wrong then.
    pub blind: bool,
    /// Leave the folders of the programs.
    pub keep: bool,
}

struct Trial<'t> {
    plan: &'t Plan,
    number: u64,
    bench: Bench<'t>,
    tests: Vec<Known>,
    patience: Duration,
    base_sections: Vec<Option<Sections>>,
    base_built: Built,
    /// The store grows with each mutant, or stays that of the first version.
    grows: bool,
    sums: Sums,
}

/// What is known of a test.
struct Known {
    base: Ended,
    fingerprint: Option<String>,
    /// The first behaviour that was seen with each fingerprint.
    seen: HashMap<String, Ended>,
}

/// Tries the program of a number.
pub fn run(plan: &Plan, number: u64) -> io::Result<Sums> {
    let mut dice = Dice::new(plan.seed, &format!("program {number}"));
    let folder = plan.scratch.join(format!("p{number}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let sums = in_folder(plan, number, &mut dice, &folder);
    if !plan.keep {
        fs::remove_dir_all(&folder)?;
    }
    sums
}

fn in_folder(plan: &Plan, number: u64, dice: &mut Dice, folder: &Path) -> io::Result<Sums> {
    let left_out = || Ok(Sums { programs_left_out: 1, ..Sums::default() });
    let setup = Setup::new(dice, &plan.level, &plan.compilers);
    let Some(mut program) = generate::program(dice, folder) else { return left_out() };
    if setup.level == "file" {
        // There are no functions to start from.
        program.tests.iter_mut().for_each(|test| test.entry = None);
    }
    let grows = dice.percent(30);
    let Some((bench, built)) = Bench::new(&plan.tools, &program, setup, folder.to_owned())? else {
        return left_out();
    };
    let Some(mut trial) = Trial::new(plan, number, bench, built, grows)? else { return left_out() };
    if trial.bench.setup.level == "code" {
        trial.scorch()?;
    }
    // One build answers for as many mutations as there are tests; csmith's programs are one test
    // each, and large.
    let steps = if program.tests.len() == 1 { plan.steps.div_ceil(3) } else { plan.steps };
    for _ in 0..steps {
        if let Some(step) = mutate::step(dice, &program) {
            trial.step(&step)?;
        }
    }
    Ok(trial.sums)
}

impl<'t> Trial<'t> {
    /// Runs the program as it is, and lets `tasting run` remember it. `None` if it is not fit for a
    /// trial.
    fn new(
        plan: &'t Plan,
        number: u64,
        bench: Bench<'t>,
        base_built: Built,
        grows: bool,
    ) -> io::Result<Option<Trial<'t>>> {
        let patience = if bench.program.has_fuel { PATIENCE } else { LITTLE_PATIENCE };
        let sections = |index: usize| {
            fs::read(bench.base_object(index)).ok().and_then(|bytes| objects::sections(&bytes))
        };
        let base_sections = (0..bench.program.units.len()).map(sections).collect();
        let mut sums = Sums { programs: 1, ..Sums::default() };
        sums.sorts.insert(bench.program.sort.to_owned(), (1, 0));
        let mut trial = Trial {
            plan,
            number,
            bench,
            tests: Vec::new(),
            patience,
            base_sections,
            base_built,
            grows,
            sums,
        };
        for test in &trial.bench.program.tests {
            let base = trial.bench.run_plainly(test, patience)?;
            if base.end == End::Hang || !trial.is_steady(test, &base)? {
                return Ok(None);
            }
            let given = trial.bench.tasting(&RUN, test, None, PATIENCE)?;
            let fingerprint = trial.bench.fingerprint(test);
            if given != base
                && !trial.is_explained(trial.tests.len(), "the program as it is", &base, &given)?
            {
                trial.sums.disturbed += 1;
                trial.evidence("disturbed", "the program as it is", &base, &given)?;
            }
            let seen =
                fingerprint.iter().map(|fingerprint| (fingerprint.clone(), base.clone())).collect();
            trial.tests.push(Known { base, fingerprint, seen });
        }
        Ok(Some(trial))
    }

    /// Whether the program as it is ends the same way again, and under other circumstances too:
    /// what its mutants are held against must not be one of several ends.
    fn is_steady(&self, test: &Test, base: &Ended) -> io::Result<bool> {
        for turn in 0..STEADY_RUNS {
            if self.bench.run_otherwise(test, turn, self.patience)? != *base {
                return Ok(false);
            }
        }
        Ok(self.bench.run_plainly(test, self.patience)? == *base)
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Each(mutations) => self.mutations(mutations),
            Step::Whole { kind, change } => {
                let Some(built) = self.bench.build(change)? else {
                    self.sums.refused += 1;
                    return Ok(());
                };
                (self.sums.mutants, self.sums.builds) =
                    (self.sums.mutants + 1, self.sums.builds + 1);
                let mut any = false;
                for test in 0..self.tests.len() {
                    any |= self
                        .judge(test, &Change { kind, mutation: None, step, built: &built })?
                        .is_some_and(|changed| changed);
                }
                self.count(kind, any);
                Ok(())
            }
        }
    }

    /// One mutation of each test, built together: no test has code of another.
    fn mutations(&mut self, mutations: &[Mutation]) -> io::Result<()> {
        let (mut alive, compiled) = self.compile(mutations)?;
        let built = self.link(&mut alive, compiled)?;
        self.sums.refused += (mutations.len() - alive.len()) as u64;
        for mutation in mutations
            .iter()
            .filter(|mutation| !alive.iter().any(|alive| alive.owner == mutation.owner))
        {
            *self.sums.refused_kinds.entry(mutation.kind.to_owned()).or_default() += 1;
        }
        let Some(built) = built else { return Ok(()) };
        self.sums.builds += 1;
        let step = &Step::Each(alive.clone());
        for test in 0..self.tests.len() {
            let Some(mutation) = alive.iter().find(|mutation| mutation.owner == test) else {
                // Others may have something to say that all tests hear: constructors, weak
                // definitions.
                let plain =
                    self.bench.run_plainly(&self.bench.program.tests[test], self.patience)?;
                if plain != self.tests[test].base {
                    self.judge(
                        test,
                        &Change { kind: "of another test", mutation: None, step, built: &built },
                    )?;
                }
                continue;
            };
            self.sums.mutants += 1;
            let change =
                Change { kind: mutation.kind, mutation: Some(mutation), step, built: &built };
            let changed = self.judge(test, &change)?;
            self.count(mutation.kind, changed.unwrap_or(false));
        }
        Ok(())
    }

    fn count(&mut self, kind: &str, changed: bool) {
        let kinds = self.sums.kinds.entry(kind.to_owned()).or_default();
        kinds.0 += 1;
        if !changed {
            return;
        }
        kinds.1 += 1;
        let setup = &self.bench.setup;
        self.sums.changing += 1;
        self.sums.sorts.entry(self.bench.program.sort.to_owned()).or_default().1 += 1;
        *self.sums.changing_by_compiler.entry(setup.compiler.name().to_owned()).or_default() += 1;
        *self.sums.changing_by_level.entry(setup.level.clone()).or_default() += 1;
        *self.sums.linkers.entry(setup.linker.to_owned()).or_default() += 1;
    }

    /// Destroys what the tests of the program as it is have not used, and runs them again.
    fn scorch(&mut self) -> io::Result<()> {
        for (index, test) in self.bench.program.tests.iter().enumerate() {
            let cover = self.bench.tasting(&["cover"], test, None, PATIENCE)?;
            let Ok(mut modules) = scorch::modules(&cover.text()) else { continue };
            if self.plan.blind {
                modules.iter_mut().for_each(scorch::Module::forget);
            }
            let mut scorched = Vec::new();
            for module in &modules {
                self.sums.not_traced += u64::from(!module.narrowed);
                let Some(copy) = module.scorch(&fs::read(&module.path)?) else { continue };
                self.sums.scorched_bytes.0 += copy.destroyed;
                self.sums.scorched_bytes.1 += copy.of;
                scorched.push((module.path.clone(), copy.bytes));
            }
            let given =
                scorch::with_copies(&scorched, || self.bench.run_plainly(test, self.patience))?;
            self.sums.scorched += 1;
            if given != self.tests[index].base {
                self.sums.scorched_differ += 1;
                self.evidence(
                    "scorched",
                    &format!("test {index}, destroyed outside of\n{}", cover.text()),
                    &self.tests[index].base,
                    &given,
                )?;
            }
        }
        Ok(())
    }

    fn evidence(&self, sort: &str, what: &str, plain: &Ended, given: &Ended) -> io::Result<()> {
        let name = format!("{}-{}-{}-{sort}", self.plan.seed, self.number, self.sums.mutants);
        let places: Vec<Packaging> =
            self.bench.program.units.iter().map(|unit| unit.place).collect();
        let store = if self.grows { "grows" } else { "of the first version" };
        let setup = format!(
            "{}\nflags: {:?}\nunits: {places:?}\nstore: {store}",
            self.bench.setup.describe(),
            self.bench.program.flags
        );
        Evidence { sort, name: &name, setup: &setup, what, plain, given }.keep(
            &self.plan.misses,
            &self.bench.folder,
            self.bench.program,
        )
    }
}
