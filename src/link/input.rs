//! One object, as it was linked: its record, and where its atoms have their places.

use super::sections::Sections;
use crate::elf::ElfError;
use crate::model::{Hash, Record};
use thiserror::Error;

/// Why the objects of a link cannot be told apart finely.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{file}: cannot be read any more: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{object}: {error}")]
    NotUnderstood { object: String, error: ElfError },
    #[error("{object}: section {section} of the linker's map is not in it")]
    NoSuchSection { object: String, section: String },
    #[error(
        "{object}: section {section} has another size than in the linker's map: was it built again?"
    )]
    OtherSize { object: String, section: String },
    #[error(
        "{object}: several of its sections are called {section}, and it cannot be told which was linked"
    )]
    Ambiguous { object: String, section: String },
}

/// One object, as it was linked.
pub struct Input<'a> {
    pub label: String,
    pub record: Record<'a>,
    /// The record was made just now, and is worth remembering.
    pub fresh: Option<Fresh>,
    /// The address of each atom that was given a place.
    pub addresses: Vec<Option<u64>>,
    /// The record's sections by name, until they have been given their places.
    pub sections: Sections<'a>,
    /// The number of the name of each symbol, once it has one.
    pub names: Vec<u32>,
}

impl<'a> Input<'a> {
    /// An object without a place.
    pub fn new(label: String, read: Read<'a>, fresh: Option<Fresh>) -> Self {
        let Read { record, sections, names, .. } = read;
        Input { label, addresses: vec![None; record.atoms.len()], record, fresh, sections, names }
    }
}

/// A record, and what follows from it alone.
pub struct Read<'a> {
    pub record: Record<'a>,
    /// It was made just now.
    pub is_fresh: bool,
    pub sections: Sections<'a>,
    pub names: Vec<u32>,
}

impl<'a> Read<'a> {
    pub fn new((record, is_fresh): (Record<'a>, bool)) -> Self {
        Read { sections: Sections::new([&record].into_iter()), names: Vec::new(), record, is_fresh }
    }
}

/// An object whose record was made just now: a file, and where the object starts in it.
pub type Fresh = (usize, u64);

/// Where the binary's symbol table says that symbols are.
pub trait SymbolAddresses {
    fn address(&self, name: Hash) -> Option<u64>;
}
