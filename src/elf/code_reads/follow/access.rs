//! Accesses to memory: their addresses, whether they read code, what they load and store.

use super::Walk;
use crate::elf::code_reads::state::{MachineState, POINTER, from_slots, put, register};
use crate::elf::code_reads::value::{LESS_ONE, UNKNOWN, Value, ValueBase};
use iced_x86::{Instruction, Mnemonic, OpAccess, OpKind, Register};

impl Walk<'_, '_, '_> {
    pub(super) fn address(&mut self, instruction: &Instruction, state: &MachineState) -> Value {
        if [Register::FS, Register::GS].contains(&instruction.memory_segment()) {
            return UNKNOWN;
        }
        if instruction.is_ip_rel_memory_operand() {
            self.tables.insert(instruction.ip_rel_memory_address());
            return self.follower.memory.named(self.function, instruction.ip_rel_memory_address());
        }
        let displacement = instruction.memory_displacement64();
        let can_be_address = self.follower.memory.can_be_address(displacement);
        if can_be_address {
            self.tables.insert(displacement);
        }
        let (base, index) =
            (register(instruction.memory_base()), register(instruction.memory_index()));
        let mut address = match base {
            None if can_be_address => self.follower.memory.named(self.function, displacement),
            // The address may be the displacement, and what is in the register the offset.
            Some(found) if can_be_address && state.registers[found].is_number() => {
                let fixed = self.follower.memory.named(self.function, displacement);
                state.registers[found].plus(fixed)
            }
            None => Value::number(displacement as i64),
            Some(found) => {
                let displacement = displacement as i64;
                let base = state.registers[found];
                base.plus(Value::number(displacement))
            }
        };
        if let Some(index) = index {
            let scale = i64::from(instruction.memory_index_scale());
            let index = state.registers[index];
            let scaled = if scale == 1 { index } else { index.times(scale) };
            address = address.plus(scaled);
            if displacement as i64 == -1 && address.place == ValueBase::Code {
                address.source = LESS_ONE;
            }
        }
        address
    }

    pub(super) fn finds(&mut self) {
        self.follower.found.get_or_insert(self.start);
    }

    /// Whether an instruction reads code as data.
    pub(super) fn check_reads(&mut self, instruction: &Instruction, state: &MachineState) {
        if instruction.is_string_instruction() {
            let read: &[usize] = match instruction.mnemonic() {
                Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq => &[],
                Mnemonic::Scasb | Mnemonic::Scasw | Mnemonic::Scasd | Mnemonic::Scasq => &[7],
                Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq => &[6, 7],
                _ => &[6],
            };
            if read.iter().any(|number| state.registers[*number].place == ValueBase::Code) {
                self.finds();
            }
            return;
        }
        let has_memory = (0..instruction.op_count())
            .find(|number| instruction.op_kind(*number) == OpKind::Memory);
        let Some(number) = has_memory else { return };
        if matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
            return;
        }
        let address = self.address(instruction, state);
        if address.place != ValueBase::Code {
            return;
        }
        let access = self.info.info(instruction).op_access(number);
        let is_read = matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        // A table of virtual functions, by a pointer to a member function that has the offset
        // instead of an address.
        let is_offset =
            address.source == LESS_ONE && instruction.memory_size().size() as i64 == POINTER;
        if is_read && !is_offset {
            self.finds();
        }
    }

    /// What is loaded from memory, in so many bytes.
    pub(super) fn loaded(&mut self, address: Value, size: i64, state: &MachineState) -> Value {
        if size < POINTER {
            return UNKNOWN;
        }
        let mut found = UNKNOWN;
        for part in (0..size).step_by(POINTER as usize) {
            let here = address.plus(Value::number(part));
            self.takes_from_stack |= here.place == ValueBase::Stack && here.at >= POINTER;
            let value = match here.place {
                ValueBase::Stack => match here.step == 0 || !self.is_variadic {
                    true => {
                        from_slots(self.follower.memory, |at| state.slots.get(&at).copied(), here)
                    }
                    // Arguments that are not there: registers have what they had before.
                    false => UNKNOWN,
                },
                ValueBase::Caller(frame) => {
                    let content = self.follower.frames[frame as usize].clone();
                    let at = |at: i64| {
                        content.iter().find(|(place, _)| *place == at).map(|(_, value)| *value)
                    };
                    from_slots(self.follower.memory, at, here)
                }
                _ => self.follower.memory.load(here),
            };
            found = if part == 0 { value } else { self.follower.memory.join(found, value) };
        }
        found
    }

    pub(super) fn store(
        &mut self,
        address: Value,
        size: i64,
        value: Value,
        state: &mut MachineState,
    ) {
        match (address.place, address.exactly()) {
            (ValueBase::Stack, Some(at)) => {
                let touched: Vec<i64> = state
                    .slots
                    .range(at.saturating_sub(7)..at.saturating_add(size))
                    .map(|(at, _)| *at)
                    .collect();
                touched.iter().for_each(|at| _ = state.slots.remove(at));
                for part in (0..size).step_by(POINTER as usize).filter(|_| size >= POINTER) {
                    put(&mut state.slots, at.wrapping_add(part), value);
                }
            }
            (ValueBase::Stack, None) if value.leads_to_code() => {
                let before = state.slots.get(&address.at).copied().unwrap_or(UNKNOWN);
                let joined = self.follower.memory.join(before, value);
                put(&mut state.slots, address.at, joined);
            }
            (ValueBase::Number | ValueBase::Data(_), _)
                if value.place == ValueBase::Code && size >= POINTER =>
            {
                if let Some(variable) = self.follower.memory.store(address) {
                    self.follower.stored.push(variable);
                }
            }
            _ => {}
        }
    }
}
