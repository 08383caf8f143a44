//! The edges of an atom. In: its references. Out: the nodes that they lead to, made where there are
//! none yet.

use super::{Builder, GraphError, Origin};
use crate::model::manifest::Edge;
use crate::model::record::Usage;
use crate::model::{AtomKind, Hasher, Record, Target};
use std::ops::Range;

/// The part of glibc's archive that every static program has, and that names `_end` only to use up
/// its page.
const USES_THE_LAST_PAGE: &str = "(dl-minimal-malloc.o)";

impl<'a> Builder<'a> {
    pub(super) fn add_references(
        &mut self,
        node: u32,
        input: u32,
        range: Range<usize>,
    ) -> Result<(), GraphError> {
        let from = &self.inputs[input as usize];
        let uses_last_page = from.label.ends_with(USES_THE_LAST_PAGE);
        let is_plain = !uses_last_page && self.options.wrapped.is_empty();
        for (number, reference) in
            from.record.references.iter().enumerate().take(range.end).skip(range.start)
        {
            let base = match reference.target {
                Target::Atom(atom)
                    if reference.usage != Usage::Access
                        && from.record.atoms[atom as usize].kind == AtomKind::Literal =>
                {
                    let address =
                        self.literal_address(node, &from.record, number as u32).unwrap_or(0);
                    Edge {
                        node: self.literal(input, atom, address),
                        offset: 0,
                        takes_address: false,
                    }
                }
                Target::Atom(atom) => {
                    Edge { node: self.node_of_atom(input, atom), offset: 0, takes_address: false }
                }
                Target::Symbol(symbol) => {
                    let number = from.names[symbol as usize];
                    if self.showing_image.contains(&number) {
                        let symbol = &from.record.symbols[symbol as usize];
                        self.add_headers(input, number, symbol)?;
                        continue;
                    }
                    match (self.known[number as usize], &from.record.symbols[symbol as usize]) {
                        (Some(known), _) if is_plain => known,
                        (_, symbol) if uses_last_page && symbol.name == "_end" => {
                            self.layout(symbol.name)
                        }
                        (_, symbol) => self.meant(number, symbol)?,
                    }
                }
            };
            let target = &self.nodes[base.node as usize];
            let is_unplaced = target.kind == AtomKind::Common && target.address == 0;
            if is_unplaced && reference.usage != Usage::Access && !self.optimised[input as usize] {
                return Err(GraphError::Unplaced { symbol: target.name.to_string() });
            }
            let offset = base.offset.wrapping_add(reference.offset);
            self.edges.push(Edge {
                node: base.node,
                offset,
                takes_address: reference.usage != Usage::Access,
            });
            if reference.usage == Usage::Distance {
                let distance = self.distance(node, base.node);
                self.edges.push(distance);
            }
        }
        Ok(())
    }

    /// Where a literal starts to which a node refers.
    fn literal_address(&self, node: u32, record: &Record, number: u32) -> Option<u64> {
        let first = record.sites.partition_point(|site| site.reference < number);
        let sites = &record.sites[first..];
        let count = sites.partition_point(|site| site.reference == number);
        let start = Some(self.nodes[node as usize].address).filter(|start| *start != 0)?;
        let target = self.sites.target(start, &sites[..count])?;
        Some(target.wrapping_sub(record.references.get(number as usize)?.offset as u64))
    }

    /// How far apart two nodes lie, as a number of its own.
    fn distance(&mut self, from: u32, to: u32) -> Edge {
        let [from, to] = [from, to].map(|node| self.nodes[node as usize].address);
        let hash = Hasher::new("distance").number(to.wrapping_sub(from)).finish();
        self.special(AtomKind::Value, "(a distance)", hash, Origin::Leaf)
    }
}
