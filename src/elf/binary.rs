//! A linked binary, inspected: what is loaded, where it starts, which symbols it has. In: the bytes
//! of an ELF executable or shared library. Out: [`Binary`] and the digest of its loaded bytes.

use super::dynamic::{self, Dynamic};
use super::{ElfError, NameBudget};
use crate::model::{Hash, Hasher};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, FileKind};

/// A linked binary.
pub struct Binary<'a> {
    pub machine: u16,
    pub flags: u32,
    pub kind: u16,
    pub entry: u64,
    /// The sections that are part of memory, in the order of the section table.
    pub sections: Vec<Section<'a>>,
    pub segments: Vec<Segment>,
    pub dynamic: Dynamic<'a>,
    /// The symbols for debuggers; none in a stripped binary.
    pub symbols: Vec<Symbol<'a>>,
}

/// One section in memory.
pub struct Section<'a> {
    pub name: &'a [u8],
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub size: u64,
    pub data: &'a [u8],
}

/// One program header.
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub address: u64,
    pub size: u64,
    /// Where it is in the file, and how much of it.
    pub offset: u64,
    pub file_size: u64,
}

/// A symbol of `.symtab` that has an address or a value.
#[derive(Clone, Copy)]
pub struct Symbol<'a> {
    pub name: &'a [u8],
    pub value: u64,
    pub is_local: bool,
    pub is_absolute: bool,
}

/// It names the build, and changes nothing in how it runs.
const BUILD_ID: &[u8] = b".note.gnu.build-id";

/// What may be done to the addresses from each of these on.
pub struct Rights {
    from: Vec<(u64, u64)>,
}

impl Rights {
    pub fn at(&self, address: u64) -> u64 {
        let behind = self.from.partition_point(|&(start, _)| start <= address);
        behind.checked_sub(1).map_or(0, |index| self.from[index].1)
    }
}

impl Section<'_> {
    /// A note that says more than which build it is.
    pub fn is_note(&self) -> bool {
        self.kind == elf::SHT_NOTE.0 && self.name != BUILD_ID
    }
}

impl<'a> Binary<'a> {
    /// Reads a binary with its symbols.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        Self::parse_kind(bytes, true)
    }

    /// Reads a binary without its symbols for debuggers.
    pub fn parse_loaded(bytes: &'a [u8]) -> Result<Self, ElfError> {
        Self::parse_kind(bytes, false)
    }

    fn parse_kind(bytes: &'a [u8], symbols: bool) -> Result<Self, ElfError> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Elf64) => Self::parse_class::<FileHeader64<Endianness>>(bytes, symbols),
            Ok(FileKind::Elf32) => Self::parse_class::<FileHeader32<Endianness>>(bytes, symbols),
            _ => Err(ElfError::NotABinary),
        }
    }

    fn parse_class<Elf: FileHeader<Endian = Endianness>>(
        bytes: &'a [u8],
        symbols: bool,
    ) -> Result<Self, ElfError> {
        let header = Elf::parse(bytes)?;
        let endian = header.endian()?;
        let kind = header.e_type(endian);
        if kind != elf::ET_EXEC && kind != elf::ET_DYN {
            return Err(ElfError::NotABinary);
        }
        let table = header.sections(endian, bytes)?;
        let sections = read_sections::<Elf>(bytes, endian, &table)?;
        if sections.is_empty() {
            return Err(ElfError::Malformed(
                "it has no section headers, so nothing can be found in it",
            ));
        }
        let segments = header.program_headers(endian, bytes)?.iter().map(|segment| Segment {
            kind: segment.p_type(endian).0,
            flags: segment.p_flags(endian).0,
            address: segment.p_vaddr(endian).into(),
            size: segment.p_memsz(endian).into(),
            offset: segment.p_offset(endian).into(),
            file_size: segment.p_filesz(endian).into(),
        });
        Ok(Binary {
            machine: header.e_machine(endian).0,
            flags: header.e_flags(endian).0,
            kind: kind.0,
            entry: header.e_entry(endian).into(),
            segments: segments.collect(),
            dynamic: dynamic::read::<Elf>(bytes, endian, &table, header.e_machine(endian))?,
            symbols: if symbols { read_symbols::<Elf>(bytes, endian, &table)? } else { Vec::new() },
            sections,
        })
    }

    /// The digest of everything that is loaded. `strip` keeps it; nothing else does.
    pub fn loaded_digest(&self) -> Hash {
        self.digest(|_| true)
    }

    /// The same, less what names the build and changes nothing in how it runs.
    pub fn behaviour_digest(&self) -> Hash {
        self.digest(|section| section.name != BUILD_ID)
    }

    fn digest(&self, counts: impl Fn(&Section) -> bool) -> Hash {
        let mut hasher = Hasher::new("binary");
        hasher
            .number(self.machine.into())
            .number(self.flags.into())
            .number(self.kind.into())
            .number(self.entry);
        for segment in &self.segments {
            hasher.number(segment.kind.into()).number(segment.flags.into());
            hasher.number(segment.address).number(segment.size);
        }
        for section in self.sections.iter().filter(|section| counts(section)) {
            hasher.number(section.address).number(section.size).bytes(section.data);
        }
        hasher.finish()
    }

    /// What may be done to an address once the program runs: the flags of its segment, and one more
    /// if the loader takes away the right to write when it has relocated.
    pub fn rights_at(&self, address: u64) -> u64 {
        let holds = |segment: &&Segment| {
            address >= segment.address && address - segment.address < segment.size
        };
        let of_kind = |kind: elf::ProgramType| {
            self.segments.iter().filter(move |segment| segment.kind == kind.0)
        };
        let flags = of_kind(elf::PT_LOAD).find(holds).map_or(0, |segment| segment.flags.into());
        let relocated = of_kind(elf::PT_GNU_RELRO).any(|segment| holds(&segment));
        flags | (u64::from(relocated) << 32)
    }

    /// The same for many addresses.
    pub fn rights(&self) -> Rights {
        let is_bound =
            |segment: &&Segment| [elf::PT_LOAD.0, elf::PT_GNU_RELRO.0].contains(&segment.kind);
        let bounded = self.segments.iter().filter(is_bound);
        let mut bounds: Vec<u64> = bounded
            .flat_map(|segment| [segment.address, segment.address.saturating_add(segment.size)])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        Rights { from: bounds.into_iter().map(|start| (start, self.rights_at(start))).collect() }
    }

    /// The section that ends at an address.
    pub fn section_until(&self, address: u64) -> Option<&Section<'a>> {
        self.sections
            .iter()
            .find(|section| section.address.checked_add(section.size) == Some(address))
    }

    /// The section that holds an address.
    pub fn section_at(&self, address: u64) -> Option<&Section<'a>> {
        self.sections
            .iter()
            .find(|section| address >= section.address && address - section.address < section.size)
    }

    /// A shared library rather than a program: it has a name for the dynamic loader, or no
    /// interpreter and nothing that says it is a position-independent executable.
    pub fn is_shared_library(&self) -> bool {
        let has_interpreter = self.segments.iter().any(|segment| segment.kind == elf::PT_INTERP.0);
        self.kind == elf::ET_DYN.0
            && !self.dynamic.is_executable
            && (self.dynamic.soname.is_some() || !has_interpreter)
    }
}

