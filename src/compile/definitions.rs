//! An object's record at the AST level: the atoms are the definitions of the source. In: the unit's
//! definitions, and the object that the compiler made of it. Out: its [`Record`].
//!
//! The sections are as the compiler makes them, many definitions in each. So every section is cut
//! into pieces at its symbols: the piece of a definition is that definition's atom; what a compiler
//! split off it (`f.cold`, `f.part.0`) leads to it; what no definition accounts for (a
//! constructor's entry, tables of inline assembler) counts by its bytes and relocations. What
//! compilers put beside code on their own account (literals, jump tables, tables for unwinding) is
//! decided by the definitions, and nobody else can name it. But where the linker puts literals is
//! decided by no definition (`literals`).
//!
//! References are those of the source, since a function that was inlined left no relocation. A
//! definition of this unit counts twice: as what the linker binds the name to, and as what may have
//! been inlined. To that come the symbols that only the object names, because compilers call
//! functions of their own accord (`memcpy`, `__stack_chk_fail`).

mod literals;
mod pieces;
mod references;
mod symbols;
mod targets;

use self::literals::Literals;
use self::references::relocations;
use super::addresses::{self, Used};
use super::syntax::Understood;
use crate::ast::{DefinitionKind, Unit};
use crate::elf::bitcode::{self, Bitcode};
use crate::elf::endings::Endings;
use crate::elf::gcc_lto::{self, Optimised, OptimisedPlace};
use crate::elf::labels::groups;
use crate::elf::object_file::{ObjectFile, Relocation, SymbolPlace};
use crate::elf::{ElfError, digest, section_shape, whole};
use crate::model::record::{Ending, Usage};
use crate::model::{Atom, AtomKind, Hash, Hasher, Level, Record, Reference, Target};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::ops::Range;

/// Makes the record of an object that was compiled from a source that was understood.
pub fn record<'a>(object: &ObjectFile<'a>, source: &'a Understood) -> Result<Record<'a>, ElfError> {
    let mut builder = Builder::new(object, source);
    builder.record.bitcode = object.has_bitcode();
    builder.cut();
    match gcc_lto::table(object) {
        Some(table) => builder.add_optimised(gcc_lto::symbols(table))?,
        None => builder.add_symbols(),
    }
    builder.find_implicit();
    if !builder.record.bitcode {
        builder.find_literals();
    }
    builder.add_atoms();
    builder.note_addresses();
    Ok(builder.record)
}

/// The same for a file of LLVM's intermediate language, which has no sections.
pub fn record_of_bitcode<'a>(
    file: &Bitcode<'a>,
    source: &'a Understood,
) -> Result<Record<'a>, ElfError> {
    let object = ObjectFile::empty();
    let mut builder = Builder::new(&object, source);
    builder.record.digest = file.digest();
    builder.record.bitcode = true;
    builder.cut();
    let optimised = |symbol: bitcode::Symbol<'a>| {
        let place =
            if symbol.is_defined { OptimisedPlace::Here } else { OptimisedPlace::Elsewhere };
        // Its size is beside the table, and such programs are few.
        let is_plain = !symbol.is_common;
        is_plain.then_some(Optimised { name: symbol.name, is_weak: symbol.is_weak, place })
    };
    let symbols = file.symbols().and_then(|symbols| symbols.into_iter().map(optimised).collect());
    builder.add_optimised(symbols)?;
    builder.add_atoms();
    Ok(builder.record)
}

/// To whom a piece of a section belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Definition(u32),
    /// Something that the compiler split off a definition.
    PartOf(u32),
    Nobody,
}

/// A part of a section.
struct Piece {
    section: usize,
    start: u64,
    end: u64,
    owner: Owner,
}

struct Builder<'o, 'a> {
    object: &'o ObjectFile<'a>,
    unit: &'a Unit,
    source: &'a Understood,
    /// The definitions by name.
    named: FxHashMap<&'a str, u32>,
    has_assembler: bool,
    /// Where functions start that choose what a symbol means.
    resolvers: FxHashSet<(usize, u64)>,
    pieces: Vec<Piece>,
    /// Where the pieces of each section start in `pieces`, with the end as the last entry.
    first_piece: Vec<usize>,
    /// The atom of each definition.
    atom_of: Vec<u32>,
    /// The record's number of each visible symbol, by its number in the object and by its name.
    symbol_of: Vec<u32>,
    symbol_named: FxHashMap<&'a str, u32>,
    weak: FxHashSet<&'a str>,
    /// The symbols that only the object names, for each definition; and those of which it cannot be
    /// told whose they are.
    implicit: Vec<Vec<u32>>,
    implicit_for_all: Vec<u32>,
    files: FxHashMap<&'a str, u32>,
    endings: Endings<'o, 'a>,
    literals: Literals<'a>,
    record: Record<'a>,
}

impl<'o, 'a> Builder<'o, 'a> {
    fn new(object: &'o ObjectFile<'a>, source: &'a Understood) -> Self {
        let unit = &source.unit;
        let mut named = FxHashMap::default();
        for (number, definition) in
            unit.definitions.iter().enumerate().filter(|(_, it)| !it.name.is_empty())
        {
            named.entry(&*definition.name).or_insert(number as u32);
        }
        Builder {
            object,
            unit,
            source,
            named,
            has_assembler: unit
                .definitions
                .iter()
                .any(|definition| definition.kind == DefinitionKind::Assembler),
            resolvers: FxHashSet::default(),
            pieces: Vec::new(),
            first_piece: Vec::new(),
            atom_of: vec![u32::MAX; unit.definitions.len()],
            symbol_of: Vec::new(),
            symbol_named: FxHashMap::default(),
            weak: FxHashSet::default(),
            implicit: vec![Vec::new(); unit.definitions.len()],
            implicit_for_all: Vec::new(),
            files: FxHashMap::default(),
            endings: Endings::new(object),
            literals: Literals::default(),
            record: Record {
                digest: digest::of_object(object),
                refusals: source.refusals.clone(),
                ..Record::default()
            },
        }
    }

