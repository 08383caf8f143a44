//! A program under test: built once unchanged, then again and again with one change, in the same
//! folder.

mod runs;

use crate::mutate::Change;
use crate::process;
use crate::program::{Language, Packaging, Program};
use crate::setup::{SCRIPT, SCRIPT_FILE, Setup, Tools, command};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
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
#[derive(Debug, Default)]
pub struct Built {
    /// The objects that were compiled for it, by unit.
    pub objects: Vec<(usize, PathBuf)>,
    /// The sections that the linker left out of the program, as `object:section`.
    pub removed: BTreeSet<String>,
}

impl<'b> Bench<'b> {
    /// Builds the program as it is. `None` if that does not work.
    pub fn new(
        tools: &'b Tools,
        program: &'b Program,
        setup: Setup,
        folder: PathBuf,
    ) -> io::Result<Option<(Bench<'b>, Built)>> {
        let bench = Bench { tools, program, setup, folder, changed: [false; 2] };
        for name in ["src", "obj", "mut", "bin", "base", "out", "wrap"] {
            fs::create_dir_all(bench.folder.join(name))?;
        }
        fs::write(bench.folder.join(SCRIPT_FILE), SCRIPT)?;
        bench.write_wrapper(&[])?;
        for file in program.files() {
            fs::write(bench.folder.join("src").join(&file.name), &file.text)?;
        }
        for index in 0..program.units.len() {
            if !bench.compile("src", index, &[], "obj")? {
                return Ok(None);
            }
        }
        let order: Vec<usize> = (0..program.units.len()).collect();
        let Some(removed) = bench.link(&|index| relative("obj", index), &order, &[], [true; 2])?
        else {
            return Ok(None);
        };
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
        let mut command = command(program, &self.folder, &self.folder, &self.setup.level);
        if self.setup.reuses_objects {
            command.env("TASTING_REUSE_OBJECTS", "1");
        }
        command
    }

    /// The script before the compiler, with options of its own.
    fn wrapper(&self) -> PathBuf {
        self.folder.join("wrap").join(self.setup.compiler.command(self.program.language))
    }

    fn write_wrapper(&self, flags: &[String]) -> io::Result<()> {
        let compiler = self.setup.compiler.command(self.program.language);
        let text = format!("#!/bin/sh\nexec {compiler} {} \"$@\"\n", flags.join(" "));
        process::writing(|| fs::write(self.wrapper(), &text))?;
        fs::set_permissions(self.wrapper(), fs::Permissions::from_mode(0o755))
    }

    fn compile(&self, from: &str, index: usize, more: &[String], to: &str) -> io::Result<bool> {
        let unit = &self.program.units[index];
        let mut command = self.shim(self.program.language);
        let compiler = match self.setup.is_wrapped {
            true => self.wrapper(),
            false => self.setup.compiler.command(self.program.language).into(),
        };
        command.env("TASTING_CC", &compiler).env("TASTING_CXX", &compiler);
        // What a library hides, the program does not find.
        let is_in_the_way =
            |flag: &String| flag == "-fvisibility=hidden" && self.program.has(Packaging::Library);
        command
            .args(self.setup.compile_flags().into_iter().filter(|flag| !is_in_the_way(flag)))
            .args(&self.program.flags);
        if unit.place == Packaging::Library {
            command.arg("-fPIC");
        }
        command
            .args(more)
            .args(["-w", "-Imut", "-Isrc", "-c"])
            .arg(Path::new(from).join(&unit.name));
        command.arg("-o").arg(relative(to, index));
        Ok(self.run(&mut command, PATIENCE)?.is_good())
    }

