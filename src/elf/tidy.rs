//! Removes again the labels that the assembler was asked to keep (`-L`). In: an object. Out: the
//! object as a plain assembly would have made it: the same sections, symbols and relocations, less
//! the local labels that no relocation names.
//!
//! Without the labels every symbol gets another number, so all that holds such numbers is written
//! anew: relocations, signatures of groups, the count of local symbols. An object with a section of
//! a kind that is not known to hold none is left as it is; the labels in it are of no effect on any
//! linker.
//!
//! GNU as lets relocations name the sections that labels are in, rather than the labels; but when
//! it keeps the labels, those of section groups (COMDAT) are named after all. These relocations are
//! turned back, too. Only the order of the local symbols may then differ from that of a plain
//! assembly.

mod writer;

use self::writer::{Names, Writer};
use super::append::Patch;
use super::arch;
use object::Endianness;
use object::elf::{self, FileHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use rustc_hash::FxHashMap;

type Header = SectionHeader64<Endianness>;
type SymbolEntry = Sym64<Endianness>;

/// Where a section header has the field whose meaning depends on the kind of section.
const SECTION_INFO: usize = 44;

const LITTLE: Endianness = Endianness::Little;
const PATCH: Patch = Patch { little: true, word: 8 };

/// The object without its labels. `None`: there are none, or something about it is unusual.
pub fn tidy(object: &[u8]) -> Option<Vec<u8>> {
    let header = FileHeader64::<Endianness>::parse(object).ok()?;
    let usual = header.endian().ok()? == LITTLE
        && header.e_type(LITTLE) == elf::ET_REL
        && arch::of(header.e_machine(LITTLE).0).has_constant_pools()
        && header.e_phnum(LITTLE) == 0
        && header.e_shnum(LITTLE) != 0;
    let sections = header.section_headers(LITTLE, object).ok()?;
    if !usual || !sections.iter().all(|section| is_usual(section.sh_type(LITTLE))) {
        return None;
    }
    let tables = Tables::find(header, sections, object)?;
    let fate = Fate::of(&tables, sections, object)?;
    let names = Names::of(&tables, &fate);
    Writer { object, header, sections, tables: &tables, fate: &fate, names: &names }.write()
}

/// A kind of section of which we know whether, and where, it holds numbers of symbols.
fn is_usual(kind: elf::SectionType) -> bool {
    matches!(
        kind,
        elf::SHT_NULL
            | elf::SHT_PROGBITS
            | elf::SHT_NOBITS
            | elf::SHT_NOTE
            | elf::SHT_INIT_ARRAY
            | elf::SHT_FINI_ARRAY
            | elf::SHT_PREINIT_ARRAY
            | elf::SHT_SYMTAB
            | elf::SHT_STRTAB
            | elf::SHT_RELA
            | elf::SHT_GROUP
            | elf::SHT_X86_64_UNWIND
    )
}

/// The symbol table and its names.
struct Tables<'a> {
    index: usize,
    names_index: usize,
    symbols: &'a [SymbolEntry],
    first_global: usize,
    names: &'a [u8],
}

impl<'a> Tables<'a> {
    fn find(
        header: &FileHeader64<Endianness>,
        sections: &[Header],
        object: &'a [u8],
    ) -> Option<Self> {
        let mut tables = sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.sh_type(LITTLE) == elf::SHT_SYMTAB);
        let (index, table) = tables.next()?;
        let names_index = table.sh_link(LITTLE) as usize;
        let names = sections.get(names_index)?;
        // Where the names of the sections are in the same table, or others use it too, it cannot be
        // changed.
        let is_shared = header.shstrndx(LITTLE, object).ok()? as usize == names_index
            || sections
                .iter()
                .enumerate()
                .any(|(at, other)| at != index && links_to(other, names_index));
        if tables.next().is_some() || is_shared {
            return None;
        }
        Some(Tables {
            index,
            names_index,
            symbols: table.data_as_array(LITTLE, object).ok()?,
            first_global: table.sh_info(LITTLE) as usize,
            names: names.data(LITTLE, object).ok()?,
        })
    }

    fn name(&self, symbol: &SymbolEntry) -> &'a [u8] {
        let rest = self.names.get(symbol.st_name(LITTLE) as usize..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// For each label that is to be named by the symbol of its section: that symbol. The first
    /// label of a section that has none becomes it.
    fn stand_ins(&self, sections: &[Header], object: &[u8]) -> Option<Vec<Option<u32>>> {
        let mut stand_ins = vec![None; self.symbols.len()];
        let named_otherwise =
            self.named(sections, object, |relocation| !is_reducible(relocation))?;
        let named = self.named(sections, object, is_reducible)?;
        let mut of_section: FxHashMap<u16, u32> = FxHashMap::default();
        for (at, symbol) in self
            .symbols
            .iter()
            .enumerate()
            .filter(|(_, symbol)| symbol.st_type() == elf::STT_SECTION)
        {
            of_section.insert(symbol.st_shndx(LITTLE).0, at as u32);
        }
        for (at, symbol) in self.symbols.iter().enumerate().take(self.first_global) {
            let section = symbol.st_shndx(LITTLE).0;
            let is_in_group = sections.get(usize::from(section)).is_some_and(is_plain_member);
            if named[at]
                && !named_otherwise[at]
                && is_in_group
                && is_label(symbol, self.name(symbol))
            {
                stand_ins[at] = Some(*of_section.entry(section).or_insert(at as u32));
            }
        }
        Some(stand_ins)
    }

    /// Which symbols are named by such relocations, or by a group.
    fn named(
        &self,
        sections: &[Header],
        object: &[u8],
        counts: impl Fn(&Rela64<Endianness>) -> bool,
    ) -> Option<Vec<bool>> {
        let mut named = vec![false; self.symbols.len()];
        for section in sections {
            let kind = section.sh_type(LITTLE);
            if [elf::SHT_RELA, elf::SHT_GROUP].contains(&kind) && !links_to(section, self.index) {
                return None;
            }
            if kind == elf::SHT_GROUP {
                *named.get_mut(section.sh_info(LITTLE) as usize)? = true;
            } else if kind == elf::SHT_RELA {
                for relocation in
                    relocations(section, object)?.iter().filter(|relocation| counts(relocation))
                {
                    *named.get_mut((relocation.r_info.get(LITTLE) >> 32) as usize)? = true;
                }
            }
        }
        Some(named)
    }
}

