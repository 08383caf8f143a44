//! Follows addresses of code through one function: registers, its frame, and calls. In: what its
//! arguments may be. Out: whether it reads code, and what it returns.

mod access;
mod calls;
mod instructions;

use super::memory::Memory;
use super::state::{
    ARGUMENTS, FRAME_POINTER, MachineState, SCRATCH, STACK_POINTER, is_variadic, join,
    low_bit_tested, writes_flags,
};
use super::value::{UNKNOWN, Value, ValueBase};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Calls within calls that are followed.
const DEEPEST: usize = 24;
/// Instructions that are looked at before it is given up.
const MOST_STEPS: u64 = 4_000_000;

/// A function with what it is given.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Context {
    function: u32,
    arguments: [Value; 6],
    /// What lies in the frame at its entry.
    slots: Vec<(i64, Value)>,
}

impl Context {
    fn plain(function: u32) -> Context {
        Context { function, arguments: [UNKNOWN; 6], slots: Vec::new() }
    }
}

pub struct Follower<'m, 'a> {
    pub memory: &'m mut Memory<'a>,
    results: FxHashMap<Context, Value>,
    open: FxHashSet<Context>,
    frames: Vec<Vec<(i64, Value)>>,
    frame_numbers: FxHashMap<Vec<(i64, Value)>, u32>,
    /// Whether functions have arguments on the stack.
    from_stack: FxHashMap<u32, bool>,
    /// What functions return, whatever they are given.
    pub returned: FxHashMap<u32, Value>,
    /// Variables in which addresses of code were stored since this was looked at.
    pub stored: Vec<std::ops::Range<u64>>,
    depth: usize,
    steps: u64,
    /// Where code was read first.
    pub found: Option<u64>,
    pub is_given_up: bool,
}

impl<'m, 'a> Follower<'m, 'a> {
    pub fn new(memory: &'m mut Memory<'a>) -> Self {
        Follower {
            memory,
            results: FxHashMap::default(),
            open: FxHashSet::default(),
            frames: Vec::new(),
            frame_numbers: FxHashMap::default(),
            from_stack: FxHashMap::default(),
            returned: FxHashMap::default(),
            stored: Vec::new(),
            depth: 0,
            steps: 0,
            found: None,
            is_given_up: false,
        }
    }

    /// Follows a function by itself; what it returns.
    pub fn function(&mut self, function: u32) -> Value {
        let context = Context::plain(function);
        self.results.remove(&context);
        self.follow(context)
    }

    /// Forgets what was found out with other contents of variables.
    pub fn forget(&mut self) {
        self.results.clear();
    }

    fn is_done(&self) -> bool {
        self.found.is_some() || self.is_given_up
    }

    fn follow(&mut self, context: Context) -> Value {
        if let Some(&known) = self.results.get(&context) {
            return known;
        }
        if self.is_done() || self.depth >= DEEPEST || !self.open.insert(context.clone()) {
            return UNKNOWN;
        }
        self.depth += 1;
        let (result, takes_from_stack) =
            Walk::new(self, &context).map_or((UNKNOWN, false), Walk::run);
        *self.from_stack.entry(context.function).or_default() |= takes_from_stack;
        self.depth -= 1;
        self.open.remove(&context);
        self.results.insert(context, result);
        result
    }

    /// Whether a function has arguments on the stack.
    fn takes_from_stack(&mut self, function: u32) -> bool {
        if let Some(&known) = self.from_stack.get(&function) {
            return known;
        }
        self.follow(Context::plain(function));
        // In the middle of following it: it may.
        self.from_stack.get(&function).copied().unwrap_or(true)
    }

    fn frame(&mut self, content: Vec<(i64, Value)>) -> u32 {
        if let Some(&known) = self.frame_numbers.get(&content) {
            return known;
        }
        let number = self.frames.len() as u32;
        self.frames.push(content.clone());
        self.frame_numbers.insert(content, number);
        number
    }
}

