//! What a binary tells the dynamic loader: the libraries that it needs, where to look for them, the symbols
//! that it offers and asks for.

use super::ElfError;
use object::elf;
use object::read::elf::{FileHeader, SectionTable, Sym};
use object::{Endianness, SymbolIndex};

/// The dynamic section and the dynamic symbols.
#[derive(Default)]
pub struct Dynamic<'a> {
    pub needed: Vec<&'a [u8]>,
    pub soname: Option<&'a [u8]>,
    pub rpath: Option<&'a [u8]>,
    pub runpath: Option<&'a [u8]>,
    /// References to its own symbols are bound at home (`-Bsymbolic`).
    pub symbolic: bool,
    /// DT_FLAGS and DT_FLAGS_1: lazy binding, interposition and the like.
    pub flags: [u64; 2],
    /// Marked as a position-independent executable.
    pub is_executable: bool,
    /// The functions that run before the constructors and after the destructors (`-init`, `-fini`).
    pub init: Option<u64>,
    pub fini: Option<u64>,
    pub symbols: Vec<DynamicSymbol<'a>>,
}

/// A symbol that the dynamic loader sees.
#[derive(Clone, Copy, Debug)]
pub struct DynamicSymbol<'a> {
    pub name: &'a [u8],
    pub version: Option<&'a [u8]>,
    pub is_defined: bool,
    pub value: u64,
    pub is_thread_local: bool,
    /// Other modules may define it instead.
    pub is_preemptible: bool,
}

/// Reads the dynamic tables; a static binary has none.
pub fn read<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Dynamic<'a>, ElfError> {
    let mut dynamic = Dynamic { symbols: read_symbols::<Elf>(bytes, endian, table)?, ..Dynamic::default() };
    let entries = table.dynamic_table(endian, bytes)?;
    for entry in entries.iter() {
        let text = || entries.string(entry).map_err(ElfError::from);
        match entry.tag {
            elf::DT_NEEDED => dynamic.needed.push(text()?),
            elf::DT_SONAME => dynamic.soname = Some(text()?),
            elf::DT_RPATH => dynamic.rpath = Some(text()?),
            elf::DT_RUNPATH => dynamic.runpath = Some(text()?),
            elf::DT_INIT => dynamic.init = Some(entry.val),
            elf::DT_FINI => dynamic.fini = Some(entry.val),
            elf::DT_SYMBOLIC => dynamic.symbolic = true,
            elf::DT_FLAGS => {
                dynamic.flags[0] = entry.val;
                dynamic.symbolic |= entry.val & elf::DF_SYMBOLIC.0 != 0;
            }
            elf::DT_FLAGS_1 => {
                dynamic.flags[1] = entry.val;
                dynamic.is_executable = entry.val & elf::DF_1_PIE.0 != 0;
            }
            _ => {}
        }
    }
    Ok(dynamic)
}

fn read_symbols<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Vec<DynamicSymbol<'a>>, ElfError> {
    let symbols = table.symbols(endian, bytes, elf::SHT_DYNSYM)?;
    let versions = table.versions(endian, bytes)?;
    let mut found = Vec::with_capacity(symbols.len());
    for (index, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| !symbol.is_local()) {
        let version = match &versions {
            Some(versions) => {
                let index = versions.version_index(endian, SymbolIndex(index)).index();
                versions.version(index)?.map(|version| version.name())
            }
            None => None,
        };
        found.push(DynamicSymbol {
            name: symbols.symbol_name(endian, symbol)?,
            version,
            is_defined: symbol.st_shndx(endian) != elf::SHN_UNDEF,
            value: symbol.st_value(endian).into(),
            is_thread_local: symbol.st_type() == elf::STT_TLS,
            is_preemptible: symbol.st_visibility() == elf::STV_DEFAULT,
        });
    }
    Ok(found)
}
