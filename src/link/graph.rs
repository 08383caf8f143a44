//! The reference graph of a binary. In: the linked objects with their addresses, the placement, the binary, the
//! options that matter. Out: the [`Manifest`].
//!
//! Every placed atom is a node. Literals, commons, ranges, imports and values become nodes when somebody refers to
//! them. Nodes are worked off in order, so that the edges lie in one list.

use super::files;
use super::inputs::Input;
use super::symbols::{Definition, Definitions, Final, FinalSymbols};
use crate::elf::binary::{Binary, Section, Segment};
use crate::elf::dynamic::DynamicSymbol;
use crate::model::manifest::{Edge, Export, Manifest, Node};
use crate::model::record::CHOSEN;
use crate::model::{AtomKind, Hash, Hasher, Level, PlacedSection, Placement, Reference, Symbol, SymbolKind, Target};
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
    #[error("{symbol}: an option or a script may have given it a value, and the symbol table is left out")]
    Assigned { symbol: String },
}

/// What a link's options mean for its graph.
#[derive(Default)]
pub struct Options {
    /// Symbols of `--wrap`.
    pub wrapped: FxHashSet<String>,
    /// A wrapped symbol may be wrapped even where an object refers to its own definition (lld).
    pub wraps_at_home: bool,
    /// Symbols of `--defsym`, and whether each stands for another symbol.
    pub assigned: FxHashMap<String, bool>,
    /// Scripts can give values to symbols.
    pub has_scripts: bool,
    /// What goes into the frame as it is: options and scripts that change the binary beyond its symbols.
    pub frame: Vec<Vec<u8>>,
}

/// Output sections whose content runs, or is called, without anybody referring to it.
const RUNS_BY_ITSELF: [&str; 7] =
    [".preinit_array", ".init_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini"];

/// Symbols that linkers define and that say nothing of any atom's content.
const LAYOUT_SYMBOLS: [&str; 16] = [
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "_PROCEDURE_LINKAGE_TABLE_",
    "_TLS_MODULE_BASE_",
    "__GNU_EH_FRAME_HDR",
    "__TMC_END__",
    "__dso_handle",
    "__ehdr_start",
    "__fini_array_end",
    "__fini_array_start",
    "__init_array_end",
    "__init_array_start",
    "__preinit_array_end",
    "__preinit_array_start",
    "__rela_iplt_end",
    "__rela_iplt_start",
];

/// Boundaries that linkers define: whoever names one may measure or read everything on this side of it.
const BOUNDARIES: [&str; 9] =
    ["__bss_start", "__etext", "__executable_start", "_edata", "_end", "_etext", "edata", "end", "etext"];

/// The boundary at the front, which the start-up code defines: an ordinary variable, if it were not for its name.
const FRONT: [&str; 2] = ["__data_start", "data_start"];

/// The part of glibc's archive that every static program has, and that names `_end` only to use up its page.
const USES_THE_LAST_PAGE: &str = "(dl-minimal-malloc.o)";

/// The first parts of the names of usual sections, behind the dot.
const USUAL_SECTIONS: [&str; 26] = [
    "bss",
    "common",
    "ctors",
    "data",
    "dtors",
    "eh_frame",
    "fini",
    "fini_array",
    "gcc_except_table",
    "gnu",
    "init",
    "init_array",
    "jcr",
    "lbss",
    "ldata",
    "lrodata",
    "ltext",
    "note",
    "preinit_array",
    "rodata",
    "sbss",
    "sdata",
    "tbss",
    "tdata",
    "text",
    "tm_clone_table",
];

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
    /// Either of two.
    Either(Edge, Edge),
    Leaf,
}

/// Builds the manifest of a binary.
pub fn build<'a>(
    inputs: &'a [Input<'a>],
    placement: &'a Placement<'a>,
    binary: &'a Binary<'a>,
    symbols: &'a FinalSymbols,
    options: &'a Options,
) -> Result<Manifest<'a>, GraphError> {
    let mut builder = Builder::new(inputs, placement, binary, symbols, options);
    if symbols.is_empty() && (options.has_scripts || !options.assigned.is_empty()) {
        return Err(GraphError::Assigned { symbol: "(any)".to_owned() });
    }
    builder.add_placed_atoms();
    let roots = builder.roots()?;
    let exports = builder.exports()?;
    builder.add_edges()?;
    Ok(Manifest {
        digest: binary.loaded_digest(),
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
        refusals: inputs.iter().flat_map(|input| input.record.refusals.iter().cloned()).collect(),
    })
}

