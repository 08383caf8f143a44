//! Lines that are added to a project's files: never twice, and never in place of what is there.

use crate::report::setup::{SetupState, WrittenFile};
use anyhow::Context;
use std::fs;
use std::path::Path;

/// Finds out what is to be done about a file, and does it if asked to.
pub fn settle(folder: &Path, file: &mut WrittenFile, write: bool) -> anyhow::Result<()> {
    let path = folder.join(&file.path);
    let present = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    file.state = match &present {
        Some(text) if text.contains(file.knows) => SetupState::Present,
        // Nothing can be added behind the end of JSON, nor a second table of the same name.
        Some(text) if file.path.ends_with(".json") || has_table(text, &file.lines) => {
            SetupState::ByHand
        }
        _ if write => SetupState::Written,
        _ => SetupState::Suggested,
    };
    if file.state == SetupState::Written {
        let before = present
            .map(|text| if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" });
        let text = before.map_or(file.lines.clone(), |before| format!("{before}\n{}", file.lines));
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Whether a file has the table with which the lines begin.
fn has_table(text: &str, lines: &str) -> bool {
    let table = lines.lines().next().filter(|line| line.starts_with('['));
    table.is_some_and(|table| text.lines().any(|line| line.trim() == table))
}
