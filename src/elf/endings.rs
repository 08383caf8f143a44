//! Whether control can reach the end of a piece of code, and so run into whatever the linker puts
//! there. In: a range of a section of code. Out: how it ends, and whether it can return to its
//! caller.
//!
//! Compilers emit nothing for what they take for impossible: an endless loop without effects in
//! C++, the end of a function that must return a value, `__builtin_unreachable()`. Such code may
//! end anywhere, or be empty, and what then happens depends on the function that is linked next.
//! Common and harmless endings are recognised:
//!
//! - the last instruction returns, jumps or stops the program; padding may follow, if no jump leads
//!   there;
//! - the last instruction is a call. Then control reaches the end only if the called function
//!   returns, which is known when the program is linked. Without optimisation, clang puts jumps to
//!   the end behind calls that do not return.
//!
//! The instructions are decoded one after the other. Data among them can make that go wrong: bytes
//! that are no instruction count as an end that control can reach. So does the code of unknown
//! processors.

use super::arch::{self, Step};
use super::object_file::{ObjectFile, Relocation, Section, Symbol, SymbolPlace};
use crate::model::record::{Ending, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;

/// How a piece of code ends.
#[derive(Clone, Debug)]
pub struct CodeEnd<'s> {
    pub flow: EndFlow<'s>,
    /// It may return to its caller, or leave for something that may.
    pub returns: bool,
}

/// What is at the end of a piece of code.
#[derive(Clone, Debug)]
pub enum EndFlow<'s> {
    /// Control never gets there.
    Leaves,
    /// Calls by these relocations: control gets there if one of them returns.
    Calls(Vec<&'s Relocation>),
    /// Control can get there.
    Falls,
}

impl EndFlow<'_> {
    /// The same for a record, in which `target` tells what a relocation of a call leads to.
    pub fn ending(&self, target: impl Fn(&Relocation) -> Option<Target>) -> Ending {
        let calls = match self {
            EndFlow::Leaves => return Ending::Leaves,
            EndFlow::Calls(calls) => calls,
            EndFlow::Falls => return Ending::Falls,
        };
        let mut called = Ending::NO_CALLS;
        for call in calls {
            let Some(target) = target(call) else { return Ending::Falls };
            let Some(free) =
                called.iter_mut().find(|other| other.is_none_or(|other| other == target))
            else {
                return Ending::Falls;
            };
            *free = Some(target);
        }
        Ending::Calls(called)
    }
}

const UNKNOWN: CodeEnd = CodeEnd { flow: EndFlow::Falls, returns: true };

/// Finds the ends of code in one object.
pub struct Endings<'o, 'a> {
    object: &'o ObjectFile<'a>,
    /// For each section of code: the places in it that jump tables lead to.
    jumps: FxHashMap<usize, Vec<u64>>,
}

impl<'o, 'a> Endings<'o, 'a> {
    pub fn new(object: &'o ObjectFile<'a>) -> Self {
        Endings { object, jumps: jumps(object) }
    }

    /// How the code in this range of a section ends.
    pub fn of(&self, number: usize, range: Range<u64>) -> CodeEnd<'o> {
        let section = &self.object.sections[number];
        let Some(code) = section.data.get(range.start as usize..range.end as usize) else {
            return UNKNOWN;
        };
        let mut scan = Scan::new(section, range.clone());
        let processor = arch::of(self.object.machine);
        let mut take = |at, end, step| scan.step(at, end, step);
        if !processor.read_steps(code, range.start, self.object.endian, &mut take) {
            return UNKNOWN;
        }
        let jumps = self.jumps.get(&number).map(Vec::as_slice).unwrap_or_default();
        scan.end(jumps)
    }
}

/// A jump inside of a range.
struct Jump<'s> {
    at: u64,
    target: u64,
    /// The call right before it, and where that ends.
    call: Option<(u64, &'s Relocation)>,
}

/// What the last instruction did.
#[derive(Clone, Copy)]
enum Last<'s> {
    Leaves,
    Calls(&'s Relocation),
    Falls,
}

/// One pass over the instructions of a range.
struct Scan<'s> {
    range: Range<u64>,
    /// Those of the instructions that were not read yet.
    relocations: &'s [Relocation],
    /// Where the last instruction ended that was not padding, and what it did.
    tail: u64,
    last: Last<'s>,
    jumps: Vec<Jump<'s>>,
    returns: bool,
}

impl<'s> Scan<'s> {
    fn new(section: &'s Section, range: Range<u64>) -> Self {
        let index =
            |at: u64| section.relocations.partition_point(|relocation| relocation.offset < at);
        Scan {
            relocations: section
                .relocations
                .get(index(range.start)..index(range.end))
                .unwrap_or_default(),
            tail: range.start,
            last: Last::Falls,
            jumps: Vec::new(),
            returns: false,
            range,
        }
    }

