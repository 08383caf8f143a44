//! Where execution starts in a binary, and what the dynamic loader can find there. In: the placed
//! atoms. Out: the roots in order, and the exported symbols.

use super::{Builder, GraphError, chosen};
use crate::link::lto;
use crate::model::manifest::{Edge, Export};
use crate::model::{AtomKind, PlacedSection, Symbol};

/// Output sections whose content runs, or is called, without anybody referring to it.
const RUNS_BY_ITSELF: [&str; 7] =
    [".preinit_array", ".init_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini"];

impl<'a> Builder<'a> {
    /// Where execution starts, in order.
    pub(super) fn roots(&mut self) -> Result<Vec<Edge>, GraphError> {
        let mut roots = Vec::new();
        match self.at_address(self.binary.entry) {
            Some(entry) => roots.push(entry),
            None if !self.is_library => return Err(GraphError::NoEntry),
            None => {}
        }
        // As ranges, so that it counts which of them an entry stands in.
        roots.extend(RUNS_BY_ITSELF.iter().filter_map(|output| self.range(output, 0)));
        let elsewhere =
            |line: &&PlacedSection| runs_by_itself(line.name) && !runs_by_itself(line.output);
        let mut lines: Vec<&PlacedSection> =
            self.placement.sections.iter().filter(elsewhere).collect();
        lines.retain(|line| line.size > 0);
        lines.sort_unstable_by_key(|line| line.address);
        for line in lines {
            let edge = if lto::is_product(line.file) {
                Some(self.optimised())
            } else {
                self.at_line(line)
            };
            roots.extend(edge);
        }
        for address in [self.binary.dynamic.init, self.binary.dynamic.fini].into_iter().flatten() {
            roots.push(self.at_address(address).ok_or(GraphError::NoEntry)?);
        }
        let is_resolver =
            |&&(_, node): &&(u64, u32)| self.nodes[node as usize].kind == AtomKind::Resolver;
        roots.extend(self.by_address.iter().filter(is_resolver).map(|&(_, node)| Edge {
            node,
            offset: 0,
            takes_address: false,
        }));
        for number in
            (0..self.inputs.len()).filter(|number| self.optimised[*number]).collect::<Vec<_>>()
        {
            let atoms = self.inputs[number].record.atoms.iter().zip(0..);
            for (_, atom) in atoms.filter(|(atom, _)| atom.kind == AtomKind::Resolver) {
                roots.push(Edge {
                    node: self.node_of_atom(number as u32, atom),
                    offset: 0,
                    takes_address: false,
                });
            }
        }
        Ok(roots)
    }

    /// What the dynamic loader can find here, sorted by name.
    pub(super) fn exports(&mut self) -> Result<Vec<Export<'a>>, GraphError> {
        let mut exports = Vec::new();
        for symbol in self.binary.dynamic.symbols.iter().filter(|symbol| symbol.is_defined) {
            let Ok(name) = std::str::from_utf8(symbol.name) else { continue };
            let version = symbol
                .version
                .and_then(|version| std::str::from_utf8(version).ok())
                .unwrap_or_default();
            // The address tells versions of one name apart; commons and thread-local variables have
            // none here.
            let by_address = match (symbol.is_absolute, symbol.is_thread_local) {
                (true, _) => Some(self.value(name, symbol.value)?),
                (false, true) => None,
                (false, false) => self.at_address(symbol.value),
            };
            let hash = Symbol::hash_of(name);
            let edge = match by_address {
                Some(edge) if symbol.is_indirect => Some(chosen(edge)),
                Some(edge) => Some(edge),
                // Without a definition it is a copy of a library's variable, and leads back to the
                // library.
                None => {
                    let definition = self.definitions.get(hash);
                    definition.map(|definition| self.defined(hash, name, definition)).transpose()?
                }
            };
            if let Some(node) = edge.map(|edge| edge.node as usize).filter(|_| symbol.is_unique) {
                self.nodes[node].hash = self.nodes[node].hash.with_number("unique", 1);
            }
            exports.extend(edge.map(|edge| Export { name, version, edge }));
        }
        exports.sort_unstable_by_key(|export| (export.name, export.version));
        Ok(exports)
    }
}

/// What is in a section of this name runs, or is called, without anybody referring to it.
fn runs_by_itself(section: &[u8]) -> bool {
    // Most names are of code and data, and there are many.
    if let [b'.', b't' | b'r' | b'b', ..] = section {
        return false;
    }
    RUNS_BY_ITSELF.iter().any(|name| {
        let rest = section.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    })
}
