//! One relocatable object as plain tables: sections, symbols, relocations. In: the bytes of an ELF
//! file of any class and byte order. Out: [`ObjectFile`], in which every index has been checked.

use super::bitcode::is_bitcode;
use super::{ElfError, NameBudget};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{Endianness, FileKind, SymbolIndex};

/// The sections of one object, at their ELF indices; all that is needed to know whether a record
/// fits.
pub struct Tables<'a> {
    pub machine: u16,
    pub flags: u32,
    pub sections: Vec<Section<'a>>,
    bytes: &'a [u8],
}

/// The tables of one object, with its symbols at their ELF indices and its relocations.
pub struct ObjectFile<'a> {
    tables: Tables<'a>,
    pub symbols: Vec<Symbol<'a>>,
    pub endian: Endianness,
    pub is_64: bool,
}

impl<'a> std::ops::Deref for ObjectFile<'a> {
    type Target = Tables<'a>;

    fn deref(&self) -> &Tables<'a> {
        &self.tables
    }
}

/// One section, with the relocations that apply to it, sorted by offset.
#[derive(Default)]
pub struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub flags: u64,
    pub align: u64,
    pub entry_size: u64,
    pub link: u32,
    pub info: u32,
    pub size: u64,
    /// Empty for sections that occupy no file space.
    pub data: &'a [u8],
    pub relocations: Vec<Relocation>,
    /// The relocations keep their addends in the relocated fields (SHT_REL).
    pub addends_in_place: bool,
}

/// One relocation.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    pub offset: u64,
    pub kind: u32,
    /// Index of the symbol; 0 for none.
    pub symbol: u32,
    pub addend: i64,
}

/// One symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    pub name: &'a str,
    pub binding: u8,
    pub kind: u8,
    pub place: SymbolPlace,
    pub value: u64,
    pub size: u64,
}

/// What stands at index 0.
const NO_SYMBOL: Symbol =
    Symbol { name: "", binding: 0, kind: 0, place: SymbolPlace::Undefined, value: 0, size: 0 };

/// Where a symbol is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    Undefined,
    Absolute,
    Common,
    Section(usize),
}

impl Section<'_> {
    /// It is part of the program's memory.
    pub fn is_allocated(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// It holds machine code.
    pub fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// It holds the unwind tables of the code sections.
    pub fn is_unwind(&self) -> bool {
        self.name == ".eh_frame" && self.is_allocated()
    }
}

impl Symbol<'_> {
    pub fn is_local(&self) -> bool {
        self.binding == elf::STB_LOCAL.0
    }

    pub fn is_section(&self) -> bool {
        self.kind == elf::STT_SECTION.0
    }
}

impl<'a> Tables<'a> {
    /// Reads an object's sections.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        if is_bitcode(bytes) {
            return Err(ElfError::Bitcode);
        }
        match FileKind::parse(bytes) {
            Ok(FileKind::Elf64) => Self::parse_class::<FileHeader64<Endianness>>(bytes),
            Ok(FileKind::Elf32) => Self::parse_class::<FileHeader32<Endianness>>(bytes),
            _ => Err(ElfError::NotAnObject),
        }
    }

    fn parse_class<Elf: FileHeader<Endian = Endianness>>(
        bytes: &'a [u8],
    ) -> Result<Self, ElfError> {
        let header = Elf::parse(bytes)?;
        let endian = header.endian()?;
        if header.e_type(endian) != elf::ET_REL {
            return Err(ElfError::NotAnObject);
        }
        Ok(Tables {
            machine: header.e_machine(endian).0,
            flags: header.e_flags(endian).0,
            sections: read_sections::<Elf>(bytes, endian, &header.sections(endian, bytes)?)?,
            bytes,
        })
    }
}

impl<'a> ObjectFile<'a> {
    /// An object without anything in it.
    pub fn empty() -> Self {
        let tables =
            Tables { machine: 0, flags: 0, sections: vec![Section::default()], bytes: &[] };
        ObjectFile { tables, symbols: vec![NO_SYMBOL], endian: Endianness::Little, is_64: true }
    }

    /// Reads an object's tables.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        Self::complete(Tables::parse(bytes)?)
    }

    /// Reads the symbols and relocations as well.
    pub fn complete(tables: Tables<'a>) -> Result<Self, ElfError> {
        match FileKind::parse(tables.bytes) {
            Ok(FileKind::Elf64) => Self::complete_class::<FileHeader64<Endianness>>(tables),
            Ok(FileKind::Elf32) => Self::complete_class::<FileHeader32<Endianness>>(tables),
            _ => Err(ElfError::NotAnObject),
        }
    }

    fn complete_class<Elf: FileHeader<Endian = Endianness>>(
        tables: Tables<'a>,
    ) -> Result<Self, ElfError> {
        let bytes = tables.bytes;
        let header = Elf::parse(bytes)?;
        let endian = header.endian()?;
        let table = header.sections(endian, bytes)?;
        let symbol_table = table.symbols(endian, bytes, elf::SHT_SYMTAB)?;
        let mut object = ObjectFile {
            symbols: read_symbols::<Elf>(bytes, endian, &table, &symbol_table)?,
            tables,
            endian,
            is_64: header.is_type_64(),
        };
        check_layout(bytes, size_of::<Elf>(), &object.sections)?;
        read_relocations::<Elf>(bytes, endian, &table, &mut object)?;
        Ok(object)
    }

    /// It holds an intermediate language beside, or instead of, machine code.
    pub fn has_bitcode(&self) -> bool {
        self.sections
            .iter()
            .any(|section| section.name.starts_with(".gnu.lto_") || section.name == ".llvm.lto")
    }
}

