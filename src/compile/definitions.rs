//! An object's record at the AST level: the atoms are the definitions of the source. In: the unit's definitions, and the
//! object that the compiler made of it. Out: its [`Record`].
//!
//! The sections are as the compiler makes them, many definitions in each. So every section is cut into pieces at its
//! symbols: the piece of a definition is that definition's atom; what a compiler split off it (`f.cold`, `f.part.0`) leads to
//! it; what no definition accounts for (a constructor's entry, tables of inline assembler) counts by its bytes and relocations.
//! What compilers put beside code on their own account (literals, jump tables, tables for unwinding) is decided by the definitions, and
//! nobody else can name it.
//!
//! References are those of the source, since a function that was inlined left no relocation. A definition of this
//! unit counts twice: as what the linker binds the name to, and as what may have been inlined. To that come the symbols
//! that only the object names, because compilers call functions of their own accord (`memcpy`, `__stack_chk_fail`).

use super::syntax::Understood;
use crate::ast::{Definition, Kind, Unit};
use crate::elf::bitcode::{self, Bitcode};
use crate::elf::labels::groups;
use crate::elf::object_file::{ObjectFile, Place, Relocation, Section};
use crate::elf::{ElfError, atoms, called, digest};
use crate::model::record::CHOSEN;
use crate::model::{Atom, AtomKind, Hash, Hasher, Level, Record, Reference, Symbol, SymbolKind, Target};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The most that compilers leave between two definitions, so as to align the second.
const MOST_PADDING: u64 = 64;

/// Makes the record of an object that was compiled from a source that was understood.
pub fn record<'a>(object: &ObjectFile<'a>, source: &'a Understood) -> Result<Record<'a>, ElfError> {
    let mut builder = Builder::new(object, source);
    builder.record.bitcode = object.has_bitcode();
    builder.cut();
    match gcc_table(object) {
        Some(table) => builder.add_optimised(gcc_symbols(table))?,
        None => builder.add_symbols(),
    }
    builder.find_implicit();
    builder.add_atoms();
    Ok(builder.record)
}

/// The same for a file of LLVM's intermediate language, which has no sections.
pub fn record_of_bitcode<'a>(file: &Bitcode<'a>, source: &'a Understood) -> Result<Record<'a>, ElfError> {
    let object = ObjectFile::empty();
    let mut builder = Builder::new(&object, source);
    builder.record.digest = file.digest();
    builder.record.bitcode = true;
    builder.cut();
    let optimised = |symbol: bitcode::Symbol<'a>| {
        let place = if symbol.is_defined { OptimisedPlace::Here } else { OptimisedPlace::Elsewhere };
        // Its size is beside the table, and such programs are few.
        let is_plain = !symbol.is_common;
        is_plain.then_some(Optimised { name: symbol.name, is_weak: symbol.is_weak, place })
    };
    let symbols = file.symbols().and_then(|symbols| symbols.into_iter().map(optimised).collect());
    builder.add_optimised(symbols)?;
    builder.add_atoms();
    Ok(builder.record)
}

/// A symbol of an object without machine code.
struct Optimised<'a> {
    name: &'a str,
    is_weak: bool,
    place: OptimisedPlace,
}

enum OptimisedPlace {
    Here,
    Elsewhere,
    Common { size: u64 },
}

/// The table of symbols of an object that holds GCC's intermediate language and nothing else.
fn gcc_table<'a>(object: &ObjectFile<'a>) -> Option<&'a [u8]> {
    let is_slim = object.symbols.iter().any(|symbol| symbol.name == "__gnu_lto_slim");
    let is_table = |section: &&Section| section.name.starts_with(".gnu.lto_.symtab.");
    object.sections.iter().find(is_table).filter(|_| is_slim).map(|section| section.data)
}

