//! Sanitizers, as far as a program shows that it has the runtime of one. Their runtimes check that
//! they are loaded first, stop all threads with ptrace, and install handlers of their own: nothing
//! can be preloaded beside them.
//!
//! In: the bytes of a program, or names of libraries. Out: whether there is a runtime. The
//! undefined-behaviour sanitizer, which does none of this, is not meant.

use memchr::memmem;

/// The variables with options that a statically linked runtime reads: `ASAN_OPTIONS` and its kin.
const OPTIONS: &[u8] = b"SAN_OPTIONS";
/// An option that all runtimes know, and that other programs which know the variables (CTest) do
/// not.
const COMMON_OPTION: &[u8] = b"external_symbolizer_path";
/// The libraries of GCC: `libasan.so.8`.
const GCC_LIBRARY: &[u8] = b"san.so";
/// The libraries of LLVM: `libclang_rt.asan-x86_64.so`.
const CLANG_LIBRARY: &[u8] = b"libclang_rt.";

/// Whether a program has the runtime of a sanitizer in it, or needs the library of one.
pub fn has_runtime(program: &[u8]) -> bool {
    program.starts_with(b"\x7fELF") && (names_library(program) || has_static_runtime(program))
}

/// Whether the name of a sanitizer's library is in a text.
pub fn names_library(text: &[u8]) -> bool {
    let is_meant = |at: usize| !text[..at].ends_with(b"ub");
    memmem::find_iter(text, GCC_LIBRARY).any(is_meant)
        || memmem::find_iter(text, CLANG_LIBRARY).any(|at| {
            let name =
                text[at + CLANG_LIBRARY.len()..].split(|byte| !byte.is_ascii_graphic()).next();
            name.is_some_and(|name| {
                !name.starts_with(b"ub") && memmem::find(name, b"san").is_some()
            })
        })
}

fn has_static_runtime(program: &[u8]) -> bool {
    memmem::find_iter(program, OPTIONS).any(|at| !program[..at].ends_with(b"UB"))
        && memmem::find(program, COMMON_OPTION).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_sanitizers_by_name() {
        for name in [
            "libasan.so.8",
            "/usr/lib/liblsan.so",
            "libtsan.so.2",
            "libhwasan.so",
            "libclang_rt.asan-x86_64.so",
        ] {
            assert!(names_library(name.as_bytes()), "{name}");
        }
        for name in [
            "libubsan.so.1",
            "libclang_rt.ubsan_standalone-x86_64.so",
            "libc.so.6",
            "libclang_rt.profile.so",
        ] {
            assert!(!names_library(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn static_runtimes_by_their_options() {
        let program = |text: &str| [b"\x7fELF\0", text.as_bytes()].concat();
        assert!(has_runtime(&program("LSAN_OPTIONS\0external_symbolizer_path\0")));
        assert!(!has_runtime(&program("UBSAN_OPTIONS\0external_symbolizer_path\0")));
        assert!(!has_runtime(&program("ASAN_OPTIONS\0LSAN_OPTIONS\0")), "CTest knows them too");
        assert!(!has_runtime(b"#!/bin/sh\nASAN_OPTIONS=external_symbolizer_path=x libasan.so\n"));
    }
}