/// What becomes of the symbols.
struct Fate {
    stand_ins: Vec<Option<u32>>,
    /// The new number of each symbol; `None` for those that go.
    numbers: Vec<Option<u32>>,
}

impl Fate {
    /// `None`: all stay as they are.
    fn of(tables: &Tables, sections: &[Header], object: &[u8]) -> Option<Self> {
        let stand_ins = tables.stand_ins(sections, object)?;
        let mut stays = tables.named(sections, object, |_| true)?;
        for (at, stand_in) in stand_ins.iter().enumerate() {
            if let Some(stand_in) = stand_in {
                stays[at] = false;
                stays[*stand_in as usize] = true;
            }
        }
        let mut next = 0;
        let mut number = |(at, symbol): (usize, &SymbolEntry)| {
            let goes =
                at < tables.first_global && !stays[at] && is_label(symbol, tables.name(symbol));
            let number = (!goes).then_some(next);
            next += u32::from(!goes);
            number
        };
        let numbers: Vec<Option<u32>> =
            tables.symbols.iter().enumerate().map(&mut number).collect();
        numbers.contains(&None).then_some(Fate { stand_ins, numbers })
    }

    /// The new number of a symbol that is named somewhere.
    fn number(&self, old: usize) -> Option<u32> {
        let named = self.stand_ins.get(old)?.map_or(old, |stand_in| stand_in as usize);
        *self.numbers.get(named)?
    }

    fn stand_in(&self, old: usize) -> Option<usize> {
        self.stand_ins.get(old).copied().flatten().map(|stand_in| stand_in as usize)
    }
}

/// A section of a group that is no table of mergeable things: labels in those keep their names.
fn is_plain_member(section: &Header) -> bool {
    let flags = section.sh_flags(LITTLE).0;
    flags & elf::SHF_GROUP.0 != 0 && flags & elf::SHF_MERGE.0 == 0
}

/// A relocation that can name a section and an offset instead of a symbol.
fn is_reducible(relocation: &Rela64<Endianness>) -> bool {
    let kind = relocation.r_info.get(LITTLE) as u32;
    [elf::R_X86_64_64, elf::R_X86_64_PC32, elf::R_X86_64_32, elf::R_X86_64_32S, elf::R_X86_64_PC64]
        .iter()
        .any(|reducible| reducible.0 == kind)
}

/// Whether a section's link means this section. (0 means none.)
fn links_to(section: &Header, index: usize) -> bool {
    index != 0 && section.sh_link(LITTLE) as usize == index
}

/// What the assembler keeps only when it is asked to: GNU as goes by these names.
fn is_label(symbol: &SymbolEntry, name: &[u8]) -> bool {
    let is_plain = ![elf::STT_SECTION, elf::STT_FILE].contains(&symbol.st_type());
    let is_named_so =
        name.starts_with(b".L") || name.starts_with(b"..") || name.starts_with(b"_.L_");
    symbol.st_bind() == elf::STB_LOCAL && is_plain && is_named_so
}

fn relocations<'a>(section: &Header, object: &'a [u8]) -> Option<&'a [Rela64<Endianness>]> {
    section.data_as_array(LITTLE, object).ok()
}
