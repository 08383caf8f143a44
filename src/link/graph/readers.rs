//! Functions of the program's own in the place of those of the C and C++ libraries that only read
//! their arguments (`memcpy`, `strcmp`, `std::__throw_length_error`). In: the objects. Out: the
//! nodes of such functions.
//!
//! Records leave out where literals lie that are only arguments of those functions. One that the
//! program has itself may do anything with the pointers, so it refers to all that is loaded.

use super::{Builder, is_optimised};
use crate::elf::readers;
use crate::elf::runtime::is_of_runtime;
use crate::link::input::Input;
use crate::model::SymbolKind;

impl Builder<'_> {
    pub(super) fn own_readers(&mut self) -> Vec<u32> {
        let own: Vec<(u32, u32)> = self
            .inputs
            .iter()
            .zip(0..)
            .filter(|(input, _)| !is_of_runtime(&input.label))
            .flat_map(|(input, number)| readers_of(input).map(move |atom| (number, atom)))
            .collect();
        own.into_iter().map(|(input, atom)| self.node_of_atom(input, atom)).collect()
    }
}

/// The atoms of an object that are linked, and that others call by such a name. Inline functions of
/// the C++ library's headers are in groups: who calls one defines it, too, and does not take it for
/// the library's.
fn readers_of<'i>(input: &'i Input) -> impl Iterator<Item = u32> + 'i {
    let is_linked = |atom: u32| input.addresses[atom as usize].is_some() || is_optimised(input);
    input.record.symbols.iter().filter_map(move |symbol| match symbol.kind {
        SymbolKind::Defined { atom, .. } | SymbolKind::Indirect { atom, .. }
            if readers::is_known(symbol.name) =>
        {
            Some(atom)
                .filter(|atom| is_linked(*atom) && input.record.atoms[*atom as usize].group == 0)
        }
        _ => None,
    })
}