    /// Takes note of the instruction between two places.
    fn step(&mut self, at: u64, end: u64, step: Step) {
        let relocation = self.relocation(end);
        let last = match step {
            Step::Padding => return,
            Step::On => Last::Falls,
            Step::Calls => relocation.map_or(Last::Falls, Last::Calls),
            Step::Stops | Step::Returns => Last::Leaves,
            Step::Jumps(target) => self.jump(at, target, relocation, Last::Leaves),
            Step::Branches(target) => self.jump(at, target, relocation, Last::Falls),
        };
        self.returns |= matches!(step, Step::Returns);
        (self.tail, self.last) = (end, last);
    }

    /// The last relocation of an instruction that ends here.
    fn relocation(&mut self, end: u64) -> Option<&'s Relocation> {
        let mut last = None;
        while let Some((first, rest)) =
            self.relocations.split_first().filter(|(first, _)| first.offset < end)
        {
            (last, self.relocations) = (Some(first), rest);
        }
        last
    }

    /// A jump inside of the range, or out of it, to something that may return to our caller.
    fn jump(
        &mut self,
        at: u64,
        target: u64,
        relocation: Option<&Relocation>,
        last: Last<'s>,
    ) -> Last<'s> {
        let is_inside =
            relocation.is_none() && (self.range.start..=self.range.end).contains(&target);
        if is_inside {
            let call = match self.last {
                Last::Calls(call) => Some((self.tail, call)),
                _ => None,
            };
            self.jumps.push(Jump { at, target, call });
        }
        self.returns |= !is_inside;
        last
    }

    fn end(self, tables: &[u64]) -> CodeEnd<'s> {
        let is_behind = |place: &u64| (self.tail..=self.range.end).contains(place);
        let falls = CodeEnd { flow: EndFlow::Falls, returns: self.returns };
        if tables.iter().any(is_behind) {
            return falls;
        }
        // A jump that only a call leads to is taken if that returns.
        let mut calls = Vec::new();
        for jump in self.jumps.iter().filter(|jump| jump.target >= self.tail) {
            let Some((end, call)) = jump.call else { return falls };
            let between = end..=jump.at;
            if self
                .jumps
                .iter()
                .map(|other| &other.target)
                .chain(tables)
                .any(|place| between.contains(place))
            {
                return falls;
            }
            calls.push(call);
        }
        match self.last {
            Last::Leaves if calls.is_empty() => CodeEnd { flow: EndFlow::Leaves, ..falls },
            Last::Leaves => CodeEnd { flow: EndFlow::Calls(calls), ..falls },
            Last::Calls(call) => {
                calls.push(call);
                CodeEnd { flow: EndFlow::Calls(calls), ..falls }
            }
            Last::Falls => falls,
        }
    }
}

/// The places in code that tables lead to, by section, other than the fronts of functions. An entry
/// of a position-independent table is a distance from the table's start, and its addend counts from
/// the entry instead. Where a table starts is known from the code that refers to it.
fn jumps(object: &ObjectFile) -> FxHashMap<usize, Vec<u64>> {
    let mut jumps: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    let distance = arch::of(object.machine).table_distance();
    let is_table =
        |section: &Section| section.is_allocated() && !section.is_code() && !section.is_unwind();
    let (mut starts, mut fronts) = (None, None);
    for (table, section) in
        object.sections.iter().enumerate().filter(|(_, section)| is_table(section))
    {
        for relocation in &section.relocations {
            let Some(target) =
                place(object, relocation).filter(|target| object.sections[target.0].is_code())
            else {
                continue;
            };
            if distance == Some(relocation.kind) {
                let starts = starts.get_or_insert_with(|| table_starts(object));
                let start = starts.range((table, 0)..=(table, relocation.offset)).next_back();
                let distance = relocation.offset - start.map_or(0, |start| start.1);
                jumps.entry(target.0).or_default().push(target.1.saturating_sub(distance));
            } else if !fronts.get_or_insert_with(|| fronts_of_functions(object)).contains(&target) {
                jumps.entry(target.0).or_default().push(target.1);
            }
        }
    }
    jumps
}

/// The section and the offset in it that a relocation names.
fn place(object: &ObjectFile, relocation: &Relocation) -> Option<(usize, u64)> {
    let symbol = object.symbols.get(relocation.symbol as usize)?;
    let SymbolPlace::Section(section) = symbol.place else { return None };
    Some((section, symbol.value.checked_add_signed(relocation.addend)?))
}

/// The places in data that code refers to.
fn table_starts(object: &ObjectFile) -> BTreeSet<(usize, u64)> {
    // A field of an instruction counts from its end, which is where most instructions end too.
    let bias = arch::of(object.machine).bias_of_tables();
    let code = object.sections.iter().filter(|section| section.is_code());
    let places = code
        .flat_map(|section| &section.relocations)
        .filter_map(|relocation| place(object, relocation));
    places.map(|(section, place)| (section, place.wrapping_add(bias))).collect()
}

