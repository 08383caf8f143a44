//! `tasting config`: every setting, and where it comes from.

use super::{exit, print};
use crate::objects;
use crate::process::Settings;
use crate::report::settings::{self, ShownIgnored, ShownSetting, ShownSettings};
use crate::report::shown::level_name;
use crate::run::config::{Config, FILE};
use crate::run::project::Project;
use crate::run::{QUARANTINE_PASSES, environment, sharing};
use crate::store::DEFAULT_LIMIT;
use crate::store::remote::location::Location;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Show every setting with its value, and whether it comes from a variable, from tasting.toml or is
/// the default.
///
/// Settings of the user are variables (TASTING_…); settings of the project stand in `tasting.toml`
/// in its root. What is set to something that cannot be used is listed as a problem: such a
/// variable counts as not set, but with such a tasting.toml nothing is reused, and this command
/// ends with 1.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: root, file, settings (a list of {name, value, source}), ignored, problems
    #[arg(long)]
    json: bool,
}

/// Tables of tasting.toml whose entries are settings of their own.
const TABLES: [&str; 4] = ["environment", "limits", "sharing", "history"];

/// What the shims tell each other.
const INTERNAL: [&str; 2] = ["TASTING_INSIDE_", "TASTING_LINK_"];

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let user = Settings::from_environment();
    let working = std::env::current_dir().context("there is no current folder")?;
    let root = Project::root(&working, &user);
    let config = Config::read(&root);
    let mut rows = variables(&user, &root);
    let mut problems = misspelled(&rows);
    problems.extend(not_understood(&user));
    match &config {
        Ok(config) => rows.extend(of_project(config, &root.join(FILE))),
        Err(problem) => problems.push(problem.clone()),
    }
    let ignored = environment::LISTS
        .iter()
        .map(|(when, patterns)| ShownIgnored { when, patterns: patterns.to_vec() });
    let shown = ShownSettings {
        file: root.join(FILE).display().to_string(),
        root: root.display().to_string(),
        settings: rows,
        ignored: ignored.collect(),
        problems,
    };
    print(arguments.json, &shown, settings::write)?;
    Ok(if config.is_ok() { exit::OK } else { exit::FAILED })
}

/// The user's settings.
fn variables(user: &Settings, root: &Path) -> Vec<ShownSetting> {
    let path = |path: &Option<PathBuf>| {
        path.as_ref().map_or(Value::Null, |path| json!(path.display().to_string()))
    };
    let text = |name: &str| variable(name).map_or(Value::Null, Value::String);
    let rows = [
        ("TASTING_DIR", path(&user.dir)),
        ("TASTING_ROOT", json!(root.display().to_string())),
        ("TASTING_MAXSIZE", json!(user.max_size.unwrap_or(DEFAULT_LIMIT))),
        ("TASTING_REMOTE", remote(user)),
        ("TASTING_LEVEL", json!(level_name(user.level))),
        ("TASTING_REUSE_OBJECTS", json!(user.reuse_objects)),
        ("TASTING_OBJECTS_MAXSIZE", json!(user.max_objects.unwrap_or(objects::DEFAULT_LIMIT))),
        ("TASTING_SLOPPINESS", text("TASTING_SLOPPINESS")),
        ("TASTING_MANIFEST_DIR", path(&user.manifest_dir)),
        ("TASTING_LOGFILE", path(&user.logfile)),
        ("TASTING_DISABLE", json!(user.disable)),
        ("TASTING_NOSPLIT", json!(user.nosplit)),
        ("TASTING_READONLY", json!(user.readonly)),
        ("TASTING_RECACHE", json!(user.recache)),
        ("TASTING_NOTRACE", json!(user.notrace)),
        ("TASTING_SHADOW", json!(user.shadow)),
        ("TASTING_CC", text("TASTING_CC")),
        ("TASTING_CXX", text("TASTING_CXX")),
        ("TASTING_LD", text("TASTING_LD")),
    ];
    let is_used = |name: &str| match name {
        "TASTING_MAXSIZE" => user.max_size.is_some(),
        "TASTING_OBJECTS_MAXSIZE" => user.max_objects.is_some(),
        _ => variable(name).is_some(),
    };
    let source = |name: &str| if is_used(name) { "variable" } else { "default" }.to_owned();
    rows.into_iter()
        .map(|(name, value)| ShownSetting { name: name.to_owned(), value, source: source(name) })
        .collect()
}

