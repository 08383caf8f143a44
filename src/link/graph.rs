//! The reference graph of a binary. In: the linked objects with their addresses, the placement, the
//! binary, the options that matter. Out: the [`Manifest`].
//!
//! Every placed atom is a node. Literals, commons, ranges, imports and values become nodes when
//! somebody refers to them. Nodes are worked off in order, so that the edges lie in one list.

mod atoms;
mod falling;
mod frame;
mod headers;
mod meaning;
mod members;
mod neighbours;
mod optimised;
mod readers;
mod references;
mod roots;
mod specials;

pub use frame::{frame, needed};
pub use neighbours::{DATA, is_usual};

use self::members::first_members;
use self::optimised::is_optimised;
use super::input::Input;
use super::symbols::{Definitions, FinalSymbols};
use crate::elf::binary::{Binary, Rights};
use crate::elf::dynamic::DynamicSymbol;
use crate::elf::sites::Sites;
use crate::model::manifest::{Edge, Manifest, Node};
use crate::model::record::CHOSEN;
use crate::model::{AtomKind, Hash, Placement};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use thiserror::Error;

/// Why a binary can only be taken as a whole.
#[derive(Debug, Error)]
pub enum GraphError {
    #[error("{symbol}: defined several times, and it cannot be told which definition was linked")]
    Contested { symbol: String },
    #[error("{symbol}: its address is in no section that the linker's map lists")]
    Elsewhere { symbol: String },
    #[error("the program's entry is in no section that the linker's map lists")]
    NoEntry,
    #[error("{by} says at which address the program lies: its code can name anything by a number")]
    FixedAddresses { by: String },
    #[error(
        "{symbol}: an option or a script may have given it a value, and the symbol table is left out"
    )]
    Assigned { symbol: String },
    #[error(
        "{symbol}: its address is used, and no symbol of the binary says where the linker put it"
    )]
    Unplaced { symbol: String },
}

/// What a link's options mean for its graph.
#[derive(Default)]
pub struct Options {
    /// Symbols of `--wrap`.
    pub wrapped: FxHashSet<String>,
    /// A wrapped symbol may be wrapped even where an object refers to its own definition (lld).
    pub wraps_own_references: bool,
    /// Symbols of `--defsym`, and whether each stands for another symbol.
    pub assigned: FxHashMap<String, bool>,
    /// Scripts can give values to symbols.
    pub has_scripts: bool,
    /// By which patterns scripts gather sections.
    pub gathered: Vec<glob::Pattern>,
    /// What says at which addresses the program lies, so that code can name anything by its number.
    pub fixed_by: Option<String>,
    /// The output sections of which only that is so.
    pub fixed_sections: Vec<String>,
    /// What goes into the frame as it is: options and scripts that change the binary beyond its
    /// symbols.
    pub frame: Vec<Vec<u8>>,
}

const NONE: u32 = u32::MAX;

/// What a node's edges come from.
#[derive(Clone, Copy)]
enum Origin {
    Atom {
        input: u32,
        atom: u32,
    },
    /// The placed sections of an output section.
    Members(u32),
    /// A table among other data.
    Table(u32),
    /// Either of two.
    Either(Edge, Edge),
    /// All that was optimised when it was linked.
    Optimised,
    /// All that optimised code may call without having been told.
    Callable,
    Leaf,
}

/// Builds the manifest of a binary, but for its digest and fingerprint.
pub fn build<'a>(
    inputs: &'a [Input<'a>],
    definitions: &'a Definitions,
    placement: &'a Placement<'a>,
    binary: &'a Binary<'a>,
    symbols: &'a FinalSymbols,
    options: &'a Options,
) -> Result<Manifest<'a>, GraphError> {
    let mut builder = Builder::new(inputs, definitions, placement, binary, symbols, options);
    if symbols.is_empty() && (options.has_scripts || !options.assigned.is_empty()) {
        return Err(GraphError::Assigned { symbol: "(any)".to_owned() });
    }
    let has_fixed_addresses = binary.kind == object::elf::ET_EXEC.0;
    if let Some(by) = options.fixed_by.clone().filter(|_| has_fixed_addresses) {
        return Err(GraphError::FixedAddresses { by });
    }
    builder.add_placed_atoms();
    builder.resolve_unique_names();
    let mut roots = builder.roots()?;
    if has_fixed_addresses {
        roots.extend(options.fixed_sections.iter().filter_map(|section| builder.range(section, 0)));
    }
    let exports = builder.exports()?;
    builder.add_edges()?;
    Ok(Manifest {
        digest: Hash::default(),
        fingerprint: Hash::default(),
        shared_library: builder.is_library,
        frame: frame(binary, options),
        inputs: inputs.iter().map(|input| Cow::Borrowed(&*input.label)).collect(),
        files: builder.files,
        nodes: builder.nodes,
        edges: builder.edges,
        roots,
        exports,
        needed: needed(binary),
        libraries: Vec::new(),
        refusals: inputs.iter().flat_map(|input| input.record.refusals.iter().cloned()).collect(),
    })
}

