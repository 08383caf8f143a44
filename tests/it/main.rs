//! The one integration-test crate: real compilers, linkers and build systems, seen from outside.

mod ast;
mod bad_input;
mod cross;
mod damaged;
mod documents;
mod edits;
mod history;
mod keys;
mod lab;
mod layers;
mod observe;
mod page;
mod remote;
mod run;
mod seeing;
mod shim;
mod show;
mod sizes;
mod store;
mod subjects;
mod suite;
mod workshop;

use std::path::Path;

/// A file of tests that no `mod` line names is never compiled, and nobody would notice.
#[test]
fn every_file_of_tests_is_declared() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut forgotten = Vec::new();
    undeclared(&here, &here.join("main.rs"), &mut forgotten);
    assert!(forgotten.is_empty(), "no `mod` line names these files: {forgotten:?}");
}

/// Collects the `.rs` files of `folder` that `parent`, the file which declares that folder's
/// modules, leaves out.
fn undeclared(folder: &Path, parent: &Path, forgotten: &mut Vec<String>) {
    let declarations = std::fs::read_to_string(parent).expect("a module's file is readable");
    for entry in std::fs::read_dir(folder).expect("the folder of tests is readable") {
        let path = entry.expect("a folder entry is readable").path();
        if path.is_dir() {
            undeclared(&path, &path.with_extension("rs"), forgotten);
        } else if path.extension().is_some_and(|extension| extension == "rs") && path != parent {
            let stem =
                path.file_stem().expect("a .rs file has a name").to_string_lossy().into_owned();
            let declared = declarations
                .lines()
                .any(|line| line.trim_start_matches("pub ") == format!("mod {stem};"));
            if !declared {
                forgotten.push(path.display().to_string());
            }
        }
    }
}