/// What holds for the binary as a whole.
pub fn frame(binary: &Binary, options: &Options) -> Hash {
    let mut hasher = Hasher::new("frame");
    hasher.number(binary.machine.into()).number(binary.kind.into()).number(binary.flags.into());
    // The base address: programs that keep pointers in 32 bits see where they lie.
    let first = binary.segments.iter().find(|segment| segment.kind == object::elf::PT_LOAD.0);
    hasher.number(first.map_or(0, |segment| segment.address));
    hasher.number(binary.dynamic.flags[0]).number(binary.dynamic.flags[1]);
    hasher.bytes(binary.dynamic.soname.unwrap_or_default());
    hasher.number(binary.dynamic.needed.len() as u64);
    for name in binary.dynamic.needed.iter().chain(&binary.dynamic.companions) {
        // A library that is needed by its path is found by content: the folder does not count.
        hasher.bytes(name.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    }
    for segment in binary.segments.iter().filter(|segment| segment.kind == object::elf::PT_GNU_STACK.0) {
        hasher.number(segment.flags.into()).number(segment.size);
    }
    // Without it no exception finds its handler.
    let leads_unwinder = |segment: &Segment| segment.kind == object::elf::PT_GNU_EH_FRAME.0;
    hasher.number(binary.segments.iter().any(leads_unwinder).into());
    // Notes tell the loader and the kernel what the program needs, and it may read them itself.
    for section in binary.sections.iter().filter(|section| section.is_note() || section.name == b".interp") {
        hasher.bytes(section.data);
    }
    for option in &options.frame {
        hasher.bytes(option);
    }
    hasher.finish()
}

/// The names of the libraries that the binary asks for.
pub fn needed<'a>(binary: &Binary<'a>) -> Vec<&'a str> {
    binary.dynamic.needed.iter().filter_map(|name| std::str::from_utf8(name).ok()).collect()
}

struct Builder<'a> {
    inputs: &'a [Input<'a>],
    placement: &'a Placement<'a>,
    binary: &'a Binary<'a>,
    symbols: &'a FinalSymbols,
    options: &'a Options,
    definitions: Definitions,
    is_library: bool,
    nodes: Vec<Node<'a>>,
    origins: Vec<Origin>,
    edges: Vec<Edge>,
    /// The node of each atom of each input.
    node_of: Vec<Vec<u32>>,
    /// Nodes by address, sorted.
    by_address: Vec<(u64, u32)>,
    /// The first line of each output section that has content.
    first_member: FxHashMap<&'a [u8], u32>,
    literals: FxHashMap<Hash, u32>,
    /// What each name means, once asked.
    known: FxHashMap<Hash, Edge>,
    /// Imports, values and ranges by what they are.
    specials: FxHashMap<(AtomKind, Hash), u32>,
    /// The symbols that the dynamic loader sees; several versions of one name may be among them.
    dynamic: FxHashMap<&'a [u8], Vec<&'a DynamicSymbol<'a>>>,
    /// What may be done to literals where they lie.
    rights_of_literals: u64,
    /// The nodes of objects that are hashed as a whole, by the objects' names.
    whole_objects: FxHashMap<&'a str, u32>,
    files: Vec<Cow<'a, str>>,
    file_of: FxHashMap<&'a str, u32>,
}

