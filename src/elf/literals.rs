//! Literals and entries of constant pools: atoms that are less than a section.
//!
//! In: sections that linkers merge, or that compilers fill with constants. Out: the hash of a
//! piece, and how it is shown.

use super::object_file::Section;
use super::pools;
use super::section_shape::hash_shape;
use crate::model::record::Ending;
use crate::model::{Atom, AtomKind, Hash, Hasher, Level};
use object::elf;

/// A literal is shown, and named, by no more than this.
const LONGEST_LITERAL: usize = 80;
const LONGEST_LITERAL_SECTION: usize = 1024;

/// A string without the zeros that align the next one: the terminator stays.
fn without_padding<'a>(section: &Section, content: &'a [u8]) -> &'a [u8] {
    if section.flags & elf::SHF_STRINGS.0 == 0 {
        return content;
    }
    let unit = section.entry_size.max(1) as usize;
    let is_zero = |unit: &[u8]| unit.iter().all(|&byte| byte == 0);
    let mut units = content.len() / unit;
    while units > 1
        && is_zero(&content[(units - 1) * unit..units * unit])
        && is_zero(&content[(units - 2) * unit..(units - 1) * unit])
    {
        units -= 1;
    }
    &content[..units * unit]
}

/// The hash of an entry of a constant pool: as of a section of its own.
pub fn hash_entry(section: &Section, start: u64, content: &[u8]) -> Hash {
    let size = content.len() as u64;
    let Section { kind, flags, entry_size, .. } = *section;
    let align = pools::alignment(section, start, content);
    let alone = Section { kind, flags, entry_size, align, ..Section::default() };
    let mut hasher = Hasher::new("atom");
    hash_shape(&mut hasher, &alone).number(size).bytes(content);
    // No sizes of symbols, no relocations.
    hasher.number(0).number(0).finish()
}

/// An entry of a constant pool is shown by its text where that cannot be taken for the name of a
/// symbol.
pub fn pool_name<'a>(section: &Section<'a>, content: &'a [u8]) -> &'a str {
    let text = content.split(|&byte| byte == 0).next().unwrap_or_default();
    let is_name = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.$@".contains(byte));
    match std::str::from_utf8(&text[..text.len().min(80)]) {
        Ok(text) if !is_name && content.len() > text.len() => text,
        _ => section.name,
    }
}

/// The atom of a literal that linkers merge with equal ones. Where it is in its object is left
/// open.
pub fn literal<'a>(section: &Section<'a>, content: &'a [u8]) -> Atom<'a> {
    let content = without_padding(section, content);
    let mut hasher = Hasher::new("literal");
    hash_shape(&mut hasher, section).bytes(content);
    // Only what goes into the same section of the binary is merged.
    if !section.name.starts_with(".rodata") {
        hasher.bytes(section.name.as_bytes());
    }
    Atom {
        name: literal_name(section, content),
        kind: AtomKind::Literal,
        level: Level::Code,
        hash: hasher.finish(),
        section: 0,
        section_name: shortened(section.name, LONGEST_LITERAL_SECTION),
        group: 0,
        size: content.len() as u64,
        references: 0,
        traceable: false,
        ending: Ending::Leaves,
        returns: false,
        file: 0,
        line: 0,
    }
}

/// A literal is shown by its text where it has one.
fn literal_name<'a>(section: &Section<'a>, content: &'a [u8]) -> &'a str {
    let text = content.strip_suffix(b"\0").unwrap_or(content);
    match std::str::from_utf8(&text[..text.len().min(LONGEST_LITERAL)]) {
        Ok(text) if section.entry_size == 1 && !text.contains('\0') => text,
        _ => shortened(section.name, LONGEST_LITERAL),
    }
}

/// A section may have a literal in each of its bytes: its name must not be carried along with all
/// of them in full.
fn shortened(name: &str, most: usize) -> &str {
    let end = (0..=most.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}
