//! Calls: where they lead, what the called function gets, and what it does with that.

use super::{Context, Target, Walk};
use crate::elf::code_reads::readers::{self, Reads};
use crate::elf::code_reads::state::{
    ARGUMENTS, MachineState, POINTER, SCRATCH, SEEN_OF_CALLER, STACK_POINTER, put, register,
};
use crate::elf::code_reads::value::{UNKNOWN, Value, ValueBase};
use iced_x86::{Instruction, OpKind};

impl Walk<'_, '_, '_> {
    pub(super) fn call(&mut self, instruction: &Instruction, state: &mut MachineState) {
        self.check_reads(instruction, state);
        let target = self.target(instruction, state);
        let value = match target {
            Some(target) => self.enter(&target, state, POINTER),
            None => UNKNOWN,
        };
        SCRATCH.iter().for_each(|register| state.registers[*register] = UNKNOWN);
        state.vectors = [UNKNOWN; 32];
        state.registers[0] = value;
    }

    /// What a call or an indirect jump leads to.
    pub(super) fn target(
        &mut self,
        instruction: &Instruction,
        state: &MachineState,
    ) -> Option<Target> {
        let value = match instruction.op0_kind() {
            OpKind::NearBranch64 => return self.callee(instruction.near_branch_target()),
            OpKind::Register => {
                register(instruction.op0_register()).map(|found| state.registers[found])?
            }
            OpKind::Memory => {
                let address = self.address(instruction, state);
                self.loaded(address, POINTER, state)
            }
            _ => return None,
        };
        match value.place {
            ValueBase::Import(import) => Some(Target::Import(import)),
            ValueBase::Code if value.step == 0 => self.callee(value.at as u64),
            _ => None,
        }
    }

    /// The function at an address, or that of another module to which a stub there leads.
    pub(super) fn callee(&mut self, address: u64) -> Option<Target> {
        if let Some(function) = self.follower.memory.function(address) {
            let is_front = self.follower.memory.function_range(function).start == address;
            return is_front.then_some(Target::Function(function));
        }
        self.follower.memory.stub(address).map(Target::Import)
    }

    /// Goes into a called function with what it is given. `pushed`: how much a call puts on the
    /// stack.
    pub(super) fn enter(
        &mut self,
        target: &Target,
        state: &mut MachineState,
        pushed: i64,
    ) -> Value {
        match *target {
            Target::Import(import) => self.import(import, state),
            Target::Function(function) if !self.follower.memory.is_followed(function) => UNKNOWN,
            Target::Function(function) => {
                let arguments =
                    ARGUMENTS.map(|register| self.given(state.registers[register], state));
                let top = state.registers[STACK_POINTER];
                let slots = match (top.place, top.exactly()) {
                    (ValueBase::Stack, Some(top)) => self.on_stack(top, pushed, function, state),
                    _ => Vec::new(),
                };
                let is_plain =
                    !arguments.iter().any(|value| value.leads_to_code()) && slots.is_empty();
                if is_plain {
                    return self.follower.returned.get(&function).copied().unwrap_or(UNKNOWN);
                }
                self.follower.follow(Context { function, arguments, slots })
            }
        }
    }

    /// What a called function gets on the stack.
    pub(super) fn on_stack(
        &mut self,
        top: i64,
        pushed: i64,
        function: u32,
        state: &MachineState,
    ) -> Vec<(i64, Value)> {
        // On top of the stack is the address to return to, whoever pushes it.
        let first = if pushed == 0 { top.saturating_add(POINTER) } else { top };
        let seen = state.slots.range(first..first.saturating_add(SEEN_OF_CALLER));
        let given =
            seen.filter(|(_, value)| matches!(value.place, ValueBase::Code | ValueBase::Data(_)));
        let given: Vec<(i64, Value)> =
            given.map(|(at, value)| (at - first + POINTER, *value)).collect();
        if given.is_empty() || !self.follower.takes_from_stack(function) {
            Vec::new()
        } else {
            given
        }
    }

    /// What a called function gets: of our frame a copy.
    pub(super) fn given(&mut self, value: Value, state: &MachineState) -> Value {
        match (value.place, value.exactly()) {
            (ValueBase::Code | ValueBase::Data(_) | ValueBase::Caller(_), _) => value,
            (ValueBase::Stack, Some(at)) => {
                let seen = state.slots.range(at..at.saturating_add(SEEN_OF_CALLER));
                let content: Vec<(i64, Value)> = seen
                    .filter(|(_, value)| {
                        matches!(value.place, ValueBase::Code | ValueBase::Data(_))
                    })
                    .map(|(place, value)| (place - at, *value))
                    .collect();
                match content.is_empty() {
                    true => UNKNOWN,
                    false => Value::exact(ValueBase::Caller(self.follower.frame(content)), 0),
                }
            }
            _ => UNKNOWN,
        }
    }

    /// A call of another module's function.
    pub(super) fn import(&mut self, import: u32, state: &mut MachineState) -> Value {
        let name = self.follower.memory.import_name(import);
        let arguments = ARGUMENTS.map(|register| state.registers[register]);
        let reads_code = match readers::reads(name) {
            Reads::Nothing => false,
            Reads::Arguments(read) => {
                read.iter().any(|number| arguments[*number].place == ValueBase::Code)
            }
            Reads::Lists => arguments.iter().any(|argument| self.lists_code(*argument, state)),
        };
        if reads_code {
            self.finds();
        }
        if readers::copies(name) {
            self.copy(arguments[0], arguments[1], arguments[2].exactly(), state);
            return arguments[0];
        }
        UNKNOWN
    }

    /// Whether a list of places in memory has one in code.
    pub(super) fn lists_code(&mut self, list: Value, state: &MachineState) -> bool {
        let is_code = |value: &Value| value.place == ValueBase::Code;
        match (list.place, list.exactly()) {
            (ValueBase::Stack, Some(at)) => state
                .slots
                .range(at..at.saturating_add(SEEN_OF_CALLER))
                .any(|(_, value)| is_code(value)),
            (ValueBase::Stack, None) => state.slots.values().any(is_code),
            (ValueBase::Caller(frame), _) => {
                self.follower.frames[frame as usize].iter().any(|(_, value)| is_code(value))
            }
            (ValueBase::Data(_), _) => {
                is_code(&self.follower.memory.load(Value { step: 8, ..list }))
            }
            _ => false,
        }
    }

    /// Pointers are copied to the frame.
    pub(super) fn copy(
        &mut self,
        to: Value,
        from: Value,
        length: Option<i64>,
        state: &mut MachineState,
    ) {
        let (ValueBase::Stack, Some(to)) = (to.place, to.exactly()) else { return };
        let length = length.filter(|length| (0..=4096).contains(length)).unwrap_or(SEEN_OF_CALLER);
        if !(from.leads_to_code() || from.place == ValueBase::Stack)
            || from.place == ValueBase::Code
        {
            return;
        }
        for at in (0..length).step_by(POINTER as usize) {
            let value = self.loaded(from.plus(Value::number(at)), POINTER, state);
            put(&mut state.slots, to.wrapping_add(at), value);
        }
    }
}
