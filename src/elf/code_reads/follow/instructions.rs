//! What single instructions do to registers and the frame.

use super::Walk;
use crate::elf::code_reads::state::{
    FRAME_POINTER, MachineState, POINTER, STACK_POINTER, register,
};
use crate::elf::code_reads::value::{UNKNOWN, Value, ValueBase};
use iced_x86::{Code, Instruction, Mnemonic, OpAccess, OpKind, Register};

impl Walk<'_, '_, '_> {
    pub(super) fn step(&mut self, instruction: &Instruction, state: &mut MachineState) {
        self.check_reads(instruction, state);
        match instruction.mnemonic() {
            Mnemonic::Push => self.push(instruction, state),
            Mnemonic::Pop => self.pop(instruction, state),
            Mnemonic::Leave => {
                state.registers[STACK_POINTER] = state.registers[FRAME_POINTER];
                let top = state.registers[STACK_POINTER];
                state.registers[FRAME_POINTER] = self.loaded(top, POINTER, state);
                state.registers[STACK_POINTER] = top.plus(Value::number(POINTER));
            }
            Mnemonic::Xchg => {
                let (one, other) =
                    (self.operand(instruction, 0, state), self.operand(instruction, 1, state));
                self.assign(instruction, 0, other, state);
                self.assign(instruction, 1, one, state);
            }
            Mnemonic::Movsq if instruction.has_rep_prefix() => {
                let count = state.registers[1].exactly().map(|count| count.saturating_mul(POINTER));
                self.copy(state.registers[7], state.registers[6], count, state);
                [1, 6, 7].iter().for_each(|register| state.registers[*register] = UNKNOWN);
            }
            Mnemonic::Movsb if instruction.has_rep_prefix() => {
                let count = state.registers[1].exactly();
                self.copy(state.registers[7], state.registers[6], count, state);
                [1, 6, 7].iter().for_each(|register| state.registers[*register] = UNKNOWN);
            }
            mnemonic => match self.computed(mnemonic, instruction, state) {
                Some(value) => self.assign(instruction, 0, value, state),
                None => self.overwrite(instruction, state),
            },
        }
    }

    pub(super) fn push(&mut self, instruction: &Instruction, state: &mut MachineState) {
        let value = self.operand(instruction, 0, state);
        let top = state.registers[STACK_POINTER].minus(Value::number(POINTER));
        state.registers[STACK_POINTER] = top;
        self.store(top, POINTER, value, state);
    }

    pub(super) fn pop(&mut self, instruction: &Instruction, state: &mut MachineState) {
        let top = state.registers[STACK_POINTER];
        let value = self.loaded(top, POINTER, state);
        state.registers[STACK_POINTER] = top.plus(Value::number(POINTER));
        self.assign(instruction, 0, value, state);
    }

    /// What an instruction writes into its first operand, where that is understood.
    pub(super) fn computed(
        &mut self,
        mnemonic: Mnemonic,
        instruction: &Instruction,
        state: &MachineState,
    ) -> Option<Value> {
        if instruction.op_count() == 0 {
            return None;
        }
        let is_vector = |number: u32| {
            instruction.op_kind(number) == OpKind::Register
                && instruction.op_register(number).is_vector_register()
        };
        if (0..instruction.op_count()).any(is_vector) {
            return Some(self.gathered(instruction, state));
        }
        let one = |walk: &mut Self| walk.operand(instruction, 0, state);
        let other = |walk: &mut Self| walk.operand(instruction, 1, state);
        Some(match mnemonic {
            Mnemonic::Mov => other(self),
            Mnemonic::Movsxd | Mnemonic::Movzx | Mnemonic::Movsx => {
                let value = other(self);
                if value.is_number() { value } else { value.blurred() }
            }
            Mnemonic::Lea => self.address(instruction, state),
            Mnemonic::Cmove
            | Mnemonic::Cmovne
            | Mnemonic::Cmova
            | Mnemonic::Cmovae
            | Mnemonic::Cmovb
            | Mnemonic::Cmovbe
            | Mnemonic::Cmovg
            | Mnemonic::Cmovge
            | Mnemonic::Cmovl
            | Mnemonic::Cmovle
            | Mnemonic::Cmovs
            | Mnemonic::Cmovns => {
                let (one, other) = (one(self), other(self));
                self.follower.memory.join(one, other)
            }
            Mnemonic::Add => {
                let (one, other) = (one(self), other(self));
                if other.exactly() == Some(-1) && other.is_number() {
                    one.minus(Value::number(1))
                } else {
                    one.plus(other)
                }
            }
            Mnemonic::Sub => {
                let (one, other) = (one(self), other(self));
                one.minus(other)
            }
            Mnemonic::Inc => one(self).plus(Value::number(1)),
            Mnemonic::Dec => one(self).minus(Value::number(1)),
            Mnemonic::Shl => {
                let amount = instruction.immediate8();
                let is_constant = instruction.op1_kind() == OpKind::Immediate8 && amount < 32;
                if is_constant { one(self).times(1 << amount) } else { UNKNOWN }
            }
            Mnemonic::Imul => match instruction.op_count() {
                3 => other(self).times(instruction.immediate(2) as i64),
                _ => UNKNOWN,
            },
            Mnemonic::Xor
                if instruction.op0_kind() == OpKind::Register
                    && instruction.op1_kind() == OpKind::Register
                    && instruction.op0_register() == instruction.op1_register() =>
            {
                Value::number(0)
            }
            Mnemonic::And => {
                let value = one(self);
                // The stack is aligned: the frame is still the frame.
                if value.place == ValueBase::Stack { value } else { value.blurred() }
            }
            Mnemonic::Or | Mnemonic::Xor => one(self).blurred(),
            _ => return None,
        })
    }

    /// What vectors hold: addresses, if any part does.
    pub(super) fn gathered(&mut self, instruction: &Instruction, state: &MachineState) -> Value {
        let first = match instruction.mnemonic() {
            Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Movaps
            | Mnemonic::Movups
            | Mnemonic::Movapd
            | Mnemonic::Movupd
            | Mnemonic::Movq
            | Mnemonic::Movd
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovups
            | Mnemonic::Vmovq
            | Mnemonic::Vmovd
            | Mnemonic::Vpbroadcastq => 1,
            _ if instruction.op0_kind() == OpKind::Memory => 1,
            _ => 0,
        };
        let mut found = UNKNOWN;
        for number in first..instruction.op_count() {
            if matches!(instruction.op_kind(number), OpKind::Register | OpKind::Memory) {
                let value = self.operand(instruction, number, state);
                found = self.follower.memory.join(found, value);
            }
        }
        if found.is_number() { UNKNOWN } else { found }
    }

    pub(super) fn operand(
        &mut self,
        instruction: &Instruction,
        number: u32,
        state: &MachineState,
    ) -> Value {
        match instruction.op_kind(number) {
            OpKind::Register => {
                let name = instruction.op_register(number);
                if name.is_vector_register() {
                    return state.vectors.get(name.number()).copied().unwrap_or(UNKNOWN);
                }
                match register(name) {
                    Some(found) if name.size() >= 4 => state.registers[found],
                    Some(found) if state.registers[found].is_number() => UNKNOWN,
                    Some(found) => state.registers[found].blurred(),
                    None => UNKNOWN,
                }
            }
            OpKind::Memory => {
                let address = self.address(instruction, state);
                let size = instruction.memory_size().size() as i64;
                match self.loaded(address, size, state) {
                    // A number that nobody knows, but one and the same as long as it is in the
                    // register.
                    UNKNOWN => Value::unknown((instruction.ip() as u32).max(1) & 0x7fff_ffff),
                    value => value,
                }
            }
            _ => {
                let value = instruction.try_immediate(number).unwrap_or(0);
                let is_address = self.follower.memory.can_be_address(value);
                if is_address {
                    self.tables.insert(value);
                }
                if is_address {
                    self.follower.memory.named(self.function, value)
                } else {
                    Value::number(value as i64)
                }
            }
        }
    }

    pub(super) fn assign(
        &mut self,
        instruction: &Instruction,
        number: u32,
        value: Value,
        state: &mut MachineState,
    ) {
        match instruction.op_kind(number) {
            OpKind::Register => {
                let name = instruction.op_register(number);
                if name.is_vector_register() {
                    if let Some(vector) = state.vectors.get_mut(name.number()) {
                        *vector = value;
                    }
                } else if let Some(found) = register(name) {
                    state.registers[found] = if name.size() >= 4 { value } else { UNKNOWN };
                }
            }
            OpKind::Memory => {
                let address = self.address(instruction, state);
                let size = instruction.memory_size().size() as i64;
                self.store(address, size, value, state);
            }
            _ => {}
        }
    }

    /// An instruction that is not understood: what it writes is not known any more.
    pub(super) fn overwrite(&mut self, instruction: &Instruction, state: &mut MachineState) {
        let is_written = |access: OpAccess| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        };
        let used: Vec<Register> = self
            .info
            .info(instruction)
            .used_registers()
            .iter()
            .filter(|used| is_written(used.access()))
            .map(|used| used.register())
            .collect();
        for name in used {
            if let Some(found) = register(name).filter(|found| *found != STACK_POINTER) {
                let kept = state.registers[found];
                let is_widened = matches!(instruction.code(), Code::Cdqe | Code::Cwde);
                state.registers[found] = if is_widened { kept } else { UNKNOWN };
            }
        }
        let writes_memory = instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Memory
            && is_written(self.info.info(instruction).op0_access());
        if writes_memory {
            self.assign(instruction, 0, UNKNOWN, state);
        }
    }
}
