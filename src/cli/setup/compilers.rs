//! The names of compilers and linkers under which the shims are called: all that this machine has
//! in PATH, and the common ones.

use super::{COMPILERS, Item, Placed};
use crate::process::names;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const LINKERS: [&str; 5] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"];
const C: [&str; 3] = ["cc", "gcc", "clang"];
const CXX: [&str; 3] = ["c++", "g++", "clang++"];

/// The folder that a driver is pointed to for its linker.
pub fn linkers(folder: &str) -> Vec<Placed> {
    LINKERS.iter().map(|name| link(folder, name, "tasting-ld")).collect()
}

/// The folder that is put first in PATH.
pub fn links() -> Vec<Placed> {
    let mut shims: Vec<(String, &str)> = Vec::new();
    shims.extend(C.map(|name| (name.to_owned(), "tasting-cc")));
    shims.extend(CXX.map(|name| (name.to_owned(), "tasting-cxx")));
    shims.extend(LINKERS.map(|name| (name.to_owned(), "tasting-ld")));
    shims.extend(
        names_on_path().into_iter().filter_map(|name| shim(&name).map(|shim| (name, shim))),
    );
    let shims: BTreeSet<(String, &str)> = shims.into_iter().collect();
    shims.iter().map(|(name, shim)| link(COMPILERS, name, shim)).collect()
}

/// A link that stays right when the whole tree is moved.
fn link(folder: &str, name: &str, shim: &str) -> Placed {
    let up: PathBuf = Path::new(folder).components().map(|_| "..").collect();
    (Path::new(folder).join(name), Item::Link(up.join("bin").join(shim)))
}

/// The shim for a tool of this name. (What is made for Windows is no ELF.)
fn shim(name: &str) -> Option<&'static str> {
    let is_target = |target: &str| (2..=4).contains(&target.split('-').count());
    if name.contains("mingw") {
        return None;
    }
    if let Some((target, linker)) = name.rsplit_once('-')
        && LINKERS.contains(&linker)
    {
        return is_target(target).then_some("tasting-ld");
    }
    let tool = names::tool(OsStr::new(name))?;
    let has_version =
        |name: &str| name[name.rfind(tool)? + tool.len()..].starts_with(['-']).then_some(());
    let is_whole = name.ends_with(tool) || has_version(name).is_some();
    if !is_whole || names::target(OsStr::new(name)).is_some_and(|target| !is_target(target)) {
        return None;
    }
    match tool {
        "gcc" | "clang" => Some("tasting-cc"),
        "g++" | "clang++" => Some("tasting-cxx"),
        _ => None,
    }
}

fn names_on_path() -> BTreeSet<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    let is_program =
        |path: PathBuf| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    let programs = entries.filter(|entry| is_program(entry.path()));
    programs.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_shim() {
        for name in [
            "gcc-12",
            "aarch64-linux-gnu-gcc",
            "aarch64-linux-gnu-gcc-13",
            "clang-14",
            "x86_64-linux-gnu-gcc-12",
        ] {
            assert_eq!(shim(name), Some("tasting-cc"), "{name}");
        }
        for name in ["g++-12", "aarch64-linux-gnu-g++", "clang++-14"] {
            assert_eq!(shim(name), Some("tasting-cxx"), "{name}");
        }
        assert_eq!(shim("aarch64-linux-gnu-ld.gold"), Some("tasting-ld"));
        for name in [
            "musl-gcc",
            "x86_64-w64-mingw32-gcc",
            "clang-format",
            "gcc-ar-12",
            "ls",
            "tasting-cc",
            "ccache",
        ] {
            assert_eq!(shim(name), None, "{name}");
        }
    }
}
