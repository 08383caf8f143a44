//! What each symbol of a link means. In: the linked objects and the binary's own symbol table. Out: for a name the
//! atom that the linker chose, or what else stands behind it.
//!
//! The rules are the linkers' (strong before common before weak); where several definitions are equally good, and
//! wherever a command line or a script can have changed a symbol, the address in the binary's symbol table
//! decides.
//!
//! `foo@@V` defines both `foo` and `foo@V`; `foo@V` is a name of its own.

use super::inputs::{self, Input, SymbolAddresses};
use crate::elf::binary::Binary;
use crate::model::{AtomKind, Hash, Symbol, SymbolKind};
use rustc_hash::FxHashMap;

/// Where a name is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    pub input: u32,
    pub kind: SymbolKind,
    rank: u8,
    /// For a place in a literal, the content and the place: literals of the same content are one thing, so that it does not
    /// matter which of them is meant. (rustc defines `__rustc_debug_gdb_scripts_section__` in every object.)
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

/// The names of a link, numbered, with their definitions.
pub struct Definitions {
    /// By the hashes of names, which the records have ready: strings of many files would have to be read again.
    numbers: FxHashMap<Hash, u32>,
    /// The hash of each name.
    names: Vec<Hash>,
    /// The best definition of each name.
    best: Vec<Option<Definition>>,
    /// The number of the name of each symbol of each object.
    of_symbols: Vec<Vec<u32>>,
    /// Size and alignment of common symbols, taken over all objects.
    commons: FxHashMap<Hash, (u64, u64)>,
}

/// The number of no name.
const NONE: u32 = u32::MAX;

impl Definitions {
    /// Numbers all names and collects the definitions of all objects, in the order of the map.
    pub fn collect(inputs: &[Input]) -> Self {
        let count = inputs.iter().map(|input| input.record.atoms.len()).sum::<usize>();
        let numbers = FxHashMap::with_capacity_and_hasher(count, Default::default());
        let (names, best) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (of_symbols, commons) = (Vec::new(), FxHashMap::default());
        let mut definitions = Definitions { numbers, names, best, of_symbols, commons };
        let defined = inputs.iter().enumerate().map(|(number, input)| definitions.define(number as u32, input));
        let defined: Vec<Vec<u32>> = defined.collect();
        // Most names were defined by now, and can be looked up by several threads.
        let looked_up = inputs::map_each(inputs.iter().zip(defined).collect(), |(input, mut numbers)| {
            let open = input.record.symbols.iter().zip(&mut numbers).filter(|(_, number)| **number == NONE);
            open.for_each(|(symbol, number)| *number = definitions.number(symbol.name_hash).unwrap_or(NONE));
            numbers
        });
        definitions.of_symbols = looked_up;
        definitions.number_undefined(inputs);
        definitions
    }

    /// Adds the definitions of one object. Returns the number of each symbol that it defines.
    fn define(&mut self, number: u32, input: &Input) -> Vec<u32> {
        let mut numbers = vec![NONE; input.record.symbols.len()];
        let symbols = input.record.symbols.iter().zip(&mut numbers);
        for (symbol, assigned) in symbols.filter(|(symbol, _)| symbol.kind != SymbolKind::Undefined) {
            if let SymbolKind::Common { size, align } = symbol.kind {
                let common = self.commons.entry(symbol.name_hash).or_default();
                *common = (common.0.max(size), common.1.max(align));
            }
            let rank = rank(input, symbol.weak, symbol.kind);
            let literal = literal(input, symbol.kind);
            let definition = Definition { input: number, kind: symbol.kind, rank, literal, is_contested: false };
            *assigned = self.add(symbol.name_hash, definition);
            if symbol.name.as_bytes().contains(&b'@')
                && let Some((name, version)) = symbol.name.split_once("@@")
            {
                self.add(Symbol::hash_of(&format!("{name}@{version}")), definition);
            }
        }
        numbers
    }

    fn number_undefined(&mut self, inputs: &[Input]) {
        for (input, numbers) in inputs.iter().zip(&mut self.of_symbols) {
            let open = input.record.symbols.iter().zip(numbers).filter(|(_, number)| **number == NONE);
            for (symbol, number) in open {
                *number = *self.numbers.entry(symbol.name_hash).or_insert_with(|| {
                    self.names.push(symbol.name_hash);
                    self.best.push(None);
                    self.best.len() as u32 - 1
                });
            }
        }
    }

    fn add(&mut self, name: Hash, definition: Definition) -> u32 {
        let next = self.best.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
            self.best.push(Some(definition));
        } else {
            let known = self.best[number as usize].get_or_insert(definition);
            known.meet(definition);
        }
        number
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.best.len()
    }

    /// The number of a name that some object defines or asks for.
    pub fn number(&self, name: Hash) -> Option<u32> {
        self.numbers.get(&name).copied()
    }

    /// The number of the name of an object's symbol.
    pub fn number_of_symbol(&self, input: u32, symbol: u32) -> u32 {
        self.of_symbols[input as usize][symbol as usize]
    }

    /// The name with a number.
    pub fn name(&self, number: u32) -> Hash {
        self.names[number as usize]
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

/// How good a definition is: strength first, then whether its section is in the binary at all (of a COMDAT group,
/// only one copy is).
fn rank(input: &Input, weak: bool, kind: SymbolKind) -> u8 {
    let strength = match kind {
        SymbolKind::Common { .. } => 2,
        _ if weak => 1,
        _ => 3,
    };
    let is_placed = match kind {
        SymbolKind::Defined { atom, .. } | SymbolKind::Indirect { atom, .. } => {
            input.addresses[atom as usize].is_some() || input.record.atoms[atom as usize].kind == AtomKind::Literal
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
pub struct FinalSymbols {
    globals: FxHashMap<Hash, Final>,
    /// A hidden global is local in the binary; so is what a script hides, and every static of an object.
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
        let mut symbols = FinalSymbols { globals: FxHashMap::default(), locals: FxHashMap::default() };
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

    /// What became of a name that no object defines for others: a local symbol of that name may be some object's own.
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
