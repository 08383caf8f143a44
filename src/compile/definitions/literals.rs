//! Literals that the linker merges, where an object uses their addresses as values: programs
//! compare those as well, and no definition says in which order the linker has put them. Each such
//! literal is an atom, and whatever holds its address refers to it, with the field in which the
//! address can be read once it is linked.
//!
//! A definition refers to its parts, and everything to the tables without a name (`static` locals,
//! tables that compilers make of a choice) that hold such addresses: nobody else would lead there.

use super::{Builder, Owner, relocations};
use crate::elf::labels::labels;
use crate::elf::literals::literal;
use crate::elf::object_file::{Relocation, SymbolPlace};
use crate::elf::pieces::{self, Pieces};
use crate::elf::{addresses, sites, whole};
use crate::model::record::{Site, Usage};
use crate::model::{Atom, Hash, Level, Reference, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// What an object does with literals.
#[derive(Default)]
pub(super) struct Literals<'a> {
    /// The literals, in the order of their sections. The first one's atom follows those of the
    /// definitions.
    atoms: Vec<Atom<'a>>,
    first_atom: u32,
    /// For each section that holds some: how it is divided.
    divided: Vec<Option<Pieces>>,
    /// For each piece of the object: the literals whose addresses it holds (by atom, and where in
    /// it), with the fields that do so.
    held: FxHashMap<usize, BTreeMap<(u32, i64), Held>>,
    /// For each piece: the pieces without a definition of their own through which it leads to
    /// literals.
    through: FxHashMap<usize, Vec<usize>>,
}

#[derive(Default)]
struct Held {
    usage: Usage,
    /// Kind of relocation, place in the piece, addend.
    fields: BTreeMap<u32, (u64, i64)>,
}

