//! A program that has changed: which atoms, where in the source, and how the program gets there.

use super::demangle::demangle;
use super::shown::{kind_name, level_name};
use super::style::Style;
use super::units::visible;
use crate::change::{AtomChange, AtomFate, Comparison};
use serde::Serialize;
use std::io::{self, Write};

/// How many atoms are listed for people. JSON has all of them.
const MOST_ATOMS: usize = 12;

/// Of a longer chain, the middle is left out.
const LONGEST_CHAIN: usize = 8;

/// How many exchanged references one line names.
const MOST_REFERENCES: usize = 3;

/// What has changed in a program.
#[derive(Default, Serialize)]
pub struct ShownProgram {
    pub atoms: Vec<ShownChange>,
    /// What holds for the binary as a whole is different.
    pub frame: bool,
    /// It starts in other places, or in another order.
    pub roots: bool,
    /// Why something in it is not compared more finely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Why its inside was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An atom that differs.
#[derive(Serialize)]
pub struct ShownChange {
    /// `changed`, `other references`, `added` or `removed`.
    pub what: &'static str,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    pub kind: &'static str,
    pub level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The library that it is in, if it is not in the program itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// From where the program starts to this atom.
    pub chain: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ShownReference>,
    /// Its line before, where no more than the number of a line may have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<u32>,
}

/// What an atom refers to, before and now.
#[derive(Serialize)]
pub struct ShownReference {
    pub before: String,
    pub now: String,
}

impl ShownProgram {
    /// A program that cannot be looked into.
    pub fn closed(note: String) -> Self {
        ShownProgram { note: Some(note), ..ShownProgram::default() }
    }

    /// What was found, with the names of the program's libraries in the order of their modules.
    pub fn new(comparison: Comparison, refusals: Vec<String>, libraries: &[String]) -> Self {
        let Comparison { changes, frame, roots } = comparison;
        let atoms = changes.into_iter().map(|change| ShownChange::new(change, libraries)).collect();
        ShownProgram { atoms, frame, roots, refusals, note: None }
    }
}

impl ShownChange {
    fn new(change: AtomChange, libraries: &[String]) -> Self {
        let reference = |(before, now)| ShownReference { before, now };
        ShownChange {
            what: match change.what {
                AtomFate::Changed => "changed",
                AtomFate::Retargeted => "other references",
                AtomFate::Added => "added",
                AtomFate::Removed => "removed",
            },
            demangled: Some(demangle(&change.name).into_owned())
                .filter(|name| *name != change.name),
            name: change.name,
            kind: kind_name(change.kind),
            level: level_name(change.level),
            source: change.source.map(|(file, line)| format!("{file}:{line}")),
            object: change.object,
            library: change.module.checked_sub(1).and_then(|index| libraries.get(index).cloned()),
            chain: change.chain.iter().map(|name| demangle(name).into_owned()).collect(),
            references: change.references.into_iter().map(reference).collect(),
            moved_from: change.moved_from,
        }
    }

    fn label(&self) -> String {
        let name = self.demangled.as_ref().unwrap_or(&self.name);
        let place = self.source.as_ref().or(self.object.as_ref()).map(|place| visible(place));
        let library = self.library.as_ref().map(|library| format!("in {}", visible(library)));
        let places: Vec<String> = place.into_iter().chain(library).collect();
        format!(
            "{}{}",
            visible(name),
            if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
        )
    }

    /// What has become of it.
    fn fate(&self) -> String {
        match self.what {
            "changed" if self.level == "file" => {
                "is different, and was compared as a whole".to_owned()
            }
            "changed" => format!("{} is different", self.kind),
            "other references" if self.references.is_empty() => {
                format!("{} has more or fewer references", self.kind)
            }
            "other references" => format!("{} {}", self.kind, self.exchanged()),
            "added" => format!("{} is new", self.kind),
            _ => format!("{} is gone", self.kind),
        }
    }

