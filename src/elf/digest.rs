//! The digest by which a record knows the object that it was made of. It covers all that decides
//! the atoms and nothing else: debug information may be stripped or added, and layout in the file
//! does not count.

use super::object_file::{Section, Tables};
use crate::model::record::SECTION;
use crate::model::{Hash, Hasher};
use object::elf;

/// The digest of an object, whether or not it carries a record.
pub fn of_object(tables: &Tables) -> Hash {
    let mut hasher = Hasher::new("object");
    hasher.number(tables.machine.into()).number(tables.flags.into());
    for (index, section) in tables.sections.iter().enumerate() {
        if counts(&tables.sections, section) {
            hasher.number(index as u64).bytes(section.name.as_bytes());
            hasher.number(section.kind.into()).number(section.flags).number(section.align);
            hasher
                .number(section.entry_size)
                .number(section.link.into())
                .number(section.info.into());
            let content = content(section);
            hasher
                .number(section.size - (section.data.len() - content.len()) as u64)
                .bytes(content);
        }
    }
    hasher.finish()
}

/// A table of names without the name of the record's section: LLVM has one table for sections and
/// symbols, and appending the record makes it longer. An object that carries a void record besides
/// its own has the name twice.
fn content<'a>(section: &Section<'a>) -> &'a [u8] {
    let mut content = section.data;
    while let Some(names) =
        content.strip_suffix(b".tasting\0").filter(|_| section.kind == elf::SHT_STRTAB.0)
    {
        content = names;
    }
    content
}

/// Memory, symbols, and the relocations and groups of what is in memory.
fn counts(sections: &[Section], section: &Section) -> bool {
    let applies_to_memory =
        || sections.get(section.info as usize).is_some_and(|target| target.is_allocated());
    match elf::SectionType(section.kind) {
        elf::SHT_SYMTAB | elf::SHT_SYMTAB_SHNDX | elf::SHT_GROUP => true,
        elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL => applies_to_memory(),
        // The table of the symbols' names; one of section names alone does not count.
        elf::SHT_STRTAB => section.name == ".strtab" || section.is_allocated(),
        _ => {
            let is_bitcode =
                || section.name.starts_with(".gnu.lto_") || section.name == ".llvm.lto";
            section.name != SECTION
                && (section.is_allocated() || section.name == ".note.GNU-stack" || is_bitcode())
        }
    }
}
