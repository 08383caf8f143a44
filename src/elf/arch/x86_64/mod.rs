//! x86-64: its relocations and instructions.

mod arguments;
mod operands;

use super::{AddressField, Operand, Processor, Step, TakeStep};
use crate::elf::object_file::{ObjectFile, Relocation, Section};
use crate::model::record::Usage;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use object::{Endianness, elf};

/// `push %rbp; mov %rsp, %rbp`.
const FRAME: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
/// What may stand before that: `endbr64`.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

const NO_USES: [u32; 3] = [elf::R_X86_64_NONE.0, elf::R_X86_64_SIZE32.0, elf::R_X86_64_SIZE64.0];

pub struct X86_64;

impl Processor for X86_64 {
    fn read_steps(&self, code: &[u8], start: u64, _: Endianness, take: &mut TakeStep) -> bool {
        read_steps(64, code, start, take)
    }

    fn usage_in_data(&self, kind: u32) -> Usage {
        match elf::RelocationType(kind) {
            elf::R_X86_64_PC8 | elf::R_X86_64_PC16 | elf::R_X86_64_PC32 | elf::R_X86_64_PC64 => {
                Usage::Distance
            }
            _ if NO_USES.contains(&kind) => Usage::Access,
            _ => Usage::Address,
        }
    }

    /// The bytes before the field: of an operand `field(%rip)` the last one says so (ModRM: mod 00,
    /// r/m 101), and the one before that is the opcode's last byte in every encoding.
    fn is_access_in_code(&self, code: &[u8], relocation: &Relocation) -> bool {
        let through_table =
            [elf::R_X86_64_GOTPCREL.0, elf::R_X86_64_GOTPCRELX.0, elf::R_X86_64_REX_GOTPCRELX.0];
        let direct = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0];
        let kind = relocation.kind;
        if NO_USES.contains(&kind) {
            return true;
        }
        let [opcode, mod_rm] = before(code, relocation);
        let is_relative = mod_rm & 0xc7 == 0x05;
        if direct.contains(&kind) {
            // `lea`; anything else with such an operand reads or writes memory.
            is_jump(code, relocation) || is_relative && opcode != 0x8d
        } else {
            // The table of addresses is read. `call *` and `jmp *` go there; whatever else does so
            // gets the address.
            through_table.contains(&kind) && opcode == 0xff && [0x15, 0x25].contains(&mod_rm)
        }
    }

    fn tells_address_uses(&self) -> bool {
        true
    }

    /// Where a `lea` leads that the assembler could complete by itself, since its target is in the
    /// same section. Every byte is looked at as if an instruction were there: some that are found
    /// are none.
    fn addresses_without_relocation(&self, section: &Section) -> Vec<u64> {
        const LEA: u8 = 0x8d;
        const LENGTH: u64 = 6;
        let bytes = section.data;
        let target = |at: usize| {
            let [mod_rm, field @ ..]: [u8; 5] = bytes.get(at + 1..at + 6)?.try_into().ok()?;
            let target =
                (at as u64 + LENGTH).checked_add_signed(i32::from_le_bytes(field).into())?;
            (mod_rm & 0xc7 == 0x05 && target < section.size).then_some(target)
        };
        memchr::memchr_iter(LEA, bytes).filter_map(target).collect()
    }

    fn is_argument_only_read(&self, object: &ObjectFile, section: &Section, number: usize) -> bool {
        arguments::is_only_read(object, section, number)
    }

    /// A pc-relative field ends 4 bytes after its start.
    fn addend_of_front(&self, kind: u32) -> i64 {
        let is_biased = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&kind);
        if is_biased { -4 } else { 0 }
    }

    fn is_biased_in_code(&self, kind: u32) -> bool {
        ![elf::R_X86_64_64.0, elf::R_X86_64_32.0, elf::R_X86_64_32S.0].contains(&kind)
    }

    fn bias_of_tables(&self) -> u64 {
        4
    }

    fn table_distance(&self) -> Option<u32> {
        Some(elf::R_X86_64_PC32.0)
    }

    fn size_relocations(&self) -> Option<&[u32]> {
        Some(&[elf::R_X86_64_SIZE32.0, elf::R_X86_64_SIZE64.0])
    }

    fn has_constant_pools(&self) -> bool {
        true
    }

    fn operand(&self, section: &Section, relocation: &Relocation) -> Option<Operand> {
        operands::read(section, relocation)
    }

    fn sets_up_frame(&self, code: &[u8]) -> bool {
        code.strip_prefix(&LANDING).unwrap_or(code).starts_with(&FRAME)
    }

    fn address_field(&self, kind: u32) -> Option<AddressField> {
        match elf::RelocationType(kind) {
            elf::R_X86_64_64 => Some(AddressField::Absolute(8)),
            elf::R_X86_64_32 | elf::R_X86_64_32S => Some(AddressField::Absolute(4)),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => Some(AddressField::Relative(4)),
            elf::R_X86_64_PC64 => Some(AddressField::Relative(8)),
            _ => None,
        }
    }

    fn relative_relocation(&self) -> Option<u32> {
        Some(elf::R_X86_64_RELATIVE.0)
    }

    fn copy_relocation(&self) -> Option<u32> {
        Some(elf::R_X86_64_COPY.0)
    }
}

