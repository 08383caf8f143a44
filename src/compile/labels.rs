//! Whether to ask the assembler to keep the labels of constants, by which the record divides the
//! constant pools of an unoptimised object (see `elf::pools`).
//!
//! In: the compiler and its arguments, with response files expanded. Out: yes, or (in any doubt)
//! no. It costs precision only: without labels a pool counts as a whole.

use super::options::{self, Value};
use crate::process::names;
use crate::process::spawn::Program;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes the compiler ask the assembler for it.
pub const KEEP: &str = "-Wa,-L";

/// Whether the labels of this call's objects can be kept, and will tell the entries of constant
/// pools.
pub fn can_be_kept(compiler: &Program, arguments: &[OsString]) -> bool {
    is_gcc_for_x86_64(compiler) && is_plainly_unoptimised(arguments)
}

/// The last level counts, and the default is none. Arguments of other options are passed over.
fn is_plainly_unoptimised(arguments: &[OsString]) -> bool {
    let mut unoptimised = true;
    let mut words = arguments.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let (option, value) = options::look_up(word).unwrap_or((&options::UNLISTED, Value::None));
        if option.no_labels {
            return false;
        }
        if bytes.starts_with(b"-O") || bytes.starts_with(b"--optimize") {
            unoptimised = word == "-O0";
        }
        if value == Value::Next {
            words.next();
        }
    }
    unoptimised
}

/// By its name; `cc` is whatever it is a link to. A launcher stands before the name.
fn is_gcc_for_x86_64(compiler: &Program) -> bool {
    let word = compiler.words.last().map_or(compiler.path.as_os_str(), OsString::as_os_str);
    let path = Path::new(word);
    let Some(name) = path.file_name() else { return false };
    if matches!(name.to_str(), Some("cc" | "c++")) {
        // A launcher finds it by itself, where we do not.
        return fs::canonicalize(path).is_ok_and(|path| path.file_name().is_some_and(is_gcc_name));
    }
    is_gcc_name(name)
}

fn is_gcc_name(name: &OsStr) -> bool {
    let is_for_x86_64 = match names::target(name) {
        Some(target) => target.starts_with("x86_64-"),
        None => cfg!(target_arch = "x86_64"),
    };
    is_for_x86_64 && names::tool(name).is_some_and(|tool| matches!(tool, "gcc" | "g++"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unoptimised(line: &str) -> bool {
        is_plainly_unoptimised(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_level_counts() {
        assert!(unoptimised("-c x.c"));
        assert!(unoptimised("-O2 -O0 -c x.c"));
        assert!(unoptimised("-c x.c -o -O2"));
        for line in [
            "-O -c x.c",
            "-O0 -c x.c -Og",
            "-O0 -Os -c x.c",
            "-O0 --optimize -c x.c",
            "-O2 -c x.c -o -O0",
        ] {
            assert!(!unoptimised(line), "{line}");
        }
    }

    #[test]
    fn in_doubt_they_are_not_kept() {
        assert!(unoptimised("-Wa,--noexecstack -c x.c"));
        for option in [
            "-Wa,-L",
            "-Wa,--noexecstack,-L",
            "-Wa,-al=x",
            "-Xassembler -L",
            "-m32",
            "-B. ",
            "-fplugin=x.so",
        ] {
            assert!(!unoptimised(&format!("{option} -c x.c")), "{option}");
        }
    }

    #[test]
    fn only_gcc_is_asked() {
        let program = |path: &str, words: &[&str]| Program {
            path: path.into(),
            name: path.into(),
            words: words.iter().map(OsString::from).collect(),
        };
        let is_gcc = |path: &str, words: &[&str]| is_gcc_for_x86_64(&program(path, words));
        assert!(is_gcc("/usr/bin/x86_64-linux-gnu-gcc-12", &[]));
        assert!(!is_gcc("/usr/bin/aarch64-linux-gnu-gcc", &[]));
        assert!(!is_gcc("/usr/bin/clang", &[]));
        assert!(!is_gcc("/usr/bin/gfortran", &[]));
        assert!(!is_gcc("/no/such/cc", &[]));
        assert!(!is_gcc("/usr/bin/ccache", &["clang"]));
        if cfg!(target_arch = "x86_64") {
            assert!(is_gcc("/usr/bin/ccache", &["g++"]));
            assert!(is_gcc("/opt/bin/gcc-13", &[]));
        }
    }
}