fn text(bytes: &[u8]) -> Result<&str, ElfError> {
    std::str::from_utf8(bytes).map_err(|_| ElfError::Malformed("a name in it is not UTF-8"))
}

/// A source file may be called anything. Its name is in no hash, so one that is not UTF-8 is left
/// out.
fn symbol_name(kind: elf::SymbolType, name: &[u8]) -> Result<&str, ElfError> {
    if kind == elf::STT_FILE { Ok(text(name).unwrap_or_default()) } else { text(name) }
}

fn read_sections<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Vec<Section<'a>>, ElfError> {
    let mut names = NameBudget::of(bytes);
    table
        .iter()
        .map(|header| {
            let name = text(names.take(table.section_name(endian, header)?)?)?;
            // The first one may use its fields for other things: the number of sections.
            if header.sh_type(endian) == elf::SHT_NULL {
                return Ok(Section { name, ..Section::default() });
            }
            Ok(Section {
                name,
                kind: header.sh_type(endian).0,
                flags: header.sh_flags(endian).0,
                align: header.sh_addralign(endian).into(),
                entry_size: header.sh_entsize(endian).into(),
                link: header.sh_link(endian),
                info: header.sh_info(endian),
                size: header.sh_size(endian).into(),
                data: header.data(endian, bytes)?,
                ..Section::default()
            })
        })
        .collect()
}

/// Refuses sections that share bytes of the file with each other or with its header. No tool writes
/// them; with them, a small file can claim to hold any amount of content.
fn check_layout(bytes: &[u8], header: usize, sections: &[Section]) -> Result<(), ElfError> {
    let start = bytes.as_ptr().addr();
    let filled = sections.iter().filter(|section| !section.data.is_empty());
    let mut ranges: Vec<(usize, usize)> =
        filled.map(|section| (section.data.as_ptr().addr() - start, section.data.len())).collect();
    ranges.sort_unstable();
    let mut end = header;
    for (at, length) in ranges {
        if at < end {
            return Err(ElfError::Malformed("its sections overlap"));
        }
        end = at + length;
    }
    Ok(())
}

/// At least one symbol: number 0 stands for none, also in an object without a symbol table.
fn read_symbols<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
    symbols: &SymbolTable<'a, Elf>,
) -> Result<Vec<Symbol<'a>>, ElfError> {
    let place = |index: usize, symbol: &Elf::Sym| -> Result<SymbolPlace, ElfError> {
        match symbol.st_shndx(endian) {
            elf::SHN_UNDEF => Ok(SymbolPlace::Undefined),
            elf::SHN_ABS => Ok(SymbolPlace::Absolute),
            elf::SHN_COMMON => Ok(SymbolPlace::Common),
            _ => match symbols.symbol_section(endian, symbol, SymbolIndex(index))? {
                Some(section) if section.0 < table.len() => Ok(SymbolPlace::Section(section.0)),
                _ => Err(ElfError::Malformed("a symbol names a section that is not there")),
            },
        }
    };
    if symbols.is_empty() {
        return Ok(vec![NO_SYMBOL]);
    }
    let mut names = NameBudget::of(bytes);
    symbols
        .iter()
        .enumerate()
        .map(|(index, symbol)| {
            Ok(Symbol {
                name: symbol_name(
                    symbol.st_type(),
                    names.take(symbols.symbol_name(endian, symbol)?)?,
                )?,
                binding: symbol.st_bind().0,
                kind: symbol.st_type().0,
                place: place(index, symbol)?,
                value: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
            })
        })
        .collect()
}

/// Hands every relocation to the section that it applies to.
fn read_relocations<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
    object: &mut ObjectFile<'a>,
) -> Result<(), ElfError> {
    for header in table.iter() {
        let mut found: Vec<Relocation> = Vec::new();
        let mut in_place = false;
        if let Some((entries, _)) = header.rela(endian, bytes)? {
            found.extend(entries.iter().map(|entry| Relocation {
                offset: entry.r_offset(endian).into(),
                kind: entry.r_type(endian, false).0,
                symbol: entry.r_sym(endian, false),
                addend: entry.r_addend(endian).into(),
            }));
        } else if let Some((entries, _)) = header.rel(endian, bytes)? {
            in_place = true;
            found.extend(entries.iter().map(|entry| Relocation {
                offset: entry.r_offset(endian).into(),
                kind: entry.r_type(endian).0,
                symbol: entry.r_sym(endian),
                addend: 0,
            }));
        } else if header.sh_type(endian) == elf::SHT_CREL {
            return Err(ElfError::Malformed(
                "it has compact relocations, which are not understood yet",
            ));
        } else {
            continue;
        }
        if found.iter().any(|relocation| relocation.symbol as usize >= object.symbols.len()) {
            return Err(ElfError::Malformed("a relocation names a symbol that is not there"));
        }
        let target =
            object.tables.sections.get_mut(header.sh_info(endian) as usize).ok_or(
                ElfError::Malformed("a relocation section names a section that is not there"),
            )?;
        target.relocations.append(&mut found);
        target.addends_in_place |= in_place;
    }
    for section in &mut object.tables.sections {
        section.relocations.sort_by_key(|relocation| relocation.offset);
    }
    Ok(())
}