    fn add_atoms(&mut self) {
        let groups = groups(self.object);
        for index in 0..self.pieces.len() {
            self.add_piece(index, &groups);
        }
        let pieces = self.pieces.len() as u32;
        let mut without: Vec<u32> = (0..self.atom_of.len() as u32).collect();
        without.retain(|number| self.atom_of[*number as usize] >= pieces);
        without.sort_by_key(|number| self.atom_of[*number as usize]);
        for number in without {
            let definition = &self.unit.definitions[number as usize];
            let kind = if definition.kind == DefinitionKind::Function {
                AtomKind::Function
            } else {
                AtomKind::Data
            };
            let mut atom = self.definition_atom(number, kind);
            self.add_literal_references(self.record.atoms.len(), &mut atom);
            self.record.atoms.push(atom);
        }
        self.add_literals();
    }

    fn add_piece(&mut self, index: usize, groups: &[u32]) {
        let Piece { section: number, start, end, owner } = self.pieces[index];
        let section = &self.object.sections[number];
        let kind = section_shape::atom_kind(section, self.resolvers.contains(&(number, start)));
        let mut atom = match owner {
            Owner::Definition(definition) => self.definition_atom(definition, kind),
            Owner::PartOf(definition) => {
                let target = Target::Atom(self.atom_of[definition as usize]);
                let name = &*self.unit.definitions[definition as usize].name;
                let hash = Hasher::new("part").hash(self.source.environment).finish();
                self.plain_atom(name, kind, hash, vec![whole::address_of(target)])
            }
            Owner::Nobody => {
                let (hash, references) = self.anonymous(section, start, end);
                self.plain_atom(section.name, kind, hash, references)
            }
        };
        self.add_literal_references(index, &mut atom);
        // What is merged has no place of its own.
        if section.flags & elf::SHF_MERGE.0 == 0 {
            (atom.section, atom.section_name, atom.group) =
                (number as u32, section.name, groups[number]);
        }
        atom.size = end - start;
        (atom.ending, atom.returns) = self.ending(number, start..end);
        self.record.atoms.push(atom);
    }

    /// Whether control can run past the end of a piece, and whether it can return.
    fn ending(&self, section: usize, range: Range<u64>) -> (Ending, bool) {
        if !self.object.sections[section].is_code() {
            return (Ending::Leaves, false);
        }
        let end = self.endings.of(section, range);
        (end.flow.ending(|relocation| self.called(relocation)), end.returns)
    }

    /// What a relocation of a call leads to.
    fn called(&self, relocation: &Relocation) -> Option<Target> {
        let symbol = &self.object.symbols[relocation.symbol as usize];
        match (symbol.is_local(), symbol.place) {
            (false, _) => Some(Target::Symbol(self.symbol_of[relocation.symbol as usize])),
            // The addend of a section symbol names the place, less the field's size; a named symbol
            // does that by itself.
            (true, SymbolPlace::Section(section)) => {
                let inside =
                    if symbol.is_section() { relocation.addend.checked_add(4)? } else { 0 };
                let place = symbol.value.checked_add_signed(inside)?;
                Some(Target::Atom(self.piece_at(section, place)? as u32))
            }
            _ => None,
        }
    }

    fn plain_atom(
        &mut self,
        name: &'a str,
        kind: AtomKind,
        hash: Hash,
        references: Vec<Reference>,
    ) -> Atom<'a> {
        let count = references.len() as u32;
        self.record.references.extend(references);
        Atom {
            name,
            kind,
            level: Level::Ast,
            hash,
            section: 0,
            section_name: "",
            group: 0,
            size: 0,
            references: count,
            traceable: false,
            ending: Ending::Leaves,
            returns: false,
            file: 0,
            line: 0,
        }
    }

    fn definition_atom(&mut self, number: u32, kind: AtomKind) -> Atom<'a> {
        let definition = &self.unit.definitions[number as usize];
        let mut hasher = Hasher::new("definition");
        let hash = hasher.hash(self.source.environment).hash(definition.hash).finish();
        let references = self.references(number, definition);
        let file = self.file(&definition.file);
        let atom = self.plain_atom(&definition.name, kind, hash, references);
        Atom { file, line: definition.line, ..atom }
    }

    fn file(&mut self, name: &'a str) -> u32 {
        *self.files.entry(name).or_insert_with(|| {
            self.record.files.push(Cow::Borrowed(name));
            self.record.files.len() as u32 - 1
        })
    }

    /// Tells the references whose addresses the object's code and data use from those that are only
    /// accessed. Of an intermediate language nothing is known: there all are used.
    fn note_addresses(&mut self) {
        let Some(used) = addresses::used(self.object).filter(|_| !self.record.bitcode) else {
            return;
        };
        let mut usages: FxHashMap<Target, Usage> = FxHashMap::default();
        for used in used {
            let (target, usage) = match used {
                Used::Symbol(symbol, usage) => {
                    (Target::Symbol(self.symbol_of[symbol as usize]), usage)
                }
                Used::SymbolPlace(section, place, usage) => match self.piece_at(section, place) {
                    Some(piece) => (Target::Atom(piece as u32), usage),
                    None => continue,
                },
            };
            let known = usages.entry(target).or_default();
            *known = usage.max(*known);
        }
        let literals = &self.literals;
        for reference in self.record.references.iter_mut().filter(|it| !literals.is_one(it.target))
        {
            reference.usage = usages.get(&reference.target).copied().unwrap_or_default();
        }
    }
}
