//! Programs on `PATH`, and which of them are our shims and must be skipped.
//!
//! In: a name, or a path. Out: the path of a program that is not a shim.

use super::names::{self, ToolKind};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub path: PathBuf,
    /// It is what a shell would have run for the same name: no shim was passed over. Then it may be
    /// called by that name, and all that it prints about itself is the same.
    pub first: bool,
}

/// Whether the file at `path` is one of the shims: this very file, or a shim's name behind all
/// links.
pub fn is_shim(path: &Path) -> bool {
    let Ok(file) = fs::metadata(path) else { return false };
    if fs::metadata("/proc/self/exe")
        .is_ok_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    {
        return true;
    }
    let named_so =
        |path: &Path| path.file_name().is_some_and(|name| names::kind(name) == ToolKind::Shim);
    if fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink()) {
        fs::canonicalize(path).is_ok_and(|file| named_so(&file))
    } else {
        named_so(path)
    }
}

/// A program by a word of a command line: by its path if there is a slash in it, else on `PATH`.
pub fn by_word(word: &OsStr) -> Option<Hit> {
    if !word.as_bytes().contains(&b'/') {
        return on_path(word);
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let path = which::which_in(word, None::<&OsStr>, folder).ok()?;
    if is_shim(&path) { None } else { Some(Hit { path: word.into(), first: true }) }
}

/// The first program of this name on `PATH` that is not a shim.
pub fn on_path(name: &OsStr) -> Option<Hit> {
    first_real(name, &std::env::var_os("PATH")?)
}

/// The first program of this name on `PATH` behind the place of the shim that was called as
/// `called`. What stands before it, such as a compiler cache's link of the same name, may be what
/// called us.
pub fn behind(called: &OsStr) -> Option<Hit> {
    let called = Path::new(called);
    let name = called.file_name()?;
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let own = match called.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => folders.iter().position(|entry| same_folder(entry, folder)),
        None => folders.iter().position(|entry| is_shim(&entry.join(name))),
    };
    let rest = &folders[own.map_or(0, |own| own + 1)..];
    let hit = first_real(name, &std::env::join_paths(rest).ok()?)?;
    Some(Hit { first: false, ..hit })
}

fn same_folder(one: &Path, other: &Path) -> bool {
    one == other
        || fs::metadata(one).is_ok_and(|one| {
            fs::metadata(other)
                .is_ok_and(|other| (one.dev(), one.ino()) == (other.dev(), other.ino()))
        })
}

fn first_real(name: &OsStr, folders: &OsString) -> Option<Hit> {
    let mut first = true;
    let found = which::which_in_all(name, Some(folders), ".").ok()?.find(|path| {
        let real = !is_shim(path);
        first &= real;
        real
    });
    found.map(|path| Hit { path, first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn shims_are_known_behind_links_and_by_identity() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("tasting-ld"), "").unwrap();
        symlink(at("tasting-ld"), at("ld.gold")).unwrap();
        symlink(at("ld.gold"), at("ld")).unwrap();
        symlink(std::env::current_exe().unwrap(), at("gcc")).unwrap();
        for name in ["tasting-ld", "ld.gold", "ld", "gcc"] {
            assert!(is_shim(&at(name)), "{name}");
        }
        fs::write(at("clang"), "").unwrap();
        assert!(!is_shim(&at("clang")));
        assert!(!is_shim(&at("missing")));
    }

    #[test]
    fn shims_on_the_path_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        symlink(std::env::current_exe().unwrap(), folder.path().join("sh")).unwrap();
        let with = |folders: &str| first_real(OsStr::new("sh"), &OsString::from(folders));
        let shim = folder.path().to_str().unwrap();
        assert_eq!(with("/bin"), Some(Hit { path: "/bin/sh".into(), first: true }));
        assert_eq!(
            with(&format!("{shim}:/bin")),
            Some(Hit { path: "/bin/sh".into(), first: false })
        );
        assert_eq!(with(shim), None);
    }
}