/// One function, instruction by instruction, until nothing new comes up.
struct Walk<'f, 'm, 'a> {
    follower: &'f mut Follower<'m, 'a>,
    function: u32,
    start: u64,
    code: &'a [u8],
    entry: MachineState,
    /// What is known at the places where jumps lead to.
    states: BTreeMap<u64, MachineState>,
    open: BTreeSet<u64>,
    result: Value,
    /// What is known where a jump leads somewhere by a table.
    before_tables: Option<MachineState>,
    /// It takes any number of arguments, and keeps all registers of arguments in its frame.
    is_variadic: bool,
    takes_from_stack: bool,
    /// Data that it names: among them tables of jumps.
    tables: BTreeSet<u64>,
    info: InstructionInfoFactory,
}

impl<'f, 'm, 'a> Walk<'f, 'm, 'a> {
    fn new(follower: &'f mut Follower<'m, 'a>, context: &Context) -> Option<Self> {
        let start = follower.memory.function_range(context.function).start;
        let code = follower.memory.code(context.function)?;
        let mut registers = [UNKNOWN; 16];
        registers[STACK_POINTER] = Value::exact(ValueBase::Stack, 0);
        ARGUMENTS
            .iter()
            .zip(context.arguments)
            .for_each(|(register, value)| registers[*register] = value);
        let entry = MachineState {
            registers,
            vectors: [UNKNOWN; 32],
            slots: context.slots.iter().copied().collect(),
        };
        let info = InstructionInfoFactory::new();
        let is_variadic = is_variadic(code);
        Some(Walk {
            follower,
            function: context.function,
            start,
            code,
            entry,
            states: BTreeMap::new(),
            open: BTreeSet::new(),
            result: UNKNOWN,
            before_tables: None,
            tables: BTreeSet::new(),
            is_variadic,
            takes_from_stack: false,
            info,
        })
    }

    /// What the function returns, and whether it has arguments on the stack.
    fn run(mut self) -> (Value, bool) {
        let entry = self.entry.clone();
        self.arrive(self.start, &entry);
        loop {
            while let Some(at) = self.open.pop_first() {
                self.block(at);
                if self.follower.is_done() {
                    return (UNKNOWN, false);
                }
            }
            // Where tables of jumps and exceptions lead to is not known.
            if !self.visit_unreached() {
                return (self.result, self.takes_from_stack);
            }
        }
    }

    /// Goes to the places that nothing has led to: by tables of jumps, then by exceptions. Whether
    /// there were any.
    fn visit_unreached(&mut self) -> bool {
        let unreached = self.unreached();
        if unreached.is_empty() {
            return false;
        }
        let Some(state) = self.before_tables.take() else {
            let state = self.handler_state();
            unreached.into_iter().for_each(|at| self.arrive(at, &state));
            return true;
        };
        let tables = std::mem::take(&mut self.tables);
        let targets: BTreeSet<u64> = tables
            .into_iter()
            .flat_map(|table| self.follower.memory.jumps(table, self.start, self.code.len() as u64))
            .collect();
        match targets.is_empty() {
            true => unreached.into_iter().for_each(|at| self.arrive(at, &state)),
            false => targets.into_iter().for_each(|at| self.arrive(at, &state)),
        }
        true
    }

