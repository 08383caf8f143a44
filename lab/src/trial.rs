//! One program and its mutants under the oracle.
//!
//! In: the number of a program. Out: sums; and whatever contradicts them in a folder of its own, with all that is needed to see
//! it again. What the oracle says:
//! - behaviours differ → fingerprints differ, and `tasting run` gives the behaviour at hand, whatever it remembers;
//! - object code differs where the linker kept it → fingerprints differ;
//! - nothing differs that the linker kept → the fingerprint should be the same; what is not is counted.

use crate::bench::{Bench, Built};
use crate::dice::Dice;
use crate::generate;
use crate::mutate::{self, Change, Mutant};
use crate::objects::{self, Sections};
use crate::process::{End, Ended};
use crate::program::{Place, Program};
use crate::setup::{Setup, Tools};
use crate::sums::Sums;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that takes longer hangs. Those with fuel never do, but for a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
const LITTLE_PATIENCE: Duration = Duration::from_millis(700);
/// How often a program is run again before two of its ends are said to contradict each other.
const RERUNS: usize = 20;

/// What to try, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tools: Tools,
    pub seed: u64,
    pub level: String,
    pub mutants: usize,
    /// Memory rather than a disk.
    pub scratch: PathBuf,
    /// Where contradictions are kept.
    pub misses: PathBuf,
    /// Take every mutant for unchanged, to see that the oracle finds what is wrong then.
    pub blind: bool,
}

struct Trial<'t> {
    plan: &'t Plan,
    number: u64,
    bench: Bench<'t>,
    base: Ended,
    patience: Duration,
    /// The first behaviour that was seen with each fingerprint.
    seen: HashMap<String, Ended>,
    base_fingerprint: String,
    base_sections: Vec<Option<Sections>>,
    base_built: Built,
    /// The store grows with each mutant, or stays that of the first version.
    grows: bool,
    sums: Sums,
}

