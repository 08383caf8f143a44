//! The unwind table `.eh_frame`, taken apart: each entry (FDE) belongs to the code section that it
//! describes, together with the common entry (CIE) that it builds on. In: an object. Out: for each
//! code section the byte ranges of its entries, with their relocations: personality routines and
//! exception tables hang there.

use super::object_file::{ObjectFile, Relocation, Section, SymbolPlace};
use object::Endianness;
use std::ops::Range;

/// One part of an unwind table, to be hashed with the function that owns it.
pub struct Part<'o, 'a> {
    pub data: &'a [u8],
    /// Relocations within the part; their offsets count from the start of the table.
    pub relocations: &'o [Relocation],
    pub start: u64,
}

/// Common entries have about 30 bytes and one relocation. Each is hashed with every entry that
/// builds on it, so that a large one would be hashed over and over.
const LARGEST_COMMON: usize = 1024;
const MOST_COMMON_RELOCATIONS: usize = 16;

/// The unwind entries of every code section of an object, by section index.
pub struct Unwind<'o, 'a> {
    by_section: Vec<Vec<FrameEntry>>,
    tables: Vec<&'o Section<'a>>,
    /// Tables that could not be taken apart: every function depends on them as a whole.
    pub undivided: Vec<usize>,
}

struct FrameEntry {
    table: usize,
    common: Range<usize>,
    own: Range<usize>,
}

impl<'o, 'a> Unwind<'o, 'a> {
    /// Takes every unwind table of the object apart.
    pub fn read(object: &'o ObjectFile<'a>) -> Self {
        let by_section = object.sections.iter().map(|_| Vec::new()).collect();
        let mut unwind = Unwind { by_section, tables: Vec::new(), undivided: Vec::new() };
        for (index, table) in
            object.sections.iter().enumerate().filter(|(_, section)| section.is_unwind())
        {
            match entries(object, table) {
                Some(found) => {
                    for (owner, common, own) in found {
                        unwind.by_section[owner].push(FrameEntry {
                            table: unwind.tables.len(),
                            common,
                            own,
                        });
                    }
                    unwind.tables.push(table);
                }
                None => unwind.undivided.push(index),
            }
        }
        unwind
    }

    /// The parts that describe one section: for each entry its common part, then its own.
    pub fn parts(&self, section: usize) -> impl Iterator<Item = Part<'o, 'a>> + '_ {
        let part = |table: &'o Section<'a>, range: &Range<usize>| Part {
            data: table.data.get(range.clone()).unwrap_or_default(),
            relocations: within(&table.relocations, range),
            start: range.start as u64,
        };
        self.by_section[section].iter().flat_map(move |entry| {
            let table = self.tables[entry.table];
            let own = part(table, &entry.own);
            [part(table, &entry.common), Part { data: without_padding(own.data), ..own }]
        })
    }
}

/// An entry without the DW_CFA_nop instructions (zeros) at its end: how many there are depends on
/// whether the entry is the last of its table. Zeros that belong to an instruction may go with
/// them: what they complete is the same for every number of zeros.
fn without_padding(data: &[u8]) -> &[u8] {
    let end = data.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &data[..end]
}

/// The relocations of a range; they are sorted by offset.
fn within<'o>(relocations: &'o [Relocation], range: &Range<usize>) -> &'o [Relocation] {
    let from = relocations.partition_point(|relocation| relocation.offset < range.start as u64);
    let to = relocations.partition_point(|relocation| relocation.offset < range.end as u64);
    relocations.get(from..to).unwrap_or_default()
}

type EntryRanges = (usize, Range<usize>, Range<usize>);

/// Walks over a table. `None` when its structure is not the expected one.
fn entries(object: &ObjectFile, table: &Section) -> Option<Vec<EntryRanges>> {
    let word = |at: usize| -> Option<u32> {
        let bytes = table.data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if object.endian == Endianness::Little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < table.data.len() {
        let length = word(at)? as usize;
        if length == 0 {
            at += 4;
            continue;
        }
        let end = at.checked_add(4)?.checked_add(length)?;
        // A length of 0xffffffff announces the 64-bit form, which no compiler makes for objects.
        if length < 4 || end > table.data.len() {
            return None;
        }
        let back = word(at + 4)? as usize;
        if back != 0 {
            let common = (at + 4).checked_sub(back)?;
            if word(common + 4)? != 0 {
                return None;
            }
            let common_end = common.checked_add(4)?.checked_add(word(common)? as usize)?;
            let common = common + 4..common_end;
            if common_end > at
                || common.len() > LARGEST_COMMON
                || within(&table.relocations, &common).len() > MOST_COMMON_RELOCATIONS
            {
                return None;
            }
            let owner = owner(object, table, at + 8)?;
            found.push((owner, common, at + 8..end));
        }
        at = end;
    }
    Some(found)
}

/// The section of the code that an entry describes: where the relocation of its first field points.
fn owner(object: &ObjectFile, table: &Section, field: usize) -> Option<usize> {
    let index = table
        .relocations
        .binary_search_by_key(&(field as u64), |relocation| relocation.offset)
        .ok()?;
    match object.symbols.get(table.relocations[index].symbol as usize)?.place {
        SymbolPlace::Section(section) => Some(section),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn padding_does_not_count(entry in prop::collection::vec(any::<u8>(), 0..30), one in 0usize..9, other in 0usize..9) {
            let padded = |count: usize| [&entry[..], &vec![0; count]].concat();
            let (one, other) = (padded(one), padded(other));
            prop_assert_eq!(without_padding(&one), without_padding(&other));
        }

        #[test]
        fn nothing_but_padding_is_lost(entry in prop::collection::vec(any::<u8>(), 0..30)) {
            let kept = without_padding(&entry);
            prop_assert!(entry.starts_with(kept) && entry[kept.len()..].iter().all(|&byte| byte == 0));
        }

        #[test]
        fn relocations_of_a_range_are_those_within_it(offsets in prop::collection::vec(0u64..30, 0..20), from in 0usize..30, length in 0usize..9) {
            let mut offsets = offsets;
            offsets.sort_unstable();
            let relocation = |&offset: &u64| Relocation { offset, kind: 0, symbol: 0, addend: 0 };
            let relocations: Vec<Relocation> = offsets.iter().map(relocation).collect();
            let range = from..from + length;
            let found: Vec<u64> = within(&relocations, &range).iter().map(|relocation| relocation.offset).collect();
            let expected: Vec<u64> = offsets.into_iter().filter(|&offset| range.contains(&(offset as usize))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
