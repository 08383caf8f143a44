//! AArch64: its relocations, and instructions as far as they decide over the flow of control.

use super::{AddressField, Processor, Step, TakeStep};
use crate::elf::object_file::Relocation;
use crate::model::record::Usage;
use object::{Endianness, elf};

pub struct AArch64;

impl Processor for AArch64 {
    fn read_steps(&self, code: &[u8], start: u64, endian: Endianness, take: &mut TakeStep) -> bool {
        let (words, rest) = code.as_chunks();
        for (at, word) in (start..).step_by(4).zip(words) {
            take(at, at + 4, step(at, u32::from_le_bytes(*word)));
        }
        endian == Endianness::Little && rest.is_empty()
    }

    fn usage_in_data(&self, kind: u32) -> Usage {
        match elf::RelocationType(kind) {
            elf::R_AARCH64_PREL16 | elf::R_AARCH64_PREL32 | elf::R_AARCH64_PREL64 => {
                Usage::Distance
            }
            elf::R_AARCH64_NONE => Usage::Access,
            _ => Usage::Address,
        }
    }

    /// Calls, jumps, loads and stores. The page of an address (`adrp`) is only half of it: the
    /// instruction with the other half decides.
    fn is_access_in_code(&self, _: &[u8], relocation: &Relocation) -> bool {
        let kinds = [
            elf::R_AARCH64_NONE,
            elf::R_AARCH64_CALL26,
            elf::R_AARCH64_JUMP26,
            elf::R_AARCH64_CONDBR19,
            elf::R_AARCH64_TSTBR14,
            elf::R_AARCH64_LD_PREL_LO19,
            elf::R_AARCH64_LDST8_ABS_LO12_NC,
            elf::R_AARCH64_LDST16_ABS_LO12_NC,
            elf::R_AARCH64_LDST32_ABS_LO12_NC,
            elf::R_AARCH64_LDST64_ABS_LO12_NC,
            elf::R_AARCH64_LDST128_ABS_LO12_NC,
            elf::R_AARCH64_ADR_PREL_PG_HI21,
            elf::R_AARCH64_ADR_PREL_PG_HI21_NC,
            elf::R_AARCH64_ADR_GOT_PAGE,
        ];
        kinds.iter().any(|access| access.0 == relocation.kind)
    }

    fn tells_address_uses(&self) -> bool {
        true
    }

    fn table_distance(&self) -> Option<u32> {
        Some(elf::R_AARCH64_PREL32.0)
    }

    /// There are none.
    fn size_relocations(&self) -> Option<&[u32]> {
        Some(&[])
    }

    fn address_field(&self, kind: u32) -> Option<AddressField> {
        match elf::RelocationType(kind) {
            elf::R_AARCH64_ABS64 => Some(AddressField::Absolute(8)),
            elf::R_AARCH64_PREL32 => Some(AddressField::Relative(4)),
            elf::R_AARCH64_PREL64 => Some(AddressField::Relative(8)),
            elf::R_AARCH64_ADR_PREL_PG_HI21 => Some(AddressField::Page),
            elf::R_AARCH64_ADD_ABS_LO12_NC => Some(AddressField::InPage),
            _ => None,
        }
    }

    fn relative_relocation(&self) -> Option<u32> {
        Some(elf::R_AARCH64_RELATIVE.0)
    }

    fn copy_relocation(&self) -> Option<u32> {
        Some(elf::R_AARCH64_COPY.0)
    }
}

/// The page that `adrp` at this place computes.
pub fn page_address(instruction: u64, place: u64) -> u64 {
    let low = (instruction >> 29) & 3;
    let high = (instruction >> 5) & 0x7ffff;
    let pages = (((high << 2 | low) << 43) as i64 >> 43) as u64;
    (place & !0xfff).wrapping_add(pages << 12)
}

/// The place in a page that `add` with an immediate adds.
pub fn offset_in_page(instruction: u64) -> u64 {
    (instruction >> 10) & 0xfff
}

fn step(at: u64, word: u32) -> Step {
    let target = |shift: u32, bits: u32| {
        let words = ((word >> shift << (32 - bits)).cast_signed()) >> (32 - bits);
        at.wrapping_add_signed(i64::from(words) * 4)
    };
    match word {
        0xd503_201f => Step::Padding,
        _ if word >> 26 == 0b00_0101 => Step::Jumps(target(0, 26)),
        _ if word >> 26 == 0b10_0101 => Step::Calls,
        // b.cond; cbz, cbnz
        _ if word >> 24 == 0b0101_0100 || word >> 25 & 0x3f == 0b01_1010 => {
            Step::Branches(target(5, 19))
        }
        // tbz, tbnz
        _ if word >> 25 & 0x3f == 0b01_1011 => Step::Branches(target(5, 14)),
        // br, ret, eret, and those that authenticate; not blr
        _ if word >> 25 == 0b110_1011 && word >> 21 & 0b11 != 0b01 => Step::Returns,
        // brk, hlt; udf
        _ if [0b110_1010_0001, 0b110_1010_0010].contains(&(word >> 21)) || word >> 16 == 0 => {
            Step::Stops
        }
        _ => Step::On,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        let is = |word: u32, wanted: Step| step(0x100, word) == wanted;
        assert!(is(0xd65f_03c0, Step::Returns), "ret");
        assert!(is(0xd61f_0200, Step::Returns), "br x16");
        assert!(is(0xd63f_0000, Step::On), "blr x0");
        assert!(is(0x17ff_ffff, Step::Jumps(0xfc)), "b .-4");
        assert!(is(0x5400_0040, Step::Branches(0x108)), "b.eq .+8");
        assert!(is(0xb400_0040, Step::Branches(0x108)), "cbz x0, .+8");
        assert!(is(0x3600_0040, Step::Branches(0x108)), "tbz w0, #0, .+8");
        assert!(is(0x9400_0000, Step::Calls), "bl");
        assert!(is(0xd420_7d00, Step::Stops), "brk #1000");
        assert!(is(0xd503_201f, Step::Padding), "nop");
    }

    #[test]
    fn half_an_address_is_no_use() {
        let is_access = |kind: elf::RelocationType| {
            let relocation = Relocation { offset: 0, kind: kind.0, symbol: 1, addend: 0 };
            AArch64.is_access_in_code(&[], &relocation)
        };
        assert!(is_access(elf::R_AARCH64_ADR_PREL_PG_HI21));
        assert!(is_access(elf::R_AARCH64_LDST64_ABS_LO12_NC));
        assert!(!is_access(elf::R_AARCH64_ADD_ABS_LO12_NC));
        assert!(!is_access(elf::R_AARCH64_LD64_GOT_LO12_NC));
    }
}
