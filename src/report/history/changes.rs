//! What has changed in a program, short enough for each cell of a matrix.
//!
//! In: two builds, compared. Out: the changes that tell most.

use super::{Changed, Text};
use crate::change::{AtomFate, Comparison};
use crate::report::demangle::demangle;

/// More changes of one test are not kept.
const MOST: usize = 8;

/// Of a longer chain, the end is left out.
const LONGEST_CHAIN: usize = 12;

/// The changes that tell most.
pub fn of(comparison: &Comparison) -> Vec<Changed> {
    let text = |name: &str| Text::from(&*demangle(name));
    let changes = comparison.changes.iter().take(MOST).map(|change| Changed {
        what: Text::from(match change.what {
            AtomFate::Changed => "changed",
            AtomFate::Retargeted => "other references",
            AtomFate::Added => "added",
            AtomFate::Removed => "removed",
        }),
        name: text(&change.name),
        source: change.source.as_ref().map(|(file, line)| Text::from(&*format!("{file}:{line}"))),
        object: change.object.as_deref().map(Text::from),
        chain: change.chain.iter().take(LONGEST_CHAIN).map(|name| text(name)).collect(),
    });
    changes.collect()
}
