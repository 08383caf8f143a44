//! What the name of a tool says about it: `aarch64-linux-gnu-g++-12` is a compiler for another
//! machine.
//!
//! In: a file name. Out: the kind of tool, and the parts of the name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What a program is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// One of our own.
    Shim,
    /// A driver with GCC's command line.
    Compiler,
    /// A program that runs the compiler named after it.
    Launcher,
    /// Anything else.
    Other,
}

/// The names of the shims. The link `tasting-c++` is made when installing.
const SHIMS: [&str; 4] = ["tasting-c++", "tasting-cc", "tasting-cxx", "tasting-ld"];

/// Drivers that have GCC's command line, without target and version.
const COMPILERS: [&str; 24] = [
    "amdclang",
    "amdclang++",
    "c++",
    "c89",
    "c99",
    "cc",
    "clang",
    "clang++",
    "flang",
    "g++",
    "gcc",
    "gccgo",
    "gdc",
    "gfortran",
    "gnatgcc",
    "hipcc",
    "icpx",
    "icx",
    "ldc2",
    "mpic++",
    "mpicc",
    "mpicxx",
    "mpifort",
    "xlclang",
];

/// Programs that run the compiler named after them.
const LAUNCHERS: [&str; 8] =
    ["buildcache", "ccache", "colorgcc", "distcc", "goma", "icecc", "icecream", "sccache"];

/// The endings of what compilers read and write: a leading word with one of these names no program.
const FILES: [&str; 38] = [
    "C", "F", "F90", "S", "a", "adb", "ads", "asm", "bc", "c", "c++", "cc", "cp", "cpp", "cppm",
    "cxx", "d", "f", "f90", "for", "go", "h", "hh", "hpp", "i", "ii", "ixx", "la", "ld", "lds",
    "ll", "lo", "m", "mm", "o", "pcm", "s", "so",
];

/// What the program of this file name is.
pub fn kind(name: &OsStr) -> ToolKind {
    let Some(name) = name.to_str() else { return ToolKind::Other };
    if SHIMS.contains(&name) {
        ToolKind::Shim
    } else if LAUNCHERS.contains(&name) {
        ToolKind::Launcher
    } else if split(name).is_some() {
        ToolKind::Compiler
    } else {
        ToolKind::Other
    }
}

/// The target in front of a compiler's name: `aarch64-linux-gnu` of `aarch64-linux-gnu-gcc-12`.
pub fn target(name: &OsStr) -> Option<&str> {
    split(name.to_str()?)?.0
}

/// The tool in a compiler's name: `gcc` of `aarch64-linux-gnu-gcc-12`.
pub fn tool(name: &OsStr) -> Option<&str> {
    Some(split(name.to_str()?)?.1)
}

/// A compiler's name as target and tool, without the version.
fn split(name: &str) -> Option<(Option<&str>, &str)> {
    let name = without_version(name);
    if COMPILERS.contains(&name) {
        return Some((None, name));
    }
    let (target, tool) = name.rsplit_once('-')?;
    COMPILERS.contains(&tool).then_some((Some(target), tool))
}

/// `gcc` of `gcc-12.2`, `clang` of `clang14`. The digits of `c89` belong to it.
fn without_version(name: &str) -> &str {
    if COMPILERS.contains(&name) {
        return name;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match stem.strip_suffix('-') {
        Some(stem) if stem.len() + 1 < name.len() => stem,
        _ => stem,
    }
}

/// Whether a word looks like the name of a file that compilers read.
pub fn looks_like_a_file(word: &OsStr) -> bool {
    let name = word.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let ending = name.iter().rposition(|&byte| byte == b'.').map(|dot| &name[dot + 1..]);
    ending.is_some_and(|ending| FILES.iter().any(|file| file.as_bytes() == ending))
        || name.windows(4).any(|part| part == b".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(
            SHIMS.is_sorted()
                && COMPILERS.is_sorted()
                && LAUNCHERS.is_sorted()
                && FILES.is_sorted()
        );
    }

    #[test]
    fn kinds() {
        for name in [
            "gcc",
            "c++",
            "clang++-14",
            "gcc-12.2.0",
            "aarch64-linux-gnu-gcc",
            "arm-none-eabi-g++-13",
            "c99",
        ] {
            assert_eq!(kind(OsStr::new(name)), ToolKind::Compiler, "{name}");
        }
        for name in ["clang14", "musl-gcc", "x86_64-w64-mingw32-c++"] {
            assert_eq!(kind(OsStr::new(name)), ToolKind::Compiler, "{name}");
        }
        for name in [
            "gcc-ar",
            "clang-format",
            "ld",
            "nvcc",
            "cpp",
            "clang-cl",
            "12",
            "",
            "-",
            "gcc-ranlib-12",
        ] {
            assert_eq!(kind(OsStr::new(name)), ToolKind::Other, "{name}");
        }
        assert_eq!(kind(OsStr::new("ccache")), ToolKind::Launcher);
        assert_eq!(kind(OsStr::new("tasting-c++")), ToolKind::Shim);
    }

    #[test]
    fn targets() {
        assert_eq!(target(OsStr::new("aarch64-linux-gnu-gcc-12")), Some("aarch64-linux-gnu"));
        assert_eq!(target(OsStr::new("gcc-12")), None);
    }

    #[test]
    fn files_are_no_programs() {
        for word in ["x.c", "a/b.o", "libz.so.1.2", "m.f90", "-.S"] {
            assert!(looks_like_a_file(OsStr::new(word)), "{word}");
        }
        for word in ["nvcc", "/opt/v1.c/nvcc", "cc.py", "g++-12.2"] {
            assert!(!looks_like_a_file(OsStr::new(word)), "{word}");
        }
    }
}
