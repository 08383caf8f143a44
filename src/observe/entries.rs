//! What is known of one path that does not belong to the run, and which uses follow from it.
//!
//! In: the state in which the path was first seen, and how much of it the run can have seen. Out:
//! uses.

use super::content::Identity;
use super::library_names::LibraryNames;
use super::listing::{self, Listing};
use super::used::{Kind, Use, What};
use crate::model::Hash;
use std::path::{Path, PathBuf};

/// How much of a place the run can have seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// That it is there, and what kind of thing it is.
    Kind,
    /// Its attributes.
    Details,
    /// Its content, by the dynamic loader alone.
    Library,
    /// Its content.
    Content,
    /// Its content, which was run.
    Program,
}

/// What is known of one path that is not the run's own.
#[derive(Debug)]
pub(super) struct Entry {
    pub first: First,
    pub sight: Sight,
    /// Its attributes were asked for.
    pub asked: bool,
    /// The content was seen by the loader, by others.
    pub loaded: bool,
    pub read: bool,
    /// The content may not be read.
    pub denied: bool,
    pub content: Option<Hash>,
    /// Effective entries, and the identity of the folder when they were read.
    pub listing: Option<(Listing, Identity)>,
}

/// What was met at a path first.
#[derive(Debug)]
pub(super) enum First {
    There(Identity, What),
    Absent,
    Denied,
}

impl Entry {
    pub fn new(first: First, sight: Sight) -> Entry {
        let (asked, loaded, read, denied) = (false, false, false, false);
        Entry { first, sight, asked, loaded, read, denied, content: None, listing: None }
    }

    /// Whether what is met now is not what was met first.
    pub fn differs(&self, now: &First) -> bool {
        match (&self.first, now) {
            (First::There(first, what), First::There(now, new)) => {
                what.kind != new.kind || (what.kind == Kind::File && first != now)
            }
            (First::Absent, First::Absent) => false,
            (_, First::Denied) => false,
            _ => true,
        }
    }
}

/// The uses that an entry stands for.
pub(super) fn uses(
    path: &Path,
    entry: &Entry,
    loads: &[(PathBuf, PathBuf)],
    names: &LibraryNames,
) -> Vec<Use> {
    let path = || path.to_owned();
    let listed = entry.listing.as_ref();
    let mut uses: Vec<Use> = listed
        .map(|(now, _)| Use::Listed { path: path(), listing: listing::hash(now) })
        .into_iter()
        .collect();
    if entry.denied {
        uses.push(Use::Denied { path: path() });
    }
    match (&entry.first, entry.content) {
        (First::Absent, _) => uses.push(Use::Absent { path: path() }),
        (First::Denied, _) => uses.push(Use::Denied { path: path() }),
        (First::There(_, what), Some(content)) => {
            // What runs counts by what it does, which its size says nothing of.
            let is_code = entry.sight == Sight::Program || entry.loaded;
            if entry.sight == Sight::Program {
                let of_it = loads.iter().filter(|(program, _)| *program == path());
                let libraries = of_it.map(|(_, library)| library.clone()).collect();
                uses.push(Use::Executed { path: path(), content, libraries });
            }
            if entry.loaded {
                uses.push(Use::Loaded { path: path(), content, name: names.of(&path()) });
            }
            if entry.read || (entry.asked && !is_code) {
                uses.push(Use::Read { path: path(), content });
            }
            if entry.asked && !is_code {
                uses.push(Use::Exists { path: path(), what: *what });
            }
        }
        (First::There(_, what), None) if entry.sight == Sight::Kind => {
            uses.push(Use::Exists { path: path(), what: What::kind(what.kind) });
        }
        (First::There(_, what), None) => uses.push(Use::Exists { path: path(), what: *what }),
    }
    uses
}
