//! Two builds of an object, compared without Tasting: which sections differ. An oracle has to come
//! by its answer in another way than what it judges.

use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// What is loaded of an object, by section: the name, and which of that name.
pub type Sections = BTreeMap<(String, usize), Section>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Content, size, rights, alignment.
    pub content: u64,
    /// What it refers to.
    pub references: u64,
    /// There may be others of the same meaning in other objects, or pieces of it elsewhere.
    pub is_shared: bool,
    /// It consists of pieces that linkers merge.
    pub has_pieces: bool,
}

impl Section {
    fn has_pieces_that_refer(&self) -> bool {
        self.has_pieces && self.references != hash_of_references("")
    }
}

const SHF_ALLOC: u64 = 2;
const SHF_MERGE: u64 = 0x10;
const SHF_GROUP: u64 = 0x200;

/// The sections of an object; `None` if it is none.
pub fn sections(bytes: &[u8]) -> Option<Sections> {
    let file: ElfFile64<LittleEndian> = ElfFile64::parse(bytes).ok()?;
    let mut found = Sections::new();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let name = section.name().ok()?.to_owned();
        if sh_flags.0 & SHF_ALLOC == 0 || name == ".eh_frame" || name.starts_with(".note") {
            continue;
        }
        let number = count.entry(name.clone()).or_default();
        *number += 1;
        let mut content = section.data().unwrap_or_default().to_vec();
        // That a section is one of a group is not loaded: `is_shared` says it.
        let flags = sh_flags.0 & !SHF_GROUP;
        content.extend([section.size(), section.align(), flags].map(u64::to_le_bytes).concat());
        let is_shared = sh_flags.0 & (SHF_MERGE | SHF_GROUP) != 0;
        let has_pieces = sh_flags.0 & SHF_MERGE != 0;
        let references = references(&file, &section);
        found.insert(
            (name, *number),
            Section { content: xxh3_64(&content), references, is_shared, has_pieces },
        );
    }
    Some(found)
}

fn references<F: FileHeader<Endian = LittleEndian>>(
    file: &object::read::elf::ElfFile<'_, F>,
    section: &object::read::elf::ElfSection<'_, '_, F>,
) -> u64 {
    let mut text = String::new();
    for (offset, relocation) in section.relocations() {
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => file.symbol_by_index(index).ok().map(|symbol| {
                let name = symbol.name().unwrap_or_default().to_owned();
                let section =
                    symbol.section_index().and_then(|index| file.section_by_index(index).ok());
                let section = section
                    .and_then(|section| section.name().ok().map(str::to_owned))
                    .unwrap_or_default();
                format!("{name} {section} {}", symbol.address())
            }),
            _ => None,
        };
        text += &format!("{offset} {:?} {} {target:?}\n", relocation.flags(), relocation.addend());
    }
    hash_of_references(&text)
}

fn hash_of_references(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// How two builds of an object differ, as far as a linker kept it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The content of a section with a name of its own has changed, which nothing else holds.
    pub certain: Vec<String>,
    /// Whether anything may have changed.
    pub any: bool,
}

/// Compares two builds. `is_removed` says whether the linker left a section out, in the first or
/// the second build; `is_others` whether nobody who is asked about can use it.
pub fn compare(
    one: &Sections,
    other: &Sections,
    is_removed: &dyn Fn(&str, usize) -> bool,
    is_others: &dyn Fn(&str) -> bool,
) -> Difference {
    let mut difference = Difference::default();
    // A linker keeps such a section for one of its pieces, and with it what another piece points
    // to.
    let keeps_by_pieces =
        [one, other].iter().any(|sections| sections.values().any(Section::has_pieces_that_refer));
    let names = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
    for key in names {
        let (before, after) = (one.get(key), other.get(key));
        if before == after || is_others(&key.0) {
            continue;
        }
        let dropped = (before.is_none() || is_removed(&key.0, 0))
            && (after.is_none() || is_removed(&key.0, 1));
        if dropped && !before.or(after).is_some_and(|section| section.is_shared) {
            continue;
        }
        difference.any = true;
        if let (Some(before), Some(after)) = (before, after)
            && before.content != after.content
            && !before.is_shared
            && !after.is_shared
            && !is_removed(&key.0, 0)
            && !is_removed(&key.0, 1)
            && is_certain(&key.0)
            && !keeps_by_pieces
        {
            difference.certain.push(key.0.clone());
        }
    }
    difference
}

/// A section of one function or variable that compilers do not number.
fn is_certain(name: &str) -> bool {
    let parts = [
        ".text.",
        ".data.rel.ro.local.",
        ".data.rel.ro.",
        ".data.rel.local.",
        ".data.",
        ".bss.",
        ".tdata.",
    ];
    let own = parts.iter().find_map(|part| name.strip_prefix(part));
    own.is_some_and(|name| {
        !name.is_empty()
            && name.split(['.', '$']).all(|part| part.parse::<u64>().is_err())
            && !name.contains('.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, content: u64) -> Sections {
        let references = hash_of_references("");
        let section = Section { content, references, is_shared: false, has_pieces: false };
        Sections::from([((name.to_owned(), 1), section)])
    }

    #[test]
    fn changed_functions_count_unless_dropped_by_the_linker() {
        let (before, after) = (one(".text.f", 1), one(".text.f", 2));
        assert_eq!(
            compare(&before, &after, &|_, _| false, &|_| false),
            Difference { certain: vec![".text.f".to_owned()], any: true }
        );
        assert_eq!(compare(&before, &after, &|_, _| true, &|_| false), Difference::default());
        assert!(
            compare(
                &one(".text.f.constprop.0", 1),
                &one(".text.f.constprop.0", 2),
                &|_, _| false,
                &|_| false
            )
            .certain
            .is_empty()
        );
    }

    #[test]
    fn a_section_of_a_group_may_be_another_objects() {
        let (before, mut after) = (one(".text.f", 1), one(".text.f", 2));
        after.values_mut().for_each(|section| section.is_shared = true);
        let difference = compare(&before, &after, &|_, _| false, &|_| false);
        assert_eq!(difference, Difference { certain: Vec::new(), any: true });
    }

    #[test]
    fn shared_targets_of_pieces_are_uncertain() {
        let constants = Section { content: 3, references: 4, is_shared: true, has_pieces: true };
        let with_constants = |content| {
            let mut sections = one(".text.f", content);
            sections.insert((".rodata.cst8".to_owned(), 1), constants.clone());
            sections
        };
        let difference = compare(&with_constants(1), &with_constants(2), &|_, _| false, &|_| false);
        assert_eq!(difference, Difference { certain: Vec::new(), any: true });
    }
}
