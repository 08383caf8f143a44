//! What each symbol of a link means. In: the linked objects and the binary's own symbol table. Out: for a name the
//! atom that the linker chose, or what else stands behind it.
//!
//! The rules are the linkers' (strong before common before weak); where several definitions are equally good, and
//! wherever a command line or a script can have changed a symbol, the address in the binary's symbol table
//! decides.

use super::inputs::{Input, SymbolAddresses};
use crate::elf::binary::Binary;
use crate::model::{AtomKind, SymbolKind};
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
pub struct Definitions<'a> {
    by_name: FxHashMap<&'a str, Definition>,
    /// Size and alignment of common symbols, taken over all objects.
    commons: FxHashMap<&'a str, (u64, u64)>,
}

impl<'a> Definitions<'a> {
    /// Collects the definitions of all objects, in the order of the map.
    pub fn collect(inputs: &[Input<'a>]) -> Self {
        let count = inputs.iter().map(|input| input.record.symbols.len()).sum::<usize>();
        let by_name = FxHashMap::with_capacity_and_hasher(count / 2, Default::default());
        let mut definitions = Definitions { by_name, commons: FxHashMap::default() };
        for (number, input) in inputs.iter().enumerate() {
            for symbol in input.record.symbols.iter().filter(|symbol| symbol.kind != SymbolKind::Undefined) {
                let name = without_default_version(symbol.name);
                if let SymbolKind::Common { size, align } = symbol.kind {
                    let common = definitions.commons.entry(name).or_default();
                    *common = (common.0.max(size), common.1.max(align));
                }
                let rank = rank(input, symbol.weak, symbol.kind);
                definitions
                    .add(name, Definition { input: number as u32, kind: symbol.kind, rank, is_contested: false });
            }
        }
        definitions
    }

    fn add(&mut self, name: &'a str, definition: Definition) {
        let known = self.by_name.entry(name).or_insert(definition);
        if known.input == definition.input && known.kind == definition.kind {
            return;
        }
        if definition.rank > known.rank {
            *known = definition;
        } else if definition.rank == known.rank && !matches!(definition.kind, SymbolKind::Common { .. }) {
            known.is_contested = true;
        }
    }

    pub fn get(&self, name: &str) -> Option<Definition> {
        self.by_name.get(name).copied()
    }

    /// The size and alignment that a common symbol was given.
    pub fn common(&self, name: &str) -> (u64, u64) {
        self.commons.get(name).copied().unwrap_or_default()
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

/// `foo@@VERSION` is what `foo` means.
fn without_default_version(name: &str) -> &str {
    name.split_once("@@").map_or(name, |(name, _)| name)
}

/// The same for a name as bytes.
fn unversioned(name: &[u8]) -> &[u8] {
    let at = name.windows(2).position(|window| window == b"@@");
    at.map_or(name, |at| &name[..at])
}

/// The binary's own symbol table, by name.
pub struct FinalSymbols<'a> {
    by_name: FxHashMap<&'a [u8], Final>,
}

/// What the symbol table says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Final {
    Address(u64),
    Absolute(u64),
    /// Several local symbols bear the name.
    Ambiguous,
}

impl<'a> FinalSymbols<'a> {
    /// Globals win over locals. (A hidden global is local in the binary.)
    pub fn new(binary: &Binary<'a>) -> Self {
        let mut by_name = FxHashMap::with_capacity_and_hasher(binary.symbols.len(), Default::default());
        let value = |symbol: &crate::elf::binary::Symbol| match symbol.is_absolute {
            true => Final::Absolute(symbol.value),
            false => Final::Address(symbol.value),
        };
        for symbol in binary.symbols.iter().filter(|symbol| symbol.is_local) {
            let known = by_name.entry(unversioned(symbol.name)).or_insert(value(symbol));
            if *known != value(symbol) {
                *known = Final::Ambiguous;
            }
        }
        for symbol in binary.symbols.iter().filter(|symbol| !symbol.is_local) {
            by_name.insert(unversioned(symbol.name), value(symbol));
        }
        FinalSymbols { by_name }
    }

    pub fn get(&self, name: &str) -> Option<Final> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// The binary was linked with `-s`.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl SymbolAddresses for FinalSymbols<'_> {
    fn address(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Final::Address(address)) => Some(address),
            _ => None,
        }
    }
}
