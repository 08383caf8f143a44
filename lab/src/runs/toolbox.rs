//! The C programs of random tests, built once for a hunt: with the shims in two versions, static,
//! for musl, with sanitizers.

use crate::dice::Dice;
use crate::setup::Tools;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xxhash_rust::xxh3::xxh3_64;

const SOURCES: &[(&str, &str)] = &[
    ("tool.h", include_str!("toolbox/tool.h")),
    ("main.c", include_str!("toolbox/main.c")),
    ("files.c", include_str!("toolbox/files.c")),
    ("processes.c", include_str!("toolbox/processes.c")),
    ("signals.c", include_str!("toolbox/signals.c")),
    ("sockets.c", include_str!("toolbox/sockets.c")),
    ("code.c", include_str!("toolbox/code.c")),
];

/// A library in two versions, and a program that uses it.
const PART: &str = r#"
const char *part(int other) { return other ? "other part" : VERSION == 1 ? "part one" : "part two"; }
"#;
const USER: &str = r#"
#include <stdio.h>
const char *part(int);
int main(int argc, char **argv) { (void)argv; puts(part(argc > 1)); return 0; }
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Plain,
    Sanitized,
    Libc,
}

/// Name, sort, compiler and options.
const BUILDS: &[(&str, Sort, &str, &[&str])] = &[
    ("gcc", Sort::Plain, "gcc", &["-O1"]),
    ("clang", Sort::Plain, "clang", &["-O2"]),
    ("gcc-static", Sort::Libc, "gcc", &["-O1", "-static"]),
    ("musl", Sort::Libc, "musl-gcc", &["-O1"]),
    ("musl-static", Sort::Libc, "musl-gcc", &["-O1", "-static"]),
    ("gcc-asan", Sort::Sanitized, "gcc", &["-O1", "-fsanitize=address"]),
    ("gcc-ubsan", Sort::Sanitized, "gcc", &["-O1", "-fsanitize=undefined"]),
    ("gcc-lsan", Sort::Sanitized, "gcc", &["-O1", "-fsanitize=leak"]),
    ("clang-asan", Sort::Sanitized, "clang", &["-O1", "-fsanitize=address"]),
    ("clang-ubsan", Sort::Sanitized, "clang", &["-O1", "-fsanitize=undefined"]),
    ("clang-lsan", Sort::Sanitized, "clang", &["-O1", "-fsanitize=leak"]),
];

/// A program and its manifest.
#[derive(Clone, Debug)]
pub struct Traced {
    pub program: Vec<u8>,
    pub manifest: Vec<u8>,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Toolbox {
    built: Vec<(Sort, PathBuf)>,
    /// Two versions, built with the shims.
    pub traced: [Traced; 2],
    /// A library, in two versions.
    pub library: [Traced; 2],
    /// A program that uses the library.
    pub user: Traced,
    /// How a sandbox is started, or a harmless word in its place.
    pub sandbox: String,
    /// What could not be built here.
    pub left_out: Vec<String>,
}

impl Toolbox {
    /// Builds the programs in folders below `folder`, or takes what an earlier hunt with the same
    /// tools has built there.
    pub fn build(tools: &Tools, folder: &Path) -> anyhow::Result<Toolbox> {
        let plain = prepared(folder, &format!("{SOURCES:?} {BUILDS:?}"), build_plain)?;
        let mut left_out = Vec::new();
        let mut built = Vec::new();
        for (name, sort, ..) in BUILDS {
            match plain.join(name) {
                program if program.exists() => built.push((*sort, program)),
                _ => left_out.push(format!("no programs by {name}: it is not installed in full")),
            }
        }
        anyhow::ensure!(
            built.iter().any(|(sort, _)| *sort == Sort::Plain),
            "no C compiler works here"
        );
        let shim = fs::metadata(&tools.cc)?;
        let made_by = format!("{SOURCES:?} {PART} {USER} {} {:?}", shim.len(), shim.modified()?);
        let folder = prepared(folder, &made_by, |folder| build_traced(tools, folder))?;
        let [one, two] = ["traced-1", "traced-2"].map(|name| read(&folder.join(name)));
        let traced = [one?, two?];
        let library = [read(&folder.join("libpart-1.so"))?, read(&folder.join("libpart-2.so"))?];
        let user = read(&folder.join("user"))?;
        let bwrap = "bwrap --dev-bind / / --";
        let sandbox = works(bwrap);
        if !sandbox {
            left_out
                .push("no tests in bubblewrap: it is not installed, or may not be used".to_owned());
        }
        let sandbox_words = if sandbox { bwrap } else { "env" }.to_owned();
        Ok(Toolbox { built, traced, library, user, sandbox: sandbox_words, left_out })
    }

