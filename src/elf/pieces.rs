//! Sections that hold many small things: mergeable strings and constants, and (in `pools`) constant
//! pools. Each is divided into pieces that are hashed by content, so that a string added for one
//! function changes nothing for another.
//!
//! A piece starts only where a symbol or a relocation names it *and* the one before it has ended: a
//! literal may contain NULs, may be addressed in its middle, may be addressed by its end, and may
//! be a row of constants.

use super::arch;
use super::object_file::{ObjectFile, Relocation, Section, SymbolPlace};
use object::elf;

/// Where the pieces of one section start; the first one starts at 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Pieces {
    pub starts: Vec<u64>,
    /// The number of the first piece's atom.
    pub first_atom: u32,
    /// The section is a constant pool. For each piece: an address of its first byte may mean the
    /// end of the piece before it.
    pub may_be_end: Option<Vec<bool>>,
}

impl Pieces {
    /// The piece that holds the byte at `offset` (or ends the section there), and the offset within
    /// it.
    pub fn find(&self, offset: u64) -> (u32, u64) {
        let index = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let start = self.starts.get(index).copied().unwrap_or(0);
        (self.first_atom + index as u32, offset.saturating_sub(start))
    }

    /// The number of the piece that holds the byte at `offset`, and the offset within it.
    pub fn locate(&self, offset: i64) -> (usize, i64) {
        let index = self.starts.partition_point(|&start| start as i64 <= offset).saturating_sub(1);
        (index, offset.wrapping_sub(self.starts.get(index).map_or(0, |&start| start as i64)))
    }
}

/// The division of each section, by section index. `None`: the section is one atom.
pub fn divide(object: &ObjectFile) -> Vec<Option<Pieces>> {
    let mut labels: Vec<Option<Vec<u64>>> =
        object.sections.iter().map(|section| is_divisible(section).then(|| vec![0])).collect();
    label_symbols(object, &mut labels);
    label_relocations(object, &mut labels);
    let divide = |(section, labels): (&Section, Option<Vec<u64>>)| Some(cut(section, labels?));
    object.sections.iter().zip(labels).map(divide).collect()
}

/// A section whose pieces linkers merge by content. (Constants that are aligned beyond their size
/// stay as they are.)
fn is_divisible(section: &Section) -> bool {
    let flags = section.flags;
    let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
    let unit = section.entry_size;
    section.is_allocated()
        && has(elf::SHF_MERGE)
        && !has(elf::SHF_WRITE)
        && section.relocations.is_empty()
        && unit > 0
        && section.size == section.data.len() as u64
        && section.size.is_multiple_of(unit)
        && if has(elf::SHF_STRINGS) {
            ends_with_terminator(section)
        } else {
            unit.is_multiple_of(section.align.max(1))
        }
}

fn ends_with_terminator(section: &Section) -> bool {
    let unit = section.entry_size as usize;
    section.data.len() >= unit
        && section.data[section.data.len() - unit..].iter().all(|&byte| byte == 0)
}

fn label_symbols(object: &ObjectFile, labels: &mut [Option<Vec<u64>>]) {
    for symbol in object.symbols.iter().filter(|symbol| !symbol.is_section()) {
        if let SymbolPlace::Section(section) = symbol.place
            && let Some(labels) = &mut labels[section]
        {
            labels.push(symbol.value);
        }
    }
}

/// References by the section's own symbol: their addend names the piece, as it does for the linker.
fn label_relocations(object: &ObjectFile, labels: &mut [Option<Vec<u64>>]) {
    for section in object.sections.iter().filter(|section| section.is_allocated()) {
        for relocation in &section.relocations {
            let symbol = &object.symbols[relocation.symbol as usize];
            let (true, SymbolPlace::Section(target)) = (symbol.is_section(), symbol.place) else {
                continue;
            };
            let Some(known) = &mut labels[target] else { continue };
            match u64::try_from(relocation.addend) {
                Ok(offset)
                    if offset <= object.sections[target].size
                        && names_its_piece(object, section, relocation) =>
                {
                    known.push(offset);
                }
                _ => labels[target] = None,
            }
        }
    }
}

