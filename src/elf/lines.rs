//! Source positions of functions and variables: file and line of each code section's first
//! instruction, from the line table `.debug_line`, and of the variable at the beginning of each
//! data section, from `.debug_info`. For messages only: nothing of it is hashed.

use super::object_file::{ObjectFile, Section, SymbolPlace};
use crate::model::Record;
use gimli::{
    Abbreviation, AttributeValue, DebugAbbrev, DebugAddr, DebugAddrBase, DebugAddrIndex, DebugInfo,
    DebugLine, DebugLineOffset, Encoding, EndianSlice, EntriesRaw, Operation, Reader, Relocate,
    RelocateReader, RunTimeEndian,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// A section beyond this size is not worth its time: the build must not wait for what only people
/// read.
const LARGEST: usize = 16 << 20;

/// A path is looked at up to this length; what all of them may add up to grows with the table.
const LONGEST_PATH: usize = 4096;
const PATHS: usize = 1 << 16;
const PATHS_PER_BYTE: usize = 16;

/// Relocated addresses are `section << SHIFT | offset`.
const SHIFT: u32 = 40;

/// Notes file and line with the atoms of the sections.
pub fn annotate<'a>(object: &ObjectFile<'a>, record: &mut Record<'a>, atom_of: &[Option<u32>]) {
    let Some(table) = section(object, ".debug_line") else { return };
    let room = PATHS + table.data.len() * PATHS_PER_BYTE;
    let mut annotator = Annotator { object, record, atom_of, file_numbers: HashMap::new(), room };
    // A damaged table ends the reading: what was found before it stays.
    let _ = annotator.read_lines(table);
    let _ = annotator.read_variables(table);
}

/// The lines of a section of code, each with the offset where it starts, in the file that the
/// section's first instruction was written in. Line 0 stands for code of other files. Nothing where
/// the table is damaged.
pub fn of_section(object: &ObjectFile, number: usize) -> Vec<(u64, u32)> {
    let rows = section(object, ".debug_line").and_then(|table| rows_of(object, table, number).ok());
    let mut rows = rows.unwrap_or_default();
    rows.sort_by_key(|row| row.0);
    let file = rows.first().map(|row| row.1);
    rows.into_iter().map(|(at, of, line)| (at, if Some(of) == file { line } else { 0 })).collect()
}

/// The rows of a line table that are about a section: offset, file, line.
fn rows_of(
    object: &ObjectFile,
    table: &Section,
    number: usize,
) -> gimli::Result<Vec<(u64, u64, u32)>> {
    let mut record = Record::default();
    let annotator = Annotator {
        object,
        record: &mut record,
        atom_of: &[],
        file_numbers: HashMap::new(),
        room: 0,
    };
    let lines = DebugLine::from(annotator.reader(table));
    let (mut found, mut at) = (Vec::new(), 0);
    while at < table.data.len() {
        let program = lines.program(DebugLineOffset(at), annotator.address_size(), None, None)?;
        at += program.header().unit_length()
            + usize::from(program.header().format().initial_length_size());
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            if (row.address() >> SHIFT) as usize == number {
                let line =
                    row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or_default();
                found.push((row.address() & ((1 << SHIFT) - 1), row.file_index(), line));
            }
        }
    }
    Ok(found)
}

