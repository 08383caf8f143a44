//! The nodes of placed atoms. In: the objects' atoms with their addresses. Out: a node for each,
//! and what finds nodes by their addresses.

use super::{Builder, NONE, Origin};
use crate::link::open_file;
use crate::link::symbols::Final;
use crate::model::manifest::{Edge, Node, RIGHTS};
use crate::model::{AtomKind, Hash, Level, PlacedSection, Symbol};
use std::borrow::Cow;

impl<'a> Builder<'a> {
    pub(super) fn add_placed_atoms(&mut self) {
        for (number, input) in self.inputs.iter().enumerate() {
            for (index, address) in input.addresses.iter().enumerate() {
                let Some(address) = address else { continue };
                let node = self.node_of_atom(number as u32, index as u32);
                if self.nodes[node as usize].level == Level::File {
                    self.whole_objects.insert(&input.label, node);
                    continue;
                }
                // Zeroed thread-local variables take no room: what follows them lies at the same
                // addresses.
                if self.nodes[node as usize].kind != AtomKind::ThreadLocal {
                    self.by_address.push((*address, node));
                }
            }
        }
        // Each object's atoms mostly lie in their order already, which this sort makes use of.
        self.by_address.sort();
    }

    /// The node of an atom, made when it is first asked for.
    pub(super) fn node_of_atom(&mut self, number: u32, index: u32) -> u32 {
        let known = self.node_of[number as usize][index as usize];
        if known != NONE {
            return known;
        }
        let made = match self.inputs[number as usize].record.atoms[index as usize].kind {
            AtomKind::Literal => self.literal(number, index, 0),
            _ => self.new_atom(number, index),
        };
        self.node_of[number as usize][index as usize] = made;
        made
    }

    /// The node of a merged literal: one for each content, and for each place, where that is known.
    /// (Not all linkers merge all that could be merged.)
    pub(super) fn literal(&mut self, number: u32, index: u32, address: u64) -> u32 {
        let hash = self.inputs[number as usize].record.atoms[index as usize].hash;
        if let Some(&node) = self.literals.get(&(hash, address)) {
            return node;
        }
        let node = self.new_atom(number, index);
        self.nodes[node as usize].address = address;
        self.literals.insert((hash, address), node);
        node
    }

    fn new_atom(&mut self, number: u32, index: u32) -> u32 {
        let input = &self.inputs[number as usize];
        let atom = &input.record.atoms[index as usize];
        let file =
            if atom.line == 0 { 0 } else { self.file(&input.record.files[atom.file as usize]) };
        let rights = match (atom.kind, input.addresses[index as usize]) {
            (AtomKind::Literal, _) => self.rights_of_literals,
            (AtomKind::ThreadLocal, _) | (_, None) => 0,
            (_, Some(address)) => self.rights.at(address),
        };
        let node = Node {
            name: Cow::Borrowed(if atom.level == Level::File { &input.label } else { atom.name }),
            kind: atom.kind,
            level: atom.level,
            hash: with_rights(atom.hash, atom.kind, rights),
            input: if atom.kind == AtomKind::Literal { 0 } else { number + 1 },
            address: input.addresses[index as usize]
                .unwrap_or_else(|| self.address_by_name(number, atom.name)),
            size: atom.size,
            traceable: atom.traceable && input.addresses[index as usize].is_some(),
            file,
            line: atom.line,
            references: 0,
        };
        self.add(node, Origin::Atom { input: number, atom: index })
    }

    /// Where something lies that was optimised when it was linked, by its name: for the order of
    /// addresses. 0 if that is not known, or if it has no place.
    fn address_by_name(&self, input: u32, name: &str) -> u64 {
        let is_optimised = self.optimised[input as usize];
        match is_optimised.then(|| self.symbols.get(Symbol::hash_of(name))).flatten() {
            Some(Final::Address(address)) => address,
            _ => 0,
        }
    }

    pub(super) fn file(&mut self, name: &'a str) -> u32 {
        *self.file_of.entry(name).or_insert_with(|| {
            self.files.push(Cow::Borrowed(name));
            self.files.len() as u32 - 1
        })
    }

    /// The placed node that a line of the map means.
    pub(super) fn at_line(&self, line: &PlacedSection) -> Option<Edge> {
        let of_object = || {
            let node = *self.whole_objects.get(&*open_file::label((line.file, line.member)))?;
            Some(Edge { node, offset: 0, takes_address: false })
        };
        self.at_address(line.address).or_else(of_object)
    }

    /// The placed node that holds an address.
    pub(super) fn at_address(&self, address: u64) -> Option<Edge> {
        let index =
            self.by_address.partition_point(|&(start, _)| start <= address).checked_sub(1)?;
        let (start, node) = self.by_address[index];
        let offset = address - start;
        (offset < self.nodes[node as usize].size).then_some(Edge {
            node,
            offset: offset as i64,
            takes_address: false,
        })
    }
}

/// The hash of an atom where it lies. Code is for reading and executing wherever it was not asked
/// for otherwise.
fn with_rights(hash: Hash, kind: AtomKind, rights: u64) -> Hash {
    let usual = kind == AtomKind::Function
        && rights == u64::from((object::elf::PF_R | object::elf::PF_X).0);
    if rights == 0 || usual { hash } else { hash.with_number(RIGHTS, rights) }
}
