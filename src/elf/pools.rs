//! Constant pools: a plain read-only section in which gcc lays all literals and constants of an
//! unoptimised translation unit one behind the other. In: an object that still has the labels
//! (`.LC0`, `.LC1`, …) of the entries. Out: the division of such a section into one piece per
//! entry, and for each reference the pieces that it may mean.
//!
//! Assemblers turn a reference to `.LC3 + d` into one to `.rodata + x`, so the entry that is meant
//! has to be found again from `x`. What is relied on, and what was made of it:
//!
//! 1. *Accesses.* An instruction that reads or writes memory at `x` touches a byte of the entry
//!    that it means: it means the piece that holds `x`. (With an immediate behind the field `x` is
//!    one of four; all count.)
//! 2. *Addresses.* Where an address is taken, `x` lies within its entry or at its end: C allows no
//!    other pointer, and code that is not optimised does the arithmetic at run time. Optimised code
//!    does not keep to that: of `"ab\0cdef"[i - 3]` gcc -O2 makes `lea .LC0-3(%rip)`, which lies in
//!    the entry before. Hence
//!    - the caller asks for a division only of what was compiled without optimisation,
//!    - an object with mergeable sections has none: those come from optimised functions
//!      (`#pragma GCC optimize`),
//!    - every function that refers to a pool must set up its frame as unoptimised functions do.
//!
//!    The one breach of C's rule that is an old habit, `"…" - 1` to count from 1, is covered: an
//!    address within an entry counts for the one behind it as well.
//! 3. *Ends.* An address `x` that is the start of entry k may mean the end of entry k-1
//!    (`"abc" + 4`), and then it counts for both, unless that cannot be. Every entry is there
//!    because something refers to it (gcc writes out a constant when it has written an instruction
//!    or a datum that names it; only an `asm` can name and not use it). So it cannot be where k
//!    would be left without a reference: when this is the only one into k, and none of those to the
//!    start of k+1 can be spared for being the end of k. One can be spared where k+1 has another
//!    reference into it, or gets one from k+2 in turn. "The only reference into k is its own" would
//!    be too simple: with `f` returning `"abc" + 4` and `g` `"xyz" + 4`, the only reference into
//!    `"xyz"` is the end of `"abc"`.
//! 4. What does not fit (an entry that nobody can mean, a name that is no entry's label, a
//!    relocation of another type, an offset outside) shows that something here is not understood:
//!    the section stays one atom.
//!
//! A piece reaches to the next label. The zeros that align what follows cannot be told from zeros
//! that were written (`"FOO=1\0"` in a list that ends with an empty string), so they are hashed.

use super::arch::{self, IMMEDIATES, Operand, Processor};
use super::object_file::{ObjectFile, Relocation, Section, Symbol, SymbolPlace};
use super::pieces::Pieces;
use object::elf;

/// Strings of this length are aligned.
const LONG_STRING: usize = 30;

/// One meaning of a reference: the number of a piece, and the addend if that were a section of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    pub piece: usize,
    pub addend: i64,
}

/// Divides the pools of an object that was compiled without optimisation. `pieces` has an entry for
/// each section.
pub fn divide(object: &ObjectFile, pieces: &mut [Option<Pieces>]) {
    let has_pools = arch::of(object.machine).has_constant_pools() && object.is_64;
    if !has_pools || object.sections.iter().any(is_mergeable) {
        return;
    }
    let mut pools: Vec<Option<Pool>> =
        object.sections.iter().map(|section| may_be_pool(section).then(Pool::default)).collect();
    find_entries(object, &mut pools);
    if pools.iter().any(Option::is_some) {
        count_uses(object, &mut pools);
    }
    for (pool, pieces) in pools.into_iter().zip(pieces) {
        let Some(pool) = pool else { continue };
        if let Some(may_be_end) = pool.may_be_end() {
            *pieces =
                Some(Pieces { starts: pool.starts, first_atom: 0, may_be_end: Some(may_be_end) });
        }
    }
}

fn is_mergeable(section: &Section) -> bool {
    section.is_allocated() && section.flags & elf::SHF_MERGE.0 != 0 && section.size > 0
}

/// Read-only bytes without references.
fn may_be_pool(section: &Section) -> bool {
    section.flags == elf::SHF_ALLOC.0
        && section.kind == elf::SHT_PROGBITS.0
        && section.size > 0
        && section.size == section.data.len() as u64
        && section.relocations.is_empty()
        && !section.is_unwind()
}

