//! What each symbol of a link means. In: the linked objects and the binary's own symbol table. Out: for a name the
//! atom that the linker chose, or what else stands behind it.
//!
//! The rules are the linkers' (strong before common before weak); where several definitions are equally good, and
//! wherever a command line or a script can have changed a symbol, the address in the binary's symbol table
//! decides.

use super::inputs::{Input, SymbolAddresses};
use crate::elf::binary::{Binary, Symbol as BinarySymbol};
use crate::model::{AtomKind, Hash, Symbol, SymbolKind};
use rustc_hash::FxHashMap;

/// Where a name is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    pub input: u32,
    pub kind: SymbolKind,
    rank: u8,
    /// Others are just as good.
    pub is_contested: bool,
}

/// All names that the objects of a link use, numbered.
pub struct Names {
    numbers: FxHashMap<Hash, u32>,
    hashes: Vec<Hash>,
    /// The number of each symbol of each input.
    of: Vec<Vec<u32>>,
}

impl Names {
    /// Numbers the names of all objects.
    pub fn collect(inputs: &[Input]) -> Self {
        let symbols = inputs.iter().map(|input| input.record.symbols.len()).sum::<usize>();
        let mut numbers = FxHashMap::with_capacity_and_hasher(symbols / 2, Default::default());
        let mut hashes = Vec::with_capacity(symbols / 2);
        let mut number = |hash: Hash| -> u32 {
            *numbers.entry(hash).or_insert_with(|| {
                hashes.push(hash);
                hashes.len() as u32 - 1
            })
        };
        let of = inputs
            .iter()
            .map(|input| input.record.symbols.iter().map(|symbol| number(symbol.name_hash)).collect())
            .collect();
        Names { numbers, hashes, of }
    }

    /// The number of a symbol of an input.
    pub fn of(&self, input: u32, symbol: u32) -> u32 {
        self.of[input as usize][symbol as usize]
    }

    /// The hash of a name.
    pub fn hash(&self, number: u32) -> Hash {
        self.hashes[number as usize]
    }

    /// The number of a name, if any object uses it.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(&Symbol::hash_of(name)).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// The definitions of a link, by the numbers of their names.
pub struct Definitions {
    by_name: Vec<Option<Definition>>,
    /// Size and alignment of common symbols, taken over all objects.
    commons: FxHashMap<u32, (u64, u64)>,
}

impl Definitions {
    /// Collects the definitions of all objects, in the order of the map.
    pub fn collect(inputs: &[Input], names: &Names) -> Self {
        let mut definitions = Definitions { by_name: vec![None; names.len()], commons: FxHashMap::default() };
        for (input, object) in inputs.iter().enumerate() {
            for (symbol, name) in object.record.symbols.iter().zip(&names.of[input]) {
                if symbol.kind == SymbolKind::Undefined {
                    continue;
                }
                if let SymbolKind::Common { size, align } = symbol.kind {
                    let common = definitions.commons.entry(*name).or_default();
                    *common = (common.0.max(size), common.1.max(align));
                }
                let rank = rank(object, symbol.weak, symbol.kind);
                definitions
                    .add(*name, Definition { input: input as u32, kind: symbol.kind, rank, is_contested: false });
            }
        }
        definitions
    }

    fn add(&mut self, name: u32, definition: Definition) {
        let known = self.by_name[name as usize].get_or_insert(definition);
        if known.input == definition.input && known.kind == definition.kind {
            return;
        }
        if definition.rank > known.rank {
            *known = definition;
        } else if definition.rank == known.rank && !matches!(definition.kind, SymbolKind::Common { .. }) {
            known.is_contested = true;
        }
    }

    /// The definition of a name.
    pub fn get(&self, name: u32) -> Option<Definition> {
        self.by_name[name as usize]
    }

    /// The size and alignment that a common symbol was given.
    pub fn common(&self, name: u32) -> (u64, u64) {
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

/// The binary's own symbol table, by the hashes of names.
pub struct FinalSymbols {
    by_name: FxHashMap<Hash, Final>,
}

/// What the symbol table says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final {
    Address(u64),
    Absolute(u64),
    /// Several local symbols bear the name.
    Ambiguous,
}

impl FinalSymbols {
    /// Globals win over locals. (A hidden global is local in the binary.)
    pub fn new(binary: &Binary) -> Self {
        let mut by_name = FxHashMap::with_capacity_and_hasher(binary.symbols.len(), Default::default());
        let value = |symbol: &BinarySymbol| match symbol.is_absolute {
            true => Final::Absolute(symbol.value),
            false => Final::Address(symbol.value),
        };
        for symbol in binary.symbols.iter().filter(|symbol| symbol.is_local) {
            let known = by_name.entry(Symbol::hash_of_bytes(symbol.name)).or_insert(value(symbol));
            if *known != value(symbol) {
                *known = Final::Ambiguous;
            }
        }
        for symbol in binary.symbols.iter().filter(|symbol| !symbol.is_local) {
            by_name.insert(Symbol::hash_of_bytes(symbol.name), value(symbol));
        }
        FinalSymbols { by_name }
    }

    /// What it says of the name with this hash.
    pub fn get(&self, name: Hash) -> Option<Final> {
        self.by_name.get(&name).copied()
    }

    /// The binary was linked with `-s`.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
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
