//! Finding the real linker that `tasting-ld` stands in for.
//!
//! In: what it was called, its arguments, the environment. Out: the linker's path, and how many of
//! the arguments belong to its name. In this order: a linker named by the first argument
//! (`tasting-ld ld.gold …`), `TASTING_LD`, the one that the driver above us would have run, the
//! next of the same name on `PATH`.

use crate::process::handover::Handover;
use crate::process::search::{self, Hit};
use crate::process::{Settings, guard, linker, names};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The real linker.
#[derive(Debug, PartialEq, Eq)]
pub struct RealLinker {
    pub path: PathBuf,
    /// What the linker is told that it is called: it begins its messages with it.
    pub name: OsString,
    /// How many of the arguments (behind the shim's own name) name the linker.
    pub words: usize,
}

/// Why there is no linker to run.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum NoLinker {
    #[error(
        "TASTING_LD names {0:?}, which is no program that can be run (or is one of the shims); correct or unset it"
    )]
    Named(OsString),
    #[error(
        "{driver:?} knows no linker {name:?}, and there is none on PATH besides the shims; install it, or name a linker in TASTING_LD"
    )]
    UnknownToDriver { driver: OsString, name: OsString },
    #[error("found no {0:?} on PATH besides the shims; install it, or name a linker in TASTING_LD")]
    Absent(OsString),
}

/// The linker that the shim, called as `called` with `arguments`, stands for.
pub fn linker(
    settings: &Settings,
    called: &OsStr,
    arguments: &[OsString],
) -> Result<RealLinker, NoLinker> {
    if let Some(word) = arguments.first()
        && let Some(hit) = launched(word)
    {
        return Ok(found(hit, word, 1));
    }
    match std::env::var_os("TASTING_LD").filter(|value| !value.is_empty()) {
        Some(value) => match search::by_word(&value) {
            Some(hit) => Ok(found(hit, &value, 0)),
            None => Err(NoLinker::Named(value)),
        },
        None => {
            let path = unnamed(settings, called)?;
            Ok(RealLinker { name: path.clone().into(), path, words: 0 })
        }
    }
}

/// A linker that the user named by `word`.
fn found(hit: Hit, word: &OsStr, words: usize) -> RealLinker {
    let name = if hit.first { word.to_owned() } else { hit.path.clone().into() };
    RealLinker { path: hit.path, name, words }
}

/// A leading word that names a linker, and no file to link.
fn launched(word: &OsStr) -> Option<Hit> {
    let is_linker = Path::new(word).file_name().is_some_and(is_linker_name);
    let is_path = word.as_bytes().contains(&b'/');
    if is_linker && (is_path || !Path::new(word).exists()) { search::by_word(word) } else { None }
}

/// `ld`, `ld.gold`, `aarch64-linux-gnu-ld`, `mold`, …
fn is_linker_name(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let last = name
        .rsplit('-')
        .find(|part| !part.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or_default();
    matches!(
        last,
        "ld" | "lld"
            | "mold"
            | "gold"
            | "wild"
            | "ld.bfd"
            | "ld.gold"
            | "ld.lld"
            | "ld.mold"
            | "ld.wild"
    )
}

fn unnamed(settings: &Settings, called: &OsStr) -> Result<PathBuf, NoLinker> {
    let name =
        Path::new(called).file_name().filter(|name| names::kind(name) != names::ToolKind::Shim);
    let name = name.unwrap_or(OsStr::new("ld"));
    let handover = Handover::receive();
    // Below ourselves the driver would lead to the linker that has just called us: a script,
    // perhaps.
    if let Some(driver) = handover.driver.first().filter(|_| !guard::is_inside(guard::LINKER)) {
        let unknown =
            || NoLinker::UnknownToDriver { driver: driver.clone(), name: name.to_owned() };
        return linker::real(settings, &handover, name).ok_or_else(unknown);
    }
    let hit = if Path::new(called).ends_with(name) {
        search::behind(called)
    } else {
        search::on_path(name)
    };
    hit.map(|hit| hit.path).ok_or_else(|| NoLinker::Absent(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_linkers() {
        for name in [
            "ld",
            "ld.gold",
            "aarch64-linux-gnu-ld",
            "ld.lld-14",
            "mold",
            "x86_64-linux-gnu-ld.bfd",
        ] {
            assert!(is_linker_name(OsStr::new(name)), "{name}");
        }
        for name in ["a.o", "x.ld", "build", "-o", "-12", "", "ldd", "libgold.a"] {
            assert!(!is_linker_name(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_leading_word_names_the_linker() {
        assert_eq!(launched(OsStr::new("/no/where/ld")), None);
        assert_eq!(launched(OsStr::new("a.o")), None);
        if let Some(ld) = search::on_path(OsStr::new("ld")) {
            assert_eq!(launched(OsStr::new("ld")), Some(ld));
        }
    }
}
