//! The objects of a link. In: the placement. Out: each object or archive member that the linker used, with its
//! record and the addresses of its sections.

use super::early::Early;
use super::files::{Files, FoundObject, Fresh, label};
use super::matching;
use super::sections::Sections;
use crate::elf::ElfError;
use crate::model::{Atom, AtomKind, Hash, Level, Placement, Record};
use crate::process::Settings;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use thiserror::Error;

/// Beyond so many lines of the map several threads pay.
const MANY: usize = 20_000;

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

/// The objects of a placement.
pub struct Groups<'p, 'a> {
    placement: &'p Placement<'a>,
}

impl<'p, 'a> Groups<'p, 'a> {
    pub fn new(placement: &'p Placement<'a>) -> Self {
        Groups { placement }
    }

    /// The files that have to be open while their records are used, and others.
    pub fn open<'e>(&self, others: &[&Path], early: &'e Early, settings: &Settings) -> Result<Files<'e>, InputError> {
        let others = others.iter().map(|path| (path.as_os_str().as_bytes(), None));
        Files::open(self.placement.objects.iter().map(|object| object.0).chain(others), early, settings)
    }

    /// Reads or makes the record of every object that was not read early, and finds its sections in the map.
    pub fn read<'f>(
        &self,
        files: &'f Files,
        early: &mut FxHashMap<usize, Read<'f>>,
        symbols: &(dyn SymbolAddresses + Sync),
    ) -> Result<Vec<Input<'f>>, InputError> {
        let read =
            |(group, found): (usize, Vec<(FoundObject<'f>, Option<Read<'f>>)>)| -> Result<Vec<Input<'f>>, InputError> {
                let mut inputs = Vec::new();
                for (found, known) in found {
                    let label = label(self.placement.objects[group].0);
                    match known.map_or_else(|| found.object.record().map(Read::new), Ok) {
                        Ok(read) => {
                            let fresh = read.is_fresh.then(|| found.place());
                            inputs.push(Input::new(label, read, fresh));
                        }
                        Err(error) => return Err(InputError::NotUnderstood { object: label, error }),
                    }
                }
                let placed = self.placement.objects[group].1.iter().map(|&line| self.placement.sections[line as usize]);
                matching::place(inputs, &placed.collect::<Vec<_>>(), symbols)
            };
        let mut groups = Vec::with_capacity(self.placement.objects.len());
        for (group, &(name, _)) in self.placement.objects.iter().enumerate() {
            let found = files.objects(name)?.into_iter();
            groups.push((group, found.map(|found| (found, early.remove(&found.object.place_in_memory()))).collect()));
        }
        let inputs: Vec<_> = match self.placement.sections.len() < MANY {
            true => groups.into_iter().map(read).collect(),
            false => groups.into_par_iter().map(read).collect(),
        };
        let inputs = inputs.into_iter().collect::<Result<Vec<Vec<Input<'f>>>, _>>()?;
        Ok(inputs.into_iter().flatten().collect())
    }
}

/// Where the binary's symbol table says that symbols are.
pub trait SymbolAddresses {
    fn address(&self, name: Hash) -> Option<u64>;
}

/// Whether the map gives this atom a place of its own. A definition that left no code or data has no section.
pub fn has_own_place(atom: &Atom) -> bool {
    let has_section = atom.section != 0 || atom.level != Level::Ast;
    atom.kind != AtomKind::Literal && atom.level != Level::File && has_section
}
