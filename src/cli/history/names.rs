//! Names of tests, the same at every commit.
//!
//! In: a command, the folder that it ran in, the tree. Out: a name for people.

use crate::report::units;
use std::path::Path;

/// The command with paths as seen from the tree, and its folder where the command alone does not
/// tell.
pub fn of(argv: &[String], working: &str, tree: &Path) -> String {
    let below =
        |path: &str| Path::new(path).strip_prefix(tree).ok().map(|path| path.display().to_string());
    let folder = below(working).unwrap_or_else(|| working.to_owned());
    let root = format!("{}/", tree.display());
    let mut words: Vec<String> =
        argv.iter().map(|word| word.replace(&root, "").replace("/./", "/")).collect();
    if folder.is_empty() {
        return units::command(&words);
    }
    if let ([word], [given]) = (&mut words[..], argv)
        && given.contains('/')
    {
        if !given.starts_with('/') {
            *word = format!("{folder}/{}", word.trim_start_matches("./"));
        }
        return units::command(&words);
    }
    format!("{} (in {})", units::command(&words), units::visible(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_depend_on_the_tree() {
        let name = |line: &str, working: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            of(&words, working, Path::new("/h/tree"))
        };
        assert_eq!(name("./t --all", "/h/tree"), "./t --all");
        assert_eq!(name("./t", "/h/tree/tests"), "tests/t");
        assert_eq!(name("./t 1", "/h/tree/tests"), "./t 1 (in tests)");
        assert_eq!(name("/h/tree/build/t 1", "/h/tree/build"), "build/t 1 (in build)");
        assert_eq!(name("/h/tree/build/./t", "/h/tree/build"), "build/t");
        assert_eq!(name("sh x.sh", "/elsewhere"), "sh x.sh (in /elsewhere)");
    }
}
