//! Every setting, its value, and where that comes from: for `tasting config`.

use super::style::Style;
use super::units::visible;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// All settings.
#[derive(Serialize)]
pub struct ShownSettings {
    /// The project's root, and the file with its settings.
    pub root: String,
    pub file: String,
    pub settings: Vec<ShownSetting>,
    /// Variables of the environment that do not count.
    pub ignored: Vec<ShownIgnored>,
    /// What is set to something that cannot be used.
    pub problems: Vec<String>,
}

/// One setting.
#[derive(Serialize)]
pub struct ShownSetting {
    pub name: String,
    pub value: Value,
    /// A variable, `tasting.toml`, or `default`.
    pub source: String,
}

/// Names of variables that are ignored.
#[derive(Serialize)]
pub struct ShownIgnored {
    pub when: &'static str,
    pub patterns: Vec<&'static str>,
}

/// Writes all settings for people.
pub fn write(out: &mut impl Write, shown: &ShownSettings, colour: bool) -> io::Result<()> {
    let Style { bold, dim, red, plain, .. } = Style::new(colour);
    writeln!(out, "{bold}project{plain}  {}", visible(&shown.root))?;
    let rows: Vec<(&str, String, &str)> =
        shown.settings.iter().map(|setting| (&*setting.name, value(&setting.value), &*setting.source)).collect();
    let widest = |column: fn(&(&str, String, &str)) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (names, values) = (widest(|row| row.0.len()), widest(|row| row.1.chars().count()).min(40));
    for (name, value, source) in &rows {
        let dimmed = if *source == "default" { dim } else { "" };
        let end = if dimmed.is_empty() { "" } else { plain };
        writeln!(out, "{bold}{name:<names$}{plain}  {dimmed}{:<values$}  {source}{end}", visible(value))?;
    }
    writeln!(out, "{bold}variables that do not count{plain}, beside those under environment.ignore:")?;
    for ignored in &shown.ignored {
        writeln!(out, "  {}: {dim}{}{plain}", ignored.when, ignored.patterns.join(" "))?;
    }
    shown.problems.iter().try_for_each(|problem| writeln!(out, "{red}problem:{plain} {}", visible(problem)))
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(list) if list.is_empty() => "–".to_owned(),
        Value::Object(table) if table.is_empty() => "–".to_owned(),
        Value::Array(list) => list.iter().map(self::value).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
