//! Names of values in a remote store.

use crate::model::Hash;
use crate::model::keys::SCHEMA;

/// What something in a remote store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// The dependency sets of a test.
    DependencySets,
    /// An outcome.
    Outcome,
    /// A compiled object.
    Object,
}

/// The name of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub kind: ValueKind,
    pub hash: Hash,
}

impl ValueKind {
    pub(super) const ALL: [ValueKind; 3] =
        [ValueKind::DependencySets, ValueKind::Outcome, ValueKind::Object];

    pub(super) fn letter(self) -> char {
        match self {
            ValueKind::DependencySets => 's',
            ValueKind::Outcome => 'o',
            ValueKind::Object => 'c',
        }
    }
}

impl Name {
    pub fn dependency_sets(test: Hash) -> Name {
        Name { kind: ValueKind::DependencySets, hash: test }
    }

    pub fn outcome(key: Hash) -> Name {
        Name { kind: ValueKind::Outcome, hash: key }
    }

    pub fn object(key: Hash) -> Name {
        Name { kind: ValueKind::Object, hash: key }
    }

    /// The name as the last part of a path: 32 digits, a dot, the kind and the version of all keys:
    /// Tastings with other ones live side by side in one store.
    pub(super) fn file(self) -> String {
        format!("{}.{}{SCHEMA}", self.hash, self.kind.letter())
    }

    /// The other way round; `None` for what is no name of ours.
    pub(super) fn of_file(text: &str) -> Option<Name> {
        let (digits, ending) = text.split_once('.')?;
        let kind = ValueKind::ALL
            .into_iter()
            .find(|kind| ending == format!("{}{SCHEMA}", kind.letter()))?;
        Some(Name { kind, hash: Hash::from_text(digits)? })
    }
}
