//! Links between the pages of the documentation lead somewhere.

use super::source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let folders = [source(""), source("docs"), source("fixtures/edits")];
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of ours"))
        .flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect()
}

/// The text without blocks and spans of code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let outside = line.split('`').enumerate().filter(|(number, _)| number % 2 == 0);
            outside.for_each(|(_, part)| kept.push_str(part));
            kept.push('\n');
        }
    }
    kept
}

/// The targets of `[words](target)`; links may be broken over lines.
fn targets(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1).filter_map(|part| part.split_once(')'));
    parts.map(|(target, _)| target.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The anchors of a page, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_code) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            anchors.insert(
                heading
                    .chars()
                    .filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter))
                    .collect(),
            );
        }
    }
    anchors
}

fn check(page: &Path, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        page.parent().expect("a page is in a folder").join(file)
    };
    if !path.exists() {
        return Err(format!("{}: {target} is not there", page.display()));
    }
    if !anchor.is_empty() {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if !anchors(&text).contains(anchor) {
            return Err(format!("{}: there is no heading for {target}", page.display()));
        }
    }
    Ok(())
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page is readable");
        for target in targets(&prose(&text)) {
            links += 1;
            wrong.extend(check(&page, &target).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links > 50, "only {links} links were found");
}
