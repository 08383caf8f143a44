//! What code can reach from one atom by stepping on in memory: the members of a table that is
//! spread over sections, one in each. In: an atom. Out: a reference to the whole table.
//!
//! The sections of such tables have names of the programmer's own (`items`), or names that start
//! like those of compilers (`.data.tbl.1`), or are gathered by a linker script. Where an output
//! section has a name of its own, all of its members are one table. In the others (`.data`) those
//! are that lie next to each other: code that steps on does not know the size of what a compiler
//! has put between.

use super::{Builder, Origin};
use crate::link::symbols::Final;
use crate::model::manifest::Edge;
use crate::model::{AtomKind, Hasher, Level, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// What compilers put before the name of a variable to make the name of its section. Longer ones
/// first.
pub const DATA: [&str; 12] = [
    ".data.rel.ro.local",
    ".data.rel.ro",
    ".data.rel.local",
    ".data.rel",
    ".data",
    ".rodata",
    ".bss",
    ".lrodata",
    ".ldata",
    ".lbss",
    ".sdata",
    ".sbss",
];

/// Tables among other data, once they were looked for.
#[derive(Default)]
pub(super) struct Tables {
    /// Ranges of `Builder::by_address` with more than one member.
    ranges: Vec<(u32, u32)>,
    /// The table of each node that is in one.
    of_node: FxHashMap<u32, u32>,
}

impl<'a> Builder<'a> {
    /// Adds a reference to the table that an atom is part of.
    pub(super) fn add_neighbours(&mut self, node: u32, input: u32, atom: u32) {
        let described = &self.inputs[input as usize].record.atoms[atom as usize];
        let is_data = matches!(described.kind, AtomKind::Data | AtomKind::Zeroed);
        if described.level == Level::File || !is_data && is_usual(described.section_name) {
            return;
        }
        let address = self.inputs[input as usize].addresses[atom as usize];
        let output = match address {
            Some(address) => self.binary.section_at(address).map(|section| section.name),
            // An empty one, such as an array without elements that marks the start of the others,
            // is in no map.
            None if described.size == 0 => Some(described.section_name.as_bytes()),
            None => None,
        };
        let name = String::from_utf8_lossy(output.unwrap_or_default());
        let edge = match is_usual(&name) {
            false => self.range(&name, 0),
            true if is_data => {
                self.table(node, described.name, address.is_none() && described.size == 0)
            }
            true => None,
        };
        self.edges.extend(edge);
    }

    /// The table that holds a node, or that an empty one marks the start or the end of.
    fn table(&mut self, node: u32, name: &str, is_empty: bool) -> Option<Edge> {
        let tables = match self.tables.take() {
            Some(tables) => tables,
            None => self.find_tables(),
        };
        let table = match is_empty {
            false => tables.of_node.get(&node).copied(),
            true => self.marked(&tables, name),
        };
        self.tables = Some(tables);
        let table = table?;
        // Each table is a thing of its own, and counts by its members.
        let key = (AtomKind::Range, Hasher::new("table").number(table.into()).finish());
        if let Some(&node) = self.specials.get(&key) {
            return Some(Edge { node, ..Edge::default() });
        }
        let hash = Hasher::new("table").finish();
        let edge = self.new_special(AtomKind::Range, "(a table)", hash, Origin::Table(table));
        self.specials.insert(key, edge.node);
        Some(edge)
    }

    /// The table that starts or ends where a symbol of an empty section stands.
    fn marked(&self, tables: &Tables, name: &str) -> Option<u32> {
        let Some(Final::Address(address)) = self.symbols.get(Symbol::hash_of(name)) else {
            return None;
        };
        let behind = self.at_address(address).and_then(|edge| tables.of_node.get(&edge.node));
        let before = || tables.of_node.get(&self.at_address(address.checked_sub(1)?)?.node);
        behind.or_else(before).copied()
    }

    pub(super) fn add_table(&mut self, table: u32) {
        let Some(&(from, to)) =
            self.tables.as_ref().and_then(|tables| tables.ranges.get(table as usize))
        else {
            return;
        };
        let members = &self.by_address[from as usize..to as usize];
        self.edges.extend(members.iter().map(|&(_, node)| Edge { node, ..Edge::default() }));
    }

    /// Finds the atoms of the programmer's own sections that lie next to each other in one output
    /// section.
    fn find_tables(&self) -> Tables {
        let mut tables = Tables::default();
        let mut names = FxHashMap::default();
        let mut from = 0;
        let mut output = None;
        for at in 0..=self.by_address.len() {
            let place =
                self.by_address.get(at).filter(|(_, node)| self.is_of_a_table(*node, &mut names));
            let here = place
                .and_then(|(address, _)| self.binary.section_at(*address))
                .map(|section| section.address);
            if here.is_some() && here == output {
                continue;
            }
            if output.is_some() && at - from > 1 {
                let table = tables.ranges.len() as u32;
                tables.ranges.push((from as u32, at as u32));
                tables
                    .of_node
                    .extend(self.by_address[from..at].iter().map(|&(_, node)| (node, table)));
            }
            (from, output) = (at, here);
        }
        tables
    }

    /// Whether a node is data in a section that no compiler has named, or that a script asks for.
    fn is_of_a_table(&self, node: u32, names: &mut FxHashMap<u32, FxHashSet<&'a str>>) -> bool {
        let Origin::Atom { input, atom } = self.origins[node as usize] else { return false };
        let record = &self.inputs[input as usize].record;
        let described = &record.atoms[atom as usize];
        if !matches!(described.kind, AtomKind::Data | AtomKind::Zeroed)
            || described.level == Level::File
        {
            return false;
        }
        let section = described.section_name;
        if !is_usual(section)
            || self.options.gathered.iter().any(|pattern| pattern.matches(section))
        {
            return true;
        }
        let Some(variable) =
            DATA.iter().find_map(|start| section.strip_prefix(start)?.strip_prefix('.'))
        else {
            return false;
        };
        let is_digit = |letter: char| letter.is_ascii_digit();
        let is_size = |kind: &&str| {
            variable.strip_prefix(*kind).is_some_and(|rest| rest.starts_with(is_digit))
        };
        if variable == described.name
            || variable.starts_with(".L")
            || ["cst", "str"].iter().any(is_size)
        {
            return false;
        }
        // Jump tables are in sections that have the names of their functions.
        let names = names.entry(input).or_insert_with(|| {
            let atoms = record.atoms.iter().map(|atom| atom.name);
            atoms.chain(record.symbols.iter().map(|symbol| symbol.name)).collect()
        });
        !names.contains(variable)
    }
}

/// A section that compilers and linkers fill by themselves: its members do not know their
/// neighbours.
pub fn is_usual(section: &str) -> bool {
    let Some(name) = section.strip_prefix('.') else { return false };
    let stem = name.bytes().position(|byte| byte == b'.').map_or(name, |dot| &name[..dot]);
    // The most frequent ones first.
    matches!(
        stem,
        "text"
            | "rodata"
            | "data"
            | "bss"
            | "common"
            | "ctors"
            | "dtors"
            | "eh_frame"
            | "fini"
            | "fini_array"
            | "gcc_except_table"
            | "gnu"
            | "init"
            | "init_array"
            | "jcr"
            | "lbss"
            | "ldata"
            | "lrodata"
            | "ltext"
            | "note"
            | "preinit_array"
            | "sbss"
            | "sdata"
            | "tbss"
            | "tdata"
            | "tm_clone_table"
    )
}
