//! What a binary tells the dynamic loader: the libraries that it needs, where to look for them, the
//! symbols that it offers and asks for.

use super::{ElfError, NameBudget, arch};
use object::elf;
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, SymbolIndex};
use rustc_hash::FxHashSet;

/// The dynamic section and the dynamic symbols.
#[derive(Default)]
pub struct Dynamic<'a> {
    pub needed: Vec<&'a [u8]>,
    /// Further libraries that the loader brings in: those that watch it (DT_AUDIT, DT_DEPAUDIT),
    /// and those that a library stands for (DT_FILTER, DT_AUXILIARY).
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
#[derive(Clone, Copy, Debug, Default)]
pub struct DynamicSymbol<'a> {
    pub name: &'a [u8],
    pub version: Option<&'a [u8]>,
    pub is_defined: bool,
    pub value: u64,
    pub is_thread_local: bool,
    pub is_absolute: bool,
    /// A resolver decides at start-up what it means.
    pub is_indirect: bool,
    /// The loader takes the first definition of the name in the whole process, wherever it looks
    /// for other symbols (STB_GNU_UNIQUE).
    pub is_unique: bool,
    /// The loader binds references to it that this binary holds. Where it is defined here as well,
    /// other modules may define it instead; whatever the options and visibilities were, all other
    /// references were bound at home.
    pub is_bound_by_loader: bool,
}

/// Reads the dynamic tables; a static binary has none.
pub fn read<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
    machine: elf::Machine,
) -> Result<Dynamic<'a>, ElfError> {
    let mut dynamic = Dynamic {
        symbols: read_symbols::<Elf>(bytes, endian, table, machine)?,
        ..Dynamic::default()
    };
    let entries = table.dynamic_table(endian, bytes)?;
    let mut names = NameBudget::of(bytes);
    for entry in entries.iter() {
        let mut text = || names.take(entries.string(entry)?);
        match entry.tag {
            elf::DT_NEEDED => dynamic.needed.push(text()?),
            elf::DT_AUDIT | elf::DT_DEPAUDIT => {
                dynamic
                    .companions
                    .extend(text()?.split(|&byte| byte == b':').filter(|name| !name.is_empty()));
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
    machine: elf::Machine,
) -> Result<Vec<DynamicSymbol<'a>>, ElfError> {
    let symbols = table.symbols(endian, bytes, elf::SHT_DYNSYM)?;
    let versions = table.versions(endian, bytes)?;
    let mut names = NameBudget::of(bytes);
    let bound = bound_symbols::<Elf>(bytes, endian, table, machine, symbols.len())?;
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
            is_unique: symbol.st_bind() == elf::STB_GNU_UNIQUE,
            // The loader binds a module's references to its own protected symbols at home.
            is_bound_by_loader: bound.symbols[index] && symbol.st_visibility() == elf::STV_DEFAULT,
        });
    }
    // A copy of a library's variable has all the names that the library gives it, and the
    // relocation names one of them: `__environ`, where the program says `environ`.
    for symbol in found.iter_mut().filter(|symbol| symbol.is_defined && !symbol.is_thread_local) {
        symbol.is_bound_by_loader |= bound.copies.contains(&symbol.value);
    }
    Ok(found)
}

/// What the loader's relocations name.
struct Bound {
    /// For each dynamic symbol, whether one of them names it.
    symbols: Vec<bool>,
    /// Where the loader copies variables of libraries to.
    copies: FxHashSet<u64>,
}

/// Which dynamic symbols the loader's relocations name. All of them, where the relocations are
/// packed in a way that is not understood.
fn bound_symbols<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
    machine: elf::Machine,
    count: usize,
) -> Result<Bound, ElfError> {
    let mut symbols = vec![false; count];
    let mut copies = FxHashSet::default();
    let copy = arch::of(machine.0).copy_relocation();
    let mut mark = |symbol: u32, kind: u32, place: u64| {
        if let Some(bound) = symbols.get_mut(symbol as usize) {
            *bound = true;
        }
        if copy == Some(kind) {
            copies.insert(place);
        }
    };
    for header in table.iter() {
        let flags: u64 = header.sh_flags(endian).0;
        if flags & elf::SHF_ALLOC.0 == 0 {
            continue;
        }
        if let Some((entries, _)) = header.rela(endian, bytes)? {
            let place = |entry: &Elf::Rela| entry.r_offset(endian).into();
            entries.iter().for_each(|entry| {
                mark(entry.r_sym(endian, false), entry.r_type(endian, false).0, place(entry))
            });
        } else if let Some((entries, _)) = header.rel(endian, bytes)? {
            let place = |entry: &Elf::Rel| entry.r_offset(endian).into();
            entries
                .iter()
                .for_each(|entry| mark(entry.r_sym(endian), entry.r_type(endian).0, place(entry)));
        } else if [elf::SHT_ANDROID_REL, elf::SHT_ANDROID_RELA].contains(&header.sh_type(endian)) {
            symbols.fill(true);
            break;
        }
    }
    Ok(Bound { symbols, copies })
}
