//! What a block does, as a hash. In: its instructions one by one, its tables and handlers. Out: a
//! hash without names and addresses, and the list of what the block refers to.
//!
//! A direct jump is left out, since its exit describes it completely; a conditional one counts by
//! its condition. All other instructions count by their bytes, and by the relocations in them:
//! offset, type, addend, and which of the block's references is meant.

use super::decode::{Code, Step, StepFlow};
use super::exceptions::{Action, Site};
use super::tables::{self, Tables};
use super::{NotUnderstood, Reference};
use crate::elf::object_file::{ObjectFile, Relocation, SymbolPlace};
use crate::model::{Hash, Hasher};
use iced_x86::ConditionCode;
use object::elf;

/// What follows in the bytes of a block. The numbers are part of the hash.
#[repr(u64)]
enum HashedPart {
    Plain = 1,
    Condition,
    Counted,
    CallOfItself,
    AddressOfItself,
    Table,
    Elsewhere,
    Handler,
    Relocation,
    Exits,
}

pub struct Writer<'c, 'o, 'a> {
    code: &'c Code<'o, 'a>,
    tables: &'c Tables,
    hasher: Hasher,
    references: Vec<Reference>,
    /// The landing pad and actions of the instruction before.
    handler: Option<Hash>,
}

impl<'c, 'o, 'a> Writer<'c, 'o, 'a> {
    pub fn new(code: &'c Code<'o, 'a>, tables: &'c Tables) -> Self {
        Writer { code, tables, hasher: Hasher::new("block"), references: Vec::new(), handler: None }
    }

    /// The hash of a block that leads on, and does nothing else.
    pub fn of_nothing() -> Hash {
        Hasher::new("block").number(HashedPart::Exits as u64).number(1).finish()
    }

    pub fn step(&mut self, step: &Step) -> Result<(), NotUnderstood> {
        let (code, relocations) = (self.code, self.code.relocations(step));
        let bytes = code.section.data.get(step.at as usize..step.end as usize).unwrap_or_default();
        let instruction = &step.instruction;
        match step.flow {
            StepFlow::Jump(_) => return Ok(()),
            StepFlow::Branch(_) if instruction.is_jcc_short_or_near() => {
                self.part(HashedPart::Condition).number(condition(step));
                return Ok(());
            }
            // `loop` and `jrcxz`: the address size, a prefix, says which register counts.
            StepFlow::Branch(_) => {
                self.part(HashedPart::Counted).number(instruction.code() as u64);
                return Ok(());
            }
            _ => {}
        }
        if relocations.is_empty() && instruction.is_call_near() {
            self.part(HashedPart::CallOfItself).number(instruction.code() as u64);
        } else if relocations.is_empty() && instruction.is_ip_rel_memory_operand() {
            self.address_of_itself(step, bytes)?;
        } else {
            self.part(HashedPart::Plain).bytes(bytes);
        }
        for relocation in relocations {
            self.relocation(step, relocation);
        }
        Ok(())
    }

    /// An instruction that means the function's front, by a distance that depends on where the
    /// instruction is.
    fn address_of_itself(&mut self, step: &Step, bytes: &[u8]) -> Result<(), NotUnderstood> {
        let distance =
            step.instruction.memory_displacement64().wrapping_sub(u64::from(step.end)) as u32;
        let field = distance.to_le_bytes();
        let mut places = bytes.windows(4).enumerate().filter(|(_, window)| **window == field);
        let (Some((at, _)), None) = (places.next(), places.next()) else {
            return Err("it takes its own address in an unusual way");
        };
        self.part(HashedPart::AddressOfItself).bytes(&bytes[..at]).bytes(&bytes[at + 4..]);
        Ok(())
    }

    fn relocation(&mut self, step: &Step, relocation: &Relocation) {
        let end = u64::from(step.end) - relocation.offset;
        let place = tables::place(self.code.object, relocation, end);
        let table = place.and_then(|(section, at)| self.tables.number(section, at));
        let within = relocation.offset - u64::from(step.at);
        let (reference, addend) = match table {
            Some(number) => (table_reference(relocation, number), 0),
            None => reference(self.code.object, relocation, end),
        };
        let number = self.ordinal(reference);
        self.part(HashedPart::Relocation).number(within).number(relocation.kind.into());
        self.hasher.number(addend as u64).number(number);
    }

    /// The jump tables that an indirect jump may go through.
    pub fn table(&mut self, number: usize, entries: usize) {
        self.part(HashedPart::Table).number(number as u64).number(entries as u64);
    }

