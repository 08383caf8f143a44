//! A driver that links: it replaces our process, with an environment that leads it to the linker's
//! shim.
//!
//! In: what the call will link. Out: arguments and environment for the driver; unchanged if the
//! linker could not be found, so that the driver reports that itself.

use super::arguments::{LinkJob, LinkerChoice};
use super::ld_links;
use crate::process::handover::{self, Handover};
use crate::process::spawn::{Change, Program};
use crate::process::{Settings, guard, linker, search};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is to be changed for a link.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Detour {
    /// In front of the user's arguments.
    pub first: Vec<OsString>,
    /// Behind them.
    pub last: Vec<OsString>,
    pub environment: Vec<Change>,
}

/// The way to the linker's shim, if there is one.
pub fn detour(settings: &Settings, driver: &Program, job: &LinkJob) -> Option<Detour> {
    let explicit = match &job.linker {
        LinkerChoice::Default | LinkerChoice::Named(_) => None,
        LinkerChoice::NamedByPath(linker) | LinkerChoice::Path(linker) => Some(linker.clone()),
    };
    let handover = Handover::new(driver, job.search.clone(), explicit);
    let name = program_name(&job.linker);
    linker::real(settings, &handover, &name)?;
    let folder = ld_links::folder(settings, &name)?;
    let mut detour = Detour { environment: handover.changes(), ..Detour::default() };
    detour
        .environment
        .extend([handover::compiler_path_with(&folder), guard::mark(guard::COMPILER)]);
    if job.prefixes.iter().any(|prefix| holds_linker(prefix, &name)) {
        // Drivers look into the user's -B folders before COMPILER_PATH, and in order.
        detour.first.push(joined("-B", &folder));
    }
    detour.last.extend(override_of(&job.linker, &folder));
    Some(detour)
}

/// The name under which the driver looks for the linker.
fn program_name(choice: &LinkerChoice) -> OsString {
    let mut name = OsString::from("ld");
    if let LinkerChoice::Named(short) = choice {
        name.push(".");
        name.push(short);
    }
    name
}

/// Clang goes to a linker given by its path without looking anywhere. The last of such options
/// counts, so the same one is given again with the shim's path.
fn override_of(choice: &LinkerChoice, folder: &Path) -> Option<OsString> {
    match choice {
        LinkerChoice::Default | LinkerChoice::Named(_) => None,
        LinkerChoice::NamedByPath(_) => Some(joined("-fuse-ld=", &folder.join("ld"))),
        LinkerChoice::Path(_) => Some(joined("--ld-path=", &folder.join("ld"))),
    }
}

/// Whether a driver would take its linker from this `-B`: a folder, or the start of a path. GCC
/// tries other names first.
fn holds_linker(prefix: &Path, name: &OsStr) -> bool {
    ["real-ld".as_ref(), "collect-ld".as_ref(), name].into_iter().any(|name| {
        let mut start = prefix.as_os_str().to_owned();
        start.push(name);
        let candidates: [PathBuf; 2] = [prefix.join(name), start.into()];
        candidates.iter().any(|path| path.exists() && !search::is_shim(path))
    })
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// The whole argument list: `first`, the user's, `last`. Behind `--` nothing is an option any more,
/// so `last` stands before it. `None` if there is a `--` inside of a response file only.
pub fn with_detour(
    detour: &Detour,
    user: &[OsString],
    expanded: &[OsString],
) -> Option<Vec<OsString>> {
    let is_end = |word: &OsString| word.as_bytes() == b"--";
    let end = user.iter().position(is_end);
    if end.is_none() && !detour.last.is_empty() && expanded.iter().any(is_end) {
        return None;
    }
    let (before, after) = user.split_at(end.unwrap_or(user.len()));
    Some([&detour.first, before, &detour.last, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_stand_around_the_users() {
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let detour = Detour {
            first: words(&["-B/l"]),
            last: words(&["--ld-path=/l/ld"]),
            environment: Vec::new(),
        };
        let whole =
            |user: &[&str], expanded: &[&str]| with_detour(&detour, &words(user), &words(expanded));
        assert_eq!(whole(&["x.o"], &["x.o"]), Some(words(&["-B/l", "x.o", "--ld-path=/l/ld"])));
        let end = ["-c", "--", "x.o"];
        assert_eq!(whole(&end, &end), Some(words(&["-B/l", "-c", "--ld-path=/l/ld", "--", "x.o"])));
        assert_eq!(whole(&["@x"], &end), None);
    }

    #[test]
    fn names_of_linkers() {
        assert_eq!(program_name(&LinkerChoice::Default), "ld");
        assert_eq!(program_name(&LinkerChoice::Named("gold".into())), "ld.gold");
    }
}