/// Reads instructions of 64-bit or 32-bit code.
pub fn read_steps(bits: u32, code: &[u8], start: u64, take: &mut TakeStep) -> bool {
    let mut decoder = Decoder::with_ip(bits, code, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return false;
        }
        take(instruction.ip(), instruction.next_ip(), step(&instruction));
    }
    true
}

fn step(instruction: &Instruction) -> Step {
    match instruction.flow_control() {
        FlowControl::Return | FlowControl::IndirectBranch => Step::Returns,
        FlowControl::UnconditionalBranch => Step::Jumps(instruction.near_branch_target()),
        FlowControl::ConditionalBranch => Step::Branches(instruction.near_branch_target()),
        FlowControl::XbeginXabortXend => Step::Branches(instruction.near_branch_target()),
        FlowControl::Call => Step::Calls,
        FlowControl::Exception => Step::Stops,
        _ => match instruction.mnemonic() {
            Mnemonic::Hlt => Step::Stops,
            // Linkers and compilers fill gaps with either.
            Mnemonic::Nop | Mnemonic::Int3 => Step::Padding,
            _ => Step::On,
        },
    }
}

/// `call`, `jmp` or a conditional jump.
pub fn is_jump(code: &[u8], relocation: &Relocation) -> bool {
    let [first, second] = before(code, relocation);
    matches!(second, 0xe8 | 0xe9) || first == 0x0f && second & 0xf0 == 0x80
}

/// The two bytes before a relocated field.
fn before(code: &[u8], relocation: &Relocation) -> [u8; 2] {
    let back = |distance: u64| {
        let place =
            relocation.offset.checked_sub(distance).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| code.get(place)).copied().unwrap_or(0)
    };
    [back(2), back(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_access(code: &[u8], kind: elf::RelocationType) -> bool {
        let relocation =
            Relocation { offset: code.len() as u64, kind: kind.0, symbol: 1, addend: -4 };
        X86_64.is_access_in_code(code, &relocation)
    }

    #[test]
    fn calls_jumps_loads_and_stores_are_accesses() {
        assert!(is_access(&[0xe8], elf::R_X86_64_PLT32), "call f");
        assert!(is_access(&[0xe9], elf::R_X86_64_PLT32), "jmp f");
        assert!(is_access(&[0x0f, 0x84], elf::R_X86_64_PC32), "je f");
        assert!(is_access(&[0x8b, 0x05], elf::R_X86_64_PC32), "mov x(%rip), %eax");
        assert!(is_access(&[0x83, 0x3d], elf::R_X86_64_PC32), "cmpl $1, x(%rip)");
        assert!(is_access(&[0xff, 0x15], elf::R_X86_64_GOTPCRELX), "call *f@GOTPCREL(%rip)");
    }

    #[test]
    fn an_address_in_a_register_is_a_use() {
        assert!(!is_access(&[0x48, 0x8d, 0x05], elf::R_X86_64_PC32), "lea x(%rip), %rax");
        assert!(!is_access(&[0x48, 0x8d, 0x3d], elf::R_X86_64_PLT32), "lea f@PLT(%rip), %rdi");
        let load = [0x48, 0x8b, 0x05];
        assert!(!is_access(&load, elf::R_X86_64_REX_GOTPCRELX), "mov x@GOTPCREL(%rip), %rax");
        assert!(!is_access(&[0xff, 0x35], elf::R_X86_64_GOTPCREL), "push x@GOTPCREL(%rip)");
        assert!(!is_access(&[0xbf], elf::R_X86_64_32), "mov $x, %edi");
        assert!(!is_access(&[], elf::R_X86_64_PC32));
    }
}