/// A section on the way to being divided.
#[derive(Debug, Default)]
struct Pool {
    /// Where the entries start.
    starts: Vec<u64>,
    /// For each entry: references that can mean nothing else, as far as one can tell, or something
    /// else besides.
    inside: Vec<u32>,
    /// For each entry: how often the address of its first byte is taken.
    at_start: Vec<u32>,
    /// How often the address of the section's end is taken.
    at_end: u32,
    size: u64,
}

impl Pool {
    /// The entry that holds an offset.
    fn holder(&self, offset: i64) -> Option<usize> {
        let offset = u64::try_from(offset).ok().filter(|&offset| offset < self.size)?;
        self.starts.partition_point(|&start| start <= offset).checked_sub(1)
    }

    /// Notes a reference. `None`: it is not understood.
    fn note(&mut self, operand: Operand) -> Option<()> {
        match operand {
            Operand::Address(at) if at == self.size as i64 => self.at_end += 1,
            Operand::Address(at) => {
                let entry = self.holder(at)?;
                if self.starts.get(entry).is_some_and(|&start| start as i64 == at) {
                    *self.at_start.get_mut(entry)? += 1;
                } else {
                    self.inside.iter_mut().skip(entry).take(2).for_each(|count| *count += 1);
                }
            }
            Operand::Access(at) => {
                let entry = self.holder(at)?;
                *self.inside.get_mut(entry)? += 1;
            }
            Operand::AccessNear(at) => {
                let entries: Vec<usize> = near(at).filter_map(|at| self.holder(at)).collect();
                entries.first()?;
                entries.into_iter().for_each(|entry| self.inside[entry] += 1);
            }
        }
        Some(())
    }

    /// For each entry, whether an address of its first byte may mean the end of the one before.
    /// `None`: there is an entry that nobody can mean.
    fn may_be_end(&self) -> Option<Vec<bool>> {
        let mut may_be_end = vec![false; self.starts.len()];
        // Whether one of the addresses of the next entry's first byte can be spared for the end of
        // this one.
        let mut is_redundant = self.at_end > 0;
        for (entry, (&inside, &at_start)) in
            self.inside.iter().zip(&self.at_start).enumerate().rev()
        {
            if inside == 0 && at_start == 0 && !is_redundant {
                return None;
            }
            is_redundant = at_start > 0 && (inside > 0 || at_start > 1 || is_redundant);
            may_be_end[entry] = entry > 0 && is_redundant;
        }
        Some(may_be_end)
    }
}

/// Where an access may be that has an immediate of unknown size behind it.
fn near(at: i64) -> impl Iterator<Item = i64> {
    IMMEDIATES.into_iter().filter_map(move |immediate| at.checked_add(immediate))
}

/// Takes the labels for the starts of the entries. A section with other names in it, or with
/// something before the first label, is no pool.
fn find_entries(object: &ObjectFile, pools: &mut [Option<Pool>]) {
    for symbol in object.symbols.iter().filter(|symbol| !symbol.is_section()) {
        let SymbolPlace::Section(section) = symbol.place else { continue };
        let Some(slot) = pools.get_mut(section) else { continue };
        match slot {
            Some(pool) if is_entry_label(symbol) => pool.starts.push(symbol.value),
            _ => *slot = None,
        }
    }
    for (slot, section) in pools.iter_mut().zip(&object.sections) {
        let Some(pool) = slot else { continue };
        pool.size = section.size;
        pool.starts.sort_unstable();
        pool.starts.dedup();
        // A label at the very end is that of an empty constant.
        pool.starts.retain(|&start| start < section.size);
        pool.inside = vec![0; pool.starts.len()];
        pool.at_start = vec![0; pool.starts.len()];
        if pool.starts.first() != Some(&0) {
            *slot = None;
        }
    }
}

