//! The instructions of a function, by following its control flow. In: an object, the number of a
//! section of code, and where that can be entered. Out: the instructions in the order of their
//! addresses, each with what it does to the flow, and the places where blocks start.

use super::NotUnderstood;
use super::exceptions::Handlers;
use super::tables::{self, Tables};
use crate::elf::object_file::{ObjectFile, Relocation, Section, SymbolPlace};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use object::elf;
use std::collections::BTreeSet;

/// Functions that return more than once, the later times without being called.
const RETURN_TWICE: [&str; 10] = [
    "setjmp",
    "_setjmp",
    "__setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "savectx",
    "getcontext",
    "vfork",
    "__vfork",
    "swapcontext",
];

/// The code of one function.
pub struct Code<'o, 'a> {
    pub object: &'o ObjectFile<'a>,
    pub section: &'o Section<'a>,
    pub steps: Vec<Step>,
    /// Where blocks start.
    pub starts: BTreeSet<u32>,
}

/// One instruction.
#[derive(Clone, Copy)]
pub struct Step {
    pub at: u32,
    pub end: u32,
    pub instruction: Instruction,
    pub flow: StepFlow,
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFlow {
    /// The next one follows.
    On,
    Jump(u32),
    /// A conditional jump.
    Branch(u32),
    /// A conditional jump out of the function.
    BranchOutside,
    /// A jump to an address in a register or in memory: through a jump table, or out of the
    /// function.
    Indirect,
    /// Nothing of the function follows.
    Leave,
}

impl<'o, 'a> Code<'o, 'a> {
    pub fn read(
        object: &'o ObjectFile<'a>,
        number: usize,
        tables: &Tables,
        entries: &BTreeSet<u32>,
        handlers: &Handlers,
    ) -> Result<Self, NotUnderstood> {
        let section = &object.sections[number];
        let reader = Reader { object, section, number };
        let mut starts: BTreeSet<u32> = entries.iter().copied().chain([0]).collect();
        starts.extend(handlers.pads());
        starts.extend(tables.targets());
        let mut steps: Vec<Option<Step>> = vec![None; section.data.len()];
        let mut open: Vec<u32> = starts.iter().copied().collect();
        while let Some(start) = open.pop() {
            let mut at = start;
            loop {
                let slot = steps.get_mut(at as usize).ok_or("it leads past its end")?;
                if slot.is_some() {
                    break;
                }
                let step = reader.step(at)?;
                *slot = Some(step);
                if let StepFlow::Jump(to) | StepFlow::Branch(to) = step.flow
                    && starts.insert(to)
                {
                    open.push(to);
                }
                match step.flow {
                    StepFlow::On => at = step.end,
                    StepFlow::Branch(_) | StepFlow::BranchOutside => {
                        at = step.end;
                        starts.insert(at);
                    }
                    StepFlow::Jump(_) | StepFlow::Indirect | StepFlow::Leave => break,
                }
            }
        }
        let steps: Vec<Step> = steps.into_iter().flatten().collect();
        reader.check_gaps(&steps)?;
        Ok(Code { object, section, steps, starts })
    }

    /// The relocations of an instruction.
    pub fn relocations(&self, step: &Step) -> &'o [Relocation] {
        relocations(self.section, step.at, step.end)
    }
}

fn relocations<'s>(section: &'s Section, from: u32, to: u32) -> &'s [Relocation] {
    let index = |at: u32| {
        section.relocations.partition_point(|relocation| relocation.offset < u64::from(at))
    };
    section.relocations.get(index(from)..index(to)).unwrap_or_default()
}

/// Reads single instructions.
struct Reader<'o, 'a> {
    object: &'o ObjectFile<'a>,
    section: &'o Section<'a>,
    number: usize,
}

