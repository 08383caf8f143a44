//! What is known of each processor: its relocations and its instructions. One file per processor.
//!
//! In: the machine of an ELF file. Out: its [`Processor`]. A method that a processor does not have
//! answers as for one that is not known: always the answer that costs precision, never soundness.

mod aarch64;
mod i386;
mod x86_64;

pub use aarch64::{offset_in_page, page_address};

use super::object_file::{ObjectFile, Relocation, Section};
use crate::model::record::Usage;
use object::{Endianness, elf};

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next one follows.
    On,
    /// Nothing is done.
    Padding,
    Returns,
    /// The program stops.
    Stops,
    Jumps(u64),
    /// A conditional jump.
    Branches(u64),
    Calls,
}

/// How a field of a linked binary holds the address of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressField {
    /// As a number of so many bytes.
    Absolute(usize),
    /// As a distance from the field, in so many bytes.
    Relative(usize),
    /// The number of its page, as a distance from that of the instruction (AArch64's `adrp`).
    Page,
    /// Its place in the page (AArch64's `add`).
    InPage,
}

/// How a reference by section symbol uses its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The address is taken: of a thing's first byte, of a byte within it, or of its end.
    Address(i64),
    /// Memory is read or written just there: the byte meant is part of the thing meant.
    Access(i64),
    /// The same, at this offset or at one that lies [`IMMEDIATES`] behind it.
    AccessNear(i64),
}

/// How many bytes an immediate behind the field of an [`Operand::AccessNear`] may have.
pub const IMMEDIATES: [i64; 4] = [0, 1, 2, 4];

/// Receives the instructions of a piece of code: where each starts and ends, and what it does.
pub type TakeStep<'t> = dyn FnMut(u64, u64, Step) + 't;

/// One processor. The defaults are those of a processor that is not known.
pub trait Processor: Sync {
    /// Reads the instructions of `code`, which starts at `start`, one behind the other. Returns
    /// whether all of it was understood.
    fn read_steps(
        &self,
        _code: &[u8],
        _start: u64,
        _endian: Endianness,
        _take: &mut TakeStep,
    ) -> bool {
        false
    }

    /// What a relocation of this kind in data does with its target.
    fn usage_in_data(&self, _kind: u32) -> Usage {
        Usage::Address
    }

    /// Whether the instruction with the relocated field calls, jumps, loads or stores, so that the
    /// address of the target cannot be seen.
    fn is_access_in_code(&self, _code: &[u8], _relocation: &Relocation) -> bool {
        false
    }

    /// Whether the two methods above tell all uses of addresses in an object.
    fn tells_address_uses(&self) -> bool {
        false
    }

    /// The places in a section of code whose addresses are used without a relocation. May have
    /// places too many.
    fn addresses_without_relocation(&self, _section: &Section) -> Vec<u64> {
        Vec::new()
    }

    /// Whether the target of a relocation in code is an argument that the called function only
    /// reads.
    fn is_argument_only_read(
        &self,
        _object: &ObjectFile,
        _section: &Section,
        _number: usize,
    ) -> bool {
        false
    }

    /// The addend by which a relocation of this kind in code means the first byte of its target.
    fn addend_of_front(&self, _kind: u32) -> i64 {
        0
    }

    /// Whether the addend of a relocation of this kind in code counts from elsewhere than the
    /// field, so that section symbol + addend is not the place meant.
    fn is_biased_in_code(&self, _kind: u32) -> bool {
        false
    }

    /// The distance from a field of an instruction to the end of most instructions.
    fn bias_of_tables(&self) -> u64 {
        0
    }

    /// The relocation by which tables hold distances.
    fn table_distance(&self) -> Option<u32> {
        None
    }

    /// The relocations that stand for the size of a symbol; `None` where that is not known.
    fn size_relocations(&self) -> Option<&[u32]> {
        None
    }

    /// Whether gcc's constant pools of this processor can be divided, by the two methods below.
    fn has_constant_pools(&self) -> bool {
        false
    }

    /// What a relocation into a constant pool means.
    fn operand(&self, _section: &Section, _relocation: &Relocation) -> Option<Operand> {
        None
    }

    /// Whether a function starts as unoptimised ones do, by setting up its frame.
    fn sets_up_frame(&self, _code: &[u8]) -> bool {
        false
    }

    /// How a field of this kind holds an address in a linked binary.
    fn address_field(&self, _kind: u32) -> Option<AddressField> {
        None
    }

    /// The loader's relocation that depends on nothing but where the binary is loaded.
    fn relative_relocation(&self) -> Option<u32> {
        None
    }

    /// The relocation by which the loader copies a library's variable into the program.
    fn copy_relocation(&self) -> Option<u32> {
        None
    }
}

/// A processor of which nothing is known.
struct Unknown;

impl Processor for Unknown {}

/// What is known of the processor that an ELF file is for.
pub fn of(machine: u16) -> &'static dyn Processor {
    match elf::Machine(machine) {
        elf::EM_X86_64 => &x86_64::X86_64,
        elf::EM_386 => &i386::I386,
        elf::EM_AARCH64 => &aarch64::AArch64,
        _ => &Unknown,
    }
}