/// Whether section symbol + addend is the place meant. In x86-64 code a pc-relative field carries a
/// bias of 4 to 8 bytes, which can point into the piece before; assemblers keep such references
/// symbolic; where they do not, the section is not divided. (Clang's tables of relative pointers do
/// name their pieces so: data has no bias.)
fn names_its_piece(object: &ObjectFile, section: &Section, relocation: &Relocation) -> bool {
    let has_bias = section.is_code() && arch::of(object.machine).is_biased_in_code(relocation.kind);
    !section.addends_in_place && !has_bias
}

/// The pieces between the labels that can be the start of one.
fn cut(section: &Section, mut labels: Vec<u64>) -> Pieces {
    let is_start = |label: u64| match section.flags & elf::SHF_STRINGS.0 {
        0 => label.is_multiple_of(section.entry_size),
        _ => follows_terminator(section, label),
    };
    labels.sort_unstable();
    labels.dedup();
    labels.retain(|&label| label == 0 || (label < section.size && is_start(label)));
    Pieces { starts: labels, first_atom: 0, may_be_end: None }
}

fn follows_terminator(section: &Section, label: u64) -> bool {
    let (label, unit) = (label as usize, section.entry_size as usize);
    label % unit == 0 && section.data[label - unit..label].iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings(data: &[u8]) -> Section<'_> {
        Section {
            flags: (elf::SHF_ALLOC | elf::SHF_MERGE | elf::SHF_STRINGS).0,
            entry_size: 1,
            size: data.len() as u64,
            data,
            ..Section::default()
        }
    }

    #[test]
    fn a_label_inside_a_string_starts_no_piece() {
        let section = strings(b"foobar\0baz\0");
        assert_eq!(cut(&section, vec![0, 3, 7]).starts, [0, 7]);
    }

    #[test]
    fn an_unlabelled_string_belongs_to_the_one_before() {
        let section = strings(b"ab\0cd\0ef\0");
        assert_eq!(cut(&section, vec![0, 6]).starts, [0, 6]);
    }

    #[test]
    fn an_unlabelled_constant_belongs_to_the_one_before() {
        let flags = (elf::SHF_ALLOC | elf::SHF_MERGE).0;
        let section = Section { flags, entry_size: 4, ..strings(&[0; 16]) };
        assert_eq!(cut(&section, vec![0, 6, 8]).starts, [0, 8]);
        assert!(is_divisible(&section) && !is_divisible(&Section { align: 8, ..section }));
    }

    #[test]
    fn the_end_belongs_to_the_last_piece() {
        let pieces = Pieces { starts: vec![0, 7], first_atom: 10, may_be_end: None };
        assert_eq!(pieces.find(6), (10, 6));
        assert_eq!(pieces.find(7), (11, 0));
        assert_eq!(pieces.find(11), (11, 4));
    }

    #[test]
    fn without_a_terminator_there_are_no_strings() {
        assert!(is_divisible(&strings(b"a\0")));
        assert!(!is_divisible(&strings(b"a\0b")));
        assert!(!is_divisible(&strings(b"")));
    }

    proptest! {
        #[test]
        fn offsets_are_within_their_piece(gaps in prop::collection::vec(1u64..9, 0..9), offset in 0u64..99) {
            let mut starts = vec![0];
            for gap in gaps {
                starts.push(starts[starts.len() - 1] + gap);
            }
            let pieces = Pieces { starts: starts.clone(), first_atom: 5, may_be_end: None };
            let (atom, within) = pieces.find(offset);
            let index = atom as usize - 5;
            prop_assert_eq!(starts[index] + within, offset);
            prop_assert!(starts.get(index + 1).is_none_or(|&next| offset < next));
        }

        /// Wherever the labels are: the pieces are the whole section, and each but the first
        /// follows a terminator.
        #[test]
        fn strings_are_cut_behind_terminators_only(
            text in prop::collection::vec(0u8..3, 1..40),
            labels in prop::collection::vec(0u64..50, 0..9),
        ) {
            let data = [&text[..], &[0]].concat();
            let section = strings(&data);
            prop_assert!(is_divisible(&section));
            let starts = cut(&section, [&[0], &labels[..]].concat()).starts;
            prop_assert_eq!(starts[0], 0);
            prop_assert!(starts.is_sorted_by(|one, other| one < other));
            prop_assert!(starts[1..].iter().all(|&start| data[start as usize - 1] == 0 && start < section.size));
            let wanted = labels.iter().filter(|&&label| label == 0 || label < section.size && data[label as usize - 1] == 0);
            prop_assert!(wanted.into_iter().all(|label| starts.contains(label)));
        }
    }
}
