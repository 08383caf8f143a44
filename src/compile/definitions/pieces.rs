//! The pieces of an object's sections, each with the definition that it belongs to.

use super::{Builder, Owner, Piece, relocations};
use crate::ast::DefinitionKind;
use crate::elf::object_file::{Section, SymbolPlace};
use object::elf;
use rustc_hash::FxHashSet;

/// The most that compilers leave between two definitions, so as to align the second.
const MOST_PADDING: u64 = 64;

impl<'a> Builder<'_, 'a> {
    /// Cuts all sections, and numbers the atoms: the pieces first, then the definitions that have
    /// none.
    pub(super) fn cut(&mut self) {
        let mut starts: Vec<Vec<(u64, u64, Owner)>> = vec![Vec::new(); self.object.sections.len()];
        for symbol in &self.object.symbols {
            let is_place = ![elf::STT_SECTION.0, elf::STT_FILE.0].contains(&symbol.kind)
                && !symbol.name.is_empty();
            if let (SymbolPlace::Section(section), true) = (symbol.place, is_place) {
                starts[section].push((symbol.value, symbol.size, self.owner(symbol.name)));
                if symbol.kind == elf::STT_GNU_IFUNC.0 {
                    self.resolvers.insert((section, symbol.value));
                }
            }
        }
        for (index, starts) in starts.into_iter().enumerate() {
            self.first_piece.push(self.pieces.len());
            self.cut_section(index, starts);
        }
        self.first_piece.push(self.pieces.len());
        for (atom, piece) in self.pieces.iter().enumerate() {
            if let Owner::Definition(number) = piece.owner {
                self.atom_of[number as usize] = atom as u32;
            }
        }
        let without = self.atom_of.iter_mut().filter(|atom| **atom == u32::MAX);
        for (number, atom) in (self.pieces.len() as u32..).zip(without) {
            *atom = number;
        }
    }

    /// The definition that a symbol stands for, or that it was split off: compilers put a dot
    /// behind the name.
    pub(super) fn owner(&self, symbol: &str) -> Owner {
        if let Some(&number) = self.named.get(symbol) {
            return Owner::Definition(number);
        }
        let stem = symbol.split('.').next().unwrap_or_default();
        let number = self.named.get(stem).copied().filter(|_| stem.len() < symbol.len());
        let is_function =
            |number: &u32| self.unit.definitions[*number as usize].kind == DefinitionKind::Function;
        number.filter(is_function).map_or(Owner::Nobody, Owner::PartOf)
    }

    fn cut_section(&mut self, index: usize, mut starts: Vec<(u64, u64, Owner)>) {
        let section = &self.object.sections[index];
        let is_content =
            section.is_allocated() && section.kind != elf::SHT_NOTE.0 && !section.is_unwind();
        if !is_content || (section.size == 0 && starts.is_empty()) {
            return;
        }
        // Of several symbols at one place, the one of a definition; the largest of those.
        let rank = |owner: &Owner| match owner {
            Owner::Definition(number)
                if self.unit.definitions[*number as usize].kind != DefinitionKind::Alias =>
            {
                0
            }
            Owner::Definition(_) => 1,
            Owner::PartOf(_) => 2,
            Owner::Nobody => 3,
        };
        starts.sort_by_key(|(start, size, owner)| (*start, rank(owner), std::cmp::Reverse(*size)));
        starts.dedup_by_key(|(start, ..)| *start);
        starts.retain(|(start, ..)| *start <= section.size);
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut add = |start, end, owner| {
            // A definition has one place; another symbol of the same name would be a local of some
            // function.
            let owner = match owner {
                Owner::Definition(number) if !taken.insert(number) => Owner::Nobody,
                owner => owner,
            };
            self.pieces.push(Piece { section: index, start, end, owner });
        };
        if starts.first().is_none_or(|(start, ..)| *start > 0) && section.size > 0 {
            add(0, starts.first().map_or(section.size, |(start, ..)| *start), Owner::Nobody);
        }
        for (number, (start, size, owner)) in starts.iter().enumerate() {
            let next = starts.get(number + 1).map_or(section.size, |(next, ..)| *next);
            let end = start.saturating_add(*size).min(next);
            if *size == 0 || is_padding(section, end, next, self.has_assembler) {
                add(*start, next, *owner);
            } else {
                add(*start, end, *owner);
                add(end, next, Owner::Nobody);
            }
        }
    }

    /// The piece at a place of a section.
    pub(super) fn piece_at(&self, section: usize, place: u64) -> Option<usize> {
        let (from, to) = (*self.first_piece.get(section)?, *self.first_piece.get(section + 1)?);
        let pieces = &self.pieces[from..to];
        Some(from + pieces.partition_point(|piece| piece.start <= place).checked_sub(1)?)
    }
}

/// Between two definitions, and nothing but alignment.
fn is_padding(section: &Section, from: u64, to: u64, has_assembler: bool) -> bool {
    let bytes = section.data.get(from as usize..to as usize).unwrap_or_default();
    let is_empty = section.is_code() && !has_assembler || bytes.iter().all(|&byte| byte == 0);
    let is_short = to - from < section.align.clamp(1, MOST_PADDING);
    from == to || is_empty && is_short && relocations(section, from, to).is_empty()
}
