//! Imports go one way: every `crate::` path of `src/` is held against the table of the design.

use std::path::{Path, PathBuf};

/// A folder of `src/` and the folders it may import. `main.rs` and `lib.rs` belong to no layer.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("elf", &["model"]),
    ("process", &["model"]),
    ("store", &["model"]),
    ("objects", &["model", "process", "store"]),
    ("ast", &["model"]),
    ("compile", &["model", "elf", "process", "objects", "ast"]),
    ("fingerprint", &["model", "elf", "process"]),
    ("link", &["model", "elf", "process", "fingerprint"]),
    ("observe", &["model", "elf", "process"]),
    ("run", &["model", "process", "observe", "fingerprint", "store"]),
    ("change", &["model", "fingerprint", "store"]),
    ("report", &["model", "change", "fingerprint"]),
    (
        "cli",
        &[
            "model",
            "elf",
            "process",
            "store",
            "objects",
            "compile",
            "fingerprint",
            "link",
            "observe",
            "run",
            "change",
            "report",
        ],
    ),
];

#[test]
fn imports_go_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).expect("the file was found below src/");
        let text = std::fs::read_to_string(&file).expect("a source file is readable");
        wrong.extend(wrong_imports(inside, &text));
    }
    assert!(wrong.is_empty(), "imports against the table in tests/it/layers.rs:\n{}", wrong.join("\n"));
}

#[test]
fn every_folder_has_its_line_in_the_table() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = std::fs::read_dir(&source).expect("src/ is readable").map(|entry| entry.expect("readable").path());
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        assert!(allowed(&name).is_some(), "src/{name}/ has no line in tests/it/layers.rs");
    }
}

#[test]
fn a_wrong_import_is_seen() {
    let text = "use crate::link::graph;\nuse crate::{model::Hash, cli};\nfn f() { crate::process::run() }\n";
    let found = wrong_imports(Path::new("elf/section.rs"), text);
    let expected = [
        "src/elf/section.rs:1: crate::link",
        "src/elf/section.rs:2: crate::cli",
        "src/elf/section.rs:3: crate::process",
    ];
    assert_eq!(found, expected);
}

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, imports)| *imports)
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("a folder entry is readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The imports of the file `inside` (a path below `src/`) that its layer may not make.
fn wrong_imports(inside: &Path, text: &str) -> Vec<String> {
    let layer = inside.iter().next().expect("a path has a first part").to_string_lossy().into_owned();
    let Some(allowed) = allowed(&layer) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (target, line) in imported_layers(text) {
        if target != layer && !allowed.contains(&target.as_str()) {
            wrong.push(format!("src/{}:{line}: crate::{target}", inside.display()));
        }
    }
    wrong
}

/// The first part of every `crate::` path, also inside `crate::{…}`, with its line.
fn imported_layers(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, marker) in text.match_indices("crate::") {
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[..at].matches('\n').count() + 1;
        if text[line_start..at].contains("//") {
            continue;
        }
        let rest = &text[at + marker.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_heads(group).into_iter().map(|head| (head, line))),
            None => found.push((first_name(rest), line)),
        }
    }
    found.retain(|(name, _)| LAYERS.iter().any(|(layer, _)| layer == name));
    found
}

/// The first names of the members of a `{…}` group, whose opening brace is already taken off.
fn group_heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut member = String::new();
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(first_name(std::mem::take(&mut member).trim())),
            _ if depth == 0 => member.push(letter),
            _ => {}
        }
    }
    heads.push(first_name(member.trim()));
    heads
}

fn first_name(path: &str) -> String {
    path.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}
