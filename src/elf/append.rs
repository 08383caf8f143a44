//! Adds the record to an object, without an `objcopy` process. In: the object's bytes and the
//! record's. Out: the pieces of the new file: a changed header, the old bytes, then the record, a
//! longer table of section names and a longer table of section headers. Every old section stays
//! where it was.

use super::ElfError;
use crate::model::record::SECTION;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, FileKind};

/// Where the fields that change lie in the file header and in a section header.
pub(super) struct Layout {
    pub file_header: usize,
    pub section_table: usize,
    section_count: usize,
    pub entry: usize,
    entry_flags: usize,
    pub entry_offset: usize,
    pub entry_size: usize,
    entry_align: usize,
    word: usize,
}

pub(super) const ELF64: Layout = Layout {
    file_header: 64,
    section_table: 40,
    section_count: 60,
    entry: 64,
    entry_flags: 8,
    entry_offset: 24,
    entry_size: 32,
    entry_align: 48,
    word: 8,
};

const ELF32: Layout = Layout {
    file_header: 52,
    section_table: 32,
    section_count: 48,
    entry: 40,
    entry_flags: 8,
    entry_offset: 16,
    entry_size: 20,
    entry_align: 32,
    word: 4,
};

/// The new file in two pieces: the head replaces as many bytes of the old file, the tail follows
/// it.
pub struct Appended {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

/// Adds a section `.tasting` that every linker drops.
pub fn append(object: &[u8], record: &[u8]) -> Result<Appended, ElfError> {
    match FileKind::parse(object) {
        Ok(FileKind::Elf64) => append_class::<FileHeader64<Endianness>>(object, record, &ELF64),
        Ok(FileKind::Elf32) => append_class::<FileHeader32<Endianness>>(object, record, &ELF32),
        _ => Err(ElfError::NotAnObject),
    }
}

fn append_class<Elf: FileHeader<Endian = Endianness>>(
    object: &[u8],
    record: &[u8],
    layout: &Layout,
) -> Result<Appended, ElfError> {
    let header = Elf::parse(object)?;
    let endian = header.endian()?;
    let sections = header.section_headers(endian, object)?;
    let names_index = header.shstrndx(endian, object)? as usize;
    let names =
        sections.get(names_index).ok_or(ElfError::Malformed("it has no table of section names"))?;
    let is_plain = names.sh_type(endian) == elf::SHT_STRTAB
        && names.sh_flags(endian).0 & elf::SHF_ALLOC.0 == 0;
    if !is_plain {
        return Err(ElfError::Malformed("its table of section names is unusual"));
    }
    // Beyond this the count moves to another place; such objects are hashed when they are linked.
    if header.e_shnum(endian) == 0 || sections.len() + 1 >= usize::from(elf::SHN_LORESERVE) {
        return Err(ElfError::Malformed("it has too many sections for one more"));
    }

    let patch = Patch { little: endian == Endianness::Little, word: layout.word };
    let old_names = names.data(endian, object)?;
    let name_offset = old_names.len();
    let mut tail =
        Vec::with_capacity(record.len() + name_offset + (sections.len() + 1) * layout.entry + 64);
    tail.resize(object.len().next_multiple_of(8) - object.len(), 0);
    let record_at = object.len() + tail.len();
    tail.extend_from_slice(record);
    let names_at = object.len() + tail.len();
    tail.extend_from_slice(old_names);
    tail.extend_from_slice(SECTION.as_bytes());
    tail.push(0);
    let names_size = object.len() + tail.len() - names_at;
    tail.resize((object.len() + tail.len()).next_multiple_of(8) - object.len(), 0);
    let table_at = object.len() + tail.len();

    let mut table = section_table::<Elf>(header, endian, object, layout)?.to_vec();
    let names_entry = &mut table[names_index * layout.entry..];
    patch.word(names_entry, layout.entry_offset, names_at as u64);
    patch.word(names_entry, layout.entry_size, names_size as u64);
    let mut entry = vec![0; layout.entry];
    patch.bytes(&mut entry, 0, 4, name_offset as u64);
    patch.bytes(&mut entry, 4, 4, elf::SHT_PROGBITS.0.into());
    patch.word(&mut entry, layout.entry_flags, elf::SHF_EXCLUDE.0);
    patch.word(&mut entry, layout.entry_offset, record_at as u64);
    patch.word(&mut entry, layout.entry_size, record.len() as u64);
    patch.word(&mut entry, layout.entry_align, 1);
    tail.append(&mut table);
    tail.append(&mut entry);

    let mut head = object.get(..layout.file_header).ok_or(ElfError::NotAnObject)?.to_vec();
    patch.word(&mut head, layout.section_table, table_at as u64);
    patch.bytes(&mut head, layout.section_count, 2, sections.len() as u64 + 1);
    Ok(Appended { head, tail })
}

/// The bytes of the table of section headers.
pub(super) fn section_table<'a, Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    endian: Endianness,
    object: &'a [u8],
    layout: &Layout,
) -> Result<&'a [u8], ElfError> {
    let at: u64 = header.e_shoff(endian).into();
    let size = usize::from(header.e_shnum(endian)) * layout.entry;
    let table = usize::try_from(at).ok().and_then(|at| object.get(at..)?.get(..size));
    table.ok_or(ElfError::Malformed("its table of section headers is truncated"))
}

/// Writes numbers in the object's byte order.
pub(super) struct Patch {
    pub little: bool,
    pub word: usize,
}

impl Patch {
    pub fn word(&self, bytes: &mut [u8], at: usize, value: u64) {
        self.bytes(bytes, at, self.word, value);
    }

    pub fn bytes(&self, bytes: &mut [u8], at: usize, width: usize, value: u64) {
        let field = &mut bytes[at..at + width];
        if self.little {
            field.copy_from_slice(&value.to_le_bytes()[..width]);
        } else {
            field.copy_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }
}
