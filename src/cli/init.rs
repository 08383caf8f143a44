//! `tasting init`: which lines let a project build and test through Tasting.

mod copy;
mod files;
mod systems;
mod trial;

use super::{exit, print, setup as installer};
use crate::process::Settings;
pub use crate::report::setup::Commandlines;
use crate::report::setup::{self, Setup, SetupState, System, WrittenFile};
use anyhow::Context;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Say which lines let this project build and test through Tasting.
///
/// Looks at the folder for what its build system reads (CMakeLists.txt, meson.build, configure.ac,
/// Cargo.toml, MODULE.bazel, build.ninja, Makefile), and prints for each the commands that build
/// and test with Tasting. The project's own files need no change. Where a few lines in a file make
/// the commands shorter, they are shown, and written with --write; what is there already is never
/// changed, only added to.
///
/// With --try the project is copied into a temporary folder (what git would commit of it), built
/// there with those commands, and tested until the results settle, with a store of its own. It ends
/// with how many tests were reused and why the others were not. Nothing is left behind. Exit code 1
/// if it does not build or no test went through Tasting.
#[derive(clap::Args)]
#[command(after_help = "  tasting init             # what would I type?\n  \
    tasting init --write     # write the lines, too\n  \
    tasting init --try       # how many tests would be reused?\n  \
    tasting doctor           # does it work here?")]
pub struct Arguments {
    /// The project's folder
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Write the lines into the project's files
    #[arg(long)]
    write: bool,
    /// Build and test a copy in a temporary folder, and say what was reused
    #[arg(long = "try")]
    is_trial: bool,
    /// Print JSON: folder, systems (a list of {system, because, build, test, files}; a file is
    /// {path, lines, state}), notes; with --try, trial
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let folder = fs::canonicalize(&arguments.folder)
        .with_context(|| format!("cannot look at the folder {}", arguments.folder.display()))?;
    let place = ProjectFolder::find();
    let mut setup = Setup {
        folder: folder.display().to_string(),
        systems: systems::all(&folder, &place),
        notes: place.notes(),
        trial: None,
    };
    for file in setup.systems.iter_mut().flat_map(|system| &mut system.files) {
        files::settle(&folder, file, arguments.write)?;
    }
    setup.systems.iter_mut().for_each(shorten);
    if arguments.is_trial {
        setup.trial = Some(trial::run(&folder, &place)?);
    }
    print(arguments.json, &setup, setup::write)?;
    let is_well = setup.trial.as_ref().is_none_or(|trial| trial.problem.is_none());
    Ok(if is_well { exit::OK } else { exit::FAILED })
}

/// With its lines in a file, a build system is told less on the command line. Other callers work on
/// copies and earlier commits, where that file need not be.
fn shorten(system: &mut System) {
    let is_there =
        |file: &&WrittenFile| matches!(file.state, SetupState::Present | SetupState::Written);
    let commands = system.files.iter().filter(is_there).find_map(|file| file.commands.clone());
    if let Some(Commandlines { build, test }) = commands {
        (system.build, system.test) = (build, test);
    }
}

/// The lines for a folder, by the first build system that is found, with this installation and this
/// store.
pub fn lines(folder: &Path, prefix: &Path, store: &Path) -> Commandlines {
    let (prefix, store) = (Some(prefix.to_owned()), store.to_owned());
    lines_with(folder, &ProjectFolder { prefix, on_path: true, store })
}

/// The folder with `bin` and `share` of this Tasting: the real one, or else one of links, which is
/// made.
pub fn installation(links: &Path) -> anyhow::Result<PathBuf> {
    ProjectFolder::find().installation(links)
}

/// The user's PATH, with the programs of an installation before it.
pub fn path_with(prefix: &Path) -> anyhow::Result<OsString> {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(prefix.join("bin")).chain(std::env::split_paths(&given));
    std::env::join_paths(folders).context("PATH cannot be extended")
}

fn lines_with(folder: &Path, place: &ProjectFolder) -> Commandlines {
    let systems = systems::all(folder, place);
    let first = systems.into_iter().next();
    first.map(|System { build, test, .. }| Commandlines { build, test }).unwrap_or_default()
}

/// Where Tasting is installed.
pub struct ProjectFolder {
    /// The folder with `bin`, `lib` and `share`, as far as it is known.
    prefix: Option<PathBuf>,
    on_path: bool,
    /// Where results are kept.
    store: PathBuf,
}

impl ProjectFolder {
    fn find() -> ProjectFolder {
        let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
        let prefix =
            own.parent().and_then(Path::parent).filter(|prefix| prefix.join(CMAKE_FILE).exists());
        let found = which::which("tasting").ok().and_then(|found| fs::canonicalize(found).ok());
        let store = Settings::from_environment().dir.unwrap_or_default();
        ProjectFolder { prefix: prefix.map(Path::to_owned), on_path: found == Some(own), store }
    }

    fn installation(&self, links: &Path) -> anyhow::Result<PathBuf> {
        let is_whole = |prefix: &&PathBuf| {
            prefix.join(CMAKE_FILE).exists() && prefix.join("bin/tasting-c++").exists()
        };
        if let Some(prefix) = self.prefix.as_ref().filter(is_whole) {
            return Ok(prefix.clone());
        }
        installer::write_files(links)?;
        Ok(links.to_owned())
    }

    /// A file of the installation, for a command line.
    fn file(&self, name: &str) -> String {
        self.prefix.as_deref().unwrap_or(Path::new("PREFIX")).join(name).display().to_string()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.prefix.is_none() {
            notes.push(
                "this tasting is not installed: `make install PREFIX=…` first, and put that folder for PREFIX"
                    .to_owned(),
            );
        }
        if !self.on_path {
            let folder = self.file("bin");
            notes.push(format!(
                "tasting is not in PATH, where these lines expect it: PATH={folder}:$PATH"
            ));
        }
        notes
    }
}

/// What CMake includes.
const CMAKE_FILE: &str = "share/tasting/cmake/tasting.cmake";
