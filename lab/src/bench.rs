//! A program on the bench: built once as it is, then again and again with one change, in the same place.

use crate::mutate::Change;
use crate::process::{self, Ended};
use crate::program::{Language, Place, Program};
use crate::setup::{Setup, Tools, command};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Compilers and linkers never take longer.
const PATIENCE: Duration = Duration::from_secs(60);

const LIBRARY: &str = "libpart.so";
const PROGRAM: &str = "prog";

pub struct Bench<'b> {
    tools: &'b Tools,
    pub program: &'b Program,
    pub setup: Setup,
    pub folder: PathBuf,
    /// What is in the folder `bin` is not what was built first.
    changed: [bool; 2],
}

/// A build that worked.
pub struct Built {
    /// The objects that were compiled for it, by unit.
    pub objects: Vec<(usize, PathBuf)>,
    /// The sections that the linker left out of the program, as `object:section`.
    pub removed: BTreeSet<String>,
}

impl<'b> Bench<'b> {
    /// Builds the program as it is. `None` if that does not work.
    pub fn new(tools: &'b Tools, program: &'b Program, setup: Setup, folder: PathBuf) -> io::Result<Option<(Bench<'b>, Built)>> {
        let bench = Bench { tools, program, setup, folder, changed: [false; 2] };
        for name in ["src", "obj", "mut", "bin", "base", "out"] {
            fs::create_dir_all(bench.folder.join(name))?;
        }
        let files = program.headers.iter().chain(program.units.iter().map(|unit| &unit.file));
        for file in files {
            fs::write(bench.folder.join("src").join(&file.name), &file.text)?;
        }
        for index in 0..program.units.len() {
            if !bench.compile("src", index, &[], "obj")? {
                return Ok(None);
            }
        }
        let order: Vec<usize> = (0..program.units.len()).collect();
        let Some(removed) = bench.link(&|index| relative("obj", index), &order, &[], [true; 2])? else { return Ok(None) };
        for name in fs::read_dir(bench.folder.join("bin"))? {
            let path = name?.path();
            fs::copy(&path, bench.folder.join("base").join(path.file_name().unwrap_or_default()))?;
        }
        let objects = order.iter().map(|index| (*index, bench.object("obj", *index))).collect();
        Ok(Some((bench, Built { objects, removed })))
    }

    fn object(&self, folder: &str, index: usize) -> PathBuf {
        self.folder.join(relative(folder, index))
    }

    fn shim(&self, language: Language) -> Command {
        let program = if language == Language::C { &self.tools.cc } else { &self.tools.cxx };
        command(program, &self.folder, &self.folder, &self.setup.level)
    }

    fn compile(&self, from: &str, index: usize, more: &[String], to: &str) -> io::Result<bool> {
        let unit = &self.program.units[index];
        let mut command = self.shim(self.program.language);
        for variable in ["TASTING_CC", "TASTING_CXX"] {
            command.env(variable, self.setup.compiler.command(self.program.language));
        }
        command.args(self.setup.compile_flags()).args(&self.program.flags);
        if unit.place == Place::Library {
            command.arg("-fPIC");
        }
        command.args(more).args(["-w", "-Imut", "-Isrc", "-c"]).arg(Path::new(from).join(&unit.file.name));
        command.arg("-o").arg(relative(to, index));
        Ok(self.run(&mut command, PATIENCE)?.is_good())
    }

    /// Links the library and the program, or one of them. Gives what was left out of the program; nothing if it fails.
    /// All paths are relative to the folder, as build systems have them.
    fn link(&self, object: &dyn Fn(usize) -> PathBuf, order: &[usize], more: &[String], which: [bool; 2]) -> io::Result<Option<BTreeSet<String>>> {
        let of = |place: Place| order.iter().filter(move |index| self.program.units[**index].place == place).map(|index| object(*index));
        let driver = || {
            let mut command = self.shim(self.program.language);
            for variable in ["TASTING_CC", "TASTING_CXX"] {
                command.env(variable, self.setup.driver.command(self.program.language));
            }
            command
        };
        if which[0] && self.program.has(Place::Library) {
            let mut command = driver();
            command.args(["-shared", "-Wl,-soname,libpart.so", "-o", "bin/libpart.so"]);
            command.arg(format!("-fuse-ld={}", self.setup.linker)).args(of(Place::Library));
            command.args(more.iter().filter(|option| *option != "-no-pie"));
            if !self.run(&mut command, PATIENCE)?.is_good() {
                return Ok(None);
            }
        }
        if !which[1] {
            return Ok(Some(BTreeSet::new()));
        }
        let mut command = driver();
        command.args(of(Place::Object)).args(["-o", "bin/prog"]).args(self.setup.link_flags());
        if self.program.has(Place::Archive) {
            let _ = fs::remove_file(self.folder.join("out/libmore.a"));
            let mut make = Command::new("ar");
            make.current_dir(&self.folder).args(["qcs", "out/libmore.a"]).args(of(Place::Archive));
            if !self.run(&mut make, PATIENCE)?.is_good() {
                return Ok(None);
            }
            command.arg("out/libmore.a");
        }
        if self.program.has(Place::Library) {
            command.args(["bin/libpart.so", "-Wl,-rpath,$ORIGIN"]);
        }
        let linked = self.run(command.args(more), PATIENCE)?;
        Ok(linked.is_good().then(|| removed(&linked.describe())))
    }