    /// Links the library and the program, or one of them. Gives what was left out of the program;
    /// nothing if it fails. All paths are relative to the folder, as build systems have them.
    fn link(
        &self,
        object: &dyn Fn(usize) -> PathBuf,
        order: &[usize],
        more: &[String],
        which: [bool; 2],
    ) -> io::Result<Option<BTreeSet<String>>> {
        let of = |place: Packaging| {
            order
                .iter()
                .filter(move |index| self.program.units[**index].place == place)
                .map(|index| object(*index))
        };
        let driver = || {
            let mut command = self.shim(self.program.language);
            for variable in ["TASTING_CC", "TASTING_CXX"] {
                command.env(variable, self.setup.driver.command(self.program.language));
            }
            command
        };
        if which[0] && self.program.has(Packaging::Library) {
            let mut command = driver();
            command.args(["-shared", "-Wl,-soname,libpart.so", "-o", "bin/libpart.so"]);
            command.arg(format!("-fuse-ld={}", self.setup.linker)).args(of(Packaging::Library));
            command.args(more.iter().filter(|option| *option != "-no-pie"));
            if !self.run(&mut command, PATIENCE)?.is_good() {
                return Ok(None);
            }
        }
        if !which[1] {
            return Ok(Some(BTreeSet::new()));
        }
        let mut command = driver();
        command.args(of(Packaging::Object)).args(["-o", "bin/prog"]).args(self.setup.link_flags());
        if self.program.has(Packaging::Archive) {
            let _ = fs::remove_file(self.folder.join("out/libmore.a"));
            let mut make = Command::new("ar");
            make.current_dir(&self.folder)
                .args(["qcs", "out/libmore.a"])
                .args(of(Packaging::Archive));
            if !self.run(&mut make, PATIENCE)?.is_good() {
                return Ok(None);
            }
            command.arg("out/libmore.a");
        }
        if self.program.has(Packaging::Library) {
            command.args(["bin/libpart.so", "-Wl,-rpath,$ORIGIN"]);
        }
        let linked = self.run(command.args(more), PATIENCE)?;
        Ok(linked.is_good().then(|| removed(&linked.describe())))
    }

    /// Compiles another text of a unit. Gives the lines that the compiler complains about, if it
    /// refuses it.
    pub fn compile_text(&self, index: usize, text: &str) -> io::Result<Result<(), Vec<usize>>> {
        fs::write(self.folder.join("mut").join(&self.program.units[index].name), text)?;
        if self.compile("mut", index, &[], "mut")? {
            return Ok(Ok(()));
        }
        let said = String::from_utf8_lossy(&fs::read(self.folder.join("out/stderr"))?).into_owned();
        let errors = said.lines().filter(|line| line.contains("error:"));
        let number = |line: &str| line.split(':').nth(1).and_then(|number| number.parse().ok());
        Ok(Err(errors.filter_map(number).collect()))
    }

    /// Builds with a change of something else. `None` if that does not work.
    pub fn build(&mut self, change: &Change) -> io::Result<Option<Built>> {
        let (index, flags, from) = match change {
            Change::Unit { index, text } => {
                let compiled = self.compile_text(*index, text)?.is_ok();
                return if compiled { self.relink(vec![*index], None, &[]) } else { Ok(None) };
            }
            Change::Header { index, text } => return self.build_header(*index, text),
            Change::Wrapper(flags) => return self.build_wrapped(flags),
            Change::Order(order) => {
                return self.relink(Vec::new(), Some(order), &[]);
            }
            Change::Link(more) => {
                return self.relink(Vec::new(), None, more);
            }
            Change::Options { index, flags } => (*index, flags, "src"),
        };
        if !self.compile(from, index, flags, "mut")? {
            return Ok(None);
        }
        self.relink(vec![index], None, &[])
    }

    /// All units, by a compiler that a script gives more options.
    fn build_wrapped(&mut self, flags: &[String]) -> io::Result<Option<Built>> {
        if !self.setup.is_wrapped {
            return Ok(None);
        }
        self.write_wrapper(flags)?;
        let all: Vec<usize> = (0..self.program.units.len()).collect();
        let mut works = true;
        for index in &all {
            works = works && self.compile("src", *index, &[], "mut")?;
        }
        self.write_wrapper(&[])?;
        if works { self.relink(all, None, &[]) } else { Ok(None) }
    }

