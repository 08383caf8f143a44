//! Probes: calls by which a build system finds out what the tool can do. They are passed through,
//! so that they cost next to nothing and leave no manifests behind.
//!
//! In: the current folder, and the files of the call. Out: whether this is a probe.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Whether a call from `folder` that names `files` (sources, objects, output) is a probe:
///
/// - autoconf and libtool: any file called `conftest*` (`conftstm*` for libtool's test of `nm`);
/// - CMake: in or under `CMakeFiles/CMakeScratch`, `CMakeFiles/CMakeTmp` (before 3.25), or
///   `CMakeFiles/<version>/CompilerId<LANG>`;
/// - Meson: in or under `meson-private`;
/// - SCons: in or under `.sconf_temp`; waf: in or under `.conf_check_*`.
pub fn is_probe<'a>(folder: &Path, mut files: impl Iterator<Item = &'a Path>) -> bool {
    in_scratch(folder) || files.any(|file| is_scratch_file(file) || in_scratch(file))
}

/// `/dev/null`, `/dev/stdout`. Below `/dev/shm` there are files like others: whole projects are
/// built there, in memory.
pub fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

fn is_scratch_file(file: &Path) -> bool {
    file.file_name()
        .is_some_and(|name| starts_with(name, "conftest") || starts_with(name, "conftstm"))
}

fn in_scratch(path: &Path) -> bool {
    let names = || path.components().filter_map(name_of);
    let alone = |name: &OsStr| {
        name == "meson-private" || name == ".sconf_temp" || starts_with(name, ".conf_check_")
    };
    names().any(alone)
        || names()
            .zip(names().skip(1))
            .zip(names().skip(2).map(Some).chain([None]))
            .any(is_of_cmake)
}

/// Three neighbours of a path, the last of which may be missing.
fn is_of_cmake(((first, second), third): ((&OsStr, &OsStr), Option<&OsStr>)) -> bool {
    first == "CMakeFiles"
        && (second == "CMakeScratch"
            || second == "CMakeTmp"
            || second.as_bytes().first().is_some_and(u8::is_ascii_digit)
                && third.is_some_and(|name| starts_with(name, "CompilerId")))
}

fn name_of(component: Component<'_>) -> Option<&OsStr> {
    match component {
        Component::Normal(name) => Some(name),
        _ => None,
    }
}

fn starts_with(name: &OsStr, start: &str) -> bool {
    name.as_bytes().starts_with(start.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(folder: &str, files: &[&str]) -> bool {
        is_probe(Path::new(folder), files.iter().map(Path::new))
    }

    #[test]
    fn probes_of_all_build_systems() {
        assert!(probe("/b", &["conftest.c"]));
        assert!(probe("/b", &["x.c", "sub/conftest1.o"]));
        assert!(probe("/b", &["conftstm.o"]));
        assert!(probe("/b/CMakeFiles/CMakeScratch/TryCompile-Xy1", &["src.c"]));
        assert!(probe("/b/CMakeFiles/CMakeTmp", &["src.c"]));
        assert!(probe("/b/CMakeFiles/3.25.1/CompilerIdC", &["CMakeCCompilerId.c"]));
        assert!(probe("/b", &["/b/CMakeFiles/CMakeScratch/TryCompile-Xy1/a.o"]));
        assert!(probe("/b/meson-private/tmpx1y", &["testfile.c"]));
        assert!(probe("/b", &["meson-private/sanitycheckc.c"]));
        assert!(probe("/b/.conf_check_0/testbuild", &["test.c.1.o"]));
    }

    #[test]
    fn ordinary_builds_are_none() {
        assert!(!probe("/b", &["src/config-test.c", "CMakeFiles/app.dir/src/main.c.o"]));
        assert!(!probe("/b/CMakeFiles/3.25.1", &["x.c"]));
        assert!(!probe("/b/CMakeScratch", &["src/conf.c"]));
        assert!(!probe("/", &[]));
    }
}