impl Reader<'_, '_> {
    fn decode(&self, at: u32) -> Option<Instruction> {
        let data = self.section.data.get(at as usize..)?;
        let mut decoder = Decoder::with_ip(64, data, u64::from(at), DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn step(&self, at: u32) -> Result<Step, NotUnderstood> {
        let instruction = self.decode(at).ok_or("an instruction is not known")?;
        let end = instruction.next_ip() as u32;
        let relocations = relocations(self.section, at, end);
        self.check_own_addresses(&instruction, relocations, end)?;
        let flow = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Interrupt => StepFlow::On,
            FlowControl::Return | FlowControl::Exception => StepFlow::Leave,
            FlowControl::Call | FlowControl::IndirectCall => {
                self.call(&instruction, relocations, end)?
            }
            FlowControl::IndirectBranch => StepFlow::Indirect,
            FlowControl::UnconditionalBranch => {
                match self.target(&instruction, relocations, end)? {
                    Some(to) => StepFlow::Jump(to),
                    None => StepFlow::Leave,
                }
            }
            FlowControl::ConditionalBranch => match self.target(&instruction, relocations, end)? {
                Some(to) => StepFlow::Branch(to),
                None => StepFlow::BranchOutside,
            },
            FlowControl::XbeginXabortXend => return Err("it has transactions"),
        };
        Ok(Step { at, end, instruction, flow })
    }

    /// Where a jump leads; `None` for other functions.
    fn target(
        &self,
        instruction: &Instruction,
        relocations: &[Relocation],
        end: u32,
    ) -> Result<Option<u32>, NotUnderstood> {
        let to = match relocations {
            [] => instruction.near_branch_target(),
            [relocation] => {
                let symbol = &self.object.symbols[relocation.symbol as usize];
                let is_own = symbol.place == SymbolPlace::Section(self.number) && symbol.is_local();
                match tables::place(self.object, relocation, u64::from(end) - relocation.offset) {
                    Some((_, to)) if is_own => to,
                    _ if is_own => return Err("a jump has an unusual relocation"),
                    _ => return Ok(None),
                }
            }
            _ => return Err("a jump has several relocations"),
        };
        let to = u32::try_from(to).map_err(|_| "a jump leads past its end")?;
        if to as usize >= self.section.data.len() {
            Err("a jump leads past its end")
        } else {
            Ok(Some(to))
        }
    }

    /// A call is followed by the next instruction, unless none is there: such a call does not
    /// return.
    fn call(
        &self,
        instruction: &Instruction,
        relocations: &[Relocation],
        end: u32,
    ) -> Result<StepFlow, NotUnderstood> {
        if relocations.is_empty()
            && instruction.is_call_near()
            && instruction.near_branch_target() != 0
        {
            return Err("it calls a place inside itself");
        }
        let names = relocations
            .iter()
            .map(|relocation| self.object.symbols[relocation.symbol as usize].name);
        if names.into_iter().any(|name| RETURN_TWICE.contains(&name)) {
            return Err("it calls a function that returns twice");
        }
        let is_last = self.is_padding(end, self.section.data.len() as u32);
        Ok(if is_last { StepFlow::Leave } else { StepFlow::On })
    }

    /// Refuses instructions that take an address inside the function, by which more could be
    /// computed. Its front has a name.
    fn check_own_addresses(
        &self,
        instruction: &Instruction,
        relocations: &[Relocation],
        end: u32,
    ) -> Result<(), NotUnderstood> {
        const INSIDE: NotUnderstood = "it takes an address inside itself";
        if relocations.is_empty()
            && instruction.is_ip_rel_memory_operand()
            && instruction.ip_rel_memory_address() != 0
        {
            return Err(INSIDE);
        }
        if is_direct_jump(instruction) {
            return Ok(());
        }
        for relocation in relocations {
            let symbol = &self.object.symbols[relocation.symbol as usize];
            if symbol.place != SymbolPlace::Section(self.number) {
                continue;
            }
            let through_table = [
                elf::R_X86_64_GOTPCREL.0,
                elf::R_X86_64_GOTPCRELX.0,
                elf::R_X86_64_REX_GOTPCRELX.0,
            ];
            let place = tables::place(self.object, relocation, u64::from(end) - relocation.offset);
            let is_front = match place {
                Some((_, to)) => to == 0,
                None => through_table.contains(&relocation.kind) && symbol.value == 0,
            };
            if !is_front {
                return Err(INSIDE);
            }
        }
        Ok(())
    }

    /// Instructions must not overlap, and between them there is nothing but padding.
    fn check_gaps(&self, steps: &[Step]) -> Result<(), NotUnderstood> {
        let mut at = 0;
        let size = self.section.data.len() as u32;
        for (start, end) in steps.iter().map(|step| (step.at, step.end)).chain([(size, size)]) {
            if start < at {
                return Err("its instructions overlap");
            }
            if !self.is_padding(at, start) {
                return Err("nothing leads to a part of it");
            }
            at = end;
        }
        Ok(())
    }

    /// Whether a range holds nothing but instructions that do nothing, or breakpoints, as compilers
    /// put between blocks.
    fn is_padding(&self, from: u32, to: u32) -> bool {
        let mut at = from;
        while at < to {
            match self.decode(at) {
                Some(instruction) if is_filler(&instruction) => at = instruction.next_ip() as u32,
                _ => return false,
            }
        }
        at == to
    }
}

fn is_filler(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

fn is_direct_jump(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    )
}
