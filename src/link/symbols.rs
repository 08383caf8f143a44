//! Symbol resolution of a link. In: the linked objects and the binary's own symbol table. Out: for
//! each name the atom that the linker chose, or what else it stands for.
//!
//! The rules are the linkers' (strong before common before weak). Where several definitions are
//! equally good, and wherever a command line or a script can have changed a symbol, the address in
//! the binary's symbol table decides.
//!
//! `foo@@V` defines both `foo` and `foo@V`; `foo@V` is a name of its own.

use super::input::{Input, SymbolAddresses};
use crate::elf::binary::Binary;
use crate::model::{AtomKind, Hash, Record, Symbol, SymbolKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Where a name is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    pub input: u32,
    pub kind: SymbolKind,
    rank: u8,
    /// For a place in a literal, the content and the place: literals of the same content are one
    /// thing, so that it does not matter which of them is meant. (rustc defines
    /// `__rustc_debug_gdb_scripts_section__` in every object.)
    literal: Option<(Hash, u64)>,
    /// Others are just as good.
    pub is_contested: bool,
}

impl Definition {
    /// Another definition of the same name: the better one stays.
    fn meet(&mut self, other: Definition) {
        let is_common = |kind| matches!(kind, SymbolKind::Common { .. });
        if self.input == other.input && self.kind == other.kind {
            return;
        }
        let is_same = self.literal.is_some() && self.literal == other.literal;
        let is_better = other.rank > self.rank;
        let are_rivals = match (is_common(self.kind), is_common(other.kind)) {
            (true, true) => false,
            (false, false) => other.rank == self.rank && !is_same,
            // Linkers differ in whether a common symbol or a weak one is better.
            _ => other.rank.max(self.rank) == COMMON,
        };
        let is_contested = are_rivals || (self.is_contested && !is_better);
        if is_better {
            *self = other;
        }
        self.is_contested = is_contested;
    }
}

/// The names of a link, numbered.
#[derive(Default)]
pub struct Names {
    /// By the hashes of names, which the records have ready: strings of many files would have to be
    /// read again.
    numbers: FxHashMap<Hash, u32>,
    /// The hash of each name.
    hashes: Vec<Hash>,
}

impl Names {
    /// The number of a name; a new one, if it is new.
    fn number(&mut self, name: Hash) -> u32 {
        let next = self.hashes.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.hashes.push(name);
        }
        number
    }

    /// The numbers of the names of a record's symbols.
    pub fn of_symbols(&mut self, record: &Record) -> Vec<u32> {
        record.symbols.iter().map(|symbol| self.number(symbol.name_hash)).collect()
    }

    /// Numbers the names of all objects that were not read early.
    fn number_rest(&mut self, inputs: &mut [Input]) {
        let mut rest: Vec<&mut Input> =
            inputs.iter_mut().filter(|input| input.names.is_empty()).collect();
        for input in &mut rest {
            let number = |symbol: &Symbol| match symbol.kind {
                SymbolKind::Undefined => NONE,
                _ => self.number(symbol.name_hash),
            };
            input.names = input.record.symbols.iter().map(number).collect();
        }
        // Most names were defined by now, and can be looked up by several threads.
        let look_up = |input: &mut &mut Input| {
            let open = input
                .record
                .symbols
                .iter()
                .zip(&mut input.names)
                .filter(|(_, number)| **number == NONE);
            open.for_each(|(symbol, number)| {
                *number = self.numbers.get(&symbol.name_hash).copied().unwrap_or(NONE)
            });
        };
        match rest.len() < MANY {
            true => rest.iter_mut().for_each(look_up),
            false => rest.par_iter_mut().for_each(look_up),
        }
        for input in rest {
            let open = input
                .record
                .symbols
                .iter()
                .zip(&mut input.names)
                .filter(|(_, number)| **number == NONE);
            open.for_each(|(symbol, number)| *number = self.number(symbol.name_hash));
        }
    }
}

/// The number of no name.
const NONE: u32 = u32::MAX;

/// Beyond so many objects several threads pay.
const MANY: usize = 48;

/// The names of a link with their definitions.
pub struct Definitions {
    names: Names,
    /// The best definition of each name.
    best: Vec<Option<Definition>>,
    /// Size and alignment of common symbols, taken over all objects.
    commons: FxHashMap<Hash, (u64, u64)>,
}

impl Definitions {
    /// Collects the definitions of all objects, in the order of the map. Objects whose names have
    /// no numbers yet are given them.
    pub fn collect(inputs: &mut [Input], mut names: Names) -> Self {
        names.number_rest(inputs);
        let best = vec![None; names.hashes.len()];
        let mut definitions = Definitions { names, best, commons: FxHashMap::default() };
        for (number, input) in inputs.iter().enumerate() {
            definitions.define(number as u32, input);
        }
        definitions
    }

