//! The digest by which a record knows the object that it was made of. It covers all that decides the atoms
//! and nothing else: debug information may be stripped or added, and layout in the file does not count.

use super::object_file::{ObjectFile, Section};
use crate::model::record::SECTION;
use crate::model::{Hash, Hasher};
use object::elf;

/// The digest of an object, whether or not it carries a record.
pub fn of_object(object: &ObjectFile) -> Hash {
    let mut hasher = Hasher::new("object");
    hasher.number(object.machine.into()).number(object.flags.into());
    for (index, section) in object.sections.iter().enumerate() {
        if counts(object, section) {
            hasher.number(index as u64).bytes(section.name.as_bytes());
            hasher.number(section.kind.into()).number(section.flags).number(section.align);
            hasher.number(section.entry_size).number(section.link.into()).number(section.info.into());
            hasher.number(section.size).bytes(section.data);
        }
    }
    for symbol in &object.symbols {
        hasher.bytes(symbol.name.as_bytes());
    }
    hasher.finish()
}

/// Memory, symbols, and the relocations and groups of what is in memory.
fn counts(object: &ObjectFile, section: &Section) -> bool {
    let applies_to_memory = || object.sections.get(section.info as usize).is_some_and(|target| target.is_allocated());
    match elf::SectionType(section.kind) {
        elf::SHT_SYMTAB | elf::SHT_SYMTAB_SHNDX | elf::SHT_GROUP => true,
        elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL => applies_to_memory(),
        // Names are hashed with their symbols: appending the record's own name changes the table that
        // LLVM shares between sections and symbols.
        elf::SHT_STRTAB => section.is_allocated(),
        _ => section.name != SECTION && (section.is_allocated() || section.name == ".note.GNU-stack"),
    }
}
