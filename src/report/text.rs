//! Text for people: one line for each atom, colour only on a terminal.

use super::shown::{Shown, ShownAtom};
use super::style::Style;
use std::io::{self, Write};

/// How many references a line names before it only counts the rest.
const NAMED_REFERENCES: usize = 6;

/// Writes a table of the atoms, then what else there is.
pub fn write(out: &mut impl Write, shown: &Shown, colour: bool) -> io::Result<()> {
    let Style { bold, dim, plain, .. } = Style::new(colour);
    writeln!(out, "{bold}{}{plain} ({}): {} atoms", shown.file, shown.kind, shown.atoms.len())?;
    for atom in &shown.atoms {
        let name = atom.demangled.as_deref().unwrap_or(&atom.name).escape_debug();
        write!(
            out,
            "{:<12} {dim}{:.12}{plain} {:>7}  {bold}{name}{plain}",
            atom.kind, atom.hash, atom.size
        )?;
        if let Some(place) = atom.source.as_ref().or(atom.object.as_ref()) {
            write!(out, "  {dim}{place}{plain}")?;
        }
        if atom.level != "code" {
            write!(out, "  [{}]", atom.level)?;
        }
        writeln!(out, "{}", references(atom))?;
    }
    for (title, list) in
        [("roots", &shown.roots), ("exports", &shown.exports), ("needed", &shown.needed)]
    {
        if !list.is_empty() {
            writeln!(out, "{bold}{title}:{plain} {}", list.join(" "))?;
        }
    }
    for refusal in &shown.refusals {
        writeln!(out, "{bold}refusal:{plain} {}: {}", refusal.subject, refusal.reason)?;
    }
    Ok(())
}

fn references(atom: &ShownAtom) -> String {
    if atom.refs.is_empty() {
        return String::new();
    }
    let named: Vec<String> = atom
        .refs
        .iter()
        .take(NAMED_REFERENCES)
        .map(|name| name.escape_debug().to_string())
        .collect();
    let more = atom.refs.len().saturating_sub(NAMED_REFERENCES);
    let rest = if more > 0 { format!(" (+{more})") } else { String::new() };
    format!("  → {}{rest}", named.join(", "))
}