/// Where symbols stand.
fn fronts_of_functions(object: &ObjectFile) -> FxHashSet<(usize, u64)> {
    let named = object
        .symbols
        .iter()
        .filter(|symbol| !symbol.is_section() && !symbol.name.starts_with(".L"));
    let place = |symbol: &Symbol| match symbol.place {
        SymbolPlace::Section(section) => Some((section, symbol.value)),
        _ => None,
    };
    named.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];

    /// How x86-64 code ends; the calls in it have relocations.
    fn end(code: &[u8], jumps: &[u64]) -> (&'static str, bool) {
        let calls = code.windows(CALL.len()).enumerate().filter(|(_, bytes)| *bytes == CALL);
        let relocation =
            |at: usize| Relocation { offset: at as u64 + 1, kind: 4, symbol: 1, addend: -4 };
        let relocations = calls.map(|(at, _)| relocation(at)).collect();
        let section =
            Section { data: code, size: code.len() as u64, relocations, ..Section::default() };
        let mut scan = Scan::new(&section, 0..section.size);
        let mut take = |at, end, step| scan.step(at, end, step);
        let processor = arch::of(object::elf::EM_X86_64.0);
        let is_understood = processor.read_steps(code, 0, object::Endianness::Little, &mut take);
        let end = if is_understood { scan.end(jumps) } else { UNKNOWN };
        let flow = match end.flow {
            EndFlow::Leaves => "leaves",
            EndFlow::Calls(_) => "calls",
            EndFlow::Falls => "falls",
        };
        (flow, end.returns)
    }

    #[test]
    fn code_that_returns_jumps_or_stops_is_closed() {
        assert_eq!(end(&[0x31, 0xc0, 0xc3], &[]), ("leaves", true), "xor %eax, %eax; ret");
        assert_eq!(end(&[0x90, 0xeb, 0xfd], &[]), ("leaves", false), "a loop");
        assert_eq!(end(&[0x0f, 0x0b], &[]), ("leaves", false), "ud2");
        assert_eq!(end(&[0xf4], &[]), ("leaves", false), "hlt");
        assert_eq!(end(&[0xff, 0xe0], &[]), ("leaves", true), "jmp *%rax");
        assert_eq!(end(&[0xc3, 0x66, 0x90, 0xcc], &[]), ("leaves", true), "padding");
    }

    #[test]
    fn code_that_ends_anywhere_falls() {
        assert_eq!(end(&[], &[]), ("falls", false));
        assert_eq!(
            end(&[0x01, 0xc3], &[]),
            ("falls", false),
            "add %eax, %ebx, which ends as ret does"
        );
        assert_eq!(end(&[0xb8, 0, 0, 0, 0xc3], &[]), ("falls", false), "mov $0xc3000000, %eax");
        assert_eq!(end(&[0x75, 0x01, 0xc3], &[]), ("falls", true), "jne to the end");
        assert_eq!(end(&[0x75, 0x01, 0xc3, 0x90], &[]), ("falls", true), "jne to the padding");
        assert_eq!(end(&[0xff, 0xe0], &[2]), ("falls", true), "a jump table leads to the end");
        assert_eq!(end(&[0xc3, 0x06], &[]), ("falls", true), "no instruction");
    }

    #[test]
    fn a_call_at_the_end_is_told() {
        assert_eq!(end(&CALL, &[]), ("calls", false));
        assert_eq!(end(&[&CALL[..], &[0x90]].concat(), &[]), ("calls", false), "call; nop");
        assert_eq!(end(&[&[0xc3], &CALL[..]].concat(), &[]), ("calls", true));
    }

    #[test]
    fn a_jump_past_the_last_call_is_reported() {
        let jump = |over: u8| [0xeb, over];
        let thrown = [&CALL[..], &jump(1), &[0xc3]].concat();
        assert_eq!(end(&thrown, &[]), ("calls", true), "call; jmp to the end; ret");
        assert_eq!(
            end(&[&CALL[..], &jump(5), &CALL[..]].concat(), &[]),
            ("calls", false),
            "two calls"
        );
        assert_eq!(end(&thrown, &[5]), ("falls", true), "a jump table leads to the jump");
        let entered = [&[0x75, 5][..], &thrown].concat();
        assert_eq!(end(&entered, &[]), ("falls", true), "jne to the jump");
        let padded = [&[0x75, 5][..], &CALL[..], &[0x90], &jump(1), &[0xc3]].concat();
        assert_eq!(end(&padded, &[]), ("falls", true), "jne to the padding before it");
        assert_eq!(
            end(&[&CALL[..], &[0x31, 0xc0], &jump(1), &[0xc3]].concat(), &[]),
            ("falls", true),
            "not at once"
        );
    }
}
