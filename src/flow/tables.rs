//! The jump tables of a function. In: an object and the number of a section of code. Out: the
//! tables that the code names, with the offset in the function that each entry leads to.
//!
//! A table is a run of relocations against code in a section that nobody writes to, and starts
//! where an instruction of the function names it. Its entries are addresses (8 bytes each) or
//! distances from the table's start (4 bytes). A table with a name of its own is a variable, of
//! which the program may compute more addresses than it holds: a computed `goto`.

use super::NotUnderstood;
use crate::elf::object_file::{ObjectFile, Relocation, Section, Symbol, SymbolPlace};
use object::elf;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::Bound;

/// The jump tables of one function, in the order of their places.
pub struct Tables {
    pub all: Vec<Table>,
    fields: FxHashSet<(usize, u64)>,
}

/// One of them.
pub struct Table {
    /// Its section and its place there.
    pub section: usize,
    pub start: u64,
    pub entries: Vec<JumpTarget>,
}

/// Where an entry leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpTarget {
    /// To an offset in the function.
    Inside(u32),
    /// To an offset in another section of code, which a symbol of this number names.
    Elsewhere { symbol: u32, offset: i64 },
}

impl Tables {
    pub fn read(object: &ObjectFile, function: usize) -> Result<Self, NotUnderstood> {
        let starts = named(object, function);
        let mut tables = Tables { all: Vec::new(), fields: FxHashSet::default() };
        for &(section, start) in &starts {
            let next = starts
                .range((Bound::Excluded((section, start)), Bound::Unbounded))
                .next()
                .filter(|next| next.0 == section);
            let end = next.map_or(object.sections[section].size, |next| next.1);
            let entries = entries(object, function, &object.sections[section], start..end)?;
            if !entries.iter().any(|(_, entry)| matches!(entry, JumpTarget::Inside(_))) {
                continue;
            }
            let leads_inside = entries
                .iter()
                .any(|(_, entry)| matches!(entry, JumpTarget::Inside(to) if *to != 0));
            if leads_inside && is_variable(object, section, start) {
                return Err("it has a computed goto");
            }
            tables.fields.extend(entries.iter().map(|(field, _)| (section, *field)));
            tables.all.push(Table {
                section,
                start,
                entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            });
        }
        Ok(tables)
    }

    /// Whether the relocation at this place belongs to one of the tables.
    pub fn has_entry(&self, field: (usize, u64)) -> bool {
        self.fields.contains(&field)
    }

    /// The offsets in the function that the entries lead to.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        self.all.iter().flat_map(|table| &table.entries).filter_map(|entry| match entry {
            JumpTarget::Inside(to) => Some(*to),
            JumpTarget::Elsewhere { .. } => None,
        })
    }

    /// The number of the table that a place is the start of.
    pub fn number(&self, section: usize, start: u64) -> Option<usize> {
        self.all.iter().position(|table| (table.section, table.start) == (section, start))
    }
}

/// The place that a relocation of code means: a section and an offset there. `end`: how far behind
/// the field's start the instruction ends, for fields that count from there.
pub fn place(object: &ObjectFile, relocation: &Relocation, end: u64) -> Option<(usize, u64)> {
    let symbol = object.symbols.get(relocation.symbol as usize)?;
    let SymbolPlace::Section(section) = symbol.place else { return None };
    let relative = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&relocation.kind);
    let absolute =
        [elf::R_X86_64_64.0, elf::R_X86_64_32.0, elf::R_X86_64_32S.0].contains(&relocation.kind);
    let bias = if relative { end } else { 0 };
    (relative || absolute)
        .then(|| (section, symbol.value.wrapping_add_signed(relocation.addend).wrapping_add(bias)))
}

/// The places in constant data that the function names and that start with a relocation.
fn named(object: &ObjectFile, function: usize) -> BTreeSet<(usize, u64)> {
    let places = object.sections[function]
        .relocations
        .iter()
        .filter_map(|relocation| place(object, relocation, 4));
    let is_table = |(section, at): &(usize, u64)| {
        let section = &object.sections[*section];
        is_constant(section) && field(section, *at).is_some()
    };
    places.filter(is_table).collect()
}

fn is_constant(section: &Section) -> bool {
    section.is_allocated() && !section.is_code() && section.flags & elf::SHF_WRITE.0 == 0
        || is_relocated_only(section)
}

/// Nobody writes there but the loader.
fn is_relocated_only(section: &Section) -> bool {
    section.is_allocated() && section.name.starts_with(".data.rel.ro")
}

fn field<'s>(section: &'s Section, at: u64) -> Option<&'s Relocation> {
    let index =
        section.relocations.binary_search_by_key(&at, |relocation| relocation.offset).ok()?;
    section.relocations.get(index)
}

/// The entries of the table in a range, each with its place.
fn entries(
    object: &ObjectFile,
    function: usize,
    section: &Section,
    range: std::ops::Range<u64>,
) -> Result<Vec<(u64, JumpTarget)>, NotUnderstood> {
    let mut found = Vec::new();
    let Some(kind) = field(section, range.start).map(|relocation| relocation.kind) else {
        return Ok(found);
    };
    let (width, is_distance) = match kind {
        kind if kind == elf::R_X86_64_64.0 => (8, false),
        kind if kind == elf::R_X86_64_PC32.0 => (4, true),
        _ => return Ok(found),
    };
    let mut at = range.start;
    while at < range.end {
        let Some(relocation) = field(section, at).filter(|relocation| relocation.kind == kind)
        else {
            break;
        };
        let symbol = &object.symbols[relocation.symbol as usize];
        let SymbolPlace::Section(target) = symbol.place else { break };
        if !object.sections[target].is_code() {
            break;
        }
        let distance = if is_distance { (at - range.start) as i64 } else { 0 };
        let offset = (symbol.value as i64).wrapping_add(relocation.addend).wrapping_sub(distance);
        let entry = if target == function {
            JumpTarget::Inside(
                u32::try_from(offset).map_err(|_| "an entry of a jump table leads past its end")?,
            )
        } else {
            JumpTarget::Elsewhere { symbol: relocation.symbol, offset }
        };
        found.push((at, entry));
        at += width;
    }
    Ok(found)
}

/// Whether a place belongs to something with a name.
fn is_variable(object: &ObjectFile, section: usize, at: u64) -> bool {
    let covers = |symbol: &&Symbol| {
        symbol.place == SymbolPlace::Section(section)
            && symbol.value <= at
            && at < symbol.value.saturating_add(symbol.size.max(1))
    };
    let mut symbols =
        object.symbols.iter().filter(|symbol| !symbol.is_section() && !symbol.name.is_empty());
    symbols.any(|symbol| covers(&symbol) && !symbol.name.starts_with(".L"))
}
