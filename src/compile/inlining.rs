//! Options with which the value of a floating-point expression depends on inlining. In: the driver
//! and a call's words. Out: whether there is such an option.
//!
//! These are options for fused and reordered operations, and for registers that are wider than
//! memory. With them, a function that was not changed may give other results, because a change
//! elsewhere in the unit has led to something else being inlined into it.

use super::options;
use super::words::Word;
use crate::process::names;
use crate::process::spawn::Program;
use std::ffi::OsStr;
use std::path::Path;

/// Whether results may depend on what is inlined where.
pub fn decides(driver: &Program, words: &[Word]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word.word == wanted);
    let name = Path::new(&driver.name).file_name().unwrap_or(OsStr::new(""));
    let target = names::target(name);
    let is_x86_64 =
        target.map_or(cfg!(target_arch = "x86_64"), |target| target.starts_with("x86_64"));
    let fuses = !is_x86_64 && !has("-ffp-contract=off") && !has("-ffp-contract=on");
    fuses || words.iter().flat_map(Word::parts).any(|part| options::row(part).inexact)
}

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn options_that_make_results_depend_on_inlining() {
        let decides = |name: &str, line: &str| {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            super::decides(&Program::at(name), &words::words(&arguments))
        };
        for line in [
            "-O2 -march=x86-64",
            "-O2 -msse4.2 -mtune=native",
            "-O3 -mavx2 -mno-avx512f",
            "-fno-math-errno -mcmodel=large",
        ] {
            assert!(!decides("x86_64-linux-gnu-gcc", line), "{line}");
        }
        for line in [
            "-march=haswell",
            "-march=native",
            "-Ofast",
            "-mavx512f",
            "-mfma",
            "-mxop",
            "-Xclang -ffast-math",
            "-mllvm -x",
            "-mfpmath=387",
        ] {
            assert!(decides("x86_64-linux-gnu-gcc", line), "{line}");
        }
        assert!(decides("aarch64-linux-gnu-gcc", "-O2 -c x.c"));
        assert!(!decides("aarch64-linux-gnu-gcc", "-O2 -ffp-contract=off -c x.c"));
    }
}
