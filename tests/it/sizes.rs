//! Files are of a size that one can read: whatever is longer is a table, or is named here.

use std::fs;
use std::path::{Path, PathBuf};

const MOST_LINES: usize = 400;

/// A row an option.
const TABLES: [&str; 1] = ["src/compile/option_table.rs"];

/// Those that are still to be divided.
const TOO_LONG: [&str; 4] = [
    "src/fingerprint/modules.rs",
    "src/fingerprint/walk.rs",
    "src/suite/course.rs",
    "src/suite/memory.rs",
];

const FOLDERS: [&str; 7] = ["agent", "examples", "fuzz", "lab", "src", "tests", "wrappers"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("a folder entry is readable").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_short_but_for_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&root.join(folder), &mut found));
    let is_long = |path: &&PathBuf| {
        let text = fs::read_to_string(path).expect("a source file is readable");
        text.lines().count() > MOST_LINES
    };
    let name = |path: &PathBuf| path.strip_prefix(root).expect("it is below").display().to_string();
    let mut long: Vec<String> = found.iter().filter(is_long).map(name).collect();
    long.retain(|name| !TABLES.contains(&&**name) && !TOO_LONG.contains(&&**name));
    assert!(long.is_empty(), "longer than {MOST_LINES} lines, divide by topic: {long:?}");
}
