//! Where a function was written: source file and line of each code section's first instruction, from the line
//! table `.debug_line` of an object that has one. For people only: nothing of it is hashed.

use super::object_file::{ObjectFile, Place, Section};
use crate::model::Record;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, Reader, Relocate, RelocateReader, RunTimeEndian};
use std::borrow::Cow;
use std::collections::HashMap;

/// A line table beyond this size is not worth its time: the build must not wait for what only people read.
const LARGEST_TABLE: usize = 16 << 20;

/// A path is looked at up to this length; what all of them may add up to grows with the table.
const LONGEST_PATH: usize = 4096;
const PATHS: usize = 1 << 16;
const PATHS_PER_BYTE: usize = 16;

/// Relocated addresses are `section << SHIFT | offset`.
const SHIFT: u32 = 40;

/// Notes file and line with the atoms of the code sections.
pub fn annotate<'a>(object: &ObjectFile<'a>, record: &mut Record<'a>, atom_of: &[Option<u32>]) {
    let Some(table) = section(object, ".debug_line").filter(|table| table.data.len() <= LARGEST_TABLE) else { return };
    let room = PATHS + table.data.len() * PATHS_PER_BYTE;
    let mut annotator = Annotator { object, record, atom_of, file_numbers: HashMap::new(), room };
    // A damaged table ends the reading: what was found before it stays.
    let _ = annotator.read(table);
}

fn section<'o, 'a>(object: &'o ObjectFile<'a>, name: &str) -> Option<&'o Section<'a>> {
    let compressed = object::elf::SHF_COMPRESSED.0;
    object.sections.iter().find(|section| section.name == name && section.flags & compressed == 0)
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Table<'o, 'a> = RelocateReader<Slice<'a>, Relocations<'o, 'a>>;
type Header<'o, 'a> = gimli::LineProgramHeader<Table<'o, 'a>>;

/// Applies the relocations of the line table.
#[derive(Clone, Copy)]
struct Relocations<'o, 'a> {
    object: &'o ObjectFile<'a>,
    table: &'o Section<'a>,
}

impl std::fmt::Debug for Relocations<'_, '_> {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Relocations")
    }
}

impl Relocations<'_, '_> {
    /// The section and offset that the field at `offset` is relocated to.
    fn find(&self, offset: usize) -> Option<(usize, u64)> {
        let relocations = &self.table.relocations;
        let index = relocations.binary_search_by_key(&(offset as u64), |relocation| relocation.offset).ok()?;
        let symbol = self.object.symbols.get(relocations[index].symbol as usize)?;
        let Place::Section(section) = symbol.place else { return None };
        Some((section, symbol.value.wrapping_add_signed(relocations[index].addend)))
    }
}

impl Relocate for Relocations<'_, '_> {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.find(offset).map_or(value, |(section, at)| ((section as u64) << SHIFT) | at))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(self.find(offset).map_or(value, |(_, at)| at as usize))
    }
}

struct Annotator<'o, 'a, 'r> {
    object: &'o ObjectFile<'a>,
    record: &'r mut Record<'a>,
    atom_of: &'r [Option<u32>],
    file_numbers: HashMap<(usize, u64), u32>,
    /// How many bytes of paths may still be added.
    room: usize,
}

impl<'o, 'a> Annotator<'o, 'a, '_> {
    fn read(&mut self, table: &'o Section<'a>) -> gimli::Result<()> {
        let endian = match self.object.endian {
            object::Endianness::Little => RunTimeEndian::Little,
            object::Endianness::Big => RunTimeEndian::Big,
        };
        let reader =
            RelocateReader::new(EndianSlice::new(table.data, endian), Relocations { object: self.object, table });
        let lines = DebugLine::from(reader);
        let address_size = if self.object.is_64 { 8 } else { 4 };
        let mut at = 0;
        while at < table.data.len() {
            let program = lines.program(DebugLineOffset(at), address_size, None, None)?;
            let length = program.header().unit_length();
            let format = program.header().format();
            let mut rows = program.rows();
            let mut at_start = true;
            while let Some((header, row)) = rows.next_row()? {
                if at_start {
                    self.note(at, header, row);
                }
                at_start = row.end_sequence();
            }
            at += length + usize::from(format.initial_length_size());
        }
        Ok(())
    }

    /// Notes the first row of a sequence when it is a section's first byte.
    fn note(&mut self, program: usize, header: &Header<'o, 'a>, row: &gimli::LineRow) {
        let (section, offset) = ((row.address() >> SHIFT) as usize, row.address() & ((1 << SHIFT) - 1));
        let Some(&Some(atom)) = self.atom_of.get(section).filter(|_| offset == 0) else { return };
        let Some(line) = row.line().and_then(|line| u32::try_from(line.get()).ok()) else { return };
        let Some(file) = self.file(program, header, row.file_index()) else { return };
        if let Some(atom) = self.record.atoms.get_mut(atom as usize) {
            (atom.file, atom.line) = (file, line);
        }
    }

    /// The record's number of a file of a line table.
    fn file(&mut self, program: usize, header: &Header<'o, 'a>, index: u64) -> Option<u32> {
        if let Some(&number) = self.file_numbers.get(&(program, index)) {
            return Some(number);
        }
        let entry = header.file(index)?;
        let name = self.text(entry.path_name())?;
        let folder = entry.directory(header).filter(|_| entry.directory_index() != 0).and_then(|text| self.text(text));
        let path = match folder {
            Some(folder) if !name.starts_with('/') => Cow::Owned(format!("{folder}/{name}")),
            _ => Cow::Borrowed(name),
        };
        self.room = self.room.checked_sub(path.len())?;
        let number = self.record.files.len() as u32;
        self.record.files.push(path);
        self.file_numbers.insert((program, index), number);
        Some(number)
    }

    fn text(&self, value: AttributeValue<Table<'o, 'a>>) -> Option<&'a str> {
        let bytes = match value {
            AttributeValue::String(reader) if reader.len() <= LONGEST_PATH => reader.inner().slice(),
            AttributeValue::DebugLineStrRef(offset) => string_at(section(self.object, ".debug_line_str")?, offset.0)?,
            AttributeValue::DebugStrRef(offset) => string_at(section(self.object, ".debug_str")?, offset.0)?,
            _ => return None,
        };
        std::str::from_utf8(bytes).ok()
    }
}

fn string_at<'a>(section: &Section<'a>, offset: usize) -> Option<&'a [u8]> {
    let rest = section.data.get(offset..)?;
    let end = rest.iter().take(LONGEST_PATH).position(|&byte| byte == 0)?;
    rest.get(..end)
}
