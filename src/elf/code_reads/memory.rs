//! The memory of a binary as the loader leaves it: where its functions and variables lie, and which
//! variables lead to code.

mod access;

use super::value::{Value, ValueBase, gcd};
use crate::elf::binary::Section;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use object::elf;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A function of a binary.
pub struct Function {
    pub range: Range<u64>,
    /// It is traced: its code is another one before it is executed.
    pub is_traced: bool,
    /// It may read code. What belongs to the runtime of a language does not, but for what its name
    /// says.
    pub is_followed: bool,
    /// The variables that it names, by their numbers, sorted. None: they are told by their
    /// addresses alone.
    pub named: Vec<u32>,
}

/// What is looked at: all of it by address.
pub struct Image<'a> {
    pub sections: &'a [Section<'a>],
    /// Sorted by address.
    pub functions: Vec<Function>,
    /// The same.
    pub variables: Vec<Range<u64>>,
    /// It lies at fixed addresses, so that any number can be one.
    pub is_fixed: bool,
}

/// A word that the loader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Address(u64),
    Import(u32),
}

pub struct Memory<'a> {
    image: &'a Image<'a>,
    words: FxHashMap<u64, Word>,
    imports: Vec<&'a [u8]>,
    /// Of each variable, whether it leads to code, at once or by others.
    leads: Vec<bool>,
    /// Addresses of code that are stored while the program runs: by variable, where in it (and in
    /// which steps).
    stored: FxHashMap<u32, Vec<Value>>,
    groups: Vec<Vec<u32>>,
    group_numbers: FxHashMap<Vec<u32>, u32>,
}

const RELA: usize = 24;
const SYMBOL: usize = 24;
const POINTER: u64 = 8;
/// Where programs lie whose places are fixed.
const FIXED: Range<u64> = 0x1000..0x8000_0000;
/// Over so many variables, one pointing to the next, a function is looked for.
const MOST_POINTERS: usize = 3;

impl<'a> Memory<'a> {
    pub fn new(image: &'a Image<'a>) -> Self {
        let (words, imports) = relocated(image);
        let mut memory = Memory {
            image,
            words,
            imports,
            leads: vec![false; image.variables.len()],
            stored: FxHashMap::default(),
            groups: Vec::new(),
            group_numbers: FxHashMap::default(),
        };
        memory.find_leads();
        memory
    }

    fn find_leads(&mut self) {
        let mut pointers: Vec<(u64, u64)> = Vec::new();
        for (at, word) in &self.words {
            if let Word::Address(to) = word {
                pointers.push((*at, *to));
            }
        }
        for section in self.image.sections.iter().filter(|section| is_data(section)) {
            let first = section.address.next_multiple_of(POINTER) - section.address;
            let numbers = section.data.get(first as usize..).unwrap_or_default().as_chunks::<8>().0;
            for (at, number) in (section.address + first..).step_by(8).zip(numbers) {
                let to = u64::from_le_bytes(*number);
                if self.is_address(to) && !self.words.contains_key(&at) {
                    pointers.push((at, to));
                }
            }
        }
        for _ in 0..MOST_POINTERS {
            let leading = pointers.iter().filter(|(_, to)| {
                self.is_code(*to)
                    || self.variable(*to).is_some_and(|variable| self.leads[variable as usize])
            });
            let found: Vec<u32> = leading.filter_map(|(at, _)| self.variable(*at)).collect();
            found.into_iter().for_each(|variable| self.leads[variable as usize] = true);
        }
    }

    /// Whether a number may be meant as an address: where binaries lie at fixed places, or where
    /// the loader adds to what is there.
    fn is_address(&self, number: u64) -> bool {
        number >= FIXED.start
            && (self
                .function(number)
                .is_some_and(|found| self.function_range(found).start == number)
                || self.variable(number).is_some())
    }

    pub fn function(&self, address: u64) -> Option<u32> {
        let behind =
            self.image.functions.partition_point(|function| function.range.start <= address);
        let index = behind.checked_sub(1)?;
        self.image.functions[index].range.contains(&address).then_some(index as u32)
    }

    pub fn function_range(&self, function: u32) -> Range<u64> {
        self.image.functions[function as usize].range.clone()
    }

    /// Whether functions are traced there.
    pub fn is_code(&self, address: u64) -> bool {
        self.function(address)
            .is_some_and(|function| self.image.functions[function as usize].is_traced)
    }

