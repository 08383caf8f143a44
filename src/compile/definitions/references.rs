//! What atoms refer to. In: a definition's references in the syntax, or the relocations of a piece
//! that belongs to no definition. Out: references between atoms.

use super::Builder;
use super::targets::Targets;
use crate::ast::{Definition, DefinitionKind};
use crate::elf::called;
use crate::elf::object_file::{Relocation, Section, SymbolPlace};
use crate::model::record::CHOSEN;
use crate::model::{Hash, Hasher, Reference, Target};
use object::elf;

impl<'a> Builder<'_, 'a> {
    pub(super) fn references(&self, number: u32, definition: &Definition) -> Vec<Reference> {
        let mut list = Targets::default();
        for reference in &definition.references {
            self.add_named(&reference.name, &mut list);
        }
        list.extend(
            self.implicit[number as usize]
                .iter()
                .chain(&self.implicit_for_all)
                .map(|symbol| Target::Symbol(*symbol)),
        );
        // Assembler may name anything. What constructors do to a variable may have been done by the
        // compiler.
        let names_all = definition.has_assembler
            || self.source.has_constructors && definition.kind == DefinitionKind::Variable;
        for (other, described) in self.unit.definitions.iter().enumerate() {
            let is_meant = names_all
                || described.kind == DefinitionKind::Assembler
                || called::by_compilers(&described.name);
            if is_meant && other as u32 != number {
                list.push(Target::Atom(self.atom_of[other]));
            }
        }
        list.found
    }

    /// What the linker binds a name to, and what may have been inlined.
    fn add_named(&self, name: &str, list: &mut Targets) {
        if let Some(symbol) = self.symbol_named.get(name) {
            list.push(Target::Symbol(*symbol));
        }
        // A weak definition may be replaced, and is not inlined therefore.
        if let Some(number) = self.named.get(name).filter(|_| !self.weak.contains(name)) {
            list.push(Target::Atom(self.atom_of[*number as usize]));
        }
    }

    /// What no definition accounts for: bytes and relocations. Code of that kind is assembler, of
    /// which nothing is known but the object that it is in.
    pub(super) fn anonymous(
        &self,
        section: &Section,
        start: u64,
        end: u64,
    ) -> (Hash, Vec<Reference>) {
        let mut hasher = Hasher::new("anonymous");
        hasher
            .number(section.kind.into())
            .number(section.flags)
            .number(section.align)
            .number(end - start);
        hasher.bytes(section.data.get(start as usize..end as usize).unwrap_or_default());
        let mut list = Targets::default();
        for relocation in relocations(section, start, end) {
            if let Some((literal, offset)) = self.literal_content(relocation) {
                hasher
                    .number(relocation.offset - start)
                    .number(relocation.kind.into())
                    .number(offset as u64);
                hasher.hash(literal);
                continue;
            }
            let Some((target, offset)) = self.target(relocation) else { return self.unexplained() };
            hasher
                .number(relocation.offset - start)
                .number(relocation.kind.into())
                .number(offset as u64);
            hasher.number(list.push(target));
        }
        if section.is_code() && end > start {
            self.unexplained()
        } else {
            (hasher.finish(), list.found)
        }
    }

    fn unexplained(&self) -> (Hash, Vec<Reference>) {
        let mut list = Targets::default();
        list.extend(self.atom_of.iter().map(|atom| Target::Atom(*atom)));
        list.extend((0..self.record.symbols.len() as u32).map(Target::Symbol));
        (Hasher::new("unexplained").hash(self.record.digest).finish(), list.found)
    }

    /// What a relocation of data means, and where in it.
    pub(super) fn target(&self, relocation: &Relocation) -> Option<(Target, i64)> {
        let symbol = &self.object.symbols[relocation.symbol as usize];
        if !symbol.is_local() {
            return Some((
                Target::Symbol(self.symbol_of[relocation.symbol as usize]),
                relocation.addend,
            ));
        }
        let SymbolPlace::Section(section) = symbol.place else { return None };
        let place = symbol.value.checked_add_signed(relocation.addend)?;
        let piece = self.piece_at(section, place)?;
        let offset = (place - self.pieces[piece].start) as i64;
        let chosen = if symbol.kind == elf::STT_GNU_IFUNC.0 { CHOSEN } else { 0 };
        Some((Target::Atom(piece as u32), offset | chosen))
    }
}

/// The relocations of a part of a section, which are sorted.
pub(super) fn relocations<'s>(section: &'s Section, from: u64, to: u64) -> &'s [Relocation] {
    let place =
        |end: u64| section.relocations.partition_point(|relocation| relocation.offset < end);
    &section.relocations[place(from)..place(to)]
}
