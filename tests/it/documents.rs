//! What people read and what is installed: the manual, completions, the pages of `docs/`, their
//! links.

mod blocks;
mod book;
mod installed;
mod links;

use crate::workshop::TASTING;
use std::path::{Path, PathBuf};
use tasting::model::codes;
use tasting::run::config::Config;

/// The root of the source.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(source(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A tool of those that scripts/install-test-tools.sh puts beside the build.
fn linters() -> PathBuf {
    let built = Path::new(TASTING).parent().expect("binaries lie in a folder");
    built.parent().expect("of the target").join("test-tools/linters")
}

#[test]
fn every_code_has_its_section() {
    let page = read("docs/codes.md");
    let reasons = codes::REASONS.iter().filter(|code| **code != "unchanged");
    for code in reasons.chain(&codes::REFUSALS) {
        assert_eq!(
            page.matches(&format!("\n### {code}\n\n")).count(),
            1,
            "{code} has no section in docs/codes.md"
        );
    }
    for heading in page.lines().filter_map(|line| line.strip_prefix("### ")) {
        let is_code = codes::REASONS.contains(&heading) || codes::REFUSALS.contains(&heading);
        assert!(is_code, "{heading} in docs/codes.md is no code");
    }
}

/// The names of all settings, with those of tables behind the table's.
fn settings(value: &serde_json::Value) -> Vec<String> {
    let object = value.as_object().expect("settings are a table");
    let inner = object.values().filter(|value| value.is_object());
    object.keys().cloned().chain(inner.flat_map(settings)).collect()
}

#[test]
fn every_setting_is_in_the_manual() {
    let page = read("docs/settings.md");
    let default = serde_json::to_value(Config::default()).expect("settings can be shown");
    for name in settings(&default) {
        let is_there =
            page.contains(&format!("| `{name}` |")) || page.contains(&format!("## {name}\n"));
        assert!(is_there, "{name} has no row in docs/settings.md");
    }
}

/// The line of facts under the title, where others have badges: of the version that is here.
#[test]
fn readme_says_what_the_manifest_says() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let said = |name: &str| manifest["package"][name].as_str().expect("a text").to_owned();
    let readme = read("README.md");
    let facts = readme.split("\n\n").nth(1).expect("a line of facts").replace('\n', " ");
    let licence = said("license").replace("OR", "or").replace("Apache-2.0", "Apache 2.0");
    let kernel = read("docs/reference.md");
    let kernel = kernel.split("**").find(|part| part.starts_with("Linux ")).expect("a kernel");
    for fact in [
        said("version") + " ·",
        format!("Rust {} ", said("rust-version")),
        licence,
        format!("{kernel} or newer"),
    ] {
        assert!(facts.contains(&fact), "{fact:?} is not in {facts}");
    }
}
