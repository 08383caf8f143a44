//! An object's record at the code level: one atom per section, hashed by what it is, with its
//! references left symbolic. In: an object's tables. Out: its [`Record`].
//!
//! The local hash covers the section's type, flags, alignment and bytes, and of each relocation the
//! offset, type, addend and *which* of the atom's targets it means: the targets are numbered in the
//! order in which they first appear, and listed in that order as the atom's references. No name is
//! hashed, neither the atom's nor a target's: what `.LC3`, `buf.0` or `foo.constprop.1` is follows
//! from where the reference leads.

mod relocations;

use super::endings::Endings;
use super::labels::{Labels, groups, labels, sizes};
use super::literals::{hash_entry, literal, pool_name};
use super::object_file::{ObjectFile, Section};
use super::pieces::{self, Pieces};
use super::pools::{self};
use super::section_shape::{atom_kind, hash_shape};
use super::unwind::Unwind;
use super::whole::{symbols, whole};
use super::{ElfError, addresses, digest, lines};
use crate::model::record::{Ending, Usage};
use crate::model::{Atom, AtomKind, Hash, Hasher, Level, Record, Refusal, SymbolKind, Target};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};

/// More unwind tables than this, all of them unusual, no compiler makes.
const MOST_UNDIVIDED_TABLES: usize = 16;

/// Makes an object's record. `pools`: its constant pools may be divided, because it was compiled
/// without optimisation.
pub fn record<'a>(
    object: &ObjectFile<'a>,
    level: Level,
    pools: bool,
) -> Result<Record<'a>, ElfError> {
    if object.has_bitcode() {
        return Err(ElfError::Bitcode);
    }
    if level == Level::File {
        return Ok(whole(object));
    }
    let builder = Builder::new(object, pools);
    // Every function depends on each of them.
    if builder.unwind.undivided.len() > MOST_UNDIVIDED_TABLES {
        return Err(ElfError::Malformed("it has too many unwind tables of an unusual structure"));
    }
    Ok(builder.build())
}

struct Builder<'o, 'a> {
    object: &'o ObjectFile<'a>,
    unwind: Unwind<'o, 'a>,
    labels: Vec<Labels<'a>>,
    endings: Endings<'o, 'a>,
    pieces: Vec<Option<Pieces>>,
    /// How large the symbols of each section are.
    sizes: Vec<Vec<(u64, u64)>>,
    /// No compiler has left its name: assembler.
    is_handwritten: bool,
    /// The atom of each undivided section that has one.
    atom_of: Vec<Option<u32>>,
    /// The group of each section.
    group_of: Vec<u32>,
    /// The record's number of each visible symbol.
    symbol_of: Vec<u32>,
    /// The targets of the atom at hand, in the order of their first appearance.
    ordinals: FxHashMap<(Target, i64), u32>,
    /// Of which of them a site is known, by which kind of relocation.
    sited: FxHashSet<(u32, u32)>,
    record: Record<'a>,
}

impl<'o, 'a> Builder<'o, 'a> {
    fn new(object: &'o ObjectFile<'a>, pools: bool) -> Self {
        let mut pieces = pieces::divide(object);
        if pools {
            pools::divide(object, &mut pieces);
        }
        let mut builder = Builder {
            object,
            unwind: Unwind::read(object),
            labels: labels(object),
            endings: Endings::new(object),
            pieces,
            sizes: sizes(object),
            is_handwritten: !object.sections.iter().any(|section| section.name == ".comment"),
            atom_of: vec![None; object.sections.len()],
            group_of: groups(object),
            symbol_of: Vec::with_capacity(object.symbols.len()),
            ordinals: FxHashMap::default(),
            sited: FxHashSet::default(),
            record: Record { digest: digest::of_object(object), ..Record::default() },
        };
        for &table in &builder.unwind.undivided {
            builder.labels[table].used = true;
            let refusal = Refusal::new(
                ".eh_frame",
                "its structure is unusual: it counts as a whole for every function",
            );
            builder.record.refusals.push(refusal);
        }
        builder.number_atoms();
        builder.number_symbols();
        builder
    }

