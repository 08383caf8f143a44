//! One random mutation of the sources of a real project, for `scripts/lab/mutate.py`.
//!
//! In: a seed and files. Out: the file, its new text, and where it was changed.

use super::source::Source;
use super::{KINDS, apply};
use crate::dice::Dice;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Kinds that leave what a function does as it is, mostly: there would be nothing to find.
const WITHOUT_EFFECT: [&str; 7] = [
    "attribute",
    "blank inserted",
    "definitions exchanged",
    "function renamed",
    "line moved",
    "macro",
    "qualifier",
];

/// A file with one change.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct MutatedFile {
    pub file: PathBuf,
    pub kind: &'static str,
    pub line: usize,
    pub text: String,
}

/// A random mutation: first the kind, then the place, so that rare kinds are not drowned. `None` if
/// there is no place for any.
pub fn mutated(seed: &str, files: &[PathBuf]) -> io::Result<Option<MutatedFile>> {
    let texts: Vec<(&Path, String)> = files
        .iter()
        .map(|file| Ok((file.as_path(), fs::read_to_string(file)?)))
        .collect::<io::Result<_>>()?;
    let mut dice = Dice::new(0, seed);
    let mut kinds: Vec<_> =
        KINDS.iter().filter(|(kind, ..)| !WITHOUT_EFFECT.contains(kind)).collect();
    dice.shuffle(&mut kinds);
    Ok(kinds.into_iter().find_map(|(kind, _, find)| {
        let mut places = Vec::new();
        for (file, text) in &texts {
            let alike: Vec<String> =
                Source::new(text, &[]).defined().into_iter().map(str::to_owned).collect();
            let found = find(&Source::new(text, &alike), &mut dice);
            places.extend(found.into_iter().map(|edits| (*file, text, edits)));
        }
        places.retain(|(_, text, edits)| apply(text, edits) != **text);
        if places.is_empty() {
            return None;
        }
        let (file, text, edits) = dice.pick(&places);
        let before = edits.first().map_or(0, |(range, _)| range.start);
        let line = text[..before].matches('\n').count() + 1;
        Some(MutatedFile { file: file.to_path_buf(), kind, line, text: apply(text, edits) })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_change_of_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.c");
        let text = "int f(int a, int b)\n{\n    return a + b;\n}\n";
        fs::write(&file, text).unwrap();
        let files = [file];
        let first = mutated("1 project", &files).unwrap().unwrap();
        assert_eq!(Some(&first), mutated("1 project", &files).unwrap().as_ref());
        assert_ne!(first.text, text);
        let differing = text.lines().zip(first.text.lines()).position(|(one, other)| one != other);
        assert_eq!(differing, Some(first.line - 1));
    }

    #[test]
    fn other_seeds_give_other_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.c");
        fs::write(&file, "int f(int a, int b)\n{\n    return a < 5 ? a * b : a + 7;\n}\n").unwrap();
        let text = |seed: u32| {
            mutated(&seed.to_string(), std::slice::from_ref(&file)).unwrap().unwrap().text
        };
        let texts: std::collections::BTreeSet<String> = (0..20).map(text).collect();
        assert!(texts.len() > 3, "{texts:?}");
    }

    #[test]
    fn a_file_without_functions_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.c");
        fs::write(&file, "/* nothing */\n").unwrap();
        assert_eq!(mutated("1", &[file]).unwrap(), None);
    }
}
