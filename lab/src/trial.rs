//! One program and its mutants under the oracle.
//!
//! In: the number of a program. Out: sums; and whatever contradicts them in a folder of its own
//! (`evidence`). What the oracle says of each test of the program:
//! - behaviours differ → fingerprints differ, and `tasting run` gives the behaviour at hand,
//!   whatever it remembers;
//! - object code differs where the linker kept it → fingerprints differ;
//! - nothing differs that the linker kept → the fingerprint should be the same; what is not is
//!   counted.

use crate::bench::{Bench, Built};
use crate::dice::Dice;
use crate::evidence::Evidence;
use crate::explanation;
use crate::generate;
use crate::mutate::{self, Mutation, Step};
use crate::objects::{self, Difference, Sections};
use crate::process::{End, Ended};
use crate::program::{Place, Program, Segment, Test, Unit};
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

    /// Links the units of mutations; if that does not work, without one of them. Gives nothing, and
    /// takes all mutations for refused, if that does not work either.
    fn link(
        &mut self,
        alive: &mut Vec<Mutation>,
        compiled: Vec<usize>,
    ) -> io::Result<Option<Built>> {
        if alive.is_empty() {
            return Ok(None);
        }
        if let Some(built) = self.bench.relink(compiled.clone(), None, &[])? {
            return Ok(Some(built));
        }
        for unit in &compiled {
            let rest: Vec<usize> = compiled.iter().copied().filter(|other| other != unit).collect();
            if rest.is_empty() {
                break;
            }
            if let Some(built) = self.bench.relink(rest, None, &[])? {
                alive.retain(|mutation| mutation.unit != *unit);
                return Ok(Some(built));
            }
        }
        alive.clear();
        Ok(None)
    }

    /// Compiles the units of mutations, less those mutations that the compiler complains about.
    /// Gives the others, and the units.
    fn compile(&self, mutations: &[Mutation]) -> io::Result<(Vec<Mutation>, Vec<usize>)> {
        let (mut alive, mut compiled) = (mutations.to_vec(), Vec::new());
        for (index, unit) in self.bench.program.units.iter().enumerate() {
            while alive.iter().any(|mutation| mutation.unit == index) {
                let texts = texts(unit, index, &alive);
                let Err(lines) = self.bench.compile_text(index, &texts.concat())? else {
                    compiled.push(index);
                    break;
                };
                let faulty = segments_of(&texts, &lines);
                let is_faulty = |mutation: &Mutation| {
                    mutation.unit == index && faulty.contains(&mutation.segment)
                };
                let known = alive.iter().any(is_faulty);
                alive.retain(
                    |mutation| if known { !is_faulty(mutation) } else { mutation.unit != index },
                );
            }
        }
        Ok((alive, compiled))
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

    /// Asks all that is to be asked about a test of a changed program. Whether it behaves
    /// otherwise; `None` if that cannot be told.
    fn judge(&mut self, test: usize, change: &Change) -> io::Result<Option<bool>> {
        let program = self.bench.program;
        let plain = self.bench.run_plainly(&program.tests[test], self.patience)?;
        if plain.end == End::Hang {
            self.sums.hangs += 1;
            return Ok(None);
        }
        let changed = plain != self.tests[test].base;
        let fingerprint = match self.plan.blind {
            true => self.tests[test].fingerprint.clone(),
            false => self.bench.fingerprint(&program.tests[test]),
        };
        if let Some(fingerprint) = &fingerprint
            && !self.judge_fingerprint(test, change, &plain, fingerprint)?
        {
            return Ok(None);
        }
        self.judge_objects(test, change, fingerprint.as_deref(), changed)?;
        if !self.judge_execution(test, change, &plain, changed)? {
            return Ok(None);
        }
        self.sums.judged += 1;
        if !changed {
            self.sums.equal += 1;
            self.sums.equal_selected_by_fingerprint +=
                u64::from(fingerprint != self.tests[test].fingerprint);
        }
        Ok(Some(changed))
    }

    /// One fingerprint, one behaviour: of the first version and of all mutants. `false` if the test
    /// is unsteady.
    fn judge_fingerprint(
        &mut self,
        test: usize,
        change: &Change,
        plain: &Ended,
        fingerprint: &str,
    ) -> io::Result<bool> {
        let before = match self.tests[test].seen.get(fingerprint) {
            None => {
                self.tests[test].seen.insert(fingerprint.to_owned(), plain.clone());
                return Ok(true);
            }
            Some(before) if before == plain => return Ok(true),
            Some(before) => before.clone(),
        };
        if self.is_explained(test, &change.describe(self.bench.program, test), plain, &before)? {
            self.sums.unsteady += 1;
            return Ok(false);
        }
        self.sums.static_misses += 1;
        self.evidence("static", &change.describe(self.bench.program, test), plain, &before)?;
        Ok(true)
    }

    /// What the objects say, compared without Tasting. Only where the text of the test itself was
    /// changed: another option may change what no section says, and another order what no object
    /// does.
    fn judge_objects(
        &mut self,
        test: usize,
        change: &Change,
        fingerprint: Option<&str>,
        changed: bool,
    ) -> io::Result<()> {
        let (Some(_), Some(fingerprint)) = (change.mutation, fingerprint) else { return Ok(()) };
        let is_other = Some(fingerprint) != self.tests[test].fingerprint.as_deref();
        let Some(difference) = self.difference(test, change.built)? else { return Ok(()) };
        if !difference.any && !changed {
            self.sums.untouched += 1;
            self.sums.untouched_selected += u64::from(is_other);
        }
        // What has another name everywhere is the same program, with other sections.
        let is_renamed = ["functions exchanged", "function renamed"].contains(&change.kind);
        if !difference.certain.is_empty() && !is_renamed {
            self.sums.touched += 1;
            if !is_other {
                self.sums.object_misses += 1;
                let named = Ended {
                    end: End::Code(0),
                    stdout: difference.certain.join(" ").into_bytes(),
                    stderr: Vec::new(),
                };
                self.evidence(
                    "object",
                    &change.describe(self.bench.program, test),
                    &named,
                    &self.tests[test].base,
                )?;
            }
        }
        Ok(())
    }

    /// How the objects differ in what belongs to a test. `None` if they cannot be read.
    fn difference(&self, test: usize, built: &Built) -> io::Result<Option<Difference>> {
        let program = self.bench.program;
        // Constructors and destructors run in every test.
        let runs_in_every_test = |section: &str| {
            ["first_", "last_", "order_", "Start_"].iter().any(|name| section.contains(name))
        };
        let is_others = |section: &str| {
            !runs_in_every_test(section)
                && program
                    .tests
                    .iter()
                    .enumerate()
                    .any(|(index, other)| index != test && section.contains(&other.mark))
        };
        let mut difference = Difference::default();
        for (index, object) in &built.objects {
            let now = objects::sections(&fs::read(object)?);
            let (Some(before), Some(now)) = (&self.base_sections[*index], now) else {
                return Ok(None);
            };
            let is_removed = |section: &str, which: usize| {
                let removed = if which == 0 { &self.base_built.removed } else { &built.removed };
                removed.contains(&format!("{}:{section}", Program::object(*index)))
            };
            let found = objects::compare(before, &now, &is_removed, &is_others);
            difference.any |= found.any;
            let own = |section: &String| section.contains(&program.tests[test].mark);
            // What the linker drops from a library, and what it takes from an archive, it does not
            // say. And what a library asks for it keeps, whether or not the test gets there. With
            // -rdynamic it keeps what no test gets to, in case that somebody asks for it by name.
            let exports = self.bench.setup.more.contains(&Some("-rdynamic"));
            let is_told = program.units[*index].place == Place::Object
                && !program.has(Place::Library)
                && !exports;
            if self.bench.setup.collects && is_told {
                difference.certain.extend(found.certain.into_iter().filter(own));
            }
        }
        Ok(Some(difference))
    }

    /// Whatever `tasting run` remembers, what it gives is what the program does. `false` if the
    /// test is unsteady.
    fn judge_execution(
        &mut self,
        test: usize,
        change: &Change,
        plain: &Ended,
        changed: bool,
    ) -> io::Result<bool> {
        let described = &self.bench.program.tests[test];
        if !changed && !self.grows && !self.plan.blind {
            // It is asked for the sake of a share only.
            if !self.sums.equal.is_multiple_of(4) {
                return Ok(true);
            }
            let said = self.bench.tasting(&EXPLAIN, described, None, PATIENCE)?.text();
            self.sums.equal_asked += 1;
            self.sums.equal_selected_by_execution +=
                u64::from(said.replace(' ', "").contains("\"decision\":\"executed\""));
            return Ok(true);
        }
        let given = match self.plan.blind {
            true => self.tests[test].base.clone(),
            false => {
                let variable = (!self.grows).then_some("TASTING_READONLY");
                self.bench.tasting(&RUN, described, variable, PATIENCE)?
            }
        };
        if given == *plain {
            return Ok(true);
        }
        if self.is_explained(test, &change.describe(self.bench.program, test), plain, &given)? {
            self.sums.unsteady += 1;
            return Ok(false);
        }
        // What was seen before can have been reused; anything else is new, and has come of running
        // it.
        let is_known = given == self.tests[test].base
            || self.tests[test].seen.values().any(|known| *known == given);
        *(if is_known { &mut self.sums.executed_misses } else { &mut self.sums.disturbed }) += 1;
        let sort = if is_known { "executed" } else { "disturbed" };
        self.evidence(sort, &change.describe(self.bench.program, test), plain, &given)?;
        Ok(true)
    }

    /// Whether a test that ends in two ways is unsteady by itself. It is kept with what shows it.
    fn is_explained(
        &self,
        test: usize,
        what: &str,
        plain: &Ended,
        given: &Ended,
    ) -> io::Result<bool> {
        let found =
            explanation::of(&self.bench, &self.bench.program.tests[test], plain, self.patience)?;
        if let Some(reason) = &found {
            self.evidence("unsteady", &format!("{reason}\n{what}"), plain, given)?;
        }
        Ok(found.is_some())
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
        let places: Vec<Place> = self.bench.program.units.iter().map(|unit| unit.place).collect();
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

/// The parts of a unit, with mutations.
fn texts<'m>(unit: &'m Unit, index: usize, mutations: &'m [Mutation]) -> Vec<&'m str> {
    let text = |(number, segment): (usize, &'m Segment)| {
        let other =
            mutations.iter().find(|mutation| (mutation.unit, mutation.segment) == (index, number));
        other.map_or(segment.text.as_str(), |mutation| mutation.text.as_str())
    };
    unit.segments.iter().enumerate().map(text).collect()
}

/// The parts that hold these lines, which are counted from one.
fn segments_of(texts: &[&str], lines: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let mut found = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let start = end;
        end += text.matches('\n').count();
        if lines.iter().any(|line| (start + 1..=end).contains(line)) {
            found.push(number);
        }
    }
    found
}

/// What was done, as a test sees it.
struct Change<'c> {
    kind: &'static str,
    /// The mutation of this very test.
    mutation: Option<&'c Mutation>,
    step: &'c Step,
    built: &'c Built,
}

