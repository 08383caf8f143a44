//! Control flow inside a function, from its machine code: the parts of a function that one
//! execution can leave out.
//!
//! In: an object's tables and the number of a section of code. Out: a [`Flow`], or a refusal that
//! says what is not understood. `inward` finds out who refers into the function, `tables` reads the
//! jump tables, `exceptions` the table of call sites and landing pads, `decode` finds the
//! instructions, `blocks` makes blocks of them and `content` hashes each, `canonical` hashes graphs
//! of blocks so that copies of a block do not count.
//!
//! Nothing is guessed. Every byte of the function has to be an instruction that some way leads to,
//! or padding; every address inside the function that anybody has must be an entry of a jump table,
//! a landing pad, or the target of a jump of another part of the function. Where a jump may lead to
//! more places than it does, all of them are its exits: an edge too many costs precision only.

mod blocks;
pub mod canonical;
mod content;
mod decode;
mod exceptions;
mod inward;
mod tables;

use crate::elf::object_file::{ObjectFile, Section, Symbol, SymbolPlace};
use crate::elf::unwind::Unwind;
use crate::model::{Hash, Refusal};
use decode::Code;
use exceptions::Handlers;
use inward::Inward;
use object::elf;
use std::ops::Range;
use tables::Tables;

/// Why a function is taken as a whole.
type NotUnderstood = &'static str;

/// The blocks of one function, in the order of their addresses. The function starts with the first
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub blocks: Vec<Block>,
}

/// A run of instructions that is entered at its front only. Calls do not end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it lies in its section, without the padding behind it.
    pub range: Range<u32>,
    /// What it does. Its references are numbers here, in the order of their first appearance, and
    /// its exits are left out: a branch counts by its condition, whatever its encoding and wherever
    /// it leads.
    pub hash: Hash,
    pub references: Vec<Reference>,
    /// Where it can lead. The position of an exit is its label: equal blocks have as many exits,
    /// for the same reasons.
    pub exits: Vec<Exit>,
    /// It can be entered from other sections: the function's front, and where its cold part jumps
    /// back to.
    pub is_entry: bool,
}

/// What a block refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The object's number of the symbol.
    pub symbol: u32,
    /// What it is in any build: by name, by content for literals, by number for jump tables.
    pub identity: Hash,
}

/// One way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exit {
    /// To the block of this number.
    Block(u32),
    /// Out of the function: a return, a tail call, a jump into another part, the end of a program.
    Outside,
}

/// What is known of an object, from which the flow of any of its functions is found.
pub struct Flows<'o, 'a> {
    object: &'o ObjectFile<'a>,
    inward: Inward,
    unwind: Unwind<'o, 'a>,
}

impl<'o, 'a> Flows<'o, 'a> {
    pub fn new(object: &'o ObjectFile<'a>) -> Self {
        Flows { object, inward: Inward::read(object), unwind: Unwind::read(object) }
    }

    /// The flow inside the function that is the section of this number.
    pub fn of_function(&self, section: usize) -> Result<Flow, Refusal<'a>> {
        let subject = self.object.sections.get(section).map_or("", |section| section.name);
        self.understand(section).map_err(|reason| Refusal::new(subject, reason))
    }

    fn understand(&self, number: usize) -> Result<Flow, NotUnderstood> {
        let section = self.object.sections.get(number).ok_or("there is no such section")?;
        check_machine(self.object)?;
        check_section(self.object, number, section)?;
        let tables = Tables::read(self.object, number)?;
        let entries = self.inward.entries(number, &tables)?;
        let handlers = Handlers::read(self.object, &self.unwind, number)?;
        let code = Code::read(self.object, number, &tables, &entries, &handlers)?;
        blocks::build(&code, &tables, &entries, &handlers)
    }
}

fn check_machine(object: &ObjectFile) -> Result<(), NotUnderstood> {
    match object.machine {
        machine if machine == elf::EM_X86_64.0 && object.is_64 => Ok(()),
        machine if machine == elf::EM_AARCH64.0 => {
            Err("the control flow of AArch64 code is not read yet")
        }
        _ => Err("the control flow of this processor's code is not read"),
    }
}

/// The section has to be one function and nothing else.
fn check_section(
    object: &ObjectFile,
    number: usize,
    section: &Section,
) -> Result<(), NotUnderstood> {
    if !section.is_code() || section.data.is_empty() {
        return Err("it holds no code");
    }
    if u32::try_from(section.size).is_err() {
        return Err("it is too large");
    }
    if section.addends_in_place {
        return Err("its relocations have their addends in the code");
    }
    let is_inside =
        |symbol: &Symbol| symbol.place == SymbolPlace::Section(number) && symbol.value != 0;
    let named = object.symbols.iter().filter(|symbol| is_inside(symbol));
    if named.filter(|symbol| !symbol.name.is_empty() && !symbol.name.starts_with(".L")).count() > 0
    {
        return Err("something inside it has a name");
    }
    let is_function = |symbol: &Symbol| {
        symbol.place == SymbolPlace::Section(number) && symbol.kind == elf::STT_FUNC.0
    };
    if !object.symbols.iter().any(is_function) {
        return Err("no function starts at its front");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
