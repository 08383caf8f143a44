//! The objects of a link. In: the placement. Out: each object or archive member that the linker used, with its
//! record and the addresses of its sections.

use super::early::{Early, Records};
use super::files::{Files, Fresh, Name, label};
use super::matching;
use crate::elf::ElfError;
use crate::model::{AtomKind, Hash, Level, Placement, Record};
use crate::process::Settings;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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

/// The lines of the map that each object has, in the map's order.
pub struct Groups<'p, 'a> {
    placement: &'p Placement<'a>,
    names: Vec<Name<'a>>,
    lines: Vec<Vec<u32>>,
}

impl<'p, 'a> Groups<'p, 'a> {
    /// Groups a placement by object. Entries that the linker made up itself belong to none.
    pub fn new(placement: &'p Placement<'a>) -> Self {
        let mut numbers: FxHashMap<Name, usize> = FxHashMap::default();
        let mut groups = Groups { placement, names: Vec::new(), lines: Vec::new() };
        // Sections of one object often stand together.
        let mut last: Option<(Name, usize)> = None;
        for (line, section) in placement.sections.iter().enumerate() {
            if section.file.starts_with(b"<") {
                continue;
            }
            let name = (section.file, section.member);
            let number = match last {
                Some((known, number)) if known == name => number,
                _ => *numbers.entry(name).or_insert_with(|| {
                    groups.names.push(name);
                    groups.lines.push(Vec::new());
                    groups.names.len() - 1
                }),
            };
            last = Some((name, number));
            groups.lines[number].push(line as u32);
        }
        groups
    }

    /// The files that have to be open while their records are used.
    pub fn open<'e>(&self, early: &'e Early, settings: &Settings) -> Result<Files<'e>, InputError> {
        Files::open(self.names.iter().copied(), early, settings)
    }

    /// Reads or makes the record of every object that was not read early, and finds its sections in the map.
    pub fn read<'f>(
        &self,
        files: &'f Files,
        mut early: Records<'f>,
        symbols: &(dyn SymbolAddresses + Sync),
    ) -> Result<Vec<Input<'f>>, InputError> {
        let read = |(group, mut early): (usize, Option<(Record<'f>, bool)>)| -> Result<Vec<Input<'f>>, InputError> {
            let mut inputs = Vec::new();
            for found in files.objects(self.names[group])? {
                let label = label(self.names[group]);
                match early.take().map_or_else(|| found.object.record(), Ok) {
                    Ok((record, is_fresh)) => {
                        let fresh = is_fresh.then(|| found.place());
                        inputs.push(Input { addresses: vec![None; record.atoms.len()], label, record, fresh });
                    }
                    Err(error) => return Err(InputError::NotUnderstood { object: label, error }),
                }
            }
            let placed = self.lines[group].iter().map(|&line| self.placement.sections[line as usize]);
            matching::place(inputs, &placed.collect::<Vec<_>>(), symbols)
        };
        let groups = self.names.iter().enumerate().map(|(group, (file, member))| {
            let path = Path::new(OsStr::from_bytes(file));
            let is_read = member.is_none() && files.is_early(path);
            (group, if is_read { early.remove(path) } else { None })
        });
        let inputs = map_each(groups.collect(), read);
        let inputs = inputs.into_iter().collect::<Result<Vec<Vec<Input<'f>>>, _>>()?;
        Ok(inputs.into_iter().flatten().collect())
    }
}

/// Does the same with each of a link's objects; with several threads where they are many.
pub fn map_each<T: Send, R: Send>(objects: Vec<T>, work: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    if objects.len() < MANY {
        objects.into_iter().map(work).collect()
    } else {
        objects.into_par_iter().map(work).collect()
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