fn section<'o, 'a>(object: &'o ObjectFile<'a>, name: &str) -> Option<&'o Section<'a>> {
    let compressed = object::elf::SHF_COMPRESSED.0;
    let is_it = |section: &&Section| section.name == name && section.flags & compressed == 0;
    object.sections.iter().find(is_it).filter(|section| section.data.len() <= LARGEST)
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
        let index = relocations
            .binary_search_by_key(&(offset as u64), |relocation| relocation.offset)
            .ok()?;
        let symbol = self.object.symbols.get(relocations[index].symbol as usize)?;
        let SymbolPlace::Section(section) = symbol.place else { return None };
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
    fn reader(&self, table: &'o Section<'a>) -> Table<'o, 'a> {
        let endian = match self.object.endian {
            object::Endianness::Little => RunTimeEndian::Little,
            object::Endianness::Big => RunTimeEndian::Big,
        };
        RelocateReader::new(
            EndianSlice::new(table.data, endian),
            Relocations { object: self.object, table },
        )
    }

    fn address_size(&self) -> u8 {
        if self.object.is_64 { 8 } else { 4 }
    }

    fn read_lines(&mut self, table: &'o Section<'a>) -> gimli::Result<()> {
        let lines = DebugLine::from(self.reader(table));
        let address_size = self.address_size();
        let mut at = 0;
        while at < table.data.len() {
            let program = lines.program(DebugLineOffset(at), address_size, None, None)?;
            let length = program.header().unit_length();
            let format = program.header().format();
            let mut rows = program.rows();
            let mut at_start = true;
            while let Some((header, row)) = rows.next_row()? {
                if let (true, Some(line)) = (at_start, row.line()) {
                    self.note(at, header, row.address(), row.file_index(), line.get());
                }
                at_start = row.end_sequence();
            }
            at += length + usize::from(format.initial_length_size());
        }
        Ok(())
    }

    /// Notes where the variables were written that have a place of their own.
    fn read_variables(&mut self, table: &'o Section<'a>) -> gimli::Result<()> {
        let object = self.object;
        let (Some(info), Some(forms)) =
            (section(object, ".debug_info"), section(object, ".debug_abbrev"))
        else {
            return Ok(());
        };
        let lines = DebugLine::from(self.reader(table));
        let forms = DebugAbbrev::from(self.reader(forms));
        let mut units = DebugInfo::from(self.reader(info)).units();
        while let Some(unit) = units.next()? {
            let abbreviations = unit.abbreviations(&forms)?;
            let mut entries = unit.entries_raw(&abbreviations, None)?;
            let (mut program, mut addresses) = (None, None);
            let mut declared: HashMap<usize, Variable> = HashMap::new();
            while !entries.is_empty() {
                let offset = entries.next_offset().0;
                let Some(abbreviation) = entries.read_abbreviation()? else { continue };
                match abbreviation.tag() {
                    gimli::DW_TAG_variable => {
                        let variable =
                            Variable::read(&mut entries, abbreviation, unit.encoding(), &declared)?;
                        self.note_variable(program.as_ref(), addresses, &variable);
                        if abbreviation
                            .attributes()
                            .iter()
                            .any(|form| form.name() == gimli::DW_AT_declaration)
                        {
                            declared.insert(offset, variable);
                        }
                    }
                    gimli::DW_TAG_compile_unit => {
                        for form in abbreviation.attributes() {
                            match entries.read_attribute(*form)?.value() {
                                AttributeValue::DebugLineRef(at) => {
                                    program =
                                        Some(lines.program(at, self.address_size(), None, None)?);
                                }
                                AttributeValue::DebugAddrBase(at) => addresses = Some(at),
                                _ => {}
                            }
                        }
                    }
                    _ => entries.skip_attributes(abbreviation.attributes())?,
                }
            }
        }
        Ok(())
    }

    fn note_variable(
        &mut self,
        program: Option<&gimli::IncompleteLineProgram<Table<'o, 'a>>>,
        addresses: Option<DebugAddrBase>,
        variable: &Variable,
    ) {
        let in_list = |index| {
            let list = DebugAddr::from(self.reader(section(self.object, ".debug_addr")?));
            list.get_address(self.address_size(), addresses?, index).ok()
        };
        let address = match variable.place {
            Some(Position::Address(address)) => Some(address),
            Some(Position::Listed(index)) => in_list(index),
            None => None,
        };
        if let (Some(program), Some(address), Some(file), Some(line)) =
            (program, address, variable.file, variable.line)
        {
            self.note(program.header().offset().0, program.header(), address, file, line);
        }
    }

    /// Notes the file and line of what is at an address, if that is a section's first byte.
    fn note(
        &mut self,
        program: usize,
        header: &Header<'o, 'a>,
        address: u64,
        file: u64,
        line: u64,
    ) {
        let (section, offset) = ((address >> SHIFT) as usize, address & ((1 << SHIFT) - 1));
        let Some(&Some(atom)) = self.atom_of.get(section).filter(|_| offset == 0) else { return };
        let Ok(line) = u32::try_from(line) else { return };
        let Some(file) = self.file(program, header, file) else { return };
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
        let folder = entry
            .directory(header)
            .filter(|_| entry.directory_index() != 0)
            .and_then(|text| self.text(text));
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
            AttributeValue::String(reader) if reader.len() <= LONGEST_PATH => {
                reader.inner().slice()
            }
            AttributeValue::DebugLineStrRef(offset) => {
                string_at(section(self.object, ".debug_line_str")?, offset.0)?
            }
            AttributeValue::DebugStrRef(offset) => {
                string_at(section(self.object, ".debug_str")?, offset.0)?
            }
            _ => return None,
        };
        std::str::from_utf8(bytes).ok()
    }
}

/// What is said of a variable.
#[derive(Clone, Copy, Default)]
struct Variable {
    place: Option<Position>,
    file: Option<u64>,
    line: Option<u64>,
}

/// Where a variable lies.
#[derive(Clone, Copy)]
enum Position {
    Address(u64),
    /// At an address in the unit's list.
    Listed(DebugAddrIndex),
}

impl Variable {
    /// Reads one. Of what an earlier declaration says only what is different is said again.
    fn read<R: Reader<Offset = usize>>(
        entries: &mut EntriesRaw<R>,
        abbreviation: &Abbreviation,
        encoding: Encoding,
        declared: &HashMap<usize, Variable>,
    ) -> gimli::Result<Self> {
        let (mut variable, mut before) = (Variable::default(), Variable::default());
        for form in abbreviation.attributes() {
            let attribute = entries.read_attribute(*form)?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_decl_file, _) => variable.file = attribute.udata_value(),
                (gimli::DW_AT_decl_line, _) => variable.line = attribute.udata_value(),
                (gimli::DW_AT_location, AttributeValue::Exprloc(place)) => {
                    variable.place = match place.operations(encoding).next()? {
                        Some(Operation::Address { address }) => Some(Position::Address(address)),
                        Some(Operation::AddressIndex { index }) => Some(Position::Listed(index)),
                        _ => None,
                    };
                }
                (gimli::DW_AT_specification, AttributeValue::UnitRef(offset)) => {
                    before = declared.get(&offset.0).copied().unwrap_or_default();
                }
                _ => {}
            }
        }
        Ok(Variable {
            file: variable.file.or(before.file),
            line: variable.line.or(before.line),
            ..variable
        })
    }
}

fn string_at<'a>(section: &Section<'a>, offset: usize) -> Option<&'a [u8]> {
    let rest = section.data.get(offset..)?;
    let end = rest.iter().take(LONGEST_PATH).position(|&byte| byte == 0)?;
    rest.get(..end)
}
