//! The relocations of an atom. In: a section's relocations and what their symbols mean. Out:
//! references to other atoms and symbols, as parts of the atom's hash.

use super::Builder;
use crate::elf::object_file::{Relocation, Section, SymbolPlace};
use crate::elf::pools::{self, Meaning};
use crate::elf::sites;
use crate::model::record::{CHOSEN, Site, Usage};
use crate::model::{Hasher, Reference, Target};
use object::elf;

impl<'a> Builder<'_, 'a> {
    /// Hashes relocations, whose usages are given where they use anything but content.
    pub(super) fn hash_relocations(
        &mut self,
        hasher: &mut Hasher,
        section: &Section,
        relocations: &[Relocation],
        usages: &[Usage],
        start: u64,
    ) {
        hasher.number(relocations.len() as u64);
        for (number, relocation) in relocations.iter().enumerate() {
            let usage = usages.get(number).copied().unwrap_or_default();
            if self.hash_pool_reference(hasher, section, relocation, usage, start) {
                continue;
            }
            let (target, offset, addend) = self.target(relocation);
            let ordinal = target.map_or(u32::MAX, |target| self.ordinal(target, offset, usage));
            if number < usages.len() && self.is_merged(relocation) {
                self.note_site(ordinal, relocation, addend);
            }
            hasher.number(relocation.offset - start).number(relocation.kind.into());
            hasher.number(addend as u64).number(ordinal.into());
            if target.is_none() {
                hasher.number(offset as u64);
            }
        }
    }

    /// Hashes a reference into a constant pool: which of its entries it may mean. Entries count as
    /// if each were a section of its own, so that a pool with one entry is the same with labels and
    /// without.
    fn hash_pool_reference(
        &mut self,
        hasher: &mut Hasher,
        section: &Section,
        relocation: &Relocation,
        usage: Usage,
        start: u64,
    ) -> bool {
        let symbol = self.object.symbols.get(relocation.symbol as usize).map(|symbol| symbol.place);
        let Some(SymbolPlace::Section(target)) = symbol else { return false };
        let Some(pieces) =
            self.pieces[target].as_ref().filter(|pieces| pieces.may_be_end.is_some())
        else {
            return false;
        };
        let (first_atom, meanings) =
            (pieces.first_atom, pools::meanings(self.object, pieces, section, relocation));
        if meanings.len() > 1 {
            // No offset is that large: what follows is told from a plain reference.
            hasher.number(u64::MAX).number(meanings.len() as u64);
        }
        hasher.number(relocation.offset - start).number(relocation.kind.into());
        for Meaning { piece, addend } in meanings {
            let ordinal = self.ordinal(Target::Atom(first_atom + piece as u32), 0, usage);
            hasher.number(addend as u64).number(ordinal.into());
        }
        true
    }

    /// The number of a target within the atom at hand. What follows from the bytes and relocations,
    /// which are hashed, need not be: how the target is used.
    pub(super) fn ordinal(&mut self, target: Target, offset: i64, usage: Usage) -> u32 {
        let next = self.ordinals.len() as u32;
        let first = self.record.references.len() - self.ordinals.len();
        let ordinal = *self.ordinals.entry((target, offset)).or_insert(next);
        if ordinal == next {
            self.record.references.push(Reference { target, offset, usage });
        } else {
            let known = &mut self.record.references[first + ordinal as usize].usage;
            *known = usage.max(*known);
        }
        ordinal
    }

    /// Whether a relocation leads to a literal that the linker merges with others.
    fn is_merged(&self, relocation: &Relocation) -> bool {
        let symbol =
            self.object.symbols.get(relocation.symbol as usize).filter(|symbol| symbol.is_local());
        let Some(SymbolPlace::Section(section)) = symbol.map(|symbol| symbol.place) else {
            return false;
        };
        self.pieces[section].as_ref().is_some_and(|pieces| pieces.may_be_end.is_none())
    }

    /// Notes where the address of a literal can be read, once for each kind of relocation: of some
    /// processors it takes two.
    fn note_site(&mut self, ordinal: u32, relocation: &Relocation, addend: i64) {
        let first = self.record.references.len() - self.ordinals.len();
        let Relocation { offset, kind, .. } = *relocation;
        if sites::is_readable(self.object.machine, kind) && self.sited.insert((ordinal, kind)) {
            let reference = (first + ordinal as usize) as u32;
            self.record.sites.push(Site { reference, offset, kind, addend });
        }
    }

    /// What a relocation points at, where in it, and the addend that remains. No target: a plain
    /// number.
    pub(super) fn target(&self, relocation: &Relocation) -> (Option<Target>, i64, i64) {
        let addend = relocation.addend;
        let index = relocation.symbol as usize;
        let Some(symbol) = self.object.symbols.get(index).filter(|_| index != 0) else {
            return (None, 0, addend);
        };
        if !symbol.is_local() {
            return (Some(Target::Symbol(self.symbol_of[index])), 0, addend);
        }
        let SymbolPlace::Section(section) = symbol.place else {
            return (None, symbol.value as i64, addend);
        };
        match (&self.pieces[section], self.atom_of[section]) {
            // The addend of a section symbol names the piece; a named symbol does that by itself.
            (Some(pieces), _) if symbol.is_section() => {
                let (atom, offset) = pieces.find(addend.max(0) as u64);
                (Some(Target::Atom(atom)), offset as i64, 0)
            }
            (Some(pieces), _) => {
                let (atom, offset) = pieces.find(symbol.value);
                (Some(Target::Atom(atom)), offset as i64, addend)
            }
            (None, Some(atom)) => {
                let is_indirect = symbol.kind == elf::STT_GNU_IFUNC.0;
                let chosen = if is_indirect { CHOSEN } else { 0 };
                (Some(Target::Atom(atom)), symbol.value as i64 | chosen, addend)
            }
            (None, None) => (None, symbol.value as i64, addend),
        }
    }
}
