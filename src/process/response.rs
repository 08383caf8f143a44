//! Response files: `@file` arguments, replaced by the words in the file, as libiberty's
//! `expandargv` does it for GCC and binutils (and LLVM in the same way).
//!
//! In: the arguments as given. Out: the arguments as the tool will understand them. The expansion
//! is for our understanding only; the tool is handed what the user wrote.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// libiberty gives up at this many as well; it is what ends a file that names itself.
const MOST_FILES: usize = 2000;
/// More than any real command line has; a guard against files that are no response files.
const MOST_BYTES: u64 = 64 << 20;

/// Command-line arguments after expansion.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    pub arguments: Vec<OsString>,
    /// Something could not be looked at without taking it away from the tool (a pipe), or without
    /// limit: nothing can be said about this call.
    pub opaque: bool,
}

/// Expands every `@file`, also those inside of files.
pub fn expand<A: AsRef<OsStr>>(arguments: &[A]) -> Expanded {
    let mut expanded = Expanded::default();
    let mut files = 0;
    // What is still to be looked at, the next on top.
    let mut left: Vec<OsString> =
        arguments.iter().rev().map(|argument| argument.as_ref().to_owned()).collect();
    while let Some(argument) = left.pop() {
        let content = match argument.as_bytes().strip_prefix(b"@") {
            Some(path) => read(Path::new(OsStr::from_bytes(path))),
            None => ResponseFile::NotAFile,
        };
        match content {
            ResponseFile::NotAFile => expanded.arguments.push(argument),
            ResponseFile::Opaque => return Expanded { opaque: true, ..expanded },
            ResponseFile::Text(_) if files == MOST_FILES => {
                return Expanded { opaque: true, ..expanded };
            }
            ResponseFile::Text(text) => {
                files += 1;
                left.extend(words(&text).into_iter().rev());
            }
        }
    }
    expanded
}

enum ResponseFile {
    Text(Vec<u8>),
    /// There is no such file: the argument means itself.
    NotAFile,
    Opaque,
}

fn read(path: &Path) -> ResponseFile {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() || metadata.len() > MOST_BYTES => ResponseFile::Opaque,
        Ok(_) => fs::read(path).map_or(ResponseFile::NotAFile, ResponseFile::Text),
        Err(_) => ResponseFile::NotAFile,
    }
}

/// Splits text as libiberty's `buildargv` does: white space separates; quotes of both kinds group;
/// a backslash takes the next byte as it is, everywhere, even within single quotes.
pub fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if quote.is_none() && byte.is_ascii_whitespace() || byte == b'\x0b' && quote.is_none() {
            words.extend(word.take().map(OsString::from_vec));
            continue;
        }
        let word = word.get_or_insert_default();
        match byte {
            b'\\' => word.extend(bytes.next()),
            b'\'' | b'"' if quote.is_none() => quote = Some(byte),
            _ if quote == Some(byte) => quote = None,
            _ => word.push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        words(text.as_bytes()).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn white_space_quotes_and_backslashes() {
        assert_eq!(split(" a\tb\nc\r\n "), ["a", "b", "c"]);
        assert_eq!(split(r#"'a b' "c d" e" f"g"#), ["a b", "c d", "e fg"]);
        assert_eq!(split(r#"a\ b "c\"d" 'e\'f' "g'h""#), ["a b", "c\"d", "e'f", "g'h"]);
        assert_eq!(split(r#"'' "" x"#), ["", "", "x"]);
        assert_eq!(split(r"back\\slash end\"), ["back\\slash", "end"]);
        assert_eq!(split(r#"-DX="\"s\"""#), ["-DX=\"s\""]);
    }

    fn path_argument(path: &Path) -> OsString {
        let mut argument = OsString::from("@");
        argument.push(path);
        argument
    }

    #[test]
    fn files_nest_and_missing_ones_mean_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer file"), folder.path().join("inner"));
        fs::write(&inner, b"-c 'x y.c' \xff.c").unwrap();
        fs::write(&outer, format!("-O2 \"@{}\" @missing", inner.display())).unwrap();
        let expanded =
            expand(&[OsString::from("a"), path_argument(&outer), "@".into(), "z".into()]);
        let expected: [&[u8]; 8] =
            [b"a", b"-O2", b"-c", b"x y.c", b"\xff.c", b"@missing", b"@", b"z"];
        assert_eq!(expanded.arguments, expected.map(OsStr::from_bytes));
        assert!(!expanded.opaque);
    }

    #[test]
    fn a_file_that_names_itself_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loop");
        fs::write(&file, format!("-x @{}", file.display())).unwrap();
        assert!(expand(&[path_argument(&file)]).opaque);
    }

    #[test]
    fn pipes_and_folders_are_left_alone() {
        assert!(expand(&["@/"]).opaque);
        assert!(expand(&["@/dev/null"]).opaque);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            words(&text);
        }

        #[test]
        fn quoted_words_come_back(list in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 0..8)) {
            let mut text = Vec::new();
            for word in &list {
                text.push(b'"');
                for &byte in word {
                    text.extend([b'\\', byte]);
                }
                text.extend(b"\" ");
            }
            let list: Vec<OsString> = list.into_iter().map(OsString::from_vec).collect();
            prop_assert_eq!(words(&text), list);
        }
    }
}
