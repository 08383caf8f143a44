//! The references of one atom, with each target once.

use crate::elf::whole;
use crate::model::{Reference, Target};
use rustc_hash::FxHashMap;

/// References, each target once.
#[derive(Default)]
pub(super) struct Targets {
    pub found: Vec<Reference>,
    numbers: FxHashMap<Target, u64>,
}

impl Targets {
    /// The number of a target in the list.
    pub fn push(&mut self, target: Target) -> u64 {
        let next = self.found.len() as u64;
        *self.numbers.entry(target).or_insert_with(|| {
            self.found.push(whole::address_of(target));
            next
        })
    }

    pub fn extend(&mut self, targets: impl Iterator<Item = Target>) {
        targets.for_each(|target| _ = self.push(target));
    }
}