    fn build(mut self) -> Record<'a> {
        for index in 0..self.object.sections.len() {
            let section = &self.object.sections[index];
            match &self.pieces[index] {
                Some(pieces) => {
                    let starts = pieces.starts.clone();
                    self.add_pieces(index, section, &starts, pieces.may_be_end.is_some());
                }
                None if self.atom_of[index].is_some() => self.add_section(index, section),
                None => {}
            }
        }
        self.record.sites.sort_by_key(|site| site.reference);
        lines::annotate(self.object, &mut self.record, &self.atom_of);
        self.record
    }

    fn number_atoms(&mut self) {
        let mut next = 0;
        for (index, section) in self.object.sections.iter().enumerate() {
            if let Some(pieces) = &mut self.pieces[index] {
                pieces.first_atom = next;
                next += pieces.starts.len() as u32;
            } else if self.labels[index].used || is_content(section) {
                self.atom_of[index] = Some(next);
                next += 1;
            }
        }
    }

    fn number_symbols(&mut self) {
        let mut next = 0;
        for symbol in &self.object.symbols {
            self.symbol_of.push(next);
            next += u32::from(!symbol.is_local());
        }
        let is_resolver: Vec<bool> = self
            .object
            .symbols
            .iter()
            .filter(|symbol| !symbol.is_local())
            .map(|symbol| symbol.kind == elf::STT_GNU_IFUNC.0)
            .collect();
        self.record.symbols = symbols(self.object, |section, value| self.defined(section, value));
        for (symbol, is_resolver) in self.record.symbols.iter_mut().zip(is_resolver) {
            if let (SymbolKind::Defined { atom, offset }, true) = (symbol.kind, is_resolver) {
                symbol.kind = SymbolKind::Indirect { atom, offset };
            }
        }
    }

    fn defined(&self, section: usize, value: u64) -> SymbolKind {
        match (&self.pieces[section], self.atom_of[section]) {
            (Some(pieces), _) => {
                let (atom, offset) = pieces.find(value);
                SymbolKind::Defined { atom, offset }
            }
            (None, Some(atom)) => SymbolKind::Defined { atom, offset: value },
            // `labels` marks every section with a visible symbol as used, so this is not reached.
            (None, None) => SymbolKind::Undefined,
        }
    }

    /// Adds one atom per piece of a mergeable section or a constant pool.
    fn add_pieces(&mut self, index: usize, section: &Section<'a>, starts: &[u64], is_pool: bool) {
        let ends = starts.iter().skip(1).copied().chain([section.size]);
        for (&start, end) in starts.iter().zip(ends) {
            let content = section.data.get(start as usize..end as usize).unwrap_or_default();
            let atom = match is_pool {
                true => Atom {
                    kind: AtomKind::Data,
                    name: pool_name(section, content),
                    hash: hash_entry(section, start, content),
                    size: end - start,
                    ..literal(section, content)
                },
                false => literal(section, content),
            };
            self.record.atoms.push(Atom {
                section: index as u32,
                group: self.group_of[index],
                ..atom
            });
        }
    }

    /// Adds the atom of an undivided section.
    fn add_section(&mut self, index: usize, section: &Section<'a>) {
        let labels = &self.labels[index];
        let kind = atom_kind(section, labels.resolver);
        let name = labels.name.map_or(section.name, |(_, name)| name);
        let traceable = kind == AtomKind::Function && is_one_function(labels, section);
        let first_reference = self.record.references.len();
        let hash = self.hash_section(index, section);
        let (ending, returns) = self.ending(index, section);
        self.record.atoms.push(Atom {
            name,
            kind,
            level: Level::Code,
            hash,
            section: index as u32,
            section_name: section.name,
            group: self.group_of[index],
            size: section.size,
            references: (self.record.references.len() - first_reference) as u32,
            traceable,
            ending,
            returns,
            file: 0,
            line: 0,
        });
    }

    /// The local hash; appends the section's references to the record's.
    fn hash_section(&mut self, index: usize, section: &Section<'a>) -> Hash {
        self.ordinals.clear();
        self.sited.clear();
        let mut hasher = Hasher::new("atom");
        hash_shape(&mut hasher, section).number(section.size).bytes(section.data);
        hasher.number(self.sizes[index].len() as u64);
        for (start, size) in &self.sizes[index] {
            hasher.number(*start).number(*size);
        }
        let usage = |number: usize| addresses::usage(self.object, &self.labels, index, number);
        let usages: Vec<Usage> = (0..section.relocations.len()).map(usage).collect();
        self.hash_relocations(&mut hasher, section, &section.relocations, &usages, 0);
        let parts: Vec<_> = self.unwind.parts(index).collect();
        for part in parts {
            hasher.bytes(part.data);
            self.hash_relocations(&mut hasher, section, part.relocations, &[], part.start);
        }
        if let Some(next) = self.following(index) {
            let ordinal = self.ordinal(Target::Atom(next), 0, Usage::Access);
            hasher.number(ordinal.into());
        }
        if section.is_code() {
            for table in self.unwind.undivided.clone() {
                if let Some(atom) = self.atom_of[table] {
                    let ordinal = self.ordinal(Target::Atom(atom), 0, Usage::Access);
                    hasher.number(ordinal.into());
                }
            }
        }
        hasher.finish()
    }

    /// Whether control can run past the section's end, and whether it can return.
    fn ending(&self, index: usize, section: &Section) -> (Ending, bool) {
        if !section.is_code() {
            return (Ending::Leaves, false);
        }
        let end = self.endings.of(index, 0..section.size);
        (end.flow.ending(|relocation| self.target(relocation).0), end.returns)
    }

    /// In hand-written assembler one section of code may run into the next one.
    fn following(&self, index: usize) -> Option<u32> {
        if !self.is_handwritten || !self.object.sections[index].is_code() {
            return None;
        }
        let behind = self.object.sections.iter().enumerate().skip(index + 1);
        behind.filter(|(_, section)| section.is_code()).find_map(|(index, _)| self.atom_of[index])
    }
}

/// Nothing but one function: what lies behind it, or has a name of its own inside, may be data.
fn is_one_function(labels: &Labels, section: &Section) -> bool {
    const MOST_PADDING: u64 = 15;
    section.size > 0
        && labels.function
        && !labels.inside
        && labels.extent + MOST_PADDING >= section.size
}

/// A section that is an atom even when nobody names it. Notes are of no effect on the program that
/// runs.
fn is_content(section: &Section) -> bool {
    section.is_allocated()
        && section.size > 0
        && section.kind != elf::SHT_NOTE.0
        && !section.is_unwind()
}