/// The symbols of that table: name, group, then kind, visibility, size and slot.
fn gcc_symbols(mut table: &[u8]) -> Option<Vec<Optimised<'_>>> {
    const DEFINED: u8 = 0;
    const WEAK: u8 = 1;
    const UNDEFINED: u8 = 2;
    const WEAKLY_UNDEFINED: u8 = 3;
    const COMMON: u8 = 4;
    const FIELDS: usize = 1 + 1 + 8 + 4;
    let mut symbols = Vec::new();
    while !table.is_empty() {
        let name_end = memchr::memchr(0, table)?;
        let name = std::str::from_utf8(&table[..name_end]).ok()?;
        let group_end = name_end + 1 + memchr::memchr(0, &table[name_end + 1..])?;
        let fields = table.get(group_end + 1..group_end + 1 + FIELDS)?;
        table = &table[group_end + 1 + FIELDS..];
        let size = u64::from_le_bytes(fields[2..10].try_into().ok()?);
        let place = match fields[0] {
            DEFINED | WEAK => OptimisedPlace::Here,
            UNDEFINED | WEAKLY_UNDEFINED => OptimisedPlace::Elsewhere,
            COMMON => OptimisedPlace::Common { size },
            _ => return None,
        };
        symbols.push(Optimised { name, is_weak: [WEAK, WEAKLY_UNDEFINED].contains(&fields[0]), place });
    }
    Some(symbols)
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
    /// The symbols that only the object names, for each definition; and those of which it cannot be told whose they are.
    implicit: Vec<Vec<u32>>,
    everybodys: Vec<u32>,
    files: FxHashMap<&'a str, u32>,
    record: Record<'a>,
}

impl<'o, 'a> Builder<'o, 'a> {
    fn new(object: &'o ObjectFile<'a>, source: &'a Understood) -> Self {
        let unit = &source.unit;
        let mut named = FxHashMap::default();
        for (number, definition) in unit.definitions.iter().enumerate().filter(|(_, it)| !it.name.is_empty()) {
            named.entry(&*definition.name).or_insert(number as u32);
        }
        Builder {
            object,
            unit,
            source,
            named,
            has_assembler: unit.definitions.iter().any(|definition| definition.kind == Kind::Assembler),
            resolvers: FxHashSet::default(),
            pieces: Vec::new(),
            first_piece: Vec::new(),
            atom_of: vec![u32::MAX; unit.definitions.len()],
            symbol_of: Vec::new(),
            symbol_named: FxHashMap::default(),
            weak: FxHashSet::default(),
            implicit: vec![Vec::new(); unit.definitions.len()],
            everybodys: Vec::new(),
            files: FxHashMap::default(),
            record: Record {
                digest: digest::of_object(object),
                refusals: source.refusals.clone(),
                ..Record::default()
            },
        }
    }

