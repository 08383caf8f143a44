//! 32-bit x86: its instructions are those of x86-64, its relocations have kinds and addends of
//! their own.

use super::x86_64::{is_jump, read_steps};
use super::{Processor, TakeStep};
use crate::elf::object_file::Relocation;
use crate::model::record::Usage;
use object::{Endianness, elf};

pub struct I386;

impl Processor for I386 {
    fn read_steps(&self, code: &[u8], start: u64, _: Endianness, take: &mut TakeStep) -> bool {
        read_steps(32, code, start, take)
    }

    fn usage_in_data(&self, kind: u32) -> Usage {
        match elf::RelocationType(kind) {
            elf::R_386_PC8 | elf::R_386_PC16 | elf::R_386_PC32 => Usage::Distance,
            elf::R_386_NONE => Usage::Access,
            _ => Usage::Address,
        }
    }

    fn is_access_in_code(&self, code: &[u8], relocation: &Relocation) -> bool {
        let kinds = [elf::R_386_PC32.0, elf::R_386_PLT32.0];
        kinds.contains(&relocation.kind) && is_jump(code, relocation)
    }

    fn table_distance(&self) -> Option<u32> {
        Some(elf::R_386_PC32.0)
    }

    fn copy_relocation(&self) -> Option<u32> {
        Some(elf::R_386_COPY.0)
    }
}
