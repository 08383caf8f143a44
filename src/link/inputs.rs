//! The objects of a link. In: the placement. Out: each object or archive member that the linker used, with its
//! record and the addresses of its sections.

use super::files::{Files, Fresh, Name, label};
use super::matching;
use crate::elf::ElfError;
use crate::model::{AtomKind, Hash, Level, PlacedSection, Placement, Record};
use crate::process::Settings;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use thiserror::Error;

/// Beyond so many objects several threads pay.
const MANY: usize = 48;

/// Why the objects of a link cannot be told apart finely.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{file}: cannot be read any more: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{object}: {error}")]
    NotUnderstood { object: String, error: ElfError },
    #[error("{object}: section {section} of the linker's map is not in it")]
    NoSuchSection { object: String, section: String },
    #[error("{object}: section {section} has another size than in the linker's map: was it built again?")]
    OtherSize { object: String, section: String },
    #[error("{object}: several of its sections are called {section}, and it cannot be told which was linked")]
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
}

/// The placed sections of each object that the map names, in the map's order.
pub struct Groups<'a> {
    names: Vec<Name<'a>>,
    sections: Vec<Vec<PlacedSection<'a>>>,
}

impl<'a> Groups<'a> {
    /// Groups a placement by object. Entries that the linker made up itself belong to none.
    pub fn new(placement: &Placement<'a>) -> Self {
        let mut numbers: FxHashMap<Name, usize> = FxHashMap::default();
        let mut groups = Groups { names: Vec::new(), sections: Vec::new() };
        // Sections of one object often stand together.
        let mut last: Option<(Name, usize)> = None;
        for section in placement.sections.iter().filter(|section| !section.file.starts_with(b"<")) {
            let name = (section.file, section.member);
            let number = match last {
                Some((known, number)) if known == name => number,
                _ => *numbers.entry(name).or_insert_with(|| {
                    groups.names.push(name);
                    groups.sections.push(Vec::new());
                    groups.names.len() - 1
                }),
            };
            last = Some((name, number));
            groups.sections[number].push(*section);
        }
        groups
    }

    /// The files that have to be open while their records are used.
    pub fn open(&self, settings: &Settings) -> Result<Files, InputError> {
        Files::open(self.names.iter().copied(), settings)
    }

    /// Reads or makes the record of every object, and finds its sections in the map.
    pub fn read<'f>(
        &self,
        files: &'f Files,
        symbols: &(dyn SymbolAddresses + Sync),
    ) -> Result<Vec<Input<'f>>, InputError> {
        let archives = files.archives()?;
        let read = |group: usize| -> Result<Vec<Input<'f>>, InputError> {
            let mut inputs = Vec::new();
            for object in files.objects(self.names[group], &archives)? {
                let label = label(self.names[group]);
                match object.record(files) {
                    Ok((record, fresh)) => {
                        inputs.push(Input { addresses: vec![None; record.atoms.len()], label, record, fresh });
                    }
                    Err(error) => return Err(InputError::NotUnderstood { object: label, error }),
                }
            }
            matching::place(inputs, &self.sections[group], symbols)
        };
        let groups = 0..self.names.len();
        let inputs: Vec<Vec<Input<'f>>> = if groups.len() < MANY {
            groups.map(read).collect::<Result<_, _>>()?
        } else {
            groups.into_par_iter().map(read).collect::<Result<_, _>>()?
        };
        Ok(inputs.into_iter().flatten().collect())
    }
}

/// Where the binary's symbol table says that symbols are.
pub trait SymbolAddresses {
    fn address(&self, name: Hash) -> Option<u64>;
}

/// Whether the map gives this atom a place of its own.
pub fn has_own_place(kind: AtomKind, level: Level) -> bool {
    kind != AtomKind::Literal && level != Level::File
}
