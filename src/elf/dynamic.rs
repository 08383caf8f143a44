//! What a binary tells the dynamic loader: the libraries that it needs, where to look for them, the symbols
//! that it offers and asks for.

use super::{ElfError, NameBudget};
use object::elf;
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, SymbolIndex};

/// The dynamic section and the dynamic symbols.
#[derive(Default)]
pub struct Dynamic<'a> {
    pub needed: Vec<&'a [u8]>,
    /// Further libraries that the loader brings in: those that watch it (DT_AUDIT, DT_DEPAUDIT), and those that a
    /// library stands for (DT_FILTER, DT_AUXILIARY).
    pub companions: Vec<&'a [u8]>,
    pub soname: Option<&'a [u8]>,
    pub rpath: Option<&'a [u8]>,
    pub runpath: Option<&'a [u8]>,
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
    pub is_absolute: bool,
    /// A resolver decides at start-up what it means.
    pub is_indirect: bool,
    /// The loader binds references to it that this binary holds. Where it is defined here as well, other modules may
    /// define it instead; whatever the options and visibilities were, all other references were bound at home.
    pub is_bound_by_loader: bool,
}

/// Reads the dynamic tables; a static binary has none.
pub fn read<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Dynamic<'a>, ElfError> {
    let mut dynamic = Dynamic { symbols: read_symbols::<Elf>(bytes, endian, table)?, ..Dynamic::default() };
    let entries = table.dynamic_table(endian, bytes)?;
    let mut names = NameBudget::of(bytes);
    for entry in entries.iter() {
        let mut text = || names.take(entries.string(entry)?);
        match entry.tag {
            elf::DT_NEEDED => dynamic.needed.push(text()?),
            elf::DT_AUDIT | elf::DT_DEPAUDIT => {
                dynamic.companions.extend(text()?.split(|&byte| byte == b':').filter(|name| !name.is_empty()));
            }
            elf::DT_FILTER | elf::DT_AUXILIARY => dynamic.companions.push(text()?),
            elf::DT_SONAME => dynamic.soname = Some(text()?),
            elf::DT_RPATH => dynamic.rpath = Some(text()?),
            elf::DT_RUNPATH => dynamic.runpath = Some(text()?),
            elf::DT_INIT => dynamic.init = Some(entry.val),
            elf::DT_FINI => dynamic.fini = Some(entry.val),
            elf::DT_TEXTREL => dynamic.flags[0] |= elf::DF_TEXTREL.0,
            elf::DT_SYMBOLIC => dynamic.flags[0] |= elf::DF_SYMBOLIC.0,
            elf::DT_FLAGS => dynamic.flags[0] |= entry.val,
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
    let mut names = NameBudget::of(bytes);
    let bound = bound_symbols::<Elf>(bytes, endian, table, symbols.len())?;
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
            name: names.take(symbols.symbol_name(endian, symbol)?)?,
            version,
            is_defined: symbol.st_shndx(endian) != elf::SHN_UNDEF,
            value: symbol.st_value(endian).into(),
            is_thread_local: symbol.st_type() == elf::STT_TLS,
            is_absolute: symbol.is_absolute(endian),
            is_indirect: symbol.st_type() == elf::STT_GNU_IFUNC,
            // The loader binds a module's references to its own protected symbols at home.
            is_bound_by_loader: bound[index] && symbol.st_visibility() == elf::STV_DEFAULT,
        });
    }
    Ok(found)
}

/// Which dynamic symbols the loader's relocations name. All of them, where the relocations are packed in a way that is
/// not understood.
fn bound_symbols<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
    count: usize,
) -> Result<Vec<bool>, ElfError> {
    let mut bound = vec![false; count];
    let mut mark = |symbol: u32| {
        if let Some(bound) = bound.get_mut(symbol as usize) {
            *bound = true;
        }
    };
    for header in table.iter() {
        let flags: u64 = header.sh_flags(endian).0;
        if flags & elf::SHF_ALLOC.0 == 0 {
            continue;
        }
        if let Some((entries, _)) = header.rela(endian, bytes)? {
            entries.iter().for_each(|entry| mark(entry.r_sym(endian, false)));
        } else if let Some((entries, _)) = header.rel(endian, bytes)? {
            entries.iter().for_each(|entry| mark(entry.r_sym(endian)));
        } else if [elf::SHT_ANDROID_REL, elf::SHT_ANDROID_RELA].contains(&header.sh_type(endian)) {
            return Ok(vec![true; count]);
        }
    }
    Ok(bound)
}
