//! References into a function from elsewhere. In: an object. Out: for each section of code the
//! references from other sections that do not mean its first byte; all of them have to be
//! explained.

use super::NotUnderstood;
use super::tables::Tables;
use crate::elf::object_file::{ObjectFile, Relocation, Section, SymbolPlace};
use object::elf;
use std::collections::BTreeSet;

/// The references from elsewhere into each section of code, behind its front.
pub struct Inward {
    by_section: Vec<Vec<Reference>>,
}

struct Reference {
    /// The section that refers, and where the relocation is in it.
    from: (usize, u64),
    meaning: Meaning,
}

enum Meaning {
    /// Code jumps there.
    Jump(u64),
    /// Data has the address, or one that depends on where a table starts.
    Data,
    Unknown,
}

impl Inward {
    pub fn read(object: &ObjectFile) -> Self {
        let mut by_section: Vec<Vec<Reference>> =
            object.sections.iter().map(|_| Vec::new()).collect();
        for (number, section) in object.sections.iter().enumerate() {
            if !section.is_allocated() || section.is_unwind() {
                continue;
            }
            for relocation in &section.relocations {
                let SymbolPlace::Section(target) = object.symbols[relocation.symbol as usize].place
                else {
                    continue;
                };
                if target == number || !object.sections[target].is_code() {
                    continue;
                }
                if let Some(meaning) = meaning(object, section, relocation) {
                    by_section[target]
                        .push(Reference { from: (number, relocation.offset), meaning });
                }
            }
        }
        Inward { by_section }
    }

    /// Where a function is entered behind its front by code of other sections: its own cold part.
    pub fn entries(
        &self,
        function: usize,
        tables: &Tables,
    ) -> Result<BTreeSet<u32>, NotUnderstood> {
        let mut entries = BTreeSet::new();
        for reference in &self.by_section[function] {
            match reference.meaning {
                Meaning::Jump(to) => {
                    entries.insert(
                        u32::try_from(to)
                            .map_err(|_| "code of another section jumps past its end")?,
                    );
                }
                Meaning::Data if tables.has_entry(reference.from) => {}
                Meaning::Data => {
                    return Err("data that is no jump table of its own has an address inside it");
                }
                Meaning::Unknown => return Err("another section refers into it in an unusual way"),
            }
        }
        Ok(entries)
    }
}

/// What a relocation of another section means; `None` for the function's front.
fn meaning(object: &ObjectFile, from: &Section, relocation: &Relocation) -> Option<Meaning> {
    let symbol = &object.symbols[relocation.symbol as usize];
    let plain = symbol.value.wrapping_add_signed(relocation.addend);
    let kind = relocation.kind;
    let through_table =
        [elf::R_X86_64_GOTPCREL.0, elf::R_X86_64_GOTPCRELX.0, elf::R_X86_64_REX_GOTPCRELX.0];
    if through_table.contains(&kind) && symbol.value == 0 {
        return None;
    }
    let relative = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&kind);
    if from.is_code() && relative {
        // The field is the end of a jump or call, and counts from there.
        let to = plain.wrapping_add(4);
        return (to != 0).then_some(Meaning::Jump(to));
    }
    let absolute = [elf::R_X86_64_64.0, elf::R_X86_64_32.0, elf::R_X86_64_32S.0].contains(&kind);
    match (from.is_code(), absolute || relative) {
        (_, true) if plain == 0 => None,
        (false, true) => Some(Meaning::Data),
        _ => Some(Meaning::Unknown),
    }
}