    /// Builds with a change. `None` if that does not work.
    pub fn build(&mut self, change: &Change) -> io::Result<Option<Built>> {
        self.restore()?;
        let all: Vec<usize> = (0..self.program.units.len()).collect();
        let (mut order, mut more, mut flags) = (all.clone(), Vec::new(), Vec::new());
        let mut compiled = Vec::new();
        match change {
            Change::Unit { index, text } => {
                fs::write(self.folder.join("mut").join(&self.program.units[*index].file.name), text)?;
                compiled.push(*index);
            }
            Change::Header { index, text } => {
                fs::write(self.folder.join("mut").join(&self.program.headers[*index].name), text)?;
                // A header is looked for beside the file that includes it, first of all.
                for unit in &self.program.units {
                    fs::write(self.folder.join("mut").join(&unit.file.name), &unit.file.text)?;
                }
                compiled = all;
            }
            Change::Options { index, flags: given } => {
                flags.clone_from(given);
                compiled.push(*index);
            }
            Change::Order(given) => order.clone_from(given),
            Change::Link(given) => more.clone_from(given),
        }
        let from = if matches!(change, Change::Unit { .. } | Change::Header { .. }) { "mut" } else { "src" };
        let is_compiled = |index: &usize| self.compile(from, *index, &flags, "mut");
        let mut works = true;
        for index in &compiled {
            works = works && is_compiled(index)?;
        }
        if let Change::Header { index, .. } = change {
            // It would be in the way of the next one.
            fs::remove_file(self.folder.join("mut").join(&self.program.headers[*index].name))?;
        }
        if !works {
            return Ok(None);
        }
        let in_library = |index: &usize| self.program.units[*index].place == Place::Library;
        let which = if compiled.is_empty() {
            [true; 2]
        } else {
            [compiled.iter().any(in_library), compiled.iter().any(|index| !in_library(index))]
        };
        self.changed = which;
        let object = |index: usize| relative(if compiled.contains(&index) { "mut" } else { "obj" }, index);
        let removed = self.link(&object, &order, &more, which)?;
        let objects = compiled.iter().map(|index| (*index, self.object("mut", *index))).collect();
        Ok(removed.map(|removed| Built { objects, removed }))
    }

    /// Puts back what the last change has replaced.
    pub fn restore(&mut self) -> io::Result<()> {
        for (index, name) in [LIBRARY, PROGRAM].into_iter().enumerate() {
            if !std::mem::take(&mut self.changed[index]) {
                continue;
            }
            for name in [name.to_owned(), format!("{name}.tasting")] {
                let (from, to) = (self.folder.join("base").join(&name), self.folder.join("bin").join(&name));
                let _ = fs::remove_file(&to);
                if from.exists() {
                    fs::copy(from, to)?;
                }
            }
        }
        Ok(())
    }

    pub fn base_object(&self, index: usize) -> PathBuf {
        self.object("obj", index)
    }

    fn run(&self, command: &mut Command, patience: Duration) -> io::Result<Ended> {
        process::run(command, &self.folder.join("out"), patience)
    }

    /// What the program does by itself.
    pub fn run_plainly(&self, patience: Duration) -> io::Result<Ended> {
        // As `tasting run` starts it: programs see their names.
        let mut command = command(Path::new("./prog"), &self.folder.join("bin"), &self.folder, &self.setup.level);
        self.run(&mut command, patience)
    }

    /// `tasting`, in the folder of the program.
    pub fn tasting(&self, words: &[&str], variable: Option<&str>, patience: Duration) -> io::Result<Ended> {
        let mut command = command(&self.tools.tasting, &self.folder.join("bin"), &self.folder, &self.setup.level);
        command.args(words);
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        self.run(&mut command, patience)
    }

    /// The fingerprint of the program with its libraries.
    pub fn fingerprint(&self) -> io::Result<Option<String>> {
        let said = self.tasting(&["fingerprint", "./prog"], None, PATIENCE)?;
        Ok(said.is_good().then(|| said.text().split(' ').next().unwrap_or_default().to_owned()))
    }
}

fn relative(folder: &str, index: usize) -> PathBuf {
    Path::new(folder).join(Program::object(index))
}

/// The sections that a linker says it has left out, as `object:section`. Each linker has its own words.
fn removed(said: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in said.lines() {
        let Some((_, rest)) = line.split_once("removing unused section ") else { continue };
        let quoted: Vec<&str> = rest.split('\'').collect();
        let pair = match quoted[..] {
            [_, section, _, file, ..] => Some((file, section)),
            _ => rest.trim_end().trim_end_matches(')').split_once(":("),
        };
        if let Some((file, section)) = pair {
            found.insert(format!("{}:{section}", file.rsplit('/').next().unwrap_or(file)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_linkers_are_understood() {
        let said = "/usr/bin/ld.bfd: removing unused section '.text.f' in file '/x/obj/u1.o'\nld.gold: removing unused section from '.text.g' in file 'obj/u1.o'\nremoving unused section obj/u2.o:(.text.h)\n";
        assert_eq!(removed(said).into_iter().collect::<Vec<_>>(), ["u1.o:.text.f", "u1.o:.text.g", "u2.o:.text.h"]);
    }
}
