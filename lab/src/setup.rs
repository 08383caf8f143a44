//! How a program is built: compiler, optimisation, linker, kind of binary, level of hashing.

use crate::dice::Dice;
use crate::program::Language;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tools under test.
#[derive(Clone, Debug)]
pub struct Tools {
    pub tasting: PathBuf,
    pub cc: PathBuf,
    pub cxx: PathBuf,
}

impl Tools {
    /// The binaries in a folder that cargo builds into.
    pub fn in_folder(folder: &Path) -> anyhow::Result<Tools> {
        let file = |name: &str| {
            let path = folder.join(name);
            anyhow::ensure!(
                path.is_file(),
                "there is no {name} in {}: build Tasting first, or name the folder with --built",
                folder.display()
            );
            Ok(std::fs::canonicalize(path)?)
        };
        Ok(Tools { tasting: file("tasting")?, cc: file("tasting-cc")?, cxx: file("tasting-cxx")? })
    }
}

/// Which version of it is meant, `PATH` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compiler {
    Gcc,
    Clang,
}

impl Compiler {
    pub const ALL: [Compiler; 2] = [Compiler::Gcc, Compiler::Clang];

    pub fn name(self) -> &'static str {
        match self {
            Compiler::Gcc => "gcc",
            Compiler::Clang => "clang",
        }
    }

    pub fn command(self, language: Language) -> &'static str {
        match (self, language) {
            (Compiler::Gcc, Language::C) => "gcc",
            (Compiler::Gcc, Language::Cxx) => "g++",
            (Compiler::Clang, Language::C) => "clang",
            (Compiler::Clang, Language::Cxx) => "clang++",
        }
    }
}

/// What is quick comes more often.
const OPTIMISATIONS: [&str; 7] = ["-O0", "-O0", "-O1", "-O1", "-O2", "-O3", "-Os"];
const LINKERS: [&str; 7] = ["bfd", "bfd", "gold", "gold", "mold", "mold", "lld"];

const COMPILING: [&str; 6] = [
    "-fno-plt",
    "-fno-asynchronous-unwind-tables",
    "-fstack-protector-strong",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fwrapv",
];
const LINKING: [&str; 6] = [
    "-Wl,-O2",
    "-Wl,-z,now",
    "-Wl,--icf=all",
    "-rdynamic",
    "-Wl,-z,norelro",
    "-Wl,--build-id=none",
];

/// Options that are not in the way of the program.
fn more(dice: &mut Dice, linker: &str) -> [Option<&'static str>; 2] {
    let compiling = dice.percent(30).then(|| COMPILING[dice.below(COMPILING.len())]);
    let linking = dice.percent(30).then(|| LINKING[dice.below(LINKING.len())]);
    [compiling, linking.filter(|option| linker != "bfd" || !option.contains("icf"))]
}

const SANITIZER: &str = "-fsanitize=undefined";

/// One way to build.
#[derive(Clone, Debug)]
pub struct Setup {
    pub compiler: Compiler,
    /// Who leads the link: it need not be the one that compiled.
    pub driver: Compiler,
    pub optimisation: &'static str,
    pub linker: &'static str,
    pub pie: bool,
    pub debug: bool,
    /// The linker drops what cannot be reached, and says so.
    pub collects: bool,
    pub level: String,
    /// Further options, of the compiler and of the link.
    pub more: [Option<&'static str>; 2],
    /// With UBSan, which tells lines and columns.
    pub sanitizes: bool,
    /// Objects are reused, where they are at all.
    pub reuses_objects: bool,
    /// The compiler is behind a script.
    pub is_wrapped: bool,
    /// Linked with [`SCRIPT`].
    pub has_script: bool,
}

/// A linker script beside the linker's own, which gathers tables.
pub const SCRIPT: &str =
    "SECTIONS { .lab_tables : { KEEP(*(SORT(.data.tbl.*))) } } INSERT AFTER .data;\n";
pub const SCRIPT_FILE: &str = "lab.ld";

impl Setup {
    /// A random one. `level` is given, or `mixed`.
    pub fn new(dice: &mut Dice, level: &str, compilers: &[Compiler]) -> Setup {
        let linker = LINKERS[dice.below(LINKERS.len())];
        let compiler = *dice.pick(compilers);
        let sanitizes = dice.percent(8);
        let level =
            if level == "mixed" { *dice.pick(&["code", "code", "code", "file"]) } else { level };
        Setup {
            compiler,
            // Clang is slow to start, and what links is the linker; but each has a sanitizer of its
            // own.
            driver: if dice.percent(80) && !sanitizes { Compiler::Gcc } else { compiler },
            sanitizes,
            reuses_objects: level == "ast" && dice.percent(50),
            is_wrapped: level == "ast" && dice.percent(20),
            has_script: ["bfd", "lld"].contains(&linker) && dice.percent(10),
            optimisation: OPTIMISATIONS[dice.below(OPTIMISATIONS.len())],
            linker,
            pie: dice.percent(70),
            debug: dice.percent(10),
            collects: dice.percent(50),
            more: more(dice, linker),
            level: level.to_owned(),
        }
    }

    pub fn describe(&self) -> String {
        let Setup {
            compiler, driver, optimisation, linker, pie, debug, collects, level, more, ..
        } = self;
        let more: Vec<&str> = more.iter().flatten().copied().collect();
        format!(
            "{} {optimisation}{}{}, linked by {} with {linker}{}, level {level}, {more:?}, UBSan {}, objects reused {}, wrapped {}, script {}",
            compiler.name(),
            if *pie { " -fPIE" } else { " -fno-pie" },
            if *debug { " -g" } else { "" },
            driver.name(),
            if *collects { " --gc-sections" } else { "" },
            self.sanitizes,
            self.reuses_objects,
            self.is_wrapped,
            self.has_script
        )
    }

    pub fn compile_flags(&self) -> Vec<String> {
        let pic = if self.pie { "-fPIE" } else { "-fno-pie" };
        let debug = self.debug.then_some("-g");
        let sanitizer = self.sanitizes.then_some(SANITIZER);
        [self.optimisation, pic]
            .into_iter()
            .chain(debug)
            .chain(sanitizer)
            .chain(self.more[0])
            .map(str::to_owned)
            .collect()
    }

    pub fn link_flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("-fuse-ld={}", self.linker),
            if self.pie { "-pie" } else { "-no-pie" }.to_owned(),
        ];
        flags.extend(self.more[1].map(str::to_owned));
        flags.extend(self.sanitizes.then(|| SANITIZER.to_owned()));
        flags.extend(self.has_script.then(|| format!("-Wl,-T,{SCRIPT_FILE}")));
        if self.collects {
            flags.push("-Wl,--gc-sections,--print-gc-sections".to_owned());
            if self.linker == "lld" {
                // It would drop the sets that programs walk over.
                flags.push("-Wl,-z,nostart-stop-gc".to_owned());
            }
        }
        flags
    }
}

/// A command in an environment of which everything is known.
pub fn command(program: &Path, folder: &Path, root: &Path, level: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in [
        ("LC_ALL", Path::new("C")),
        ("HOME", root),
        ("TASTING_ROOT", root),
        ("TASTING_LEVEL", Path::new(level)),
    ] {
        command.env(name, value);
    }
    command.env("TASTING_DIR", root.join("store"));
    command
}
