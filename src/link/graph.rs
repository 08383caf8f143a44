//! The reference graph of a binary. In: the linked objects with their addresses, the placement, the
//! binary, the options that matter. Out: the [`Manifest`].
//!
//! Every placed atom is a node. Literals, commons, ranges, imports and values become nodes when
//! somebody refers to them. Nodes are worked off in order, so that the edges lie in one list.

mod falling;
mod frame;
mod headers;
mod meaning;
mod neighbours;
mod readers;
mod roots;

pub use frame::{frame, needed};
pub use neighbours::{DATA, is_usual};

use super::input::Input;
use super::lto;
use super::open_file;
use super::symbols::{Definitions, Final, FinalSymbols};
use crate::elf::binary::{Binary, Rights};
use crate::elf::called;
use crate::elf::dynamic::DynamicSymbol;
use crate::elf::sites::Sites;
use crate::model::manifest::{Edge, Manifest, Node, RIGHTS};
use crate::model::record::{CHOSEN, Usage};
use crate::model::{
    AtomKind, Hash, Hasher, Level, PlacedSection, Placement, Record, Symbol, SymbolKind, Target,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::ops::Range;
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

/// The part of glibc's archive that every static program has, and that names `_end` only to use up
/// its page.
const USES_THE_LAST_PAGE: &str = "(dl-minimal-malloc.o)";

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

    fn add_placed_atoms(&mut self) {
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
    fn node_of_atom(&mut self, number: u32, index: u32) -> u32 {
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
    fn literal(&mut self, number: u32, index: u32, address: u64) -> u32 {
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

    fn file(&mut self, name: &'a str) -> u32 {
        *self.file_of.entry(name).or_insert_with(|| {
            self.files.push(Cow::Borrowed(name));
            self.files.len() as u32 - 1
        })
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

    /// The members of an output section, in the order of their addresses. `section` is one of its
    /// lines.
    fn add_members(&mut self, section: u32) {
        let output = self.placement.sections[section as usize].output;
        let is_member = |line: &&PlacedSection| line.output == output && line.size > 0;
        let mut members: Vec<&PlacedSection> =
            self.placement.sections.iter().filter(is_member).collect();
        members.sort_by_key(|line| line.address);
        let mut is_explained = true;
        for line in members {
            if lto::is_product(line.file) {
                let optimised = self.optimised();
                self.edges.push(optimised);
                continue;
            }
            match self.at_line(line) {
                Some(edge) => self.edges.push(edge),
                None => is_explained = false,
            }
            // The other entries of a constant pool.
            let from = self.by_address.partition_point(|&(start, _)| start <= line.address);
            let inside = self.by_address[from..]
                .iter()
                .take_while(|&&(start, _)| start - line.address < line.size);
            self.edges.extend(inside.map(|&(_, node)| Edge {
                node,
                offset: 0,
                takes_address: false,
            }));
        }
        // Merged strings, common symbols and what the linker makes are no placed atoms: then the
        // bytes themselves count.
        if !is_explained
            && let Some(section) =
                self.binary.sections.iter().find(|section| section.name == output)
        {
            let residue = self.residue(section);
            self.edges.push(residue);
        }
    }

    /// All definitions that were optimised when they were linked: of what the plugin made it is not
    /// known which.
    fn optimised(&mut self) -> Edge {
        let hash = Hasher::new("optimised").finish();
        self.special(AtomKind::Range, "(link-time optimisation)", hash, Origin::Optimised)
    }

    fn add_optimised(&mut self) {
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
    fn callable(&mut self) -> Edge {
        let hash = Hasher::new("callable").finish();
        self.special(AtomKind::Range, "(called by optimised code)", hash, Origin::Callable)
    }

    fn add_callable(&mut self) {
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

    /// The placed node that a line of the map means.
    fn at_line(&self, line: &PlacedSection) -> Option<Edge> {
        let of_object = || {
            let node = *self.whole_objects.get(&*open_file::label((line.file, line.member)))?;
            Some(Edge { node, offset: 0, takes_address: false })
        };
        self.at_address(line.address).or_else(of_object)
    }

    /// The placed node that holds an address.
    fn at_address(&self, address: u64) -> Option<Edge> {
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

    fn add_references(
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

/// The code of this input was made when it was linked.
fn is_optimised(input: &Input) -> bool {
    input.record.bitcode && input.addresses.iter().all(Option::is_none)
}

/// What the resolver at the end of this edge chooses, rather than the resolver itself.
fn chosen(edge: Edge) -> Edge {
    Edge { offset: edge.offset | CHOSEN, ..edge }
}

/// The hash of an atom where it lies. Code is for reading and executing wherever it was not asked
/// for otherwise.
fn with_rights(hash: Hash, kind: AtomKind, rights: u64) -> Hash {
    let usual = kind == AtomKind::Function
        && rights == u64::from((object::elf::PF_R | object::elf::PF_X).0);
    if rights == 0 || usual { hash } else { hash.with_number(RIGHTS, rights) }
}

/// The first line of each output section that has content. To look for it anew for every member
/// would be quadratic: coverage and sanitizers give every function some data in sections of their
/// own.
fn first_members<'a>(placement: &Placement<'a>) -> FxHashMap<&'a [u8], u32> {
    let mut first = FxHashMap::default();
    let mut last: &[u8] = b"";
    for (index, line) in placement.sections.iter().enumerate().filter(|(_, line)| line.size > 0) {
        // Most lines follow others of their output section.
        if line.output != last {
            first.entry(line.output).or_insert(index as u32);
            last = line.output;
        }
    }
    first
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
