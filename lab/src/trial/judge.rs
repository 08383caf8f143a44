//! What the oracle says of a test of a changed program. In: what was changed, and the program as it
//! behaves. Out: whether it behaves otherwise; misses, as evidence.

use super::{Change, EXPLAIN, PATIENCE, RUN, Trial};
use crate::bench::Built;
use crate::explanation;
use crate::objects::{self, Difference};
use crate::process::{End, Ended};
use crate::program::{Packaging, Program};
use std::fs;
use std::io;

impl Trial<'_> {
    /// Asks all that is to be asked about a test of a changed program. Whether it behaves
    /// otherwise; `None` if that cannot be told.
    pub(super) fn judge(&mut self, test: usize, change: &Change) -> io::Result<Option<bool>> {
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
            let is_told = program.units[*index].place == Packaging::Object
                && !program.has(Packaging::Library)
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
    pub(super) fn is_explained(
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
}
