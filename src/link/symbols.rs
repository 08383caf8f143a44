//! What each symbol of a link means. In: the linked objects and the binary's own symbol table. Out: for a name the
//! atom that the linker chose, or what else stands behind it.
//!
//! The rules are the linkers' (strong before common before weak); where several definitions are equally good, and
//! wherever a command line or a script can have changed a symbol, the address in the binary's symbol table
//! decides.
//!
//! `foo@@V` defines both `foo` and `foo@V`; `foo@V` is a name of its own.

use super::inputs::{Input, SymbolAddresses};
use crate::elf::binary::Binary;
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

/// The definitions of a link.
pub struct Definitions {
    /// By the hashes of names, which the records have ready: strings of many files would have to be read again.
    by_name: FxHashMap<Hash, Definition>,
    /// Size and alignment of common symbols, taken over all objects.
    commons: FxHashMap<Hash, (u64, u64)>,
}

impl Definitions {
    /// Collects the definitions of all objects, in the order of the map.
    pub fn collect(inputs: &[Input]) -> Self {
        let count = inputs.iter().map(|input| input.record.symbols.len()).sum::<usize>();
        let by_name = FxHashMap::with_capacity_and_hasher(count / 2, Default::default());
        let mut definitions = Definitions { by_name, commons: FxHashMap::default() };
        for (number, input) in inputs.iter().enumerate() {
            for symbol in input.record.symbols.iter().filter(|symbol| symbol.kind != SymbolKind::Undefined) {
                let name = symbol.name_hash;
                if let SymbolKind::Common { size, align } = symbol.kind {
                    let common = definitions.commons.entry(name).or_default();
                    *common = (common.0.max(size), common.1.max(align));
                }
                let rank = rank(input, symbol.weak, symbol.kind);
                let definition = Definition { input: number as u32, kind: symbol.kind, rank, is_contested: false };
                definitions.add(name, definition);
                if let Some((name, version)) = symbol.name.split_once("@@") {
                    definitions.add(Symbol::hash_of(&format!("{name}@{version}")), definition);
                }
            }
        }
        definitions
    }

    fn add(&mut self, name: Hash, definition: Definition) {
        let is_common = |kind| matches!(kind, SymbolKind::Common { .. });
        let known = self.by_name.entry(name).or_insert(definition);
        if known.input == definition.input && known.kind == definition.kind {
            return;
        }
        let is_better = definition.rank > known.rank;
        let are_rivals = match (is_common(known.kind), is_common(definition.kind)) {
            (true, true) => false,
            (false, false) => definition.rank == known.rank,
            // Linkers differ in whether a common symbol or a weak one is better.
            _ => definition.rank.max(known.rank) == COMMON,
        };
        let is_contested = are_rivals || (known.is_contested && !is_better);
        if is_better {
            *known = definition;
        }
        known.is_contested = is_contested;
    }

    /// The best definition of a name.
    pub fn get(&self, name: Hash) -> Option<Definition> {
        self.by_name.get(&name).copied()
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
