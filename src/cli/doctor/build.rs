//! Checks the project's build: was it built with the shims, and are there launchers that conflict?

use crate::fingerprint::{FingerprintError, Opened};
use crate::process::{Settings, manifest_file, probe};
use crate::report::findings::Finding;
use crate::report::stats::TakenWhole;
use crate::run::config::FILE;
use crate::run::project::Project;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// More files than that are not looked at.
const MOST_FILES: usize = 50_000;

/// How many files are named.
const MOST_NAMED: usize = 3;

/// Folders with nothing that was built here.
const SKIPPED: [&str; 5] = [".git", ".hg", ".svn", "node_modules", "CMakeFiles"];

pub fn examine(settings: &Settings) -> Vec<Finding> {
    let (root, seen) = look(settings);
    let mut found: Vec<Finding> = manifests(&root, &seen.linked, settings).into_iter().collect();
    for TakenWhole { binary, reason } in taken_whole(&root, &seen.linked, settings) {
        found.push(Finding::note(
            binary,
            format!("counts as a whole, every change of it shows: {reason}"),
        ));
    }
    found.extend(seen.caches.iter().filter_map(|cache| two_in_cmake(&root, cache)));
    found.extend(["CC", "CXX"].iter().filter_map(|name| two_in_variable(name)));
    found
}

/// The programs and libraries of this project that are described as a whole.
pub fn whole_binaries(settings: &Settings) -> Vec<TakenWhole> {
    let (root, seen) = look(settings);
    taken_whole(&root, &seen.linked, settings)
}

fn taken_whole(root: &Path, linked: &[PathBuf], settings: &Settings) -> Vec<TakenWhole> {
    let named = |path: &PathBuf| {
        let binary = path.strip_prefix(root).unwrap_or(path).display().to_string();
        Some(TakenWhole { binary, reason: whole_reason(path, settings)? })
    };
    let mut whole: Vec<TakenWhole> = linked.iter().filter_map(named).collect();
    whole.sort_by(|one, other| one.binary.cmp(&other.binary));
    whole
}

/// Why a binary counts as a whole although it has a manifest: the manifest says so, or does not
/// describe the binary any more.
fn whole_reason(path: &Path, settings: &Settings) -> Option<String> {
    let opened = Opened::open(path, settings).ok()?;
    let manifest = opened.manifest(&opened.binary().ok()?);
    match manifest {
        Ok(manifest) => manifest.whole_reason().map(str::to_owned),
        Err(FingerprintError::NoManifest { .. }) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// The project's root, and what lies below.
fn look(settings: &Settings) -> (PathBuf, BuildFolders) {
    let mut seen = BuildFolders::default();
    let Ok(working) = std::env::current_dir() else { return (PathBuf::new(), seen) };
    let root = Project::root(&working, settings);
    // Where nothing says that it is a project, it may be somebody's home.
    if [FILE, ".git"].iter().any(|mark| root.join(mark).exists()) {
        // What lies in the store is Tasting's own.
        seen.store = settings.dir.as_ref().and_then(|store| fs::canonicalize(store).ok());
        seen.look(&root, &mut MOST_FILES.clone());
    }
    (root, seen)
}

/// What was found below a folder.
#[derive(Default)]
struct BuildFolders {
    /// Not looked into.
    store: Option<PathBuf>,
    linked: Vec<PathBuf>,
    /// The caches of CMake.
    caches: Vec<PathBuf>,
}

impl BuildFolders {
    fn look(&mut self, folder: &Path, left: &mut usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let Some(rest) = left.checked_sub(1) else { return };
            *left = rest;
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && self.store.as_ref() == Some(&path) {
                continue;
            }
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                self.look(&path, left);
            } else if kind.is_file() && name == "CMakeCache.txt" {
                self.caches.push(path);
            } else if kind.is_file()
                && is_linked(&path)
                && !probe::is_probe(folder, std::iter::once(path.as_path()))
            {
                self.linked.push(path);
            }
        }
    }
}

/// Whether a file is an executable or a shared library.
fn is_linked(path: &Path) -> bool {
    let mut start = [0; 18];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok();
    is_read
        && start.starts_with(b"\x7fELF")
        && matches!((start[16], start[17]), (2 | 3, 0) | (0, 2 | 3))
}

fn manifests(root: &Path, linked: &[PathBuf], settings: &Settings) -> Option<Finding> {
    let mut without: Vec<_> =
        linked.iter().filter(|path| manifest_file::beside(settings, path).is_none()).collect();
    without.sort();
    if linked.is_empty() {
        return None;
    }
    if without.is_empty() {
        return Some(Finding::works(
            "build",
            format!("all {} programs and libraries here have manifests", linked.len()),
        ));
    }
    let names = without
        .iter()
        .take(MOST_NAMED)
        .map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string());
    let more = if without.len() > MOST_NAMED { ", …" } else { "" };
    let text = format!(
        "{} of {} programs and libraries here have no manifest ({}{more}): linked without the shims, they count as a whole; \
         `tasting init` says how to build them",
        without.len(),
        linked.len(),
        names.collect::<Vec<_>>().join(", ")
    );
    Some(Finding::note("build", text))
}

/// The values of CMake's cache that name what is put before something.
fn two_in_cmake(root: &Path, cache: &Path) -> Option<Finding> {
    let text = fs::read_to_string(cache).ok()?;
    let value = |name: &str| {
        let line = text.lines().find(|line| line.split([':', '=']).next() == Some(name))?;
        line.split_once('=').map(|(_, value)| value).filter(|value| value.contains("tasting"))
    };
    let folder = cache.parent()?;
    let has_module = folder.join("CMakeFiles/tasting/ctest.cmake").exists();
    let of_compilers = [
        "CMAKE_C_COMPILER",
        "CMAKE_CXX_COMPILER",
        "CMAKE_C_COMPILER_LAUNCHER",
        "CMAKE_CXX_COMPILER_LAUNCHER",
    ];
    let of_tests = ["CMAKE_TEST_LAUNCHER", "CMAKE_CROSSCOMPILING_EMULATOR"];
    let second = of_compilers
        .iter()
        .chain(&of_tests)
        .find(|name| value(name).is_some())
        .filter(|_| has_module);
    let subject = format!("launchers: {}", folder.strip_prefix(root).unwrap_or(folder).display());
    second.map(|name| {
        let text = format!(
            "tasting.cmake is in use, and {name} names Tasting a second time: one of them is enough, and steps aside"
        );
        Finding::note(subject, text)
    })
}

/// `CC='ccache tasting-cc'`, `CC='tasting-cc tasting-cc gcc'`.
fn two_in_variable(name: &str) -> Option<Finding> {
    let value = std::env::var(name).ok()?;
    let words: Vec<&str> =
        value.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
    let shims = words
        .iter()
        .filter(|word| ["tasting-cc", "tasting-c++", "tasting-cxx"].contains(word))
        .count();
    let subject = format!("launchers: {name}");
    match words.first() {
        _ if shims > 1 => Some(Finding::note(
            subject,
            format!("{value:?} has Tasting twice: one of them is enough, and steps aside"),
        )),
        Some(&"ccache" | &"sccache") if shims == 1 => Some(Finding::note(
            subject,
            format!(
                "{value:?}: {} takes the shim for the compiler and does not see when that changes; put the shim first",
                words[0]
            ),
        )),
        _ => None,
    }
}
