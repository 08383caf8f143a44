//! Source positions that are part of the object. In: a call's words, and the files that a unit was
//! made of. Out: whether lines and columns are in its code or its debug information, and a hash of
//! the files.
//!
//! The preprocessor keeps lines but not columns: two blanks in place of one are not in its text.
//! And debug information has checksums of the files themselves (DWARF 5, Clang). In these cases the
//! content of the files counts.

use super::option::{Affects, Positions};
use super::options;
use super::words::Word;
use crate::model::{Hash, Hasher};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Whether lines and columns are in the code: sanitizers tell them, and Clang's OpenMP where there
/// is debug information.
pub fn are_in_code(words: &[Word]) -> bool {
    let mut parts = words.iter().flat_map(Word::parts).map(|part| options::row(part).positions);
    let has_debug_info = words.iter().any(is_debug_info);
    parts.any(|it| it == Positions::InCode || it == Positions::WithDebugInfo && has_debug_info)
}

/// Whether the object says anywhere in which lines and columns things are.
pub fn are_in_object(words: &[Word]) -> bool {
    are_in_code(words) || words.iter().any(is_debug_info)
}

fn is_debug_info(word: &Word) -> bool {
    let is_asked_for =
        word.affects() == Affects::DebugInfo && starts(word.word, "-g") && word.word != "-g0";
    let for_clang = |part: &OsStr| {
        starts(part, "-debug-info") || starts(part, "-dwarf") || starts(part, "-gcodeview")
    };
    is_asked_for || starts(word.word, "-Xclang") && word.parts().any(for_clang)
}

fn starts(word: &OsStr, start: &str) -> bool {
    word.as_bytes().starts_with(start.as_bytes())
}

/// The files themselves.
pub fn contents(files: &[PathBuf]) -> Hash {
    let mut files: Vec<&PathBuf> = files.iter().collect();
    files.sort();
    let mut hasher = Hasher::new("contents of files with positions");
    for file in files {
        hasher.hash(fs::read(file).map_or(Hash::default(), |content| Hash::of(&content)));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn options_that_put_positions_into_objects() {
        let of = |line: &str| {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let words = words::words(&arguments);
            (are_in_code(&words), are_in_object(&words))
        };
        assert_eq!(of("-O2 -g0 -fno-sanitize=all"), (false, false));
        assert_eq!(of("-O2 -g"), (false, true));
        assert_eq!(of("-Xclang -debug-info-kind=limited"), (false, true));
        assert_eq!(of("-fsanitize=undefined"), (true, true));
        assert_eq!(of("-Xclang -fsanitize=undefined"), (true, true));
        assert_eq!(of("-fopenmp"), (false, false));
        assert_eq!(of("-fopenmp -g"), (true, true));
    }
}