    pub fn is_followed(&self, function: u32) -> bool {
        self.image.functions[function as usize].is_followed
    }

    pub fn variable(&self, address: u64) -> Option<u32> {
        let behind = self.image.variables.partition_point(|range| range.start <= address);
        let index = behind.checked_sub(1)?;
        self.image.variables[index].contains(&address).then_some(index as u32)
    }

    pub fn variable_range(&self, variable: u32) -> Range<u64> {
        self.image.variables[variable as usize].clone()
    }

    /// The code of a function.
    pub fn code(&self, function: u32) -> Option<&'a [u8]> {
        let range = self.function_range(function);
        let section = self.section(range.start)?;
        let from = (range.start - section.address) as usize;
        section.data.get(from..)?.get(..(range.end - range.start) as usize)
    }

    fn section(&self, address: u64) -> Option<&'a Section<'a>> {
        self.image
            .sections
            .iter()
            .find(|section| address >= section.address && address - section.address < section.size)
    }

    /// Whether a number in an instruction can be an address: where binaries lie at fixed places.
    pub fn can_be_address(&self, number: u64) -> bool {
        self.image.is_fixed && FIXED.contains(&number)
    }

    pub fn import_name(&self, import: u32) -> &'a [u8] {
        self.imports.get(import as usize).copied().unwrap_or_default()
    }

    /// What an address in an instruction or in a pointer is.
    pub fn classify(&mut self, address: u64) -> Value {
        if self.is_code(address) {
            return Value::exact(ValueBase::Code, address as i64);
        }
        match self.variable(address).filter(|variable| self.leads[*variable as usize]) {
            Some(variable) => {
                let offset = address - self.variable_range(variable).start;
                Value::exact(ValueBase::Data(self.group(vec![variable])), offset as i64)
            }
            None => Value::number(address as i64),
        }
    }

    /// What an address in an instruction of a function is. Compilers start some loops before the
    /// first element, in another variable: it is one that the function names.
    pub fn named(&mut self, function: u32, address: u64) -> Value {
        const FAR: u64 = 256;
        let named = &self.image.functions[function as usize].named;
        if named.is_empty() || self.is_code(address) {
            return self.classify(address);
        }
        let is_named = |variable: &u32| named.binary_search(variable).is_ok();
        if self.variable(address).is_some_and(|variable| is_named(&variable)) {
            return self.classify(address);
        }
        let behind = self.image.variables.partition_point(|range| range.start <= address) as u32;
        let meant = named.get(named.partition_point(|variable| *variable < behind)).copied();
        match meant.filter(|variable| self.variable_range(*variable).start - address <= FAR) {
            Some(variable) if self.leads[variable as usize] => {
                let offset = address.wrapping_sub(self.variable_range(variable).start);
                Value::exact(ValueBase::Data(self.group(vec![variable])), offset as i64)
            }
            Some(_) => Value::number(address as i64),
            None => self.classify(address),
        }
    }

    /// What an address in an instruction refers to, or what is loaded from there.
    pub fn referred(&mut self, function: u32, address: u64) -> Value {
        let value = self.named(function, address);
        if value.leads_to_code() { value } else { self.load(value) }
    }

    /// The places in a function to which a table leads, if there is one: by addresses, or by
    /// distances from the table.
    pub fn jumps(&self, table: u64, start: u64, size: u64) -> Vec<u64> {
        let is_inside = |place: &u64| place.wrapping_sub(start) < size;
        let mut places = Vec::new();
        let address = |at: u64| match self.words.get(&at) {
            Some(Word::Address(to)) => Some(*to),
            _ => self.number(at),
        };
        let places_of = |step: u64| (0..size).map(move |entry| table.wrapping_add(entry * step));
        let far = places_of(8).map_while(|at| address(at).filter(is_inside));
        places.extend(far);
        if places.is_empty() {
            let near =
                |at: u64| Some(table.wrapping_add_signed(i64::from(self.number(at)? as i32)));
            places.extend(places_of(4).map_while(|at| near(at).filter(is_inside)));
        }
        places
    }

    /// The function of another module that a stub leads to: `jmp *slot(%rip)`.
    pub fn stub(&self, address: u64) -> Option<u32> {
        let section = self.section(address)?;
        let code = section.data.get((address - section.address) as usize..)?;
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        for _ in 0..2 {
            let instruction = decoder.decode();
            if instruction.mnemonic() == Mnemonic::Jmp && instruction.op0_kind() == OpKind::Memory {
                let slot = match instruction.is_ip_rel_memory_operand() {
                    true => instruction.ip_rel_memory_address(),
                    false => instruction.memory_displacement64(),
                };
                return match self.words.get(&slot) {
                    Some(Word::Import(import)) => Some(*import),
                    _ => None,
                };
            }
        }
        None
    }

    fn group(&mut self, members: Vec<u32>) -> u32 {
        if let Some(&known) = self.group_numbers.get(&members) {
            return known;
        }
        let number = self.groups.len() as u32;
        self.groups.push(members.clone());
        self.group_numbers.insert(members, number);
        number
    }

    /// What is one or the other. The first of them is what was known before.
    pub fn join(&mut self, one: Value, other: Value) -> Value {
        if one == other {
            return one;
        }
        let rank = |value: &Value| match value.place {
            ValueBase::Number => 0,
            ValueBase::Import(_) => 1,
            ValueBase::Stack => 2,
            ValueBase::Caller(_) => 3,
            ValueBase::Data(_) => 4,
            ValueBase::Code => 5,
        };
        let (high, low) = if rank(&one) >= rank(&other) { (one, other) } else { (other, one) };
        if rank(&high) != rank(&low) {
            return high;
        }
        let place = match (high.place, low.place) {
            (ValueBase::Data(a), ValueBase::Data(b)) if a != b => {
                let mut members = self.groups[a as usize].clone();
                members.extend(&self.groups[b as usize]);
                members.sort_unstable();
                members.dedup();
                ValueBase::Data(self.group(members))
            }
            (a, b) if a != b => return high,
            (place, _) => place,
        };
        let step = gcd(gcd(high.step, low.step), high.at.wrapping_sub(low.at).unsigned_abs());
        let source = if high.source == low.source && (high.at == low.at || place == ValueBase::Code)
        {
            high.source
        } else {
            0
        };
        // What was known first stays, so that this comes to an end.
        Value { place, at: high.at, step, source }
    }
}

