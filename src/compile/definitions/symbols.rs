//! The symbols of a record, and those that compilers refer to of their own accord.

use super::{Builder, Owner};
use crate::elf::gcc_lto::{Optimised, OptimisedPlace};
use crate::elf::{ElfError, whole};
use crate::model::{Symbol, SymbolKind};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};

impl<'a> Builder<'_, 'a> {
    pub(super) fn add_symbols(&mut self) {
        self.record.symbols =
            whole::symbols(self.object, |section, value| match self.piece_at(section, value) {
                Some(piece) => {
                    let offset = value - self.pieces[piece].start;
                    SymbolKind::Defined { atom: piece as u32, offset }
                }
                None => SymbolKind::Undefined,
            });
        let mut next = 0;
        for symbol in &self.object.symbols {
            self.symbol_of.push(next);
            if symbol.is_local() {
                continue;
            }
            self.symbol_named.entry(symbol.name).or_insert(next);
            if symbol.binding == elf::STB_WEAK.0 {
                self.weak.insert(symbol.name);
            }
            let described = &mut self.record.symbols[next as usize];
            if let (SymbolKind::Defined { atom, offset }, true) =
                (described.kind, symbol.kind == elf::STT_GNU_IFUNC.0)
            {
                described.kind = SymbolKind::Indirect { atom, offset };
            }
            next += 1;
        }
    }

    /// Symbols without a place. The error: they are not known, one is defined that no definition
    /// accounts for, or there are resolvers, which run without being referred to, and cannot be
    /// told from others without machine code.
    pub(super) fn add_optimised(
        &mut self,
        symbols: Option<Vec<Optimised<'a>>>,
    ) -> Result<(), ElfError> {
        let symbols = symbols.filter(|_| !self.source.has_resolvers).ok_or(ElfError::Bitcode)?;
        for Optimised { name, is_weak, place } in symbols {
            let kind = match place {
                OptimisedPlace::Here => {
                    let number = *self.named.get(name).ok_or(ElfError::Bitcode)?;
                    SymbolKind::Defined { atom: self.atom_of[number as usize], offset: 0 }
                }
                OptimisedPlace::Elsewhere => SymbolKind::Undefined,
                OptimisedPlace::Common { size } => SymbolKind::Common { size, align: 0 },
            };
            self.symbol_named.entry(name).or_insert(self.record.symbols.len() as u32);
            if is_weak {
                self.weak.insert(name);
            }
            self.record.symbols.push(Symbol::new(name, is_weak, kind));
        }
        Ok(())
    }

    /// The symbols that code names and the source behind it does not.
    pub(super) fn find_implicit(&mut self) {
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut explained: FxHashMap<u32, FxHashSet<&'a str>> = FxHashMap::default();
        let mut implicit_for_all: FxHashSet<u32> = FxHashSet::default();
        for (index, section) in
            self.object.sections.iter().enumerate().filter(|(_, it)| it.is_allocated())
        {
            for relocation in &section.relocations {
                let symbol = &self.object.symbols[relocation.symbol as usize];
                if relocation.symbol == 0 || symbol.is_local() {
                    continue;
                }
                let piece =
                    self.piece_at(index, relocation.offset).map(|piece| self.pieces[piece].owner);
                let number = self.symbol_of[relocation.symbol as usize];
                match piece {
                    Some(Owner::Definition(owner) | Owner::PartOf(owner)) => {
                        if seen.insert((owner, number)) {
                            let known = explained
                                .entry(owner)
                                .or_insert_with(|| self.reachable_names(owner));
                            if !known.contains(symbol.name) {
                                self.implicit[owner as usize].push(number);
                            }
                        }
                    }
                    // Of the tables for unwinding, of literals and jump tables, and of what counts
                    // by itself.
                    Some(Owner::Nobody) | None => {
                        implicit_for_all.insert(number);
                    }
                }
            }
        }
        let named: FxHashSet<&str> = self
            .unit
            .definitions
            .iter()
            .flat_map(|definition| definition.references.iter().map(|reference| &*reference.name))
            .collect();
        let is_unknown = |number: &u32| !named.contains(self.record.symbols[*number as usize].name);
        self.implicit_for_all = implicit_for_all.into_iter().filter(is_unknown).collect();
        self.implicit_for_all.sort_unstable();
        for implicit in &mut self.implicit {
            implicit.sort_by_key(|number| self.record.symbols[*number as usize].name);
        }
    }

    /// The names of all that a definition refers to, by way of other definitions of the unit too.
    fn reachable_names(&self, from: u32) -> FxHashSet<&'a str> {
        let mut names = FxHashSet::default();
        let mut left = vec![from];
        while let Some(number) = left.pop() {
            for reference in &self.unit.definitions[number as usize].references {
                if names.insert(&*reference.name) {
                    left.extend(self.named.get(&*reference.name));
                }
            }
        }
        names
    }
}