    /// Cuts all sections, and numbers the atoms: the pieces first, then the definitions that have none.
    fn cut(&mut self) {
        let mut starts: Vec<Vec<(u64, u64, Owner)>> = vec![Vec::new(); self.object.sections.len()];
        for symbol in &self.object.symbols {
            let is_place = ![elf::STT_SECTION.0, elf::STT_FILE.0].contains(&symbol.kind) && !symbol.name.is_empty();
            if let (Place::Section(section), true) = (symbol.place, is_place) {
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

    /// The definition that a symbol stands for, or that it was split off: compilers put a dot behind the name.
    fn owner(&self, symbol: &str) -> Owner {
        if let Some(&number) = self.named.get(symbol) {
            return Owner::Definition(number);
        }
        let stem = symbol.split('.').next().unwrap_or_default();
        let number = self.named.get(stem).copied().filter(|_| stem.len() < symbol.len());
        let is_function = |number: &u32| self.unit.definitions[*number as usize].kind == Kind::Function;
        number.filter(is_function).map_or(Owner::Nobody, Owner::PartOf)
    }

    fn cut_section(&mut self, index: usize, mut starts: Vec<(u64, u64, Owner)>) {
        let section = &self.object.sections[index];
        let is_content = section.is_allocated() && section.kind != elf::SHT_NOTE.0 && !section.is_unwind();
        if !is_content || (section.size == 0 && starts.is_empty()) {
            return;
        }
        // Of several symbols at one place, the one of a definition; the largest of those.
        let rank = |owner: &Owner| match owner {
            Owner::Definition(number) if self.unit.definitions[*number as usize].kind != Kind::Alias => 0,
            Owner::Definition(_) => 1,
            Owner::PartOf(_) => 2,
            Owner::Nobody => 3,
        };
        starts.sort_by_key(|(start, size, owner)| (*start, rank(owner), std::cmp::Reverse(*size)));
        starts.dedup_by_key(|(start, ..)| *start);
        starts.retain(|(start, ..)| *start <= section.size);
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut add = |start, end, owner| {
            // A definition has one place; another symbol of the same name would be a local of some function.
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
    fn piece_at(&self, section: usize, place: u64) -> Option<usize> {
        let (from, to) = (*self.first_piece.get(section)?, *self.first_piece.get(section + 1)?);
        let pieces = &self.pieces[from..to];
        Some(from + pieces.partition_point(|piece| piece.start <= place).checked_sub(1)?)
    }

    fn add_symbols(&mut self) {
        self.record.symbols = atoms::symbols(self.object, |section, value| match self.piece_at(section, value) {
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
            if let (SymbolKind::Defined { atom, offset }, true) = (described.kind, symbol.kind == elf::STT_GNU_IFUNC.0)
            {
                described.kind = SymbolKind::Indirect { atom, offset };
            }
            next += 1;
        }
    }

    /// Symbols without a place. The error: they are not known, one is defined that no definition accounts for, or there are
    /// resolvers, which run without being referred to, and cannot be told from others without machine code.
    fn add_optimised(&mut self, symbols: Option<Vec<Optimised<'a>>>) -> Result<(), ElfError> {
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
    fn find_implicit(&mut self) {
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut explained: FxHashMap<u32, FxHashSet<&'a str>> = FxHashMap::default();
        let mut everybodys: FxHashSet<u32> = FxHashSet::default();
        for (index, section) in self.object.sections.iter().enumerate().filter(|(_, it)| it.is_allocated()) {
            for relocation in &section.relocations {
                let symbol = &self.object.symbols[relocation.symbol as usize];
                if relocation.symbol == 0 || symbol.is_local() {
                    continue;
                }
                let piece = self.piece_at(index, relocation.offset).map(|piece| self.pieces[piece].owner);
                let number = self.symbol_of[relocation.symbol as usize];
                match piece {
                    Some(Owner::Definition(owner) | Owner::PartOf(owner)) => {
                        if seen.insert((owner, number)) {
                            let known = explained.entry(owner).or_insert_with(|| self.reachable_names(owner));
                            if !known.contains(symbol.name) {
                                self.implicit[owner as usize].push(number);
                            }
                        }
                    }
                    // Of the tables for unwinding, of literals and jump tables, and of what counts by itself.
                    Some(Owner::Nobody) | None => {
                        everybodys.insert(number);
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
        self.everybodys = everybodys.into_iter().filter(is_unknown).collect();
        self.everybodys.sort_unstable();
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
            let kind = if definition.kind == Kind::Function { AtomKind::Function } else { AtomKind::Data };
            let atom = self.definition_atom(number, kind);
            self.record.atoms.push(atom);
        }
    }

    fn add_piece(&mut self, index: usize, groups: &[u32]) {
        let Piece { section: number, start, end, owner } = self.pieces[index];
        let section = &self.object.sections[number];
        let kind = atoms::kind(section, self.resolvers.contains(&(number, start)));
        let mut atom = match owner {
            Owner::Definition(definition) => self.definition_atom(definition, kind),
            Owner::PartOf(definition) => {
                let target = Target::Atom(self.atom_of[definition as usize]);
                let name = &*self.unit.definitions[definition as usize].name;
                let hash = Hasher::new("part").hash(self.source.environment).finish();
                self.plain_atom(name, kind, hash, vec![Reference { target, offset: 0 }])
            }
            Owner::Nobody => {
                let (hash, references) = self.anonymous(section, start, end);
                self.plain_atom(section.name, kind, hash, references)
            }
        };
        // What is merged has no place of its own.
        if section.flags & elf::SHF_MERGE.0 == 0 {
            (atom.section, atom.section_name, atom.group) = (number as u32, section.name, groups[number]);
        }
        atom.size = end - start;
        self.record.atoms.push(atom);
    }

    fn plain_atom(&mut self, name: &'a str, kind: AtomKind, hash: Hash, references: Vec<Reference>) -> Atom<'a> {
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

    fn references(&self, number: u32, definition: &Definition) -> Vec<Reference> {
        let mut list = Targets::default();
        for reference in &definition.references {
            self.add_named(&reference.name, &mut list);
        }
        list.extend(
            self.implicit[number as usize].iter().chain(&self.everybodys).map(|symbol| Target::Symbol(*symbol)),
        );
        // Assembler may name anything. What constructors do to a variable may have been done by the compiler.
        let names_all = definition.has_assembler || self.source.has_constructors && definition.kind == Kind::Variable;
        for (other, described) in self.unit.definitions.iter().enumerate() {
            let is_meant = names_all || described.kind == Kind::Assembler || called::by_compilers(&described.name);
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

    /// What no definition accounts for: bytes and relocations. Code of that kind is assembler, of which nothing is known but
    /// the object that it is in.
    fn anonymous(&self, section: &Section, start: u64, end: u64) -> (Hash, Vec<Reference>) {
        let mut hasher = Hasher::new("anonymous");
        hasher.number(section.kind.into()).number(section.flags).number(section.align).number(end - start);
        hasher.bytes(section.data.get(start as usize..end as usize).unwrap_or_default());
        let mut list = Targets::default();
        for relocation in relocations(section, start, end) {
            let Some((target, offset)) = self.target(relocation) else { return self.unexplained() };
            hasher.number(relocation.offset - start).number(relocation.kind.into()).number(offset as u64);
            hasher.number(list.push(target));
        }
        if section.is_code() && end > start { self.unexplained() } else { (hasher.finish(), list.found) }
    }

    fn unexplained(&self) -> (Hash, Vec<Reference>) {
        let mut list = Targets::default();
        list.extend(self.atom_of.iter().map(|atom| Target::Atom(*atom)));
        list.extend((0..self.record.symbols.len() as u32).map(Target::Symbol));
        (Hasher::new("unexplained").hash(self.record.digest).finish(), list.found)
    }

    /// What a relocation of data means, and where in it.
    fn target(&self, relocation: &Relocation) -> Option<(Target, i64)> {
        let symbol = &self.object.symbols[relocation.symbol as usize];
        if !symbol.is_local() {
            return Some((Target::Symbol(self.symbol_of[relocation.symbol as usize]), relocation.addend));
        }
        let Place::Section(section) = symbol.place else { return None };
        let place = symbol.value.checked_add_signed(relocation.addend)?;
        let piece = self.piece_at(section, place)?;
        let offset = (place - self.pieces[piece].start) as i64;
        let chosen = if symbol.kind == elf::STT_GNU_IFUNC.0 { CHOSEN } else { 0 };
        Some((Target::Atom(piece as u32), offset | chosen))
    }
}

/// References, each target once.
#[derive(Default)]
struct Targets {
    found: Vec<Reference>,
    numbers: FxHashMap<Target, u64>,
}

impl Targets {
    /// The number of a target in the list.
    fn push(&mut self, target: Target) -> u64 {
        let next = self.found.len() as u64;
        *self.numbers.entry(target).or_insert_with(|| {
            self.found.push(Reference { target, offset: 0 });
            next
        })
    }

    fn extend(&mut self, targets: impl Iterator<Item = Target>) {
        targets.for_each(|target| _ = self.push(target));
    }
}

/// Between two definitions, and nothing but alignment.
fn is_padding(section: &Section, from: u64, to: u64, has_assembler: bool) -> bool {
    let bytes = section.data.get(from as usize..to as usize).unwrap_or_default();
    let is_empty = section.is_code() && !has_assembler || bytes.iter().all(|&byte| byte == 0);
    let is_short = to - from < section.align.clamp(1, MOST_PADDING);
    from == to || is_empty && is_short && relocations(section, from, to).is_empty()
}

/// The relocations of a part of a section, which are sorted.
fn relocations<'s>(section: &'s Section, from: u64, to: u64) -> &'s [Relocation] {
    let place = |end: u64| section.relocations.partition_point(|relocation| relocation.offset < end);
    &section.relocations[place(from)..place(to)]
}