/// Who made a binary: the texts that compilers and linkers leave in it, each once, in order.
pub fn producers(bytes: &[u8]) -> Vec<&[u8]> {
    let comment = match FileKind::parse(bytes) {
        Ok(FileKind::Elf64) => comment::<FileHeader64<Endianness>>(bytes),
        Ok(FileKind::Elf32) => comment::<FileHeader32<Endianness>>(bytes),
        _ => None,
    };
    let mut texts: Vec<&[u8]> = comment.unwrap_or_default().split(|byte| *byte == 0).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn comment<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<&[u8]> {
    let header = Elf::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let (_, section) = header.sections(endian, bytes).ok()?.section_by_name(endian, b".comment")?;
    section.data(endian, bytes).ok()
}

fn read_sections<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Vec<Section<'a>>, ElfError> {
    let loaded = table.iter().filter(|header| {
        let flags: u64 = header.sh_flags(endian).0;
        flags & elf::SHF_ALLOC.0 != 0
    });
    let mut names = NameBudget::of(bytes);
    loaded
        .map(|header| {
            Ok(Section {
                name: names.take(table.section_name(endian, header)?)?,
                kind: header.sh_type(endian).0,
                flags: header.sh_flags(endian).0,
                address: header.sh_addr(endian).into(),
                size: header.sh_size(endian).into(),
                data: header.data(endian, bytes)?,
            })
        })
        .collect()
}

fn read_symbols<'a, Elf: FileHeader<Endian = Endianness>>(
    bytes: &'a [u8],
    endian: Endianness,
    table: &SectionTable<'a, Elf>,
) -> Result<Vec<Symbol<'a>>, ElfError> {
    let symbols = table.symbols(endian, bytes, elf::SHT_SYMTAB)?;
    let defined = symbols.iter().filter(|symbol| {
        symbol.st_shndx(endian) != elf::SHN_UNDEF
            && symbol.st_type() != elf::STT_SECTION
            && symbol.st_type() != elf::STT_FILE
    });
    let mut names = NameBudget::of(bytes);
    defined
        .map(|symbol| {
            Ok(Symbol {
                name: names.take(symbols.symbol_name(endian, symbol)?)?,
                value: symbol.st_value(endian).into(),
                is_local: symbol.is_local(),
                is_absolute: symbol.is_absolute(endian),
            })
        })
        .collect()
}
