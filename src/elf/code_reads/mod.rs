//! Whether a binary reads the code of its own functions as data, by their addresses: checksums,
//! copies, prints of its own bytes. It would find breakpoints where functions are traced, and work
//! with those.
//!
//! In: a binary, where its functions and variables lie. Out: the function that reads code. Every
//! function that names another one's address, or a variable that leads to one, is followed
//! instruction by instruction (`follow`), with all that it calls by name and hands such an address
//! to: through registers, frames, variables of its own module and what functions return. Functions
//! of other modules are known by name (`readers`). An address that is kept in memory that was
//! allocated, is handed over by a call through a pointer, or comes from another module, is lost
//! sight of.

mod follow;
mod memory;
mod readers;
mod state;
mod value;

use follow::Follower;
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use memory::Memory;
pub use memory::{Function, Image};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use value::ValueBase;

/// Who reads code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The function that starts there.
    Function(u64),
    /// It could not be told in reasonable time.
    NotKnown,
}

/// The first function that is found to read code.
pub fn reader(image: &Image) -> Option<Reader> {
    let mut memory = Memory::new(image);
    let references = References::of(&mut memory, image.functions.len() as u32);
    let mut open: VecDeque<u32> = references.naming_code.iter().copied().collect();
    let mut waiting: FxHashSet<u32> = open.iter().copied().collect();
    let mut follower = Follower::new(&mut memory);
    while let Some(function) = open.pop_front() {
        waiting.remove(&function);
        let result = follower.function(function);
        if let Some(found) = follower.found {
            return Some(Reader::Function(found));
        }
        if follower.is_given_up {
            return Some(Reader::NotKnown);
        }
        let mut again: Vec<u32> = Vec::new();
        for variable in std::mem::take(&mut follower.stored) {
            again.extend(references.of_variable(&variable));
        }
        if matches!(result.place, ValueBase::Code | ValueBase::Data(_))
            && follower.returned.get(&function) != Some(&result)
        {
            follower.returned.insert(function, result);
            again.extend(references.callers.get(&function).into_iter().flatten());
        }
        if !again.is_empty() {
            follower.forget();
            open.extend(again.into_iter().filter(|function| waiting.insert(*function)));
        }
    }
    None
}

/// Who refers to what, by one look at all instructions.
#[derive(Default)]
struct References {
    /// Functions that name code, or variables that lead to it.
    naming_code: Vec<u32>,
    callers: FxHashMap<u32, Vec<u32>>,
    /// Addresses of data and who refers to them, sorted.
    to_data: Vec<(u64, u32)>,
}

impl References {
    fn of(memory: &mut Memory, functions: u32) -> References {
        let mut references = References::default();
        let mut instruction = Instruction::default();
        for function in 0..functions {
            let Some(code) = memory.code(function).filter(|_| memory.is_followed(function)) else {
                continue;
            };
            let start = memory.function_range(function).start;
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            let mut names_code = false;
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                if instruction.is_call_near() {
                    if let Some(called) = memory.function(instruction.near_branch_target()) {
                        references.callers.entry(called).or_default().push(function);
                    }
                    continue;
                }
                for address in addresses(&instruction, memory).into_iter().flatten() {
                    let value = memory.referred(function, address);
                    names_code |= value.leads_to_code();
                    if value.place != ValueBase::Code && memory.variable(address).is_some() {
                        references.to_data.push((address, function));
                    }
                }
            }
            if names_code {
                references.naming_code.push(function);
            }
        }
        references.to_data.sort_unstable();
        references
    }

    fn of_variable(&self, variable: &Range<u64>) -> impl Iterator<Item = u32> {
        let from = self.to_data.partition_point(|(address, _)| *address < variable.start);
        let to = self.to_data.partition_point(|(address, _)| *address < variable.end);
        self.to_data[from..to].iter().map(|(_, function)| *function)
    }
}

/// The numbers in an instruction that can be addresses.
fn addresses(instruction: &Instruction, memory: &Memory) -> [Option<u64>; 2] {
    let mut operands = 0..instruction.op_count();
    let can_be = |number: &u64| memory.can_be_address(*number);
    let immediates = operands.clone().filter_map(|number| instruction.try_immediate(number).ok());
    let immediate = immediates.into_iter().find(can_be);
    if instruction.is_ip_rel_memory_operand() {
        return [Some(instruction.ip_rel_memory_address()), immediate];
    }
    let has_memory = operands.any(|number| instruction.op_kind(number) == OpKind::Memory);
    [has_memory.then(|| instruction.memory_displacement64()).filter(can_be), immediate]
}
