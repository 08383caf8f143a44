//! Two versions of a unit: what must change, and what must not.

mod bodies;
mod constructs;
mod declarations;
mod lines;
mod order;
mod prototypes;
mod references;
mod refusals;
mod scopes;

use super::{Definition, Unit, read};

fn unit(text: &str) -> Unit {
    read(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem} in:\n{text}"))
}

fn definition(text: &str, name: &str) -> Definition {
    let found = unit(text).definitions.into_iter().find(|definition| definition.name == name);
    found.unwrap_or_else(|| panic!("{name} is not defined in:\n{text}"))
}

/// The names that a definition refers to.
fn references(text: &str, name: &str) -> Vec<String> {
    definition(text, name).references.into_iter().map(|reference| reference.name).collect()
}

/// The definitions of two versions whose hashes differ, or that only one of them has.
fn changed(before: &str, after: &str) -> Vec<String> {
    let hashes = |text| {
        unit(text).definitions.into_iter().map(|found| (found.name, found.hash)).collect::<Vec<_>>()
    };
    let (before, after) = (hashes(before), hashes(after));
    let only = |one: &[_], other: &[(String, _)]| {
        one.iter()
            .filter(|found| !other.contains(found))
            .map(|(name, _)| name.clone())
            .collect::<Vec<String>>()
    };
    let mut names = [only(&before, &after), only(&after, &before)].concat();
    names.sort();
    names.dedup();
    names
}

/// Neither the unit nor any definition may look different.
#[track_caller]
fn same(before: &str, after: &str) {
    assert_eq!(changed(before, after), [""; 0], "\n{before}\n{after}");
    assert_eq!(
        unit(before).meaning,
        unit(after).meaning,
        "the meaning differs:\n{before}\n{after}"
    );
}

/// The unit must look different, and of its definitions exactly these.
#[track_caller]
fn differ(before: &str, after: &str, names: &[&str]) {
    assert_ne!(
        unit(before).meaning,
        unit(after).meaning,
        "the meaning is the same:\n{before}\n{after}"
    );
    assert_eq!(changed(before, after), names, "\n{before}\n{after}");
}