    fn build_header(&mut self, index: usize, text: &str) -> io::Result<Option<Built>> {
        let header = self.folder.join("mut").join(&self.program.headers[index].name);
        fs::write(&header, text)?;
        let all: Vec<usize> = (0..self.program.units.len()).collect();
        let mut works = true;
        for index in &all {
            // A header is looked for beside the file that includes it, first of all.
            let unit = &self.program.units[*index];
            fs::write(self.folder.join("mut").join(&unit.name), unit.text())?;
            works = works && self.compile("mut", *index, &[], "mut")?;
        }
        // It would be in the way of the next change.
        fs::remove_file(header)?;
        if works { self.relink(all, None, &[]) } else { Ok(None) }
    }

    /// Links what the units in the folder `mut` are part of, or everything if there are none.
    pub fn relink(
        &mut self,
        compiled: Vec<usize>,
        order: Option<&[usize]>,
        more: &[String],
    ) -> io::Result<Option<Built>> {
        self.restore()?;
        let given: Vec<usize> = (0..self.program.units.len()).collect();
        let in_library = |index: &usize| self.program.units[*index].place == Packaging::Library;
        let which = [compiled.iter().any(in_library), !compiled.iter().all(in_library)];
        let which = if compiled.is_empty() { [true; 2] } else { which };
        self.changed = which;
        let object =
            |index: usize| relative(if compiled.contains(&index) { "mut" } else { "obj" }, index);
        let removed = self.link(&object, order.unwrap_or(&given), more, which)?;
        let objects = compiled.iter().map(|index| (*index, self.object("mut", *index))).collect();
        // Where only the library was linked anew, the program is as it was; what it leaves out is
        // not told again.
        Ok(removed.map(|removed| Built { objects, removed }))
    }

    /// Puts back what the last change has replaced.
    pub fn restore(&mut self) -> io::Result<()> {
        for (index, name) in [LIBRARY, PROGRAM].into_iter().enumerate() {
            if !std::mem::take(&mut self.changed[index]) {
                continue;
            }
            for name in [name.to_owned(), format!("{name}.tasting")] {
                let (from, to) =
                    (self.folder.join("base").join(&name), self.folder.join("bin").join(&name));
                let _ = fs::remove_file(&to);
                if from.exists() {
                    process::writing(|| fs::copy(from, to))?;
                }
            }
        }
        Ok(())
    }

    pub fn base_object(&self, index: usize) -> PathBuf {
        self.object("obj", index)
    }
}

fn relative(folder: &str, index: usize) -> PathBuf {
    Path::new(folder).join(Program::object(index))
}

/// The sections that a linker says it has left out, as `object:section`. Each linker has its own
/// words.
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
    use crate::dice::Dice;
    use crate::program::Test;
    use crate::setup::Compiler;

    #[test]
    #[ignore = "needs clang and valgrind"]
    fn valgrind_reads_what_clang_compiled_with_debug_information() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for name in ["bin", "out"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let text = "int printf(const char *, ...); int main(void) { int x; return printf(\"%d\", x) < 0; }";
        fs::write(folder.path().join("u0.c"), text)?;
        let compiled = Command::new("clang")
            .current_dir(&folder)
            .args(["-g", "-O0", "u0.c", "-o", "bin/prog"])
            .status()?;
        assert!(compiled.success());

        let tools = Tools { tasting: "".into(), cc: "".into(), cxx: "".into() };
        let dice = &mut Dice::new(1, "valgrind");
        let program = crate::generate::small_c(dice);
        let setup = Setup::new(dice, "code", &[Compiler::Clang]);
        let folder = folder.path().to_owned();
        let bench = Bench { tools: &tools, program: &program, setup, folder, changed: [false; 2] };
        let test = Test { argument: None, ..program.tests[0].clone() };
        let said = bench.run_in_valgrind(&test, PATIENCE)?.unwrap_or_default();
        assert!(said.contains("uninitialised"), "{said}");
        Ok(())
    }

    #[test]
    fn all_linkers_are_understood() {
        let said = "/usr/bin/ld.bfd: removing unused section '.text.f' in file '/x/obj/u1.o'\nld.gold: removing unused section from '.text.g' in file 'obj/u1.o'\nremoving unused section obj/u2.o:(.text.h)\n";
        assert_eq!(
            removed(said).into_iter().collect::<Vec<_>>(),
            ["u1.o:.text.f", "u1.o:.text.g", "u2.o:.text.h"]
        );
    }
}
