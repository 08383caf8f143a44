//! Mistakes that can be seen from a command alone: each in a line, with what to do about it.

use crate::model::manifest;
use crate::process::{Settings, manifest_file};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What could be better about a command.
pub fn hints(words: &[OsString], settings: &Settings) -> Vec<String> {
    let Some(program) = words.first().map(Path::new) else { return Vec::new() };
    let shown = program.display();
    let Some(file) = found(program) else {
        return vec![format!(
            "there is no program {shown}: build it first, or correct the command"
        )];
    };
    if file.file_name().is_some_and(|name| name == "tasting")
        && words.get(1).is_some_and(|word| word == "run")
    {
        return vec![
            "tasting run is there twice: the inner one steps aside, and one of them is enough"
                .to_owned(),
        ];
    }
    if is_own(&file) && is_elf(&file) && manifest_file::beside(settings, &file).is_none() {
        return vec![format!(
            "{shown} has no manifest ({shown}{} is missing): it was linked without the shims and counts as a whole, so that each \
             change of it runs the test; `tasting init` says how to build it",
            manifest::SUFFIX
        )];
    }
    Vec::new()
}

/// The file of a program, free of links.
fn found(program: &Path) -> Option<PathBuf> {
    let path = which::which(program).ok()?;
    std::fs::canonicalize(path).ok()
}

/// Whether a program is not one of the system's.
fn is_own(file: &Path) -> bool {
    !["/usr", "/bin", "/sbin", "/lib", "/opt", "/nix", "/gnu"]
        .iter()
        .any(|folder| file.starts_with(folder))
}

fn is_elf(file: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && &magic == b"\x7fELF"
}