    /// The places behind the ends of blocks.
    fn unreached(&self) -> Vec<u64> {
        let mut decoder = Decoder::with_ip(64, self.code, self.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut unreached = Vec::new();
        let mut is_behind_end = false;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
                continue;
            }
            if is_behind_end && !self.states.contains_key(&instruction.ip()) {
                unreached.push(instruction.ip());
            }
            is_behind_end = matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
            );
        }
        unreached
    }

    /// What is known where an exception is handled: where the frame is.
    fn handler_state(&self) -> MachineState {
        let mut state = self.entry.clone();
        state.registers = [UNKNOWN; 16];
        state.slots.clear();
        for number in [STACK_POINTER, FRAME_POINTER] {
            let known = self.states.values().map(|state| state.registers[number]);
            let value =
                known.filter(|value| value.place == ValueBase::Stack).min_by_key(|value| value.at);
            state.registers[number] = value.unwrap_or(UNKNOWN);
        }
        state
    }

    fn arrive(&mut self, at: u64, state: &MachineState) {
        if at < self.start || at >= self.start + self.code.len() as u64 {
            return;
        }
        let Some(known) = self.states.get(&at) else {
            self.states.insert(at, state.clone());
            self.open.insert(at);
            return;
        };
        let joined = join(self.follower.memory, known, state);
        if joined != *known {
            self.states.insert(at, joined);
            self.open.insert(at);
        }
    }

    fn block(&mut self, from: u64) {
        let mut state = self.states[&from].clone();
        let bytes = &self.code[(from - self.start) as usize..];
        let mut decoder = Decoder::with_ip(64, bytes, from, DecoderOptions::NONE);
        let mut tested: Option<Value> = None;
        while decoder.can_decode() && !self.follower.is_done() {
            let at = decoder.ip();
            if at != from && self.states.contains_key(&at) {
                return self.arrive(at, &state);
            }
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return;
            }
            self.follower.steps += 1;
            if self.follower.steps > MOST_STEPS {
                self.follower.is_given_up = true;
                return;
            }
            match instruction.flow_control() {
                FlowControl::Next => {
                    tested = low_bit_tested(&instruction, &state)
                        .or(tested.filter(|_| !writes_flags(&instruction)));
                    self.step(&instruction, &mut state);
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    self.call(&instruction, &mut state)
                }
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    self.branch(&instruction, &state, tested.take());
                    self.arrive(instruction.next_ip(), &state);
                    return;
                }
                FlowControl::UnconditionalBranch => {
                    return self.jump(instruction.near_branch_target(), &mut state);
                }
                FlowControl::IndirectBranch => {
                    self.check_reads(&instruction, &state);
                    let target = self.target(&instruction, &state);
                    if target.is_none() {
                        self.before_tables = Some(match self.before_tables.take() {
                            Some(before) => join(self.follower.memory, &before, &state),
                            None => state.clone(),
                        });
                    }
                    return self.tail_call(target, &mut state);
                }
                FlowControl::Return => return self.returns(state.registers[0]),
                FlowControl::Interrupt => {
                    SCRATCH.iter().for_each(|register| state.registers[*register] = UNKNOWN);
                }
                FlowControl::Exception => return,
            }
        }
    }

    /// A pointer with its lowest bit set is no address of a function.
    fn branch(&mut self, instruction: &Instruction, state: &MachineState, tested: Option<Value>) {
        let mut taken = state.clone();
        let is_set = instruction.mnemonic() == Mnemonic::Jne;
        if let Some(tested) = tested.filter(|_| is_set) {
            let clear = |value: &mut Value| {
                if *value == tested {
                    *value = UNKNOWN;
                }
            };
            taken.registers.iter_mut().for_each(clear);
            taken.slots.values_mut().for_each(clear);
        }
        self.jump(instruction.near_branch_target(), &mut taken);
    }

    fn jump(&mut self, to: u64, state: &mut MachineState) {
        if to >= self.start && to < self.start + self.code.len() as u64 {
            self.arrive(to, state);
        } else {
            let target = self.callee(to);
            self.tail_call(target, state);
        }
    }

    /// A call in the place of a return.
    fn tail_call(&mut self, target: Option<Target>, state: &mut MachineState) {
        if let Some(target) = target {
            // The called function returns to our caller: no address is pushed.
            let value = self.enter(&target, state, 0);
            self.returns(value);
        }
    }

    fn returns(&mut self, value: Value) {
        let value = if matches!(value.place, ValueBase::Stack | ValueBase::Caller(_)) {
            UNKNOWN
        } else {
            value
        };
        self.result = self.follower.memory.join(self.result, value);
    }
}

/// Where a call leads.
enum Target {
    Function(u32),
    Import(u32),
}
