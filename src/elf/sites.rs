//! The addresses of literals in a linked binary. Linkers merge equal literals, and literals that
//! are the end of longer ones, and the map does not say where each of them went. So the fields that
//! hold their addresses are read in the finished binary. In: the binary, the sites of one
//! reference. Out: the address of the reference's symbol.

use super::arch::{self, AddressField, offset_in_page, page_address};
use super::binary::Binary;
use crate::model::record::Site;
use object::elf;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// Whether the address can be read from a field of this kind, be it with another one.
pub fn is_readable(machine: u16, kind: u32) -> bool {
    arch::of(machine).address_field(kind).is_some()
}

/// Reads addresses in a finished binary.
pub struct Sites<'b, 'a> {
    binary: &'b Binary<'a>,
    /// What the loader writes into fields of a position-independent binary, by their addresses.
    relocated: OnceCell<FxHashMap<u64, u64>>,
}

impl<'b, 'a> Sites<'b, 'a> {
    pub fn new(binary: &'b Binary<'a>) -> Self {
        Sites { binary, relocated: OnceCell::new() }
    }

    /// The address that a reference of an atom means, by the sites of that reference. `start`:
    /// where the atom lies.
    pub fn target(&self, start: u64, sites: &[Site]) -> Option<u64> {
        let mut page = None;
        let mut in_page = None;
        for site in sites {
            let place = start.checked_add(site.offset)?;
            let less_addend = |value: u64| value.wrapping_sub(site.addend as u64);
            match arch::of(self.binary.machine).address_field(site.kind)? {
                AddressField::Absolute(size) => {
                    let relocated =
                        self.relocated.get_or_init(|| relocated(self.binary)).get(&place).copied();
                    // Zero: nobody has written it yet.
                    let written = || self.number(place, size).filter(|found| *found != 0);
                    return relocated.or_else(written).map(less_addend);
                }
                AddressField::Relative(size) => {
                    return self
                        .number(place, size)
                        .map(|distance| less_addend(place.wrapping_add(distance)));
                }
                AddressField::Page => {
                    page = Some(less_addend(page_address(self.number(place, 4)?, place)))
                }
                AddressField::InPage => in_page = Some(offset_in_page(self.number(place, 4)?)),
            }
        }
        Some(page?.wrapping_add(in_page?))
    }

    /// The number at an address, with its sign.
    fn number(&self, place: u64, size: usize) -> Option<u64> {
        let section = self.binary.section_at(place)?;
        let from = usize::try_from(place - section.address).ok()?;
        let bytes = section.data.get(from..from.checked_add(size)?)?;
        match size {
            4 => Some(i32::from_le_bytes(bytes.try_into().ok()?) as i64 as u64),
            _ => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
        }
    }
}

/// The values of the loader's relocations that depend on nothing but where the binary is loaded.
fn relocated(binary: &Binary) -> FxHashMap<u64, u64> {
    let Some(relative) = arch::of(binary.machine).relative_relocation() else {
        return FxHashMap::default();
    };
    let tables = binary.sections.iter().filter(|section| section.kind == elf::SHT_RELA.0);
    let entries = tables.flat_map(|table| table.data.as_chunks::<8>().0.as_chunks::<3>().0);
    let entry = |[place, info, addend]: &[[u8; 8]; 3]| {
        let kind = u64::from_le_bytes(*info) as u32;
        (kind == relative).then(|| (u64::from_le_bytes(*place), u64::from_le_bytes(*addend)))
    };
    entries.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::binary::Section;
    use crate::elf::dynamic::Dynamic;
    use object::elf::Machine;

    fn binary<'a>(machine: Machine, sections: Vec<Section<'a>>) -> Binary<'a> {
        Binary {
            machine: machine.0,
            flags: 0,
            kind: elf::ET_DYN.0,
            entry: 0,
            sections,
            segments: Vec::new(),
            dynamic: Dynamic::default(),
            symbols: Vec::new(),
        }
    }

    fn section(address: u64, kind: elf::SectionType, data: &[u8]) -> Section<'_> {
        Section { name: b"", kind: kind.0, flags: 0, address, size: data.len() as u64, data }
    }

    fn site(offset: u64, kind: elf::RelocationType, addend: i64) -> Site {
        Site { reference: 0, offset, kind: kind.0, addend }
    }

    #[test]
    fn a_distance_from_code_gives_the_address() {
        // lea 0x10(%rip), %rax at 0x1000: the field is at 0x1003, the next instruction at 0x1007.
        let code = [0x48, 0x8d, 0x05, 0x10, 0, 0, 0];
        let binary = binary(elf::EM_X86_64, vec![section(0x1000, elf::SHT_PROGBITS, &code)]);
        let found = Sites::new(&binary).target(0x1000, &[site(3, elf::R_X86_64_PC32, -4)]);
        assert_eq!(found, Some(0x1017));
    }

    #[test]
    fn the_loader_writes_pointers_in_data() {
        let table =
            [0x2008u64, elf::R_X86_64_RELATIVE.0.into(), 0x3005].map(u64::to_le_bytes).concat();
        let sections = vec![
            section(0x100, elf::SHT_RELA, &table),
            section(0x2000, elf::SHT_PROGBITS, &[0; 16]),
        ];
        let binary = binary(elf::EM_X86_64, sections);
        let sites = Sites::new(&binary);
        assert_eq!(sites.target(0x2000, &[site(8, elf::R_X86_64_64, 2)]), Some(0x3003));
        assert_eq!(
            sites.target(0x2000, &[site(0, elf::R_X86_64_64, 0)]),
            None,
            "nobody knows what it will hold"
        );
    }

    #[test]
    fn page_and_offset_instructions_give_the_address() {
        // adrp x0, 2 pages on; add x0, x0, #0x123
        let code = [0xd0000000u32, 0x91048c00].map(u32::to_le_bytes).concat();
        let binary = binary(elf::EM_AARCH64, vec![section(0x5000, elf::SHT_PROGBITS, &code)]);
        let both = [
            site(0, elf::R_AARCH64_ADR_PREL_PG_HI21, 0),
            site(4, elf::R_AARCH64_ADD_ABS_LO12_NC, 0),
        ];
        assert_eq!(Sites::new(&binary).target(0x5000, &both), Some(0x7123));
        assert_eq!(Sites::new(&binary).target(0x5000, &both[..1]), None);
    }
}