/// `.LC12`: how gcc calls what it lays into a pool, and nothing else. (`.LANCHOR0` stands for
/// several entries.)
fn is_entry_label(symbol: &Symbol) -> bool {
    let number = symbol.name.strip_prefix(".LC").unwrap_or_default();
    symbol.is_local() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Notes every reference into a pool.
fn count_uses(object: &ObjectFile, pools: &mut [Option<Pool>]) {
    let (functions, processor) = (functions(object), arch::of(object.machine));
    for (index, section) in
        object.sections.iter().enumerate().filter(|(_, section)| section.is_allocated())
    {
        for relocation in &section.relocations {
            let Some(symbol) = object.symbols.get(relocation.symbol as usize) else { continue };
            let SymbolPlace::Section(target) = symbol.place else { continue };
            let Some(slot) = pools.get_mut(target) else { continue };
            let Some(pool) = slot else { continue };
            let is_trusted = !section.is_code()
                || sets_up_frame(processor, section, index, relocation, &functions);
            let noted = match is_trusted {
                true if symbol.is_section() => {
                    processor.operand(section, relocation).and_then(|operand| pool.note(operand))
                }
                // Its name tells the entry, whatever the addend.
                true => pool.note(Operand::Access(symbol.value as i64)),
                false => None,
            };
            if noted.is_none() {
                *slot = None;
            }
        }
    }
}

/// Where functions start: section and offset, sorted.
fn functions(object: &ObjectFile) -> Vec<(usize, u64)> {
    let mut functions: Vec<(usize, u64)> = Vec::new();
    for symbol in object.symbols.iter().filter(|symbol| symbol.kind == elf::STT_FUNC.0) {
        if let SymbolPlace::Section(section) = symbol.place {
            functions.push((section, symbol.value));
        }
    }
    functions.sort_unstable();
    functions
}

/// The function that a relocation is in starts like an unoptimised one.
fn sets_up_frame(
    processor: &dyn Processor,
    section: &Section,
    index: usize,
    relocation: &Relocation,
    functions: &[(usize, u64)],
) -> bool {
    let before = functions.partition_point(|&place| place <= (index, relocation.offset));
    let Some(&(owner, start)) = before.checked_sub(1).and_then(|at| functions.get(at)) else {
        return false;
    };
    let code =
        usize::try_from(start).ok().and_then(|start| section.data.get(start..)).unwrap_or_default();
    owner == index && processor.sets_up_frame(code)
}

/// What a reference into a divided pool may mean.
pub fn meanings(
    object: &ObjectFile,
    pieces: &Pieces,
    section: &Section,
    relocation: &Relocation,
) -> Vec<Meaning> {
    let Some(symbol) = object.symbols.get(relocation.symbol as usize) else { return Vec::new() };
    if !symbol.is_section() {
        return vec![Meaning {
            piece: pieces.locate(symbol.value as i64).0,
            addend: relocation.addend,
        }];
    }
    let found = match arch::of(object.machine).operand(section, relocation) {
        Some(Operand::Address(at)) => meant_by_address(pieces, at),
        Some(Operand::Access(at)) => vec![pieces.locate(at).0],
        Some(Operand::AccessNear(at)) => {
            let mut found: Vec<usize> =
                near(at).filter(|&at| at >= 0).map(|at| pieces.locate(at).0).collect();
            found.dedup();
            found
        }
        // `divide` has left no such reference.
        None => (0..pieces.starts.len()).collect(),
    };
    let start = |piece: usize| pieces.starts.get(piece).map_or(0, |&start| start as i64);
    found
        .into_iter()
        .map(|piece| Meaning { piece, addend: relocation.addend.wrapping_sub(start(piece)) })
        .collect()
}

/// The pieces that an address may mean: the one that holds it; the one before, if it may be the end
/// of that; the one behind, if it is within.
fn meant_by_address(pieces: &Pieces, at: i64) -> Vec<usize> {
    let (piece, offset) = pieces.locate(at);
    let may_be_end = pieces.may_be_end.as_ref().and_then(|ends| ends.get(piece)) == Some(&true);
    let before = piece.checked_sub(1).filter(|_| offset == 0 && may_be_end);
    let behind = Some(piece + 1).filter(|&behind| offset > 0 && behind < pieces.starts.len());
    before.into_iter().chain([piece]).chain(behind).collect()
}

/// The alignment that a piece may have been given for its own sake. Strings are arrays of
/// characters, which may lie anywhere, and must not count as changed when something is put before
/// them; gcc aligns long ones for speed. Anything else: what it has, but not more than its size
/// makes plausible.
pub fn alignment(section: &Section, start: u64, content: &[u8]) -> u64 {
    let text = content.iter().position(|&byte| byte == 0).unwrap_or(content.len());
    let is_string = text < content.len()
        && (text > 0 || content.len() < 8)
        && content.iter().skip(text).all(|&byte| byte == 0);
    let actual = if start == 0 {
        section.align.max(1)
    } else {
        section.align.max(1).min(1 << start.trailing_zeros())
    };
    let plausible = match is_string {
        true if text < LONG_STRING => 1,
        true => 8,
        false => 1 << content.len().max(1).ilog2(),
    };
    actual.min(plausible)
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
