//! The objects of a link. In: the placement. Out: each object or archive member that the linker
//! used, with its record and the addresses of its sections.

use super::early::Early;
use super::files::{Files, FoundObject};
use super::input::{Input, InputError, Read, SymbolAddresses};
use super::matching;
use super::open_file::label;
use crate::model::Placement;
use crate::process::Settings;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Beyond so many lines of the map several threads pay.
const MANY: usize = 20_000;

/// The objects of a placement.
pub struct Groups<'p, 'a> {
    placement: &'p Placement<'a>,
}

impl<'p, 'a> Groups<'p, 'a> {
    pub fn new(placement: &'p Placement<'a>) -> Self {
        Groups { placement }
    }

    /// The files that have to be open while their records are used, and others.
    pub fn open<'e>(
        &self,
        others: &[&Path],
        early: &'e Early,
        settings: &Settings,
    ) -> Result<Files<'e>, InputError> {
        let others = others.iter().map(|path| (path.as_os_str().as_bytes(), None));
        Files::open(
            self.placement.objects.iter().map(|object| object.0).chain(others),
            early,
            settings,
        )
    }

    /// Reads or makes the record of every object that was not read early, and finds its sections in
    /// the map.
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
            groups.push((
                group,
                found.map(|found| (found, early.remove(&found.object.place_in_memory()))).collect(),
            ));
        }
        let inputs: Vec<_> = match self.placement.sections.len() < MANY {
            true => groups.into_iter().map(read).collect(),
            false => groups.into_par_iter().map(read).collect(),
        };
        let inputs = inputs.into_iter().collect::<Result<Vec<Vec<Input<'f>>>, _>>()?;
        Ok(inputs.into_iter().flatten().collect())
    }
}
