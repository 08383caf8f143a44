//! Code that was made when it was linked, by the linker's plugin. In: the objects that have
//! intermediate code. Out: nodes for all of them at once, since nobody can say what was made of
//! which.

use super::{Builder, Origin};
use crate::elf::called;
use crate::link::input::Input;
use crate::model::manifest::Edge;
use crate::model::{AtomKind, Hasher, SymbolKind};

impl<'a> Builder<'a> {
    /// All definitions that were optimised when they were linked: of what the plugin made it is not
    /// known which.
    pub(super) fn optimised(&mut self) -> Edge {
        let hash = Hasher::new("optimised").finish();
        self.special(AtomKind::Range, "(link-time optimisation)", hash, Origin::Optimised)
    }

    pub(super) fn add_optimised(&mut self) {
        for number in 0..self.inputs.len() as u32 {
            if self.optimised[number as usize] {
                for atom in 0..self.inputs[number as usize].record.atoms.len() as u32 {
                    let node = self.node_of_atom(number, atom);
                    self.edges.push(Edge { node, offset: 0, takes_address: false });
                }
            }
        }
    }

    /// Compilers call functions of their own accord, and of code that was made by the linker's
    /// plugin nobody can say which.
    pub(super) fn callable(&mut self) -> Edge {
        let hash = Hasher::new("callable").finish();
        self.special(AtomKind::Range, "(called by optimised code)", hash, Origin::Callable)
    }

    pub(super) fn add_callable(&mut self) {
        let imports = self.binary.dynamic.symbols.iter().filter(|symbol| !symbol.is_defined);
        let mut imports: Vec<&str> =
            imports.filter_map(|symbol| std::str::from_utf8(symbol.name).ok()).collect();
        imports.sort_unstable();
        for name in imports {
            let edge = self.import(name);
            self.edges.push(edge);
        }
        for (number, input) in self.inputs.iter().enumerate() {
            let is_optimised = self.optimised[number];
            for symbol in &input.record.symbols {
                let (SymbolKind::Defined { atom, .. } | SymbolKind::Indirect { atom, .. }) =
                    symbol.kind
                else {
                    continue;
                };
                let is_called = is_optimised && called::by_compilers(symbol.name);
                if is_called || input.addresses[atom as usize].is_some() {
                    let node = self.node_of_atom(number as u32, atom);
                    self.edges.push(Edge { node, offset: 0, takes_address: false });
                }
            }
        }
    }
}

/// The code of this input was made when it was linked.
pub(super) fn is_optimised(input: &Input) -> bool {
    input.record.bitcode && input.addresses.iter().all(Option::is_none)
}