/// Tries the program of a number.
pub fn run(plan: &Plan, number: u64) -> io::Result<Sums> {
    let mut dice = Dice::new(plan.seed, &format!("program {number}"));
    let folder = plan.scratch.join(format!("p{number}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let sums = in_folder(plan, number, &mut dice, &folder);
    if std::env::var_os("LAB_KEEP").is_none() {
        fs::remove_dir_all(&folder)?;
    }
    sums
}

fn in_folder(plan: &Plan, number: u64, dice: &mut Dice, folder: &Path) -> io::Result<Sums> {
    let left_out = || Ok(Sums { programs_left_out: 1, ..Sums::default() });
    let setup = Setup::new(dice, &plan.level);
    let Some(program) = generate::program(dice, folder) else { return left_out() };
    let grows = dice.percent(40);
    let Some((bench, built)) = Bench::new(&plan.tools, &program, setup, folder.to_owned())? else { return left_out() };
    let Some(mut trial) = Trial::new(plan, number, bench, built, grows)? else { return left_out() };
    if std::env::var_os("LAB_DEBUG").is_some() { eprintln!("{number} {}", trial.bench.setup.describe()); }
    for _ in 0..plan.mutants {
        if let Some(mutant) = mutate::mutant(dice, &program) {
            trial.mutant(&mutant)?;
        }
    }
    trial.bench.restore()?;
    Ok(trial.sums)
}

impl<'t> Trial<'t> {
    /// Runs the program as it is, and lets `tasting run` remember it. `None` if it is not fit for a trial.
    fn new(plan: &'t Plan, number: u64, bench: Bench<'t>, base_built: Built, grows: bool) -> io::Result<Option<Trial<'t>>> {
        let patience = if bench.program.has_fuel { PATIENCE } else { LITTLE_PATIENCE };
        let base = bench.run_plainly(patience)?;
        let is_steady = (0..2).try_fold(true, |same, _| Ok::<bool, io::Error>(same && bench.run_plainly(patience)? == base))?;
        if !is_steady || base.end == End::Hang {
            return Ok(None);
        }
        let remembered = bench.tasting(&["run", "--reuse-failures", "--", "./prog"], None, PATIENCE)?;
        let Some(base_fingerprint) = bench.fingerprint()? else { return Ok(None) };
        let sections = |index: usize| fs::read(bench.base_object(index)).ok().and_then(|bytes| objects::sections(&bytes));
        let base_sections = (0..bench.program.units.len()).map(sections).collect();
        let mut sums = Sums { programs: 1, ..Sums::default() };
        sums.sorts.insert(bench.program.sort.to_owned(), (1, 0));
        let seen = HashMap::from([(base_fingerprint.clone(), base.clone())]);
        let mut trial =
            Trial { plan, number, bench, base, patience, seen, base_fingerprint, base_sections, base_built, grows, sums };
        if remembered != trial.base {
            trial.sums.disturbed += 1;
            trial.contradiction("disturbed", None, &trial.base, &remembered)?;
        }
        Ok(Some(trial))
    }

    fn mutant(&mut self, mutant: &Mutant) -> io::Result<()> {
        let Some(built) = self.bench.build(&mutant.change)? else {
            self.sums.refused += 1;
            return Ok(());
        };
        self.sums.mutants += 1;
        self.sums.kinds.entry(mutant.kind.to_owned()).or_default().0 += 1;
        let plain = self.bench.run_plainly(self.patience)?;
        let changed = plain != self.base;
        if plain.end == End::Hang {
            self.sums.hangs += 1;
            return Ok(());
        }
        if changed && self.bench.run_plainly(self.patience)? != plain {
            self.sums.unsteady += 1;
            return Ok(());
        }
        let fingerprint = match self.plan.blind {
            true => self.base_fingerprint.clone(),
            // A program that nobody can know is one that nobody reuses.
            false => self.bench.fingerprint()?.unwrap_or_else(|| format!("none {}", self.sums.mutants)),
        };
        self.judge_fingerprint(mutant, &plain, &fingerprint)?;
        self.judge_objects(mutant, &built, &fingerprint, changed)?;
        self.judge_execution(mutant, &plain, changed)?;
        if changed {
            self.count_change(mutant);
        } else {
            self.sums.equal += 1;
            self.sums.equal_selected_by_fingerprint += u64::from(fingerprint != self.base_fingerprint);
        }
        Ok(())
    }

    fn count_change(&mut self, mutant: &Mutant) {
        let setup = &self.bench.setup;
        self.sums.changing += 1;
        self.sums.kinds.entry(mutant.kind.to_owned()).or_default().1 += 1;
        self.sums.sorts.entry(self.bench.program.sort.to_owned()).or_default().1 += 1;
        *self.sums.changing_by_compiler.entry(setup.compiler.name().to_owned()).or_default() += 1;
        *self.sums.changing_by_level.entry(setup.level.clone()).or_default() += 1;
        *self.sums.linkers.entry(setup.linker.to_owned()).or_default() += 1;
    }

    /// One fingerprint, one behaviour: of the first version and of all mutants.
    fn judge_fingerprint(&mut self, mutant: &Mutant, plain: &Ended, fingerprint: &str) -> io::Result<()> {
        match self.seen.get(fingerprint) {
            None => _ = self.seen.insert(fingerprint.to_owned(), plain.clone()),
            Some(before) if before == plain => {}
            Some(before) => {
                let before = before.clone();
                if self.is_steady(plain)? {
                    self.sums.static_misses += 1;
                    self.contradiction("static", Some(mutant), plain, &before)?;
                } else {
                    self.sums.unsteady += 1;
                }
            }
        }
        Ok(())
    }

    /// Only where the text of a unit was changed: another option may change what no section says, and another order what no
    /// object does.
    fn judge_objects(&mut self, mutant: &Mutant, built: &Built, fingerprint: &str, changed: bool) -> io::Result<()> {
        if !matches!(mutant.change, Change::Unit { .. }) {
            return Ok(());
        }
        let mut difference = objects::Difference::default();
        for (index, object) in &built.objects {
            let now = objects::sections(&fs::read(object)?);
            let (Some(before), Some(now)) = (&self.base_sections[*index], now) else { return Ok(()) };
            let is_removed = |section: &str, which: usize| {
                let removed = if which == 0 { &self.base_built.removed } else { &built.removed };
                removed.contains(&format!("{}:{section}", Program::object(*index)))
            };
            let found = objects::compare(before, &now, &is_removed);
            difference.any |= found.any;
            if self.bench.setup.collects && self.bench.program.units[*index].place == Place::Object {
                difference.certain.extend(found.certain);
            }
        }
        if std::env::var_os("LAB_DEBUG").is_some() { eprintln!("{} {:?} any {} certain {:?} removed {}", self.bench.setup.describe(), mutant.kind, difference.any, difference.certain, built.removed.len()); }
        let is_other = fingerprint != self.base_fingerprint;
        if !difference.any && !changed {
            self.sums.untouched += 1;
            self.sums.untouched_selected += u64::from(is_other);
        }
        if !difference.certain.is_empty() {
            self.sums.touched += 1;
            if !is_other {
                self.sums.object_misses += 1;
                let named = Ended { end: End::Code(0), stdout: difference.certain.join(" ").into_bytes(), stderr: Vec::new() };
                self.contradiction("object", Some(mutant), &named, &self.base)?;
            }
        }
        Ok(())
    }

    /// Whatever `tasting run` remembers, what it gives is what the program does.
    fn judge_execution(&mut self, mutant: &Mutant, plain: &Ended, changed: bool) -> io::Result<()> {
        if !changed && !self.grows {
            let said = self.bench.tasting(&["explain", "--reuse-failures", "--json", "--", "./prog"], None, PATIENCE)?.text();
            self.sums.equal_asked += 1;
            self.sums.equal_selected_by_execution += u64::from(said.contains("\"decision\": \"executed\"") || said.contains("\"decision\":\"executed\""));
            return Ok(());
        }
        let given = match self.plan.blind {
            true => self.base.clone(),
            false => {
                let variable = (!self.grows).then_some("TASTING_READONLY");
                self.bench.tasting(&["run", "--reuse-failures", "--", "./prog"], variable, PATIENCE)?
            }
        };
        if given == *plain {
            return Ok(());
        }
        if !self.is_steady(plain)? {
            self.sums.unsteady += 1;
            return Ok(());
        }
        // What was seen before can have been reused; anything else is new, and has come of running it.
        let is_known = self.seen.values().any(|known| *known == given);
        if is_known {
            self.sums.executed_misses += 1;
        } else {
            self.sums.disturbed += 1;
        }
        self.contradiction(if is_known { "executed" } else { "disturbed" }, Some(mutant), plain, &given)
    }

    fn is_steady(&self, plain: &Ended) -> io::Result<bool> {
        for _ in 0..RERUNS {
            if self.bench.run_plainly(self.patience)? != *plain {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps all that is needed to see a contradiction again.
    fn contradiction(&self, sort: &str, mutant: Option<&Mutant>, plain: &Ended, given: &Ended) -> io::Result<()> {
        let folder = self.plan.misses.join(format!("{}-{}-{}-{sort}", self.plan.seed, self.number, self.sums.mutants));
        fs::create_dir_all(&folder)?;
        let program = self.bench.program;
        for file in program.headers.iter().chain(program.units.iter().map(|unit| &unit.file)) {
            fs::write(folder.join(&file.name), &file.text)?;
        }
        let what = mutant.map_or("the program as it is".to_owned(), |mutant| self.describe(mutant, &folder));
        let places: Vec<Place> = program.units.iter().map(|unit| unit.place).collect();
        let text = format!(
            "{sort}: seed {}, program {} ({}), mutant {}\n{}\nunits: {places:?}\nstore: {}\n\n{what}\n\n== plainly\n{}\n== given\n{}\n",
            self.plan.seed,
            self.number,
            program.sort,
            self.sums.mutants,
            self.bench.setup.describe(),
            if self.grows { "grows" } else { "of the first version" },
            plain.describe(),
            given.describe()
        );
        fs::write(folder.join("README"), &text)?;
        eprintln!("lab: {sort}: {}", folder.display());
        Ok(())
    }

    fn describe(&self, mutant: &Mutant, folder: &Path) -> String {
        let program = self.bench.program;
        let changed = match &mutant.change {
            Change::Unit { index, text } => Some((&program.units[*index].file, text)),
            Change::Header { index, text } => Some((&program.headers[*index], text)),
            _ => None,
        };
        let Some((file, text)) = changed else { return format!("{}: {:?}", mutant.kind, mutant.change) };
        let name = format!("mutated-{}", file.name);
        let _ = fs::write(folder.join(&name), text);
        let lines = file.text.lines().zip(text.lines()).filter(|(before, after)| before != after);
        let shown: Vec<String> = lines.take(5).map(|(before, after)| format!("- {before}\n+ {after}")).collect();
        format!("{} in {}:\n{}", mutant.kind, file.name, shown.join("\n"))
    }
}