struct Builder<'a> {
    inputs: &'a [Input<'a>],
    placement: &'a Placement<'a>,
    binary: &'a Binary<'a>,
    symbols: &'a FinalSymbols,
    options: &'a Options,
    definitions: &'a Definitions,
    is_library: bool,
    nodes: Vec<Node<'a>>,
    origins: Vec<Origin>,
    edges: Vec<Edge>,
    /// The inputs whose code was made when they were linked.
    optimised: Vec<bool>,
    /// The node of each atom of each input.
    node_of: Vec<Vec<u32>>,
    /// Nodes by address, sorted.
    by_address: Vec<(u64, u32)>,
    /// The first line of each output section that has content.
    first_member: FxHashMap<&'a [u8], u32>,
    /// Merged literals by what they are, and where that could be read.
    literals: FxHashMap<(Hash, u64), u32>,
    sites: Sites<'a, 'a>,
    /// What each name means, by its number, once asked.
    known: Vec<Option<Edge>>,
    /// Imports, values and ranges by what they are.
    specials: FxHashMap<(AtomKind, Hash), u32>,
    /// The symbols that the dynamic loader sees; several versions of one name may be among them.
    dynamic: FxHashMap<&'a [u8], Vec<&'a DynamicSymbol<'a>>>,
    rights: Rights,
    /// What may be done to literals where they lie.
    rights_of_literals: u64,
    /// The nodes of objects that are hashed as a whole, by the objects' names.
    whole_objects: FxHashMap<&'a str, u32>,
    /// The numbers of the names by which a program gets at its own headers, and from there at all
    /// that is loaded.
    showing_image: Vec<u32>,
    /// Tables that are spread over sections.
    tables: Option<neighbours::Tables>,
    /// Functions of the program's own in the place of some of the C library.
    own_readers: Vec<u32>,
    files: Vec<Cow<'a, str>>,
    file_of: FxHashMap<&'a str, u32>,
}

impl<'a> Builder<'a> {
    fn new(
        inputs: &'a [Input<'a>],
        definitions: &'a Definitions,
        placement: &'a Placement<'a>,
        binary: &'a Binary<'a>,
        symbols: &'a FinalSymbols,
        options: &'a Options,
    ) -> Self {
        let atoms = inputs.iter().map(|input| input.record.atoms.len()).sum::<usize>();
        let mut dynamic: FxHashMap<&[u8], Vec<&DynamicSymbol>> = FxHashMap::default();
        for symbol in &binary.dynamic.symbols {
            dynamic.entry(symbol.name).or_default().push(symbol);
        }
        let constants = binary.sections.iter().find(|section| section.name.starts_with(b".rodata"));
        let rights = binary.rights();
        Builder {
            inputs,
            placement,
            binary,
            symbols,
            options,
            known: vec![None; definitions.count()],
            definitions,
            is_library: binary.is_shared_library(),
            nodes: Vec::with_capacity(atoms),
            origins: Vec::with_capacity(atoms),
            edges: Vec::with_capacity(4 * atoms),
            optimised: inputs.iter().map(is_optimised).collect(),
            node_of: inputs.iter().map(|input| vec![NONE; input.record.atoms.len()]).collect(),
            by_address: Vec::new(),
            first_member: first_members(placement),
            literals: FxHashMap::default(),
            sites: Sites::new(binary),
            specials: FxHashMap::default(),
            dynamic,
            rights_of_literals: constants.map_or(0, |section| rights.at(section.address)),
            rights,
            whole_objects: FxHashMap::default(),
            showing_image: headers::names(definitions),
            own_readers: Vec::new(),
            tables: None,
            files: Vec::new(),
            file_of: FxHashMap::default(),
        }
    }

    fn add(&mut self, node: Node<'a>, origin: Origin) -> u32 {
        self.nodes.push(node);
        self.origins.push(origin);
        self.nodes.len() as u32 - 1
    }

    /// Works off all nodes; new ones come up on the way.
    fn add_edges(&mut self) -> Result<(), GraphError> {
        self.own_readers = self.own_readers();
        let offsets: Vec<Vec<u32>> =
            self.inputs.iter().map(|input| reference_starts(input)).collect();
        let mut index = 0;
        while index < self.nodes.len() {
            let before = self.edges.len();
            match self.origins[index] {
                Origin::Atom { input, atom } => {
                    let starts = &offsets[input as usize];
                    let range = starts[atom as usize] as usize..starts[atom as usize + 1] as usize;
                    self.add_references(index as u32, input, range)?;
                    self.add_neighbours(index as u32, input, atom);
                    if self.own_readers.contains(&(index as u32)) {
                        let image = self.image();
                        self.edges.push(image);
                    }
                    self.add_successor(index as u32, input, atom)?;
                    if self.optimised[input as usize] {
                        let callable = self.callable();
                        self.edges.push(callable);
                    }
                }
                Origin::Members(section) => self.add_members(section),
                Origin::Table(table) => self.add_table(table),
                Origin::Either(one, other) => self.edges.extend([one, other]),
                Origin::Optimised => self.add_optimised(),
                Origin::Callable => self.add_callable(),
                Origin::Leaf => {}
            }
            self.nodes[index].references = (self.edges.len() - before) as u32;
            index += 1;
        }
        Ok(())
    }
}

/// What the resolver at the end of this edge chooses, rather than the resolver itself.
fn chosen(edge: Edge) -> Edge {
    Edge { offset: edge.offset | CHOSEN, ..edge }
}

/// Where each atom's references start.
fn reference_starts(input: &Input) -> Vec<u32> {
    let mut at = 0;
    let mut starts = vec![0];
    starts.extend(input.record.atoms.iter().map(|atom| {
        at += atom.references;
        at
    }));
    starts
}
