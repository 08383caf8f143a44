//! Symbols by which a program gets at its own headers, and from there at all that is loaded:
//! program headers, notes with the build ID, tags for the dynamic loader. In: a reference to one.
//! Out: a reference to everything that can be seen.
//!
//! Functions that are asked about an address or for a number (`dladdr`, `getauxval`) are mostly
//! called for something else: where they are imported, what is loaded counts only with a run that
//! executes who calls them (`IMAGE_FINDERS`).

use super::{Builder, GraphError, Origin};
use crate::elf::runtime::is_of_runtime;
use crate::link::symbols::Definitions;
use crate::model::manifest::{Edge, WHOLE_BINARY_WITH_ID};
use crate::model::{AtomKind, Symbol};

/// Those symbols. The functions among them tell of the other modules as well (`IMAGE_FINDERS`).
const HEADERS: [&str; 6] =
    ["_DYNAMIC", "__GNU_EH_FRAME_HDR", "__ehdr_start", "_r_debug", "dl_iterate_phdr", "dlinfo"];

/// Functions that tell, among other things, where a module or its program headers lie.
const PLACES: [&str; 7] = [
    "__getauxval",
    "_dl_find_object",
    "backtrace_symbols",
    "backtrace_symbols_fd",
    "dladdr",
    "dladdr1",
    "getauxval",
];

/// The numbers that the names of those symbols have in a link.
pub(super) fn names(definitions: &Definitions) -> Vec<u32> {
    HEADERS
        .iter()
        .chain(&PLACES)
        .filter_map(|name| definitions.number(Symbol::hash_of(name)))
        .collect()
}

impl<'a> Builder<'a> {
    /// Adds the reference of an atom to one of those symbols.
    pub(super) fn add_headers(
        &mut self,
        input: u32,
        number: u32,
        symbol: &Symbol<'a>,
    ) -> Result<(), GraphError> {
        if is_of_runtime(&self.inputs[input as usize].label) {
            let edge = match self.meant(number, symbol)? {
                edge if self.nodes[edge.node as usize].kind == AtomKind::Import => {
                    self.layout(symbol.name)
                }
                edge => edge,
            };
            self.edges.push(edge);
            return Ok(());
        }
        let edge = self.meant(number, symbol)?;
        self.edges.push(edge);
        if !(PLACES.contains(&symbol.name)
            && self.nodes[edge.node as usize].kind == AtomKind::Import)
        {
            let image = self.loaded_image();
            self.edges.push(image);
        }
        Ok(())
    }

    /// Everything that is loaded, the name of the build too.
    fn loaded_image(&mut self) -> Edge {
        let hash = self.binary.loaded_digest();
        self.special(AtomKind::Residue, WHOLE_BINARY_WITH_ID, hash, Origin::Leaf)
    }
}