impl<'a> Builder<'a> {
    fn new(
        inputs: &'a [Input<'a>],
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
        Builder {
            inputs,
            placement,
            binary,
            symbols,
            options,
            definitions: Definitions::collect(inputs),
            is_library: binary.is_shared_library(),
            nodes: Vec::with_capacity(atoms),
            origins: Vec::with_capacity(atoms),
            edges: Vec::with_capacity(4 * atoms),
            node_of: inputs.iter().map(|input| vec![NONE; input.record.atoms.len()]).collect(),
            by_address: Vec::new(),
            first_member: first_members(placement),
            literals: FxHashMap::default(),
            known: FxHashMap::default(),
            specials: FxHashMap::default(),
            dynamic,
            rights_of_literals: constants.map_or(0, |section| binary.rights_at(section.address)),
            whole_objects: FxHashMap::default(),
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
                // Zeroed thread-local variables take no room: what follows them lies at the same addresses.
                if self.nodes[node as usize].kind != AtomKind::ThreadLocal {
                    self.by_address.push((*address, node));
                }
            }
        }
        self.by_address.sort_unstable();
    }

    /// Where execution starts, in order.
    fn roots(&mut self) -> Result<Vec<Edge>, GraphError> {
        let mut roots = Vec::new();
        match self.at_address(self.binary.entry) {
            Some(entry) => roots.push(entry),
            None if !self.is_library => return Err(GraphError::NoEntry),
            None => {}
        }
        // As ranges, so that it counts which of them an entry stands in.
        roots.extend(RUNS_BY_ITSELF.iter().filter_map(|output| self.range(output, 0)));
        let elsewhere = |line: &&PlacedSection| runs_by_itself(line.name) && !runs_by_itself(line.output);
        let mut lines: Vec<&PlacedSection> = self.placement.sections.iter().filter(elsewhere).collect();
        lines.retain(|line| line.size > 0);
        lines.sort_unstable_by_key(|line| line.address);
        roots.extend(lines.into_iter().filter_map(|line| self.at_line(line)));
        for address in [self.binary.dynamic.init, self.binary.dynamic.fini].into_iter().flatten() {
            roots.push(self.at_address(address).ok_or(GraphError::NoEntry)?);
        }
        let is_resolver = |&&(_, node): &&(u64, u32)| self.nodes[node as usize].kind == AtomKind::Resolver;
        roots.extend(self.by_address.iter().filter(is_resolver).map(|&(_, node)| Edge { node, offset: 0 }));
        Ok(roots)
    }

    /// What the dynamic loader can find here, sorted by name.
    fn exports(&mut self) -> Result<Vec<Export<'a>>, GraphError> {
        let mut exports = Vec::new();
        for symbol in self.binary.dynamic.symbols.iter().filter(|symbol| symbol.is_defined) {
            let Ok(name) = std::str::from_utf8(symbol.name) else { continue };
            let version = symbol.version.and_then(|version| std::str::from_utf8(version).ok()).unwrap_or_default();
            // The address tells versions of one name apart; commons and thread-local variables have none here.
            let by_address = match (symbol.is_absolute, symbol.is_thread_local) {
                (true, _) => Some(self.value(name, symbol.value)?),
                (false, true) => None,
                (false, false) => self.at_address(symbol.value),
            };
            let edge = match (by_address, self.definitions.get(Symbol::hash_of(name))) {
                (Some(edge), _) if symbol.is_indirect => Some(chosen(edge)),
                (Some(edge), _) => Some(edge),
                (None, Some(definition)) => Some(self.defined(name, definition)?),
                // A copy of a library's variable leads back to the library.
                (None, None) => None,
            };
            exports.extend(edge.map(|edge| Export { name, version, edge }));
        }
        exports.sort_unstable_by_key(|export| (export.name, export.version));
        Ok(exports)
    }

    /// The node of an atom, made when it is first asked for.
    fn node_of_atom(&mut self, number: u32, index: u32) -> u32 {
        let known = self.node_of[number as usize][index as usize];
        if known != NONE {
            return known;
        }
        let input = &self.inputs[number as usize];
        let atom = &input.record.atoms[index as usize];
        if atom.kind == AtomKind::Literal {
            if let Some(&node) = self.literals.get(&atom.hash) {
                self.node_of[number as usize][index as usize] = node;
                return node;
            }
            self.literals.insert(atom.hash, self.nodes.len() as u32);
        }
        let file = if atom.line == 0 { 0 } else { self.file(&input.record.files[atom.file as usize]) };
        let rights = match (atom.kind, input.addresses[index as usize]) {
            (AtomKind::Literal, _) => self.rights_of_literals,
            (AtomKind::ThreadLocal, _) | (_, None) => 0,
            (_, Some(address)) => self.binary.rights_at(address),
        };
        let node = Node {
            name: Cow::Borrowed(if atom.level == Level::File { &input.label } else { atom.name }),
            kind: atom.kind,
            level: atom.level,
            hash: with_rights(atom.hash, atom.kind, rights),
            input: if atom.kind == AtomKind::Literal { 0 } else { number + 1 },
            address: input.addresses[index as usize].unwrap_or(0),
            size: atom.size,
            traceable: atom.traceable && input.addresses[index as usize].is_some(),
            file,
            line: atom.line,
            references: 0,
        };
        let made = self.add(node, Origin::Atom { input: number, atom: index });
        self.node_of[number as usize][index as usize] = made;
        made
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
        let offsets: Vec<Vec<u32>> = self.inputs.iter().map(|input| reference_starts(input)).collect();
        let mut index = 0;
        while index < self.nodes.len() {
            let before = self.edges.len();
            match self.origins[index] {
                Origin::Atom { input, atom } => {
                    let starts = &offsets[input as usize];
                    let range = starts[atom as usize] as usize..starts[atom as usize + 1] as usize;
                    for reference in &self.inputs[input as usize].record.references[range] {
                        let edge = self.edge(input, reference)?;
                        self.edges.push(edge);
                    }
                    self.add_neighbours(input, atom);
                }
                Origin::Members(section) => self.add_members(section),
                Origin::Either(one, other) => self.edges.extend([one, other]),
                Origin::Leaf => {}
            }
            self.nodes[index].references = (self.edges.len() - before) as u32;
            index += 1;
        }
        Ok(())
    }

    /// An atom in a section with a name of the programmer's own stands among others like it: code that finds one of
    /// them can step to the next, with or without `__start_` symbols.
    fn add_neighbours(&mut self, input: u32, atom: u32) {
        let described = &self.inputs[input as usize].record.atoms[atom as usize];
        if described.level == Level::File || is_usual(described.section_name) {
            return;
        }
        let output = match self.inputs[input as usize].addresses[atom as usize] {
            Some(address) => self.binary.section_at(address).map(|section| section.name),
            // An empty one, such as an array without elements that marks the start of the others, is in no map.
            None if described.size == 0 => Some(described.section_name.as_bytes()),
            None => None,
        };
        let name = String::from_utf8_lossy(output.unwrap_or_default());
        if !is_usual(&name)
            && let Some(range) = self.range(&name, 0)
        {
            self.edges.push(range);
        }
    }

    /// The members of an output section, in the order of their addresses. `section` is one of its lines.
    fn add_members(&mut self, section: u32) {
        let output = self.placement.sections[section as usize].output;
        let is_member = |line: &&PlacedSection| line.output == output && line.size > 0;
        let mut members: Vec<&PlacedSection> = self.placement.sections.iter().filter(is_member).collect();
        members.sort_by_key(|line| line.address);
        let mut is_explained = true;
        for line in members {
            match self.at_line(line) {
                Some(edge) => self.edges.push(edge),
                None => is_explained = false,
            }
            // The other entries of a constant pool.
            let from = self.by_address.partition_point(|&(start, _)| start <= line.address);
            let inside = self.by_address[from..].iter().take_while(|&&(start, _)| start - line.address < line.size);
            self.edges.extend(inside.map(|&(_, node)| Edge { node, offset: 0 }));
        }
        // Merged strings, common symbols and what the linker makes are no placed atoms: then the bytes themselves count.
        if !is_explained && let Some(section) = self.binary.sections.iter().find(|section| section.name == output) {
            let residue = self.residue(section);
            self.edges.push(residue);
        }
    }

    /// The placed node that a line of the map means.
    fn at_line(&self, line: &PlacedSection) -> Option<Edge> {
        let of_object = || {
            let node = *self.whole_objects.get(&*files::label((line.file, line.member)))?;
            Some(Edge { node, offset: 0 })
        };
        self.at_address(line.address).or_else(of_object)
    }

    /// The placed node that holds an address.
    fn at_address(&self, address: u64) -> Option<Edge> {
        let index = self.by_address.partition_point(|&(start, _)| start <= address).checked_sub(1)?;
        let (start, node) = self.by_address[index];
        let offset = address - start;
        (offset < self.nodes[node as usize].size).then_some(Edge { node, offset: offset as i64 })
    }

    fn edge(&mut self, input: u32, reference: &Reference) -> Result<Edge, GraphError> {
        let base = match reference.target {
            Target::Atom(atom) => Edge { node: self.node_of_atom(input, atom), offset: 0 },
            Target::Symbol(symbol) => {
                let from = &self.inputs[input as usize];
                let symbol = from.record.symbols[symbol as usize];
                if symbol.name == "_end" && from.label.ends_with(USES_THE_LAST_PAGE) {
                    self.layout(symbol.name)
                } else {
                    self.meant(&symbol)?
                }
            }
        };
        Ok(Edge { node: base.node, offset: base.offset.wrapping_add(reference.offset) })
    }

    /// `--wrap foo`: an undefined `foo` means `__wrap_foo`, and `__real_foo` means `foo`.
    fn meant(&mut self, symbol: &Symbol<'a>) -> Result<Edge, GraphError> {
        let Symbol { name, name_hash, weak, kind } = *symbol;
        if self.options.wrapped.is_empty() {
            return self.named(name_hash, name, weak);
        }
        let is_undefined = kind == SymbolKind::Undefined;
        let wrapper = format!("__wrap_{name}");
        let wrapper_hash = Symbol::hash_of(&wrapper);
        match name.strip_prefix("__real_") {
            Some(real) if is_undefined && self.options.wrapped.contains(real) => {
                self.named(Symbol::hash_of(real), real, weak)
            }
            _ if !self.options.wrapped.contains(name) => self.named(name_hash, name, weak),
            _ if is_undefined => self.named(wrapper_hash, &wrapper, weak),
            _ if self.options.wraps_at_home => {
                let plain = self.named(name_hash, name, weak)?;
                let wrapped = self.named(wrapper_hash, &wrapper, true)?;
                Ok(self.either(name, plain, wrapped))
            }
            _ => self.named(name_hash, name, weak),
        }
    }

    /// What a name means in this binary.
    fn named(&mut self, hash: Hash, name: &str, weak: bool) -> Result<Edge, GraphError> {
        if let Some(&edge) = self.known.get(&hash) {
            return Ok(edge);
        }
        let name = name.split_once("@@").map_or(name, |(name, _)| name);
        if self.options.assigned.contains_key(name) && self.symbols.get(hash).is_none() {
            return Err(GraphError::Assigned { symbol: name.to_owned() });
        }
        let edge = match self.definitions.get(hash) {
            Some(definition) if self.is_front(name, definition) => self.image(),
            Some(_) if self.is_preemptible(name) => self.import(name),
            Some(definition) => self.defined(name, definition)?,
            None => self.undefined(name, weak)?,
        };
        self.known.insert(hash, edge);
        Ok(edge)
    }

    /// The start-up code's own variable at the front of the data.
    fn is_front(&self, name: &str, definition: Definition) -> bool {
        FRONT.contains(&name) && self.inputs[definition.input as usize].label.ends_with("crt1.o")
    }

    /// Another module may define the symbol instead of this shared library.
    fn is_preemptible(&self, name: &str) -> bool {
        self.is_library && self.dynamic_symbols(name).any(|symbol| symbol.is_bound_by_loader)
    }

    /// The dynamic symbols that a name can mean: `foo`, or `foo@VERSION`.
    fn dynamic_symbols(&self, name: &str) -> impl Iterator<Item = &'a DynamicSymbol<'a>> {
        let (name, version) = name.split_once('@').map_or((name, None), |(name, version)| (name, Some(version)));
        let version = version.map(|version| version.trim_start_matches('@').as_bytes().to_vec());
        let named = self.dynamic.get(name.as_bytes()).map(Vec::as_slice).unwrap_or_default();
        named.iter().copied().filter(move |symbol| version.is_none() || symbol.version == version.as_deref())
    }

    /// A symbol that an object defines.
    fn defined(&mut self, name: &str, definition: Definition) -> Result<Edge, GraphError> {
        let (atom, offset) = match definition.kind {
            SymbolKind::Defined { atom, offset } | SymbolKind::Indirect { atom, offset } => (atom, offset),
            SymbolKind::Absolute { .. } | SymbolKind::Common { .. } => return self.without_section(name, definition),
            SymbolKind::Undefined => return self.undefined(name, false),
        };
        let is_indirect = matches!(definition.kind, SymbolKind::Indirect { .. });
        let input = &self.inputs[definition.input as usize];
        let described = &input.record.atoms[atom as usize];
        let address = input.addresses[atom as usize].map(|start| start.wrapping_add(offset));
        let by_rule = |builder: &mut Self| {
            let edge = Edge { node: builder.node_of_atom(definition.input, atom), offset: offset as i64 };
            if is_indirect { chosen(edge) } else { edge }
        };
        let has_address = matches!(described.kind, AtomKind::Function | AtomKind::Data | AtomKind::Zeroed)
            && described.level != Level::File
            && described.size > 0;
        match self.symbols.get(Symbol::hash_of(name)) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(found)) if has_address && address != Some(found) => {
                self.at_address(found).ok_or_else(|| GraphError::Elsewhere { symbol: name.to_owned() })
            }
            Some(Final::Address(_)) if has_address => Ok(by_rule(self)),
            _ if definition.is_contested => Err(GraphError::Contested { symbol: name.to_owned() }),
            _ => Ok(by_rule(self)),
        }
    }

    /// A number, or a common symbol, unless the linker gave the name to something else.
    fn without_section(&mut self, name: &str, definition: Definition) -> Result<Edge, GraphError> {
        match (self.symbols.get(Symbol::hash_of(name)), definition.kind) {
            (Some(Final::Absolute(value)), _) => self.value(name, value),
            (Some(Final::Address(address)), SymbolKind::Common { .. }) => {
                Ok(self.at_address(address).unwrap_or_else(|| self.common(name)))
            }
            (Some(Final::Address(address)), _) => self.scripted(name, address),
            (Some(Final::Ambiguous) | None, _) if definition.is_contested => {
                Err(GraphError::Contested { symbol: name.to_owned() })
            }
            (_, SymbolKind::Absolute { value }) => self.value(name, value),
            _ => Ok(self.common(name)),
        }
    }

    /// A symbol that no object defines.
    fn undefined(&mut self, name: &str, weak: bool) -> Result<Edge, GraphError> {
        if self.dynamic_symbols(name).any(|symbol| !symbol.is_defined || symbol.is_bound_by_loader) {
            return Ok(self.import(name));
        }
        if BOUNDARIES.contains(&name) {
            return Ok(self.image());
        }
        if LAYOUT_SYMBOLS.contains(&name) {
            return Ok(self.layout(name));
        }
        let bound = name
            .strip_prefix("__start_")
            .map(|section| (section, 0))
            .or_else(|| name.strip_prefix("__stop_").map(|section| (section, 1)));
        if let Some((section, side)) = bound
            && let Some(edge) = self.range(section, side)
        {
            return Ok(edge);
        }
        match self.symbols.global(Symbol::hash_of(name)) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(address)) => self.scripted(name, address),
            Some(Final::Ambiguous) => Err(GraphError::Contested { symbol: name.to_owned() }),
            // A local symbol of the name is a static of some object, unless a script defined and hid it.
            None if weak && !(self.options.has_scripts && self.symbols.has_local(Symbol::hash_of(name))) => {
                Ok(self.special(AtomKind::Value, "(undefined)", Hash::default(), Origin::Leaf))
            }
            None => Err(GraphError::Elsewhere { symbol: name.to_owned() }),
        }
    }

    /// A symbol that says where something lies, and nothing of what it is.
    fn layout(&mut self, name: &str) -> Edge {
        self.special(AtomKind::Value, name, Hash::of(name.as_bytes()), Origin::Leaf)
    }

    /// Everything that is loaded.
    fn image(&mut self) -> Edge {
        self.special(AtomKind::Residue, "(the whole binary)", self.binary.behaviour_digest(), Origin::Leaf)
    }

    /// The bytes of an output section.
    fn residue(&mut self, section: &Section) -> Edge {
        let hash = Hasher::new("residue").number(section.size).bytes(section.data).finish();
        self.special(AtomKind::Residue, &String::from_utf8_lossy(section.name), hash, Origin::Leaf)
    }

    /// A symbol that a command line or a script places: another name of an atom, or a place in an output section, from
    /// where code may go on to all of its members.
    fn scripted(&mut self, name: &str, address: u64) -> Result<Edge, GraphError> {
        let is_alias = self.options.assigned.get(name).copied().unwrap_or(false);
        if let Some(edge) = self.at_address(address)
            && (is_alias || (edge.offset == 0 && self.nodes[edge.node as usize].kind == AtomKind::Function))
        {
            return Ok(edge);
        }
        let binary = self.binary;
        let Some(section) = binary.section_at(address).or_else(|| binary.section_until(address)) else {
            return self.value(name, address);
        };
        let output = String::from_utf8_lossy(section.name);
        let node = self.range(&output, 0).unwrap_or_else(|| self.residue(section)).node;
        Ok(Edge { node, offset: (address - section.address) as i64 })
    }

    /// A symbol that means one of two things, and it cannot be told which.
    fn either(&mut self, name: &str, one: Edge, other: Edge) -> Edge {
        let key = (AtomKind::Value, Hasher::new("either").bytes(name.as_bytes()).finish());
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0 };
        }
        let hash = Hasher::new("either").finish();
        let edge = self.new_special(AtomKind::Value, name, hash, Origin::Either(one, other));
        self.specials.insert(key, edge.node);
        edge
    }

    /// A symbol with a value of its own.
    fn value(&mut self, name: &str, value: u64) -> Result<Edge, GraphError> {
        let hash = Hasher::new("value").number(value).finish();
        Ok(self.special(AtomKind::Value, name, hash, Origin::Leaf))
    }

    /// A symbol that the dynamic loader binds.
    fn import(&mut self, name: &str) -> Edge {
        let plain = name.split('@').next().unwrap_or(name);
        let mut hasher = Hasher::new("import");
        hasher.bytes(plain.as_bytes());
        for symbol in self.dynamic_symbols(name) {
            hasher.bytes(symbol.version.unwrap_or_default());
        }
        self.special(AtomKind::Import, plain, hasher.finish(), Origin::Leaf)
    }

    fn common(&mut self, name: &str) -> Edge {
        let (size, align) = self.definitions.common(Symbol::hash_of(name));
        // Each common symbol is a thing of its own, however alike two of them are.
        let identity = Hasher::new("common").bytes(name.as_bytes()).finish();
        let key = (AtomKind::Common, identity);
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0 };
        }
        let hash = Hasher::new("common").number(size).number(align).finish();
        let edge = self.new_special(AtomKind::Common, name, hash, Origin::Leaf);
        self.specials.insert(key, edge.node);
        edge
    }

    /// The members of an output section.
    fn range(&mut self, output: &str, side: i64) -> Option<Edge> {
        let first = *self.first_member.get(output.as_bytes())?;
        let hash = Hasher::new("range").bytes(output.as_bytes()).finish();
        let edge = self.special(AtomKind::Range, output, hash, Origin::Members(first));
        Some(Edge { node: edge.node, offset: side })
    }

    /// A node for something that is no atom, made once.
    fn special(&mut self, kind: AtomKind, name: &str, hash: Hash, origin: Origin) -> Edge {
        let key = (kind, hash);
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0 };
        }
        let edge = self.new_special(kind, name, hash, origin);
        self.specials.insert(key, edge.node);
        edge
    }

    fn new_special(&mut self, kind: AtomKind, name: &str, hash: Hash, origin: Origin) -> Edge {
        let node = Node {
            name: Cow::Owned(name.to_owned()),
            kind,
            level: Level::Code,
            hash,
            input: 0,
            address: 0,
            size: 0,
            traceable: false,
            file: 0,
            line: 0,
            references: 0,
        };
        Edge { node: self.add(node, origin), offset: 0 }
    }
}

/// What the resolver at the end of this edge chooses, rather than the resolver itself.
fn chosen(edge: Edge) -> Edge {
    Edge { offset: edge.offset | CHOSEN, ..edge }
}

/// The hash of an atom where it lies. Code is for reading and executing wherever it was not asked for otherwise.
fn with_rights(hash: Hash, kind: AtomKind, rights: u64) -> Hash {
    let usual = kind == AtomKind::Function && rights == u64::from((object::elf::PF_R | object::elf::PF_X).0);
    if rights == 0 || usual { hash } else { Hasher::new("rights").hash(hash).number(rights).finish() }
}

/// The first line of each output section that has content. To look for it anew for every member would be quadratic:
/// coverage and sanitizers give every function some data in sections of their own.
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

/// A section that compilers and linkers fill by themselves: its members do not know their neighbours.
fn is_usual(section: &str) -> bool {
    let Some(name) = section.strip_prefix('.') else { return false };
    let stem = name.split('.').next().unwrap_or(name);
    USUAL_SECTIONS.contains(&stem)
}

/// What is in a section of this name runs, or is called, without anybody referring to it.
fn runs_by_itself(section: &[u8]) -> bool {
    RUNS_BY_ITSELF.iter().any(|name| {
        let rest = section.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    })
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
