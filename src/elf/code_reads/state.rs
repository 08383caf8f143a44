//! What is known at one place of a function: its registers and its frame.

use super::memory::Memory;
use super::value::{UNKNOWN, Value, ValueBase};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
    Register,
};
use std::collections::BTreeMap;

/// The registers of arguments, by number, in their order: rdi, rsi, rdx, rcx, r8, r9.
pub const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];
/// Those that calls need not keep: rax, rcx, rdx, rsi, rdi, r8 to r11.
pub const SCRATCH: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
pub const STACK_POINTER: usize = 4;
pub const FRAME_POINTER: usize = 5;
pub const POINTER: i64 = 8;
/// How much of a caller's frame a called function may look at.
pub const SEEN_OF_CALLER: i64 = 256;
pub type Slots = BTreeMap<i64, Value>;

#[derive(Clone, PartialEq)]
pub struct MachineState {
    pub registers: [Value; 16],
    pub vectors: [Value; 32],
    pub slots: Slots,
}

/// What is tested by its lowest bit.
pub fn low_bit_tested(instruction: &Instruction, state: &MachineState) -> Option<Value> {
    let is_test = instruction.mnemonic() == Mnemonic::Test
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() != OpKind::Register
        && instruction.try_immediate(1).is_ok_and(|bits| bits == 1);
    let found = is_test.then(|| register(instruction.op0_register())).flatten()?;
    Some(state.registers[found]).filter(|value| value.place == ValueBase::Code)
}

/// Whether code starts by asking for the number of vectors among its arguments.
pub fn is_variadic(code: &[u8]) -> bool {
    const START: usize = 40;
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let asks = |instruction: Instruction| {
        instruction.mnemonic() == Mnemonic::Test
            && instruction.op0_register() == Register::AL
            && instruction.op1_register() == Register::AL
    };
    let start = decoder.iter().take(START).take_while(|instruction| {
        !matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
        )
    });
    let mut info = InstructionInfoFactory::new();
    for instruction in start {
        if asks(instruction) {
            return true;
        }
        let mut used = info.info(&instruction).used_registers().iter();
        if used.any(|used| used.register().full_register() == Register::RAX) {
            return false;
        }
    }
    false
}

pub fn writes_flags(instruction: &Instruction) -> bool {
    instruction.rflags_modified() != 0
}

/// The number of a general register, of any width.
pub fn register(name: Register) -> Option<usize> {
    let full = name.full_register();
    full.is_gpr64().then(|| full.number())
}

pub fn put(slots: &mut Slots, at: i64, value: Value) {
    match value.place {
        ValueBase::Number => _ = slots.remove(&at),
        _ => _ = slots.insert(at, value),
    }
}

/// What a place in a frame holds. Of an array that is indexed, all that lies behind one another.
pub fn from_slots(
    memory: &mut Memory,
    slot: impl Fn(i64) -> Option<Value>,
    address: Value,
) -> Value {
    if let Some(at) = address.exactly() {
        return slot(at).unwrap_or(UNKNOWN);
    }
    let step =
        if address.step.is_multiple_of(POINTER as u64) { address.step as i64 } else { POINTER };
    let mut found = UNKNOWN;
    let mut at = address.at;
    while let Some(value) = slot(at) {
        found = memory.join(found, value);
        at = at.wrapping_add(step);
    }
    found
}

pub fn join(memory: &mut Memory, one: &MachineState, other: &MachineState) -> MachineState {
    let mut joined = one.clone();
    for (value, other) in joined.registers.iter_mut().zip(&other.registers) {
        *value = memory.join(*value, *other);
    }
    for (value, other) in joined.vectors.iter_mut().zip(&other.vectors) {
        *value = memory.join(*value, *other);
    }
    for (at, other) in &other.slots {
        let before = joined.slots.get(at).copied().unwrap_or(UNKNOWN);
        let value = memory.join(before, *other);
        put(&mut joined.slots, *at, value);
    }
    joined
}