    /// Adds the definitions of one object.
    fn define(&mut self, number: u32, input: &Input) {
        let symbols = input.record.symbols.iter().zip(&input.names);
        for (symbol, &name) in symbols.filter(|(symbol, _)| symbol.kind != SymbolKind::Undefined) {
            if let SymbolKind::Common { size, align } = symbol.kind {
                let common = self.commons.entry(symbol.name_hash).or_default();
                *common = (common.0.max(size), common.1.max(align));
            }
            let rank = rank(input, symbol.weak, symbol.kind);
            let literal = literal(input, symbol.kind);
            let definition =
                Definition { input: number, kind: symbol.kind, rank, literal, is_contested: false };
            self.add(name, definition);
            if symbol.name.as_bytes().contains(&b'@')
                && let Some((name, version)) = symbol.name.split_once("@@")
            {
                let full_name = format!("{name}@{version}");
                let versioned = self.names.number(Symbol::hash_of(&full_name));
                self.add(versioned, definition);
            }
        }
    }

    fn add(&mut self, name: u32, definition: Definition) {
        if name as usize >= self.best.len() {
            self.best.resize(name as usize + 1, None);
        }
        self.best[name as usize].get_or_insert(definition).meet(definition);
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.best.len()
    }

    /// The number of a name that some object defines or asks for.
    pub fn number(&self, name: Hash) -> Option<u32> {
        self.names.numbers.get(&name).copied()
    }

    /// The name with a number.
    pub fn name(&self, number: u32) -> Hash {
        self.names.hashes[number as usize]
    }

    /// The best definition of the name with a number.
    pub fn best(&self, number: u32) -> Option<Definition> {
        self.best[number as usize]
    }

    /// The best definition of a name.
    pub fn get(&self, name: Hash) -> Option<Definition> {
        self.best(self.number(name)?)
    }

    /// The size and alignment that a common symbol was given.
    pub fn common(&self, name: Hash) -> (u64, u64) {
        self.commons.get(&name).copied().unwrap_or_default()
    }
}

/// How good a definition is: strength first, then whether its section is in the binary at all (of a
/// COMDAT group, only one copy is).
fn rank(input: &Input, weak: bool, kind: SymbolKind) -> u8 {
    let strength = match kind {
        SymbolKind::Common { .. } => 2,
        _ if weak => 1,
        _ => 3,
    };
    let is_placed = match kind {
        SymbolKind::Defined { atom, .. } | SymbolKind::Indirect { atom, .. } => {
            input.addresses[atom as usize].is_some()
                || input.record.atoms[atom as usize].kind == AtomKind::Literal
        }
        _ => true,
    };
    2 * strength + u8::from(is_placed)
}

/// The content of the literal that a symbol names, and the place in it.
fn literal(input: &Input, kind: SymbolKind) -> Option<(Hash, u64)> {
    let SymbolKind::Defined { atom, offset } = kind else { return None };
    let atom = &input.record.atoms[atom as usize];
    (atom.kind == AtomKind::Literal).then_some((atom.hash, offset))
}

/// The rank of a common symbol.
const COMMON: u8 = 5;

/// The binary's own symbol table, by the hashes of names.
#[derive(Default)]
pub struct FinalSymbols {
    globals: FxHashMap<Hash, Final>,
    /// A hidden global is local in the binary; so is what a script hides, and every static of an
    /// object.
    locals: FxHashMap<Hash, Final>,
}

/// What the symbol table says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final {
    Address(u64),
    Absolute(u64),
    /// Several symbols bear the name.
    Ambiguous,
}

impl FinalSymbols {
    /// The symbols of a binary.
    pub fn new(binary: &Binary) -> Self {
        let mut symbols =
            FinalSymbols { globals: FxHashMap::default(), locals: FxHashMap::default() };
        symbols.globals.reserve(binary.symbols.len());
        for symbol in &binary.symbols {
            let value = match symbol.is_absolute {
                true => Final::Absolute(symbol.value),
                false => Final::Address(symbol.value),
            };
            let names = if symbol.is_local { &mut symbols.locals } else { &mut symbols.globals };
            // Some linkers leave the versions out of the names.
            let known = names.entry(Symbol::hash_of_bytes(symbol.name)).or_insert(value);
            if *known != value {
                *known = Final::Ambiguous;
            }
        }
        symbols
    }

    /// What became of a name that objects define. Globals win over locals.
    pub fn get(&self, name: Hash) -> Option<Final> {
        self.global(name).or_else(|| self.locals.get(&name).copied())
    }

    /// What became of a name that no object defines for others: a local symbol of that name may be
    /// some object's own.
    pub fn global(&self, name: Hash) -> Option<Final> {
        self.globals.get(&name).copied()
    }

    /// A local symbol bears the name.
    pub fn has_local(&self, name: Hash) -> bool {
        self.locals.contains_key(&name)
    }

    /// The binary was linked with `-s`.
    pub fn is_empty(&self) -> bool {
        self.globals.is_empty() && self.locals.is_empty()
    }
}

impl SymbolAddresses for FinalSymbols {
    fn address(&self, name: Hash) -> Option<u64> {
        match self.get(name) {
            Some(Final::Address(address)) => Some(address),
            _ => None,
        }
    }
}
