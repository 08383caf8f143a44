//! Differences from the latest execution of a test: in its invocation context and its dependencies.
//!
//! In: the trace of that execution, and the current state. Out: differences, as text for people.

use super::mentions;
use super::project::Project;
use super::reason::Reason;
use super::test::Test;
use super::values::Values;
use crate::model::keys::{KeyOf, PlainState};
use crate::model::{
    Dependency, DependencyKind, DependencySet, Hash, PortablePath, RecordedDependency, Trace,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

/// One difference.
#[derive(Clone, Debug)]
pub struct Difference {
    pub reason: Reason,
    /// The file or the variable.
    pub subject: String,
    /// Its number among what the execution used.
    pub used: Option<usize>,
}

/// Differences that a test can see without opening a file.
pub fn of_context(test: &Test, trace: &Trace) -> Vec<Difference> {
    let value = |list: &[(String, Hash)], name: &str| {
        list.iter().find(|(other, _)| other == name).map(|known| known.1)
    };
    let now = test.context_entries.iter().filter_map(|(name, now)| {
        match value(&trace.context_entries, name) {
            Some(before) if before == *now => None,
            Some(_) => Some((name, "is different")),
            None => Some((name, "was not set")),
        }
    });
    let is_gone = |(name, _): &&(String, Hash)| value(&test.context_entries, name).is_none();
    let gone =
        trace.context_entries.iter().filter(is_gone).map(|(name, _)| (name, "is not set any more"));
    let difference = |(name, what): (&String, &str)| Difference {
        reason: Reason::new("circumstances", format!("{name} {what}")),
        subject: name.clone(),
        used: None,
    };
    now.chain(gone).map(difference).collect()
}

/// Differences of what the execution used; each place is told once.
pub fn of_dependencies(project: &Project, trace: &Trace, values: &mut Values) -> Vec<Difference> {
    let dependency_set = DependencySet {
        dependencies: trace.used.iter().map(|used| used.dependency.clone()).collect(),
    };
    let now = values.now(&dependency_set);
    let mut told: BTreeSet<&PortablePath> = BTreeSet::new();
    let mut differences = Vec::new();
    for (number, (used, now)) in trace.used.iter().zip(&now).enumerate() {
        if used.value == *now || !told.insert(&used.dependency.place) {
            continue;
        }
        let subject = project.show(&used.dependency.place);
        let mut reason = reason(&used.dependency, &subject, *now);
        match used.dependency.kind {
            DependencyKind::Program => {
                if let Some(text) = changed_library(project, used, values) {
                    reason.text = text;
                }
            }
            DependencyKind::File if is_binary(project, &used.dependency.place) => {
                reason.text.push_str(READ_AS_DATA)
            }
            _ => {}
        }
        differences.push(Difference { reason, subject, used: Some(number) });
    }
    differences
}

/// Said of a program or library that somebody reads: finer than as a whole, it cannot be compared
/// then.
const READ_AS_DATA: &str =
    ", and was read as data (as valgrind, emulators and nm do): every change of it counts";

fn is_binary(project: &Project, place: &PortablePath) -> bool {
    let start = |path| {
        let mut start = [0; 4];
        File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"\x7fELF"
    };
    project.path(place).is_some_and(start)
}

/// Of a program that is unchanged itself, the library of the project that has changed.
fn changed_library(
    project: &Project,
    used: &RecordedDependency,
    values: &mut Values,
) -> Option<String> {
    let now: Vec<Option<Hash>> =
        values.manifests(&used.dependency).iter().map(|file| values.content(file)).collect();
    let names: Vec<Hash> = now
        .iter()
        .copied()
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .map(|content| KeyOf::KeptManifest.of(content))
        .collect();
    if names.len() != used.manifests.len() || names.first() != used.manifests.first() {
        return None;
    }
    let mut libraries =
        values.covered_libraries(&used.dependency).zip(names.iter().zip(&used.manifests).skip(1));
    let (library, _) = libraries.find(|(_, (now, before))| now != before)?;
    let (library, program) = (project.show(library), project.show(&used.dependency.place));
    Some(format!("the library {library}, which the program {program} uses, has changed"))
}

fn reason(dependency: &Dependency, place: &str, now: Hash) -> Reason {
    let is = |state: PlainState| now == state.value();
    let (sort, text) = match dependency.kind {
        DependencyKind::Input => ("input-changed", "its standard input is different".to_owned()),
        DependencyKind::Program if is(PlainState::Absent) => {
            ("program-changed", format!("the program {place} is gone"))
        }
        DependencyKind::Program => ("program-changed", format!("the program {place} has changed")),
        DependencyKind::Library if is(PlainState::Absent) => {
            ("library-changed", format!("the library {place} is gone"))
        }
        DependencyKind::Library => ("library-changed", format!("the library {place} has changed")),
        DependencyKind::Absent => ("file-changed", format!("{place} was not there before")),
        DependencyKind::Denied if is(PlainState::There) => {
            ("file-changed", format!("{place} can be read now"))
        }
        DependencyKind::Declared => {
            ("file-changed", format!("files that fit {place} have changed"))
        }
        DependencyKind::Mentioned => (
            "place-changed",
            format!(
                "it mentions {}, which is different here",
                mentions::describe(&dependency.place)
            ),
        ),
        DependencyKind::Fact => {
            ("machine-changed", format!("the state of the machine is different ({place})"))
        }
        DependencyKind::Permissions => (
            "file-changed",
            format!("{place}, which it changes, has other permissions now, or is gone"),
        ),
        DependencyKind::Overwritten | DependencyKind::Replaced => (
            "file-changed",
            format!(
                "{place}, which it writes, is another kind of thing now, or may not be written"
            ),
        ),
        DependencyKind::Writable => {
            ("folder-changed", format!("whether and how {place} may be written is different"))
        }
        DependencyKind::Locked => {
            ("machine-changed", format!("whether somebody has locked {place} is different"))
        }
        DependencyKind::Time => (
            "file-changed",
            format!("{place}, whose time of change is copied, has another one now"),
        ),
        DependencyKind::Extended => {
            ("file-changed", format!("the extended attributes of {place} are different"))
        }
        _ if is(PlainState::Absent) => ("file-changed", format!("{place} is gone")),
        _ if is(PlainState::Denied) => {
            ("file-changed", format!("{place} may not be read any more"))
        }
        DependencyKind::Folder => {
            ("folder-changed", format!("the folder {place} has other entries"))
        }
        DependencyKind::Link => ("file-changed", format!("the link {place} leads elsewhere")),
        DependencyKind::Exists => ("file-changed", format!("{place} is another kind of thing now")),
        DependencyKind::Attributes => {
            ("file-changed", format!("the size or the mode of {place} is different"))
        }
        DependencyKind::File | DependencyKind::Denied => {
            ("file-changed", format!("{place} has changed"))
        }
    };
    Reason::new(sort, text)
}
