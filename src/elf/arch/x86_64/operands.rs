//! What a relocated field of x86-64 code or data does with its target: take the address, or access
//! the memory there. In: the bytes around the field, the relocation. Out: the offset in the target
//! section that is meant.
//!
//! A pc-relative field counts from the end of its *instruction*, and assemblers put the distance
//! from the field's end to there into the addend:
//! `target = addend + 4 + size of the immediate behind the field`. The relocation does not tell the
//! immediate's size (0, 1, 2 or 4); the opcode does.

use crate::elf::arch::Operand;
use crate::elf::object_file::{Relocation, Section};
use object::elf;

/// What the relocation of `section` means. `None`: it is not one that we understand.
pub fn read(section: &Section, relocation: &Relocation) -> Option<Operand> {
    let absolute = [elf::R_X86_64_64.0, elf::R_X86_64_32.0, elf::R_X86_64_32S.0];
    if section.addends_in_place {
        None
    } else if absolute.contains(&relocation.kind) {
        Some(Operand::Address(relocation.addend))
    } else if relocation.kind == elf::R_X86_64_PC32.0 && section.is_code() {
        pc_relative(section.data, relocation)
    } else {
        None
    }
}

/// An instruction with an operand `field(%rip)`: the byte before the field says so (ModRM: mod 00,
/// r/m 101), the one before that is the opcode's last byte in every encoding, old or VEX.
fn pc_relative(code: &[u8], relocation: &Relocation) -> Option<Operand> {
    let field = usize::try_from(relocation.offset).ok()?;
    let mod_rm = *code.get(field.checked_sub(1)?)?;
    let opcode = *code.get(field.checked_sub(2)?)?;
    if mod_rm & 0xc7 != 0x05 {
        return None;
    }
    let target = relocation.addend.checked_add(4)?;
    Some(match opcode {
        // `lea`. No other instruction that computes an address has this byte; those of other opcode
        // maps that do (`vpermb`) have no immediate.
        0x8d => Operand::Address(target),
        // `mov` to a register. The byte has no other meaning that takes an immediate.
        0x8b => Operand::Access(target),
        // x87 loads, stores and arithmetic. In the other maps: `psubus`, `pand`, `paddus`,
        // `aesimc`, `aesenclast`.
        0xd9 | 0xdb | 0xdd => Operand::Access(target),
        _ if is_plain_sse(code, field) => Operand::Access(target),
        _ => Operand::AccessNear(target),
    })
}

/// A two-byte opcode `0f xx` without immediate. The `0f` might be the last byte of a VEX, EVEX or
/// XOP prefix, or belong to an instruction before; the first is excluded by the byte where such a
/// prefix would start, and in the second case the one-byte opcodes of these values have no
/// immediate either.
fn is_plain_sse(code: &[u8], field: usize) -> bool {
    let back = |distance: usize| field.checked_sub(distance).and_then(|at| code.get(at)).copied();
    let is_prefixed = back(4) == Some(0xc5)
        || matches!(back(5), Some(0xc4 | 0x8f))
        || matches!(back(6), Some(0x62));
    let is_listed = match back(2) {
        // mov[au]p[sd], movs[sd], movdqa, movdqu, movq
        Some(0x10 | 0x28 | 0x6f | 0x7e) => true,
        // cvtsi2sd and its like, ucomis[sd], comis[sd]
        Some(0x2a | 0x2c..=0x2f) => true,
        // sqrt, and, andn, or, xor, add, mul, cvtss2sd, cvtdq2ps, sub, min, div, max
        Some(0x51 | 0x54..=0x5f) => true,
        // movz and movs of bytes and words
        Some(0xb6 | 0xb7 | 0xbe | 0xbf) => true,
        _ => false,
    };
    back(3) == Some(0x0f) && !is_prefixed && is_listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(code: &[u8]) -> Option<Operand> {
        let flags = (elf::SHF_ALLOC | elf::SHF_EXECINSTR).0;
        let section = Section { data: code, flags, ..Section::default() };
        read(
            &section,
            &Relocation {
                offset: code.len() as u64,
                kind: elf::R_X86_64_PC32.0,
                symbol: 1,
                addend: 16,
            },
        )
    }

    #[test]
    fn instructions() {
        assert_eq!(operand(&[0x48, 0x8d, 0x05]), Some(Operand::Address(20)), "lea x(%rip), %rax");
        assert_eq!(operand(&[0x4c, 0x8d, 0x3d]), Some(Operand::Address(20)), "lea x(%rip), %r15");
        assert_eq!(operand(&[0x48, 0x8b, 0x05]), Some(Operand::Access(20)), "mov x(%rip), %rax");
        assert_eq!(
            operand(&[0xf2, 0x0f, 0x10, 0x05]),
            Some(Operand::Access(20)),
            "movsd x(%rip), %xmm0"
        );
        assert_eq!(
            operand(&[0x66, 0x0f, 0x28, 0x0d]),
            Some(Operand::Access(20)),
            "movapd x(%rip), %xmm1"
        );
        assert_eq!(operand(&[0xdb, 0x2d]), Some(Operand::Access(20)), "fldt x(%rip)");
    }

    #[test]
    fn immediates_may_follow() {
        assert_eq!(operand(&[0x83, 0x3d]), Some(Operand::AccessNear(20)), "cmpl $1, x(%rip)");
        assert_eq!(
            operand(&[0x66, 0x0f, 0x70, 0x05]),
            Some(Operand::AccessNear(20)),
            "pshufd $1, x(%rip), %xmm0"
        );
        assert_eq!(
            operand(&[0x66, 0x0f, 0x3a, 0x0f, 0x05]),
            Some(Operand::AccessNear(20)),
            "palignr $1, x(%rip)"
        );
        let fixup = [0x62, 0xf3, 0x7d, 0x0f, 0x54, 0x05];
        assert_eq!(operand(&fixup), Some(Operand::AccessNear(20)), "vfixupimmps $1, x(%rip)");
        assert_eq!(
            operand(&[0xc5, 0x0f, 0x10, 0x05]),
            Some(Operand::AccessNear(20)),
            "a VEX prefix"
        );
    }

    #[test]
    fn operands_outside_memory_are_not_understood() {
        assert_eq!(operand(&[0xe8]), None, "call");
        assert_eq!(operand(&[0x0f, 0x84]), None, "je");
        assert_eq!(operand(&[]), None);
        let data = [0; 8];
        let section = Section { data: &data, flags: elf::SHF_ALLOC.0, ..Section::default() };
        let relocation = |kind: elf::RelocationType| Relocation {
            offset: 0,
            kind: kind.0,
            symbol: 1,
            addend: 3,
        };
        assert_eq!(read(&section, &relocation(elf::R_X86_64_PC32)), None, "a difference in data");
        assert_eq!(read(&section, &relocation(elf::R_X86_64_GOTPCREL)), None);
        assert_eq!(read(&section, &relocation(elf::R_X86_64_64)), Some(Operand::Address(3)));
    }
}
