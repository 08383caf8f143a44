//! The tidied object. In: the object and what becomes of its sections and symbols. Out: its bytes.

use super::{Fate, Header, LITTLE, PATCH, SECTION_INFO, Tables, relocations};
use crate::elf::append::{ELF64, section_table};
use object::elf::{self, FileHeader64, Rela64};
use object::read::elf::{SectionHeader, Sym};
use object::{Endianness, pod};
use std::borrow::Cow;

pub(super) struct Writer<'w, 'a> {
    pub(super) object: &'a [u8],
    pub(super) header: &'a FileHeader64<Endianness>,
    pub(super) sections: &'a [Header],
    pub(super) tables: &'w Tables<'a>,
    pub(super) fate: &'w Fate,
    pub(super) names: &'w Names,
}

impl Writer<'_, '_> {
    /// The new file: every section in the order of the old file, then the table of section headers.
    pub(super) fn write(&self) -> Option<Vec<u8>> {
        let mut file = Vec::with_capacity(self.object.len());
        file.extend_from_slice(self.object.get(..ELF64.file_header)?);
        let mut table = section_table(self.header, LITTLE, self.object, &ELF64).ok()?.to_vec();
        let mut order: Vec<usize> = (1..self.sections.len()).collect();
        order.sort_by_key(|&index| {
            self.sections.get(index).map(|section| section.sh_offset(LITTLE))
        });
        for index in order {
            let section = self.sections.get(index)?;
            let content = self.content(index, section)?;
            let align = usize::try_from(section.sh_addralign(LITTLE)).ok()?.clamp(1, 4096);
            file.resize(file.len().checked_next_multiple_of(align)?, 0);
            let entry = table.get_mut(index * ELF64.entry..)?;
            PATCH.word(entry, ELF64.entry_offset, file.len() as u64);
            if section.sh_type(LITTLE) != elf::SHT_NOBITS {
                PATCH.word(entry, ELF64.entry_size, content.len() as u64);
            }
            PATCH.bytes(entry, SECTION_INFO, 4, self.info(index, section)?.into());
            file.extend_from_slice(&content);
        }
        file.resize(file.len().checked_next_multiple_of(8)?, 0);
        let table_at = file.len() as u64;
        PATCH.word(&mut file, ELF64.section_table, table_at);
        file.append(&mut table);
        Some(file)
    }

    fn content(&self, index: usize, section: &Header) -> Option<Cow<'_, [u8]>> {
        if index == self.tables.index {
            return Some(Cow::Owned(self.symbols()?));
        }
        if index == self.tables.names_index {
            return Some(Cow::Borrowed(&self.names.bytes));
        }
        let content = section.data(LITTLE, self.object).ok()?;
        match section.sh_type(LITTLE) {
            elf::SHT_RELA => self.relocations(section, content).map(Cow::Owned),
            _ => Some(Cow::Borrowed(content)),
        }
    }

    fn symbols(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size_of_val(self.tables.symbols));
        for (old, (symbol, number)) in
            self.tables.symbols.iter().zip(&self.fate.numbers).enumerate()
        {
            if number.is_some() {
                let at = bytes.len();
                bytes.extend_from_slice(pod::bytes_of(symbol));
                let entry = bytes.get_mut(at..)?;
                if self.fate.stand_in(old) == Some(old) {
                    make_section_symbol(entry);
                } else {
                    let name = self.names.moved(symbol.st_name(LITTLE) as usize)?;
                    PATCH.bytes(entry, 0, 4, name as u64);
                }
            }
        }
        Some(bytes)
    }

    fn relocations(&self, section: &Header, content: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = content.to_vec();
        for (entry, relocation) in bytes
            .chunks_exact_mut(size_of::<Rela64<Endianness>>())
            .zip(relocations(section, self.object)?)
        {
            let info = relocation.r_info.get(LITTLE);
            let old = (info >> 32) as usize;
            PATCH.bytes(entry, 8, 8, u64::from(self.fate.number(old)?) << 32 | info & 0xffff_ffff);
            if self.fate.stand_in(old).is_some() {
                let value = self.tables.symbols.get(old)?.st_value(LITTLE);
                let addend = relocation.r_addend.get(LITTLE).wrapping_add_unsigned(value);
                PATCH.bytes(entry, 16, 8, addend as u64);
            }
        }
        Some(bytes)
    }

    /// The field that holds a symbol's number for groups, and the count of local symbols for their
    /// table.
    fn info(&self, index: usize, section: &Header) -> Option<u32> {
        let info = section.sh_info(LITTLE);
        if index == self.tables.index {
            let locals = self.fate.numbers.get(..self.tables.first_global)?;
            Some(locals.iter().flatten().count() as u32)
        } else if section.sh_type(LITTLE) == elf::SHT_GROUP {
            self.fate.number(info as usize)
        } else {
            Some(info)
        }
    }
}

/// The names of the symbols that stay. They may share their tails, as assemblers let them.
pub(super) struct Names {
    bytes: Vec<u8>,
    /// Which part of the old table went where: old start, old end, new start; sorted.
    moves: Vec<(usize, usize, usize)>,
}

impl Names {
    pub(super) fn of(tables: &Tables, fate: &Fate) -> Self {
        let staying =
            tables.symbols.iter().zip(&fate.numbers).filter(|(_, number)| number.is_some());
        let mut spans: Vec<(usize, usize)> = staying
            .map(|(symbol, _)| {
                let start = symbol.st_name(LITTLE) as usize;
                (start, start + tables.name(symbol).len() + 1)
            })
            .collect();
        // The name of those that have none.
        spans.push((0, 1));
        spans.sort_unstable();
        let mut names = Names { bytes: Vec::new(), moves: Vec::new() };
        for (start, end) in spans {
            match names.moves.last_mut() {
                Some((_, last, _)) if start < *last => {
                    names.bytes.extend(tables.names.get(*last..end).unwrap_or_default());
                    *last = end.max(*last);
                }
                _ => {
                    names.moves.push((start, end, names.bytes.len()));
                    names.bytes.extend(tables.names.get(start..end).unwrap_or_default());
                }
            }
        }
        names
    }

    /// Where a name that stays is now.
    fn moved(&self, old: usize) -> Option<usize> {
        let at = self.moves.partition_point(|&(start, _, _)| start <= old).checked_sub(1)?;
        let &(start, end, new) = self.moves.get(at)?;
        (old < end).then_some(new + old - start)
    }
}

/// Turns a label's entry into that of the section that it is in: no name, value or size; only the
/// section stays.
fn make_section_symbol(entry: &mut [u8]) {
    PATCH.bytes(entry, 0, 4, 0);
    PATCH.bytes(entry, 4, 1, elf::STT_SECTION.0.into());
    PATCH.bytes(entry, 8, 8, 0);
    PATCH.bytes(entry, 16, 8, 0);
}