/// Data that the program can load pointers from.
fn is_data(section: &Section) -> bool {
    let is_code = section.flags & elf::SHF_EXECINSTR.0 != 0;
    !is_code && section.kind == elf::SHT_PROGBITS.0 && !section.data.is_empty()
}

/// What the loader writes, and the names of the functions of other modules.
fn relocated<'a>(image: &'a Image<'a>) -> (FxHashMap<u64, Word>, Vec<&'a [u8]>) {
    let named = |name: &[u8]| {
        image
            .sections
            .iter()
            .find(|section| section.name == name)
            .map_or(&[][..], |found| found.data)
    };
    let (symbols, names) = (named(b".dynsym"), named(b".dynstr"));
    let mut words = FxHashMap::default();
    let mut imports = Vec::new();
    let tables = image.sections.iter().filter(|section| section.kind == elf::SHT_RELA.0);
    for entry in tables.flat_map(|section| section.data.as_chunks::<RELA>().0) {
        let number =
            |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap_or_default());
        let (at, info, addend) = (number(0), number(8), number(16));
        let (kind, symbol) = (info as u32, (info >> 32) as usize);
        let by_name = [elf::R_X86_64_64.0, elf::R_X86_64_GLOB_DAT.0, elf::R_X86_64_JUMP_SLOT.0]
            .contains(&kind);
        if kind == elf::R_X86_64_RELATIVE.0 {
            words.insert(at, Word::Address(addend));
        } else if let Some(found) = symbols.as_chunks::<SYMBOL>().0.get(symbol).filter(|_| by_name)
        {
            let name = u32::from_le_bytes(found[..4].try_into().unwrap_or_default());
            let value = u64::from_le_bytes(found[8..16].try_into().unwrap_or_default());
            if value != 0 {
                words.insert(at, Word::Address(value.wrapping_add(addend)));
            } else {
                let rest = names.get(name as usize..).unwrap_or_default();
                imports.push(rest.split(|byte| *byte == 0).next().unwrap_or_default());
                words.insert(at, Word::Import(imports.len() as u32 - 1));
            }
        }
    }
    (words, imports)
}
