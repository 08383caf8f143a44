//! Where faults are injected: two versions of a program in two checkouts, and a store for both. In:
//! a program. Out: its versions with what their tests give, and checks that this is still so.

use super::PATIENCE;
use crate::bench::Bench;
use crate::dice::Dice;
use crate::mutate::{self, Step};
use crate::process::{self, Ended};
use crate::program::Program;
use crate::report::Faults;
use crate::setup::{Compiler, Setup, Tools, command};
use crate::stored;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two versions of a program in two checkouts, and a store for both.
pub(super) struct Ground<'g> {
    pub(super) tools: &'g Tools,
    pub(super) program: &'g Program,
    pub(super) checkouts: [PathBuf; 2],
    pub(super) expected: [Vec<Ended>; 2],
    pub(super) fingerprints: [String; 2],
    pub(super) store: PathBuf,
    pub(super) dice: Dice,
    pub(super) found: Faults,
}

pub(super) fn setup() -> Setup {
    Setup {
        compiler: Compiler::Gcc,
        driver: Compiler::Gcc,
        optimisation: "-O1",
        linker: "gold",
        pie: true,
        debug: false,
        collects: false,
        level: "code".to_owned(),
        more: [None; 2],
        sanitizes: false,
        reuses_objects: false,
        is_wrapped: false,
        has_script: false,
    }
}

pub(super) fn fingerprint(binary: &Path) -> String {
    let found =
        tasting::fingerprint::fingerprint(binary, None, &tasting::process::Settings::default());
    found.map_or_else(|error| error.to_string(), |hash| hash.to_string())
}

impl<'g> Ground<'g> {
    pub(super) fn new(
        tools: &'g Tools,
        program: &'g Program,
        folder: &Path,
        mut dice: Dice,
    ) -> io::Result<Option<Ground<'g>>> {
        let checkouts = ["one", "two"].map(|name| folder.join(name));
        let mut expected = [Vec::new(), Vec::new()];
        let mut fingerprints = [String::new(), String::new()];
        for (version, checkout) in checkouts.iter().enumerate() {
            fs::create_dir_all(checkout)?;
            let Some((mut bench, _)) = Bench::new(tools, program, setup(), checkout.clone())?
            else {
                return Ok(None);
            };
            // The second version differs from the first in something that a test notices.
            let mut turns = 0;
            loop {
                expected[version].clear();
                for test in &program.tests {
                    expected[version].push(bench.run_plainly(test, PATIENCE)?);
                }
                turns += 1;
                if version == 0 || expected[0] != expected[1] {
                    break;
                }
                if turns > 50 {
                    return Ok(None);
                }
                if let Some(Step::Each(mutations)) = mutate::step(&mut dice, program) {
                    let Some(mutation) = mutations.first() else { continue };
                    let unit = &program.units[mutation.unit];
                    let texts = unit.segments.iter().enumerate();
                    let text: String = texts
                        .map(|(number, segment)| {
                            if number == mutation.segment {
                                &*mutation.text
                            } else {
                                &*segment.text
                            }
                        })
                        .collect();
                    if bench.compile_text(mutation.unit, &text)?.is_ok() {
                        bench.relink(vec![mutation.unit], None, &[])?;
                        fs::write(checkout.join("src").join(&unit.name), text)?;
                        fs::copy(
                            checkout.join("mut").join(Program::object(mutation.unit)),
                            checkout.join("obj").join(Program::object(mutation.unit)),
                        )?;
                    }
                }
            }
            fingerprints[version] = fingerprint(&checkout.join("bin/prog"));
        }
        let store = folder.join("store");
        let found = Faults::default();
        Ok(Some(Ground { tools, program, checkouts, expected, fingerprints, store, dice, found }))
    }

    /// `tasting run` of a test in a version, with its output in a folder of its own.
    pub(super) fn runner(&self, version: usize, test: usize) -> Command {
        let checkout = &self.checkouts[version];
        let mut command = command(&self.tools.tasting, &checkout.join("bin"), checkout, "code");
        command.env("TASTING_DIR", &self.store).args(["run", "--reuse-failures", "--", "./prog"]);
        command.args(&self.program.tests[test].argument);
        command
    }

    pub(super) fn any(&mut self) -> (usize, usize) {
        (self.dice.below(2), self.dice.below(self.program.tests.len()))
    }

    pub(super) fn injected(&mut self, name: &str, count: u64) {
        *self.found.injected.entry(name.to_owned()).or_default() += count;
    }

    /// Runs every test of both versions twice: both times the result has to be right, and the
    /// second time it has to be known, where it can be kept.
    pub(super) fn check(&mut self, after: &str, is_kept: bool) -> io::Result<()> {
        for version in 0..2 {
            for test in 0..self.program.tests.len() {
                for turn in 0..2 {
                    let given = process::run(
                        &mut self.runner(version, test),
                        &self.checkouts[version].join("out"),
                        PATIENCE,
                    )?;
                    if given != self.expected[version][test] {
                        self.found.lost.push(format!(
                            "after {after}: test {test} of version {version} gives {}",
                            given.describe()
                        ));
                    }
                    if turn == 1 && is_kept && !self.is_reused(version, test)? {
                        self.found.lost.push(format!(
                            "after {after}: the result of test {test} of version {version} is not there"
                        ));
                    }
                }
            }
        }
        let stored = stored::read(&self.store)?;
        self.found.entries += stored.whole;
        self.found.lost.extend(
            stored
                .damaged
                .iter()
                .map(|path| format!("after {after}: {} is damaged", path.display())),
        );
        Ok(())
    }

    fn is_reused(&self, version: usize, test: usize) -> io::Result<bool> {
        let checkout = &self.checkouts[version];
        let mut command = command(&self.tools.tasting, &checkout.join("bin"), checkout, "code");
        command.env("TASTING_DIR", &self.store).args([
            "explain",
            "--reuse-failures",
            "--json",
            "--",
            "./prog",
        ]);
        command.args(&self.program.tests[test].argument);
        let said = process::run(&mut command, &checkout.join("out"), PATIENCE)?.text();
        Ok(said.replace(' ', "").contains("\"decision\":\"reused\""))
    }

    pub(super) fn build(&mut self, version: usize, command: &mut Command) -> io::Result<()> {
        let built = process::run(command, &self.checkouts[version].join("out"), PATIENCE)?;
        if !built.is_good() {
            self.found
                .lost
                .push(format!("after killed shims: the build fails: {}", built.describe()));
        }
        Ok(())
    }

    pub(super) fn compiler(&self, version: usize, unit: usize) -> Command {
        let (checkout, name) = (&self.checkouts[version], &self.program.units[unit].name);
        let mut command = command(&self.tools.cc, checkout, checkout, "code");
        command
            .env("TASTING_CC", "gcc")
            .env("TASTING_DIR", &self.store)
            .args(setup().compile_flags())
            .args(&self.program.flags);
        command
            .args(["-w", "-Isrc", "-c"])
            .arg(Path::new("src").join(name))
            .arg("-o")
            .arg(Path::new("obj").join(Program::object(unit)));
        command
    }

    pub(super) fn linker(&self, version: usize) -> Command {
        let checkout = &self.checkouts[version];
        let mut command = command(&self.tools.cc, checkout, checkout, "code");
        command.env("TASTING_CC", "gcc").env("TASTING_DIR", &self.store);
        command.args(
            (0..self.program.units.len()).map(|unit| Path::new("obj").join(Program::object(unit))),
        );
        command.args(["-o", "bin/prog"]).args(setup().link_flags());
        command
    }
}