    /// One of a single program, which need not be there.
    #[cfg(test)]
    pub fn of(program: &str, traced: &Traced) -> Toolbox {
        let built = vec![(Sort::Plain, PathBuf::from(program))];
        let [one, two, three] = [traced; 3].map(Traced::clone);
        let (both, sandbox) = ([one, two], "env".to_owned());
        Toolbox {
            built,
            traced: both.clone(),
            library: both,
            user: three,
            sandbox,
            left_out: Vec::new(),
        }
    }

    fn pick(&self, dice: &mut Dice, sort: Sort) -> String {
        let of_sort: Vec<_> = self.built.iter().filter(|(of, _)| *of == sort).collect();
        let from = if of_sort.is_empty() { self.built.iter().collect() } else { of_sort };
        from[dice.below(from.len())].1.display().to_string()
    }

    /// The program that was built in the way of most, mostly.
    pub fn any(&self, dice: &mut Dice) -> String {
        self.pick(dice, Sort::Plain)
    }

    pub fn sanitized(&self, dice: &mut Dice) -> String {
        self.pick(dice, Sort::Sanitized)
    }

    pub fn libc(&self, dice: &mut Dice) -> String {
        self.pick(dice, Sort::Libc)
    }
}

/// The folder of what is made of these sources and by these tools. It is made under another name
/// first: hunts that start at the same time do not get in each other's way.
fn prepared(
    folder: &Path,
    made_of: &str,
    build: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let finished = folder.join(format!("{:016x}", xxh3_64(made_of.as_bytes())));
    if finished.exists() {
        return Ok(finished);
    }
    let new = folder.join(format!("new-{}", std::process::id()));
    fs::create_dir_all(&new)?;
    for (name, text) in SOURCES {
        fs::write(new.join(name), text)?;
    }
    build(&new)?;
    if fs::rename(&new, &finished).is_err() {
        // Another hunt was faster.
        fs::remove_dir_all(&new)?;
    }
    Ok(finished)
}

fn build_plain(folder: &Path) -> anyhow::Result<()> {
    for (name, _, compiler, options) in BUILDS {
        compile(Path::new(compiler), options, folder, &folder.join(name))?;
    }
    Ok(())
}

fn build_traced(tools: &Tools, folder: &Path) -> anyhow::Result<()> {
    for version in ["1", "2"] {
        let (program, version) =
            (folder.join(format!("traced-{version}")), format!("-DVERSION={version}"));
        let is_there = compile(&tools.cc, &["-O1", &version], folder, &program)?;
        anyhow::ensure!(is_there, "the shims cannot build the toolbox");
    }
    build_library(tools, folder)
}

fn works(command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} true")]).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

fn compile(compiler: &Path, options: &[&str], folder: &Path, program: &Path) -> io::Result<bool> {
    let mut command = Command::new(compiler);
    command
        .current_dir(folder)
        .env("TASTING_DIR", folder.join("store"))
        .args(options)
        .arg("-o")
        .arg(program);
    command
        .args(SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c")))
        .arg("-pthread");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        status => Ok(status?.success()),
    }
}

/// Reads a program or library, with its manifest.
fn read(program: &Path) -> anyhow::Result<Traced> {
    let manifest = program
        .with_file_name(format!("{}.tasting", program.file_name().unwrap_or_default().display()));
    Ok(Traced { manifest: fs::read(manifest)?, program: fs::read(program)? })
}

/// Builds both versions of the library, and the program that uses them.
fn build_library(tools: &Tools, folder: &Path) -> anyhow::Result<()> {
    fs::write(folder.join("part.c"), PART)?;
    fs::write(folder.join("user.c"), USER)?;
    let shim = |words: &[&str]| -> anyhow::Result<()> {
        let mut command = Command::new(&tools.cc);
        let status = command
            .current_dir(folder)
            .env("TASTING_DIR", folder.join("store"))
            .args(words)
            .status()?;
        anyhow::ensure!(status.success(), "the shims cannot build the library of the toolbox");
        Ok(())
    };
    for version in ["1", "2"] {
        let (define, output) = (format!("-DVERSION={version}"), format!("libpart-{version}.so"));
        let name = "-Wl,-soname,libpart.so";
        shim(&["-O1", "-shared", "-fPIC", &define, name, "-o", &output, "part.c"])?;
    }
    shim(&["-O1", "-o", "user", "user.c", "libpart-1.so", "-Wl,-rpath,$ORIGIN/../lib"])
}