impl Change<'_> {
    fn describe(&self, program: &Program, test: usize) -> String {
        let head = format!("test {test} ({:?}), {}", program.tests[test].argument, self.kind);
        let lines = |mutation: &Mutation| {
            let before = &program.units[mutation.unit].segments[mutation.segment].text;
            let pairs =
                before.lines().zip(mutation.text.lines()).filter(|(before, after)| before != after);
            let shown: Vec<String> =
                pairs.take(6).map(|(before, after)| format!("- {before}\n+ {after}")).collect();
            format!(
                "{} in {} (test {}):\n{}",
                mutation.kind,
                program.units[mutation.unit].name,
                mutation.owner,
                shown.join("\n")
            )
        };
        let what = match (self.mutation, self.step) {
            (Some(mutation), _) => lines(mutation),
            (None, Step::Each(mutations)) => {
                mutations.iter().map(lines).collect::<Vec<_>>().join("\n")
            }
            (None, Step::Whole { change, .. }) => format!("{change:?}"),
        };
        format!("{head}\n{what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_parts() {
        let texts = ["one\ntwo\n", "", "three\n", "four\nfive\n"];
        assert_eq!(segments_of(&texts, &[2, 4]), [0, 3]);
        assert_eq!(segments_of(&texts, &[3]), [2]);
        assert_eq!(segments_of(&texts, &[9]), Vec::<usize>::new());
    }
}