    /// An entry of a jump table that leads to another part of the function.
    pub fn outside(&mut self, label: usize, symbol: u32, offset: i64) {
        let identity = named(self.code.object, symbol, offset).0;
        let number = self.ordinal(Reference { symbol, identity });
        self.part(HashedPart::Elsewhere).number(label as u64).number(number).number(offset as u64);
    }

    /// What happens when an instruction throws; noted where it is not what happens when the one
    /// before does.
    pub fn handler(&mut self, position: usize, site: Option<&Site>, pad: Option<usize>) {
        let mut hasher = Hasher::new("handler");
        hasher.number(u64::from(site.is_some())).number(pad.map_or(0, |pad| pad as u64 + 1));
        for action in site.map_or(&[][..], |site| &site.actions) {
            match action {
                Action::Cleanup => hasher.number(0),
                Action::CatchAll => hasher.number(1),
                Action::Catch(symbol, addend) => {
                    let identity = named(self.code.object, *symbol, *addend).0;
                    let number = self.ordinal(Reference { symbol: *symbol, identity });
                    hasher.number(2).number(number).number(*addend as u64)
                }
            };
        }
        let handler = hasher.finish();
        if self.handler != Some(handler) {
            self.handler = Some(handler);
            self.part(HashedPart::Handler).number(position as u64).bytes(&handler.0);
        }
    }

    pub fn finish(mut self, exits: usize) -> (Hash, Vec<Reference>) {
        self.part(HashedPart::Exits).number(exits as u64);
        (self.hasher.finish(), self.references)
    }

    fn part(&mut self, part: HashedPart) -> &mut Hasher {
        self.hasher.number(part as u64)
    }

    fn ordinal(&mut self, reference: Reference) -> u64 {
        let known = self.references.iter().position(|known| *known == reference);
        let number = known.unwrap_or_else(|| {
            self.references.push(reference);
            self.references.len() - 1
        });
        number as u64
    }
}

/// A condition, the same for both of a pair.
fn condition(step: &Step) -> u64 {
    match step.instruction.condition_code() {
        ConditionCode::o | ConditionCode::no => 0,
        ConditionCode::b | ConditionCode::ae => 2,
        ConditionCode::e | ConditionCode::ne => 4,
        ConditionCode::be | ConditionCode::a => 6,
        ConditionCode::s | ConditionCode::ns => 8,
        ConditionCode::p | ConditionCode::np => 10,
        ConditionCode::l | ConditionCode::ge => 12,
        ConditionCode::le | ConditionCode::g => 14,
        ConditionCode::None => 16,
    }
}

fn table_reference(relocation: &Relocation, number: usize) -> Reference {
    let identity = Hasher::new("jump table").number(number as u64).finish();
    Reference { symbol: relocation.symbol, identity }
}

/// What a relocation refers to, and the addend that remains.
fn reference(object: &ObjectFile, relocation: &Relocation, end: u64) -> (Reference, i64) {
    let relative = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&relocation.kind);
    let bias = if relative { end as i64 } else { 0 };
    let (identity, addend) = named(object, relocation.symbol, relocation.addend.wrapping_add(bias));
    (Reference { symbol: relocation.symbol, identity }, addend)
}

/// What a symbol and an addend mean in any build: a name and an addend, or the content of a
/// literal.
fn named(object: &ObjectFile, symbol: u32, addend: i64) -> (Hash, i64) {
    let symbol = &object.symbols[symbol as usize];
    let mut hasher = Hasher::new("reference");
    let SymbolPlace::Section(section) = symbol.place else {
        return (hasher.number(0).bytes(symbol.name.as_bytes()).finish(), addend);
    };
    let section = &object.sections[section];
    let at = symbol.value.wrapping_add_signed(addend) as usize;
    let rest = section.data.get(at..).unwrap_or_default();
    let is_merged = section.flags & elf::SHF_MERGE.0 != 0
        && symbol.is_local()
        && section.relocations.is_empty();
    let unit = section.entry_size as usize;
    if is_merged && unit > 0 && !rest.is_empty() {
        let is_end = |unit: &[u8]| unit.iter().all(|&byte| byte == 0);
        let length = match section.flags & elf::SHF_STRINGS.0 != 0 {
            true => rest.chunks(unit).position(is_end).map_or(rest.len(), |end| end * unit),
            false => unit.min(rest.len()),
        };
        return (hasher.number(1).number(unit as u64).bytes(&rest[..length]).finish(), 0);
    }
    match symbol.is_section() || symbol.name.is_empty() {
        true => (
            hasher.number(2).bytes(section.name.as_bytes()).finish(),
            (symbol.value as i64).wrapping_add(addend),
        ),
        false => (hasher.number(0).bytes(symbol.name.as_bytes()).finish(), addend),
    }
}