    fn exchanged(&self) -> String {
        let pair = |reference: &ShownReference| {
            let [before, now] = [&reference.before, &reference.now].map(|name| quoted(name));
            if before == now {
                format!("uses another {now}")
            } else {
                format!("uses {now} in place of {before}")
            }
        };
        let named: Vec<String> = self.references.iter().take(MOST_REFERENCES).map(pair).collect();
        let more = self.references.len().saturating_sub(MOST_REFERENCES);
        let rest = if more > 0 { format!(" (+{more})") } else { String::new() };
        format!("{}{rest}", named.join(", "))
    }
}

/// Strings are named by their content, which may be long.
fn quoted(name: &str) -> String {
    const LONGEST: usize = 40;
    let name = demangle(name);
    let start: String = name.chars().take(LONGEST).collect();
    let more = if start.len() < name.len() { "…" } else { "" };
    format!("\"{}{more}\"", visible(&start))
}

/// Writes what has changed, indented.
pub fn write(
    out: &mut impl Write,
    program: &ShownProgram,
    indent: &str,
    style: Style,
) -> io::Result<()> {
    let Style { bold, dim, plain, .. } = style;
    if let Some(note) = &program.note {
        return writeln!(out, "{indent}it was compared as a whole: {}", visible(note));
    }
    for change in program.atoms.iter().take(MOST_ATOMS) {
        writeln!(out, "{indent}{bold}{}{plain}: {}", change.label(), change.fate())?;
        if let Some(chain) = chain(&change.chain) {
            writeln!(out, "{indent}  {dim}{chain}{plain}")?;
        }
        if let Some(line) = change.moved_from {
            let hint = "same size, same references: it may be no more than the number of a line (__LINE__, assert)";
            writeln!(out, "{indent}  {dim}was in line {line}; {hint}{plain}")?;
        }
    }
    if let Some(more) = program.atoms.len().checked_sub(MOST_ATOMS).filter(|more| *more > 0) {
        writeln!(out, "{indent}and {more} more (--json lists all)")?;
    }
    let is_whole = program.atoms.iter().any(|change| change.level == "file");
    if let Some(refusal) = program.refusals.first().filter(|_| is_whole) {
        writeln!(out, "{indent}not more finely: {}", visible(refusal))?;
    }
    if program.frame {
        writeln!(
            out,
            "{indent}the binary as a whole is another one: its machine, kind, loader or options"
        )?;
    }
    if program.roots {
        writeln!(
            out,
            "{indent}it starts in other places or in another order (constructors, exported symbols)"
        )?;
    }
    if program.atoms.is_empty() && !program.frame && !program.roots {
        writeln!(
            out,
            "{indent}all that it reaches by itself is the same: a library that it loads, or where it looks for them, is not"
        )?;
    }
    Ok(())
}

/// `main → parse → table`. What every program starts with is left out; nothing to tell of a start
/// itself.
fn chain(names: &[String]) -> Option<String> {
    let names = match names {
        [start, rest @ ..] if start == "_start" && !rest.is_empty() => rest,
        names => names,
    };
    let mut shown: Vec<String> = names.iter().map(|name| visible(name)).collect();
    if shown.len() > LONGEST_CHAIN {
        let half = LONGEST_CHAIN / 2;
        shown.splice(half..shown.len() - half, ["…".to_owned()]);
    }
    (shown.len() > 1).then(|| shown.join(" → "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AtomKind, Level};

    fn change(what: AtomFate, name: &str) -> AtomChange {
        AtomChange {
            what,
            name: name.to_owned(),
            kind: AtomKind::Function,
            level: Level::Code,
            source: Some(("x.c".to_owned(), 4)),
            object: None,
            module: 0,
            chain: vec!["_start".to_owned(), "main".to_owned(), name.to_owned()],
            references: Vec::new(),
            moved_from: None,
        }
    }

    fn text(comparison: Comparison) -> String {
        let mut text = Vec::new();
        write(&mut text, &ShownProgram::new(comparison, Vec::new(), &[]), "  ", Style::default())
            .unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn each_change_has_its_place_and_its_chain() {
        let moved = AtomChange { moved_from: Some(3), ..change(AtomFate::Changed, "_ZN1a1bEv") };
        let references = vec![("one\n".to_owned(), "two".to_owned())];
        let other = AtomChange { references, source: None, ..change(AtomFate::Retargeted, "f") };
        assert_eq!(
            text(Comparison { changes: vec![moved, other], ..Comparison::default() }),
            "  a::b() (x.c:4): function is different\n    main → a::b()\n    was in line 3; same size, same references: \
             it may be no more than the number of a line (__LINE__, assert)\n  \
             f: function uses \"two\" in place of \"one\\n\"\n    main → f\n"
        );
    }

    #[test]
    fn much_is_cut_short() {
        let changes = (0..MOST_ATOMS + 5)
            .map(|number| change(AtomFate::Added, &format!("f{number}")))
            .collect();
        let text = text(Comparison { changes, ..Comparison::default() });
        assert!(text.ends_with("  and 5 more (--json lists all)\n"), "{text}");
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(chain(&names).as_deref(), Some("0 → 1 → 2 → 3 → … → 16 → 17 → 18 → 19"));
    }

    #[test]
    fn no_visible_change_is_a_library() {
        assert!(text(Comparison::default()).contains("a library that it loads"));
    }
}
