//! Every setting, its value, and where that comes from: for `tasting config`.

use super::style::Style;
use super::units::{size, visible};
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

impl ShownSetting {
    /// The value for people.
    fn text(&self) -> String {
        let is_size = self.name == "TASTING_MAXSIZE" || self.name.starts_with("limits.");
        match self.value.as_u64().filter(|_| is_size) {
            Some(bytes) => size(bytes),
            None => value(&self.value),
        }
    }
}

/// Values that are longer do not widen the column of all.
const WIDEST: usize = 40;

/// Writes all settings for people.
pub fn write(out: &mut impl Write, shown: &ShownSettings, colour: bool) -> io::Result<()> {
    let Style { bold, dim, red, plain, .. } = Style::new(colour);
    writeln!(out, "{bold}project{plain}  {}", visible(&shown.root))?;
    let row =
        |setting: &ShownSetting| (setting.name.clone(), setting.text(), setting.source.clone());
    let rows: Vec<(String, String, String)> = shown.settings.iter().map(row).collect();
    let widest =
        |column: fn(&(String, String, String)) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (names, values) =
        (widest(|row| row.0.len()), widest(|row| row.1.chars().count()).min(WIDEST));
    for (name, value, source) in &rows {
        let dimmed = if source == "default" { dim } else { "" };
        let end = if dimmed.is_empty() { "" } else { plain };
        writeln!(
            out,
            "{bold}{name:<names$}{plain}  {dimmed}{:<values$}  {source}{end}",
            visible(value)
        )?;
    }
    writeln!(
        out,
        "{bold}variables that do not count{plain}, beside those under environment.ignore:"
    )?;
    for ignored in &shown.ignored {
        writeln!(out, "  {}: {dim}{}{plain}", ignored.when, ignored.patterns.join(" "))?;
    }
    shown
        .problems
        .iter()
        .try_for_each(|problem| writeln!(out, "{red}problem:{plain} {}", visible(problem)))
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