/// The remote store, without secrets; one that is not understood may have some anywhere.
fn remote(user: &Settings) -> Value {
    match user.remote.as_ref().map(|text| Location::parse(&text.0)) {
        Some(Ok(location)) => json!(location.shown),
        Some(Err(_)) => json!("***"),
        None => Value::Null,
    }
}

/// A variable that is set.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(|value| value.to_string_lossy().into_owned())
}

/// Variables that look like ours, and that nobody reads.
fn misspelled(known: &[ShownSetting]) -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let is_secret = |name: &String| {
        std::env::var("TASTING_REMOTE").is_ok_and(|text| text.contains(&format!("-env={name}")))
    };
    let is_ours = |name: &String| {
        is_secret(name)
            || known.iter().any(|row| row.name == *name)
            || INTERNAL.iter().any(|start| name.starts_with(start))
    };
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with("TASTING_") && !is_ours(name)).collect();
    unknown.sort();
    unknown.into_iter().map(|name| format!("{name} is set, but there is no such setting")).collect()
}

/// Variables with values that count as not set.
fn not_understood(user: &Settings) -> Vec<String> {
    let is_bad = |name: &'static str, size: Option<u64>| {
        variable(name).filter(|_| size.is_none()).map(|value| (name, value))
    };
    let sizes = [
        is_bad("TASTING_MAXSIZE", user.max_size),
        is_bad("TASTING_OBJECTS_MAXSIZE", user.max_objects),
    ];
    let level = variable("TASTING_LEVEL").filter(|level| level != level_name(user.level));
    let sizes = sizes.into_iter().flatten();
    let sizes =
        sizes.map(|(name, value)| format!("{name}={value} is not a size such as 500M or 5G"));
    let words = variable("TASTING_SLOPPINESS").unwrap_or_default();
    let is_unknown = |word: &&str| !["", "lines", "messages"].contains(word);
    let unknown = words.split([',', ' ']).filter(is_unknown);
    let sloppiness = unknown
        .map(|word| format!("TASTING_SLOPPINESS: {word} is neither lines nor messages"))
        .collect::<Vec<_>>();
    let level = level.map(|value| format!("TASTING_LEVEL={value} is none of code, ast and file"));
    let remote = sharing::location(user, &Config::default()).err();
    sizes.chain(sloppiness).chain(level).chain(remote).collect()
}

/// The project's settings.
fn of_project(config: &Config, file: &Path) -> Vec<ShownSetting> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let given: toml::Table = toml::from_str(&text).unwrap_or_default();
    let mut rows = Vec::new();
    for (name, value) in object(json!(config)) {
        let table = given.get(&name);
        if TABLES.contains(&name.as_str()) {
            let table = table.and_then(toml::Value::as_table);
            rows.extend(object(value).into_iter().map(|(inner, value)| {
                let is_given = table.is_some_and(|table| table.contains_key(&inner));
                setting(format!("{name}.{inner}"), value, is_given)
            }));
        } else {
            rows.push(setting(name, value, table.is_some()));
        }
    }
    rows
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

fn setting(name: String, value: Value, is_given: bool) -> ShownSetting {
    let value = match name.as_str() {
        "quarantine-passes" if value.is_null() => json!(QUARANTINE_PASSES),
        _ => value,
    };
    ShownSetting { name, value, source: if is_given { FILE } else { "default" }.to_owned() }
}