impl<'a> Builder<'_, 'a> {
    /// Finds all literals whose addresses are values, and who holds them.
    pub(super) fn find_literals(&mut self) {
        let mut literals = Literals { divided: pieces::divide(self.object), ..Literals::default() };
        let without_piece =
            self.atom_of.iter().filter(|atom| **atom as usize >= self.pieces.len()).count();
        literals.first_atom = (self.pieces.len() + without_piece) as u32;
        for (index, division) in literals.divided.iter_mut().enumerate() {
            let Some(division) = division else { continue };
            let section = &self.object.sections[index];
            division.first_atom = literals.first_atom + literals.atoms.len() as u32;
            let ends = division.starts.iter().skip(1).copied().chain([section.size]);
            for (&start, end) in division.starts.iter().zip(ends) {
                let content = section.data.get(start as usize..end as usize).unwrap_or_default();
                literals.atoms.push(Atom { level: Level::Ast, ..literal(section, content) });
            }
        }
        self.note_holders(&mut literals);
        self.note_ways(&mut literals);
        self.literals = literals;
    }

    fn note_holders(&self, literals: &mut Literals) {
        let labels = labels(self.object);
        for (number, piece) in self.pieces.iter().enumerate() {
            let section = &self.object.sections[piece.section];
            let first =
                section.relocations.partition_point(|relocation| relocation.offset < piece.start);
            for (at, relocation) in relocations(section, piece.start, piece.end).iter().enumerate()
            {
                let Some((literal, offset, addend)) = self.literal(&literals.divided, relocation)
                else {
                    continue;
                };
                let usage = addresses::usage(self.object, &labels, piece.section, first + at);
                let held =
                    literals.held.entry(number).or_default().entry((literal, offset)).or_default();
                held.usage = usage.max(held.usage);
                if sites::is_readable(self.object.machine, relocation.kind) {
                    held.fields
                        .entry(relocation.kind)
                        .or_insert((relocation.offset - piece.start, addend));
                }
            }
        }
        for held in literals.held.values_mut() {
            held.retain(|_, held| held.usage != Usage::Access);
        }
        literals.held.retain(|_, held| !held.is_empty());
    }

    /// The atom of the literal that a relocation leads to, where in it, and the addend that
    /// remains.
    fn literal(
        &self,
        divided: &[Option<Pieces>],
        relocation: &Relocation,
    ) -> Option<(u32, i64, i64)> {
        let symbol = self
            .object
            .symbols
            .get(relocation.symbol as usize)
            .filter(|symbol| symbol.is_local())?;
        let SymbolPlace::Section(section) = symbol.place else { return None };
        let pieces = divided.get(section)?.as_ref()?;
        // The addend of a section symbol names the piece; a named symbol does that by itself.
        let (place, addend) = match symbol.is_section() {
            true => (relocation.addend.max(0) as u64, 0),
            false => (symbol.value, relocation.addend),
        };
        let (atom, offset) = pieces.find(place);
        Some((atom, offset as i64, addend))
    }

    /// Which pieces lead to literals through pieces that have no definition of their own, and would
    /// not be led to otherwise.
    fn note_ways(&self, literals: &mut Literals) {
        let is_between = |piece: usize| !matches!(self.pieces[piece].owner, Owner::Definition(_));
        let mut leading: FxHashSet<usize> =
            literals.held.keys().copied().filter(|piece| is_between(*piece)).collect();
        let mut before = 0;
        while leading.len() > before {
            before = leading.len();
            for number in 0..self.pieces.len() {
                let mut met: Vec<usize> =
                    self.targets_of(number).filter(|piece| leading.contains(piece)).collect();
                met.retain(|piece| *piece != number);
                met.sort_unstable();
                met.dedup();
                if met.is_empty() {
                    continue;
                }
                literals.through.insert(number, met);
                if is_between(number) {
                    leading.insert(number);
                }
            }
        }
        // A call of what was split off may have no relocation, since it is in the same section.
        for &piece in &leading {
            if let Owner::PartOf(definition) = self.pieces[piece].owner {
                literals
                    .through
                    .entry(self.atom_of[definition as usize] as usize)
                    .or_default()
                    .push(piece);
            }
        }
    }

    /// The pieces that the relocations of a piece may lead to. A field that counts from its own end
    /// is 4 bytes further on.
    fn targets_of(&self, number: usize) -> impl Iterator<Item = usize> {
        let piece = &self.pieces[number];
        let found = relocations(&self.object.sections[piece.section], piece.start, piece.end);
        found.iter().flat_map(move |relocation| {
            let symbol = &self.object.symbols[relocation.symbol as usize];
            [-4, 0, 4].into_iter().filter_map(move |bias| {
                let SymbolPlace::Section(section) = symbol.place else { return None };
                let place =
                    symbol.value.checked_add_signed(relocation.addend.saturating_add(bias))?;
                self.piece_at(section, place)
            })
        })
    }

    /// The literal that a relocation leads to: its content, and where in it.
    pub(super) fn literal_content(&self, relocation: &Relocation) -> Option<(Hash, i64)> {
        let (atom, offset, addend) = self.literal(&self.literals.divided, relocation)?;
        Some((self.literals.hash(atom), offset.wrapping_add(addend)))
    }

    /// Adds references to the literals and to the ways to literals of an atom, behind all that the
    /// atom has already.
    pub(super) fn add_literal_references(&mut self, number: usize, atom: &mut Atom) {
        let first = self.record.references.len();
        let mut through = self.literals.through.remove(&number).unwrap_or_default();
        through.sort_unstable();
        through.dedup();
        self.record
            .references
            .extend(through.iter().map(|piece| whole::address_of(Target::Atom(*piece as u32))));
        let mut held: Vec<_> =
            self.literals.held.remove(&number).unwrap_or_default().into_iter().collect();
        // The order of the compiler's instructions is none of ours: by what the literals are.
        held.sort_by_key(|((atom, offset), _)| (self.literals.hash(*atom), *offset, *atom));
        for ((literal, offset), held) in held {
            let reference = self.record.references.len() as u32;
            let site = |(kind, (offset, addend))| Site { reference, offset, kind, addend };
            self.record.sites.extend(held.fields.into_iter().map(site));
            self.record.references.push(Reference {
                target: Target::Atom(literal),
                offset,
                usage: held.usage,
            });
        }
        atom.references += (self.record.references.len() - first) as u32;
    }

    /// Adds the atoms of the literals, behind all others.
    pub(super) fn add_literals(&mut self) {
        self.record.atoms.append(&mut self.literals.atoms);
    }
}

impl Literals<'_> {
    fn hash(&self, atom: u32) -> Hash {
        self.atoms[(atom - self.first_atom) as usize].hash
    }

    /// Whether this is one of them: how its address is used is known for each that holds it.
    pub(super) fn is_one(&self, target: Target) -> bool {
        matches!(target, Target::Atom(atom) if atom >= self.first_atom)
    }
}
