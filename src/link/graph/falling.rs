//! What code runs into behind its last instruction. In: an atom whose end control can get to
//! (`Ending`). Out: a reference to what lies behind it in the binary.
//!
//! A call at the end is followed: control gets past it only if the called function returns. Of this
//! program's functions their code tells that, of those of other modules and of the runtime's
//! archives their names (`elf/noreturn.rs`).

use super::{Builder, GraphError, Origin};
use crate::elf::noreturn;
use crate::elf::runtime::is_of_runtime;
use crate::link::symbols::Final;
use crate::model::manifest::Edge;
use crate::model::record::Ending;
use crate::model::{Atom, AtomKind, Level, Symbol, Target};
use rustc_hash::FxHashSet;

/// What is called last.
type Called = [Option<Target>; 4];

impl<'a> Builder<'a> {
    /// Adds a reference to what an atom may run into.
    pub(super) fn add_successor(
        &mut self,
        node: u32,
        input: u32,
        atom: u32,
    ) -> Result<(), GraphError> {
        let described = &self.inputs[input as usize].record.atoms[atom as usize];
        let falls = match described.ending {
            Ending::Leaves => false,
            Ending::Falls => true,
            Ending::Calls(called) => self.any_returns(input, called, &mut FxHashSet::default())?,
        };
        if falls {
            let successor = self.successor(node, input, described, atom);
            self.edges.push(successor);
        }
        Ok(())
    }

    fn any_returns(
        &mut self,
        input: u32,
        called: Called,
        open: &mut FxHashSet<u32>,
    ) -> Result<bool, GraphError> {
        for target in called.into_iter().flatten() {
            if self.call_returns(input, target, open)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether what an atom calls may return. Functions in `open` are being looked at: who returns
    /// only if one of them does never returns.
    fn call_returns(
        &mut self,
        input: u32,
        target: Target,
        open: &mut FxHashSet<u32>,
    ) -> Result<bool, GraphError> {
        let inputs = self.inputs;
        let from = &inputs[input as usize];
        let (edge, name) = match target {
            Target::Atom(atom) => {
                (Edge { node: self.node_of_atom(input, atom), ..Edge::default() }, "")
            }
            Target::Symbol(number) => {
                let symbol = &from.record.symbols[number as usize];
                (self.meant(from.names[number as usize], symbol)?, symbol.name)
            }
        };
        let node = &self.nodes[edge.node as usize];
        if node.kind == AtomKind::Import {
            return Ok(!noreturn::is_known(&node.name));
        }
        let Origin::Atom { input, atom } = self.origins[edge.node as usize] else {
            return Ok(true);
        };
        // Several functions of the C library's archive lie in one section, behind each other.
        if is_of_runtime(&inputs[input as usize].label) && noreturn::is_known(name) {
            return Ok(false);
        }
        let called = &inputs[input as usize].record.atoms[atom as usize];
        if called.kind != AtomKind::Function
            || called.level == Level::File
            || called.returns
            || edge.offset != 0
        {
            return Ok(true);
        }
        match called.ending {
            Ending::Leaves => Ok(false),
            Ending::Falls => Ok(true),
            Ending::Calls(_) if !open.insert(edge.node) => Ok(false),
            Ending::Calls(next) => self.any_returns(input, next, open),
        }
    }

    /// What lies behind an atom. Where that is no atom of the same output section, everything
    /// counts.
    fn successor(&mut self, node: u32, input: u32, described: &Atom<'a>, atom: u32) -> Edge {
        let place = self.inputs[input as usize].addresses[atom as usize]
            .or_else(|| self.place_by_name(described.name));
        let place = place.filter(|_| described.level != Level::File);
        let Some(end) = place.and_then(|place| place.checked_add(described.size)) else {
            return self.image();
        };
        let from = self.by_address.partition_point(|&(start, _)| start < end);
        let is_content =
            |&&(_, other): &&(u64, u32)| other != node && self.nodes[other as usize].size > 0;
        let found = self.by_address[from..].iter().find(is_content).copied();
        let section = |address| self.binary.section_at(address).map(|section| section.address);
        match found {
            Some((start, next))
                if section(start) == section(end.saturating_sub(1))
                    || section(start) == section(end) =>
            {
                Edge { node: next, ..Edge::default() }
            }
            _ => self.image(),
        }
    }

    /// Where a function without bytes stands, which is in no map.
    fn place_by_name(&self, name: &str) -> Option<u64> {
        match self.symbols.get(Symbol::hash_of(name)) {
            Some(Final::Address(address)) => Some(address),
            _ => None,
        }
    }
}
