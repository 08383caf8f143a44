//! GCC's intermediate language for link-time optimisation: the table of symbols that it contains
//! for linkers. In: an object. Out: its symbols, if it has no machine code whose symbol table would
//! list them.

use super::object_file::{ObjectFile, Section};

/// A symbol of an object without machine code.
pub struct Optimised<'a> {
    pub name: &'a str,
    pub is_weak: bool,
    pub place: OptimisedPlace,
}

pub enum OptimisedPlace {
    Here,
    Elsewhere,
    Common { size: u64 },
}

/// The table of symbols of an object that holds GCC's intermediate language and nothing else.
pub fn table<'a>(object: &ObjectFile<'a>) -> Option<&'a [u8]> {
    let is_slim = object.symbols.iter().any(|symbol| symbol.name == "__gnu_lto_slim");
    let is_table = |section: &&Section| section.name.starts_with(".gnu.lto_.symtab.");
    object.sections.iter().find(is_table).filter(|_| is_slim).map(|section| section.data)
}

/// The symbols of that table: name, group, then kind, visibility, size and slot.
pub fn symbols(mut table: &[u8]) -> Option<Vec<Optimised<'_>>> {
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
        symbols.push(Optimised {
            name,
            is_weak: [WEAK, WEAKLY_UNDEFINED].contains(&fields[0]),
            place,
        });
    }
    Some(symbols)
}
