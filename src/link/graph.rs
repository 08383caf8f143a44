//! The reference graph of a binary. In: the linked objects with their addresses, the placement, the binary, the
//! options that matter. Out: the [`Manifest`].
//!
//! Every placed atom is a node. Literals, commons, ranges, imports and values become nodes when somebody refers to
//! them. Nodes are worked off in order, so that the edges lie in one list.

use super::arguments::Bsymbolic;
use super::inputs::Input;
use super::symbols::{Definition, Definitions, Final, FinalSymbols, Names};
use crate::elf::binary::{Binary, Section};
use crate::elf::dynamic::DynamicSymbol;
use crate::model::manifest::{Edge, Export, Manifest, Node};
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
}

/// What a link's options mean for its graph.
#[derive(Default)]
pub struct Options {
    /// Symbols of `--wrap`.
    pub wrapped: FxHashSet<String>,
    /// Which symbols a shared library binds to its own definitions.
    pub bound_at_home: Bsymbolic,
    /// The command line or a script may give symbols other meanings than the objects do.
    pub redefines: bool,
    /// What goes into the frame as it is: options and scripts that change the binary beyond its symbols.
    pub frame: Vec<Vec<u8>>,
}

/// Output sections whose content runs, or is called, without anybody referring to it.
const RUNS_BY_ITSELF: [&str; 7] =
    [".preinit_array", ".init_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini"];

/// Symbols that linkers define and that say nothing of any atom's content.
const LAYOUT_SYMBOLS: [&str; 18] = [
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "_PROCEDURE_LINKAGE_TABLE_",
    "_TLS_MODULE_BASE_",
    "__GNU_EH_FRAME_HDR",
    "__TMC_END__",
    "__dso_handle",
    "__ehdr_start",
    "__executable_start",
    "__fini_array_end",
    "__fini_array_start",
    "__init_array_end",
    "__init_array_start",
    "__preinit_array_end",
    "__preinit_array_start",
    "__rela_iplt_end",
    "__rela_iplt_start",
    "_end",
];

/// Boundaries that linkers define: whoever names one may read the whole output section.
const BOUNDARIES: [(&str, &str); 8] = [
    ("__bss_start", ".bss"),
    ("_edata", ".data"),
    ("edata", ".data"),
    ("_etext", ".text"),
    ("etext", ".text"),
    ("__etext", ".text"),
    ("__data_start", ".data"),
    ("data_start", ".data"),
];

/// The first parts of the names of usual sections, behind the dot.
const USUAL_SECTIONS: [&str; 23] = [
    "bss",
    "common",
    "ctors",
    "data",
    "dtors",
    "fini",
    "fini_array",
    "gcc_except_table",
    "gnu",
    "init",
    "init_array",
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
];

const NONE: u32 = u32::MAX;

/// Whether a symbol of a shared library can be taken over by another module.
enum Preemption {
    Never,
    Always,
    Perhaps,
}

/// What a node's edges come from.
#[derive(Clone, Copy)]
enum Origin {
    Atom {
        input: u32,
        atom: u32,
    },
    /// The placed sections of an output section.
    Members(u32),
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
    hasher.number(binary.dynamic.symbolic.into()).bytes(binary.dynamic.soname.unwrap_or_default());
    hasher.number(binary.dynamic.needed.len() as u64);
    for name in &binary.dynamic.needed {
        // A library that is needed by its path is found by content: the folder does not count.
        hasher.bytes(name.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    }
    for segment in &binary.segments {
        let writable_code = object::elf::PF_W.0 | object::elf::PF_X.0;
        match object::elf::ProgramType(segment.kind) {
            object::elf::PT_GNU_STACK => hasher.number(1).number(segment.flags.into()).number(segment.size),
            object::elf::PT_GNU_RELRO => hasher.number(2),
            object::elf::PT_LOAD if segment.flags & writable_code == writable_code => hasher.number(3),
            _ => &mut hasher,
        };
    }
    for section in binary.sections.iter().filter(|section| is_framing(section)) {
        hasher.bytes(section.name).bytes(section.data);
    }
    for option in &options.frame {
        hasher.bytes(option);
    }
    hasher.finish()
}

/// The interpreter, and notes, which the loader and the program itself can read. What names the build does not count.
fn is_framing(section: &Section) -> bool {
    let names_the_build = [&b".note.gnu.build-id"[..], b".note.package", b".note.ABI-tag"];
    section.name == b".interp" || (section.kind == object::elf::SHT_NOTE.0 && !names_the_build.contains(&section.name))
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
    names: Names,
    definitions: Definitions,
    is_library: bool,
    nodes: Vec<Node<'a>>,
    origins: Vec<Origin>,
    edges: Vec<Edge>,
    /// The node of each atom of each input.
    node_of: Vec<Vec<u32>>,
    /// Address, size and node of everything that is placed, sorted.
    by_address: Vec<(u64, u64, u32)>,
    literals: FxHashMap<Hash, u32>,
    /// What each name means, once asked.
    known: Vec<Option<Edge>>,
    /// Imports, values and ranges by what they are.
    specials: FxHashMap<(AtomKind, Hash), u32>,
    /// The symbols that the dynamic loader sees.
    dynamic: FxHashMap<&'a [u8], &'a DynamicSymbol<'a>>,
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
        let dynamic = binary.dynamic.symbols.iter();
        let names = Names::collect(inputs);
        Builder {
            inputs,
            placement,
            binary,
            symbols,
            options,
            definitions: Definitions::collect(inputs, &names),
            is_library: binary.is_shared_library(),
            nodes: Vec::with_capacity(atoms),
            origins: Vec::with_capacity(atoms),
            edges: Vec::with_capacity(4 * atoms),
            node_of: inputs.iter().map(|input| vec![NONE; input.record.atoms.len()]).collect(),
            by_address: Vec::new(),
            literals: FxHashMap::default(),
            known: vec![None; names.len()],
            names,
            specials: FxHashMap::default(),
            dynamic: dynamic.map(|symbol| (symbol.name, symbol)).collect(),
            files: Vec::new(),
            file_of: FxHashMap::default(),
        }
    }

    fn add_placed_atoms(&mut self) {
        for (number, input) in self.inputs.iter().enumerate() {
            for (index, address) in input.addresses.iter().enumerate() {
                let Some(address) = address else { continue };
                let node = self.node_of_atom(number as u32, index as u32);
                // Zeroed thread-local variables take no room: what follows them lies at the same addresses.
                if self.nodes[node as usize].kind == AtomKind::ThreadLocal {
                    continue;
                }
                match &input.places[..] {
                    [] => self.by_address.push((*address, self.nodes[node as usize].size, node)),
                    places => self.by_address.extend(places.iter().map(|&(address, size)| (address, size, node))),
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
        let mut lines: Vec<(u64, u64)> = (self.placement.sections.iter())
            .filter(|line| runs_by_itself(line))
            .map(|line| (line.address, line.size))
            .collect();
        lines.sort_unstable();
        roots.extend(lines.into_iter().map(|(address, size)| self.content_at(address, size)));
        let init = self.binary.dynamic.init.into_iter().chain(self.binary.dynamic.fini);
        roots.extend(init.filter_map(|address| self.at_address(address)));
        let is_resolver = |node: u32| self.nodes[node as usize].kind == AtomKind::Resolver;
        let resolvers = self.by_address.iter().filter(|place| is_resolver(place.2));
        roots.extend(resolvers.map(|&(_, _, node)| Edge { node, offset: 0 }));
        Ok(roots)
    }

    /// What the dynamic loader can find here, sorted by name.
    fn exports(&mut self) -> Result<Vec<Export<'a>>, GraphError> {
        let mut exports = Vec::new();
        for symbol in self.binary.dynamic.symbols.iter().filter(|symbol| symbol.is_defined) {
            let Ok(name) = std::str::from_utf8(symbol.name) else { continue };
            let version = symbol.version.and_then(|version| std::str::from_utf8(version).ok()).unwrap_or_default();
            // The address tells versions of one name apart; commons and thread-local variables have none here.
            let by_address = if symbol.is_thread_local { None } else { self.at_address(symbol.value) };
            let edge = match (by_address, self.names.find(name).and_then(|number| self.definitions.get(number))) {
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
        let node = Node {
            name: Cow::Borrowed(if atom.level == Level::File { &input.label } else { atom.name }),
            kind: atom.kind,
            level: atom.level,
            hash: atom.hash,
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
        let Some(address) = self.inputs[input as usize].addresses[atom as usize] else { return };
        let Some(output) = self.binary.section_at(address) else { return };
        let name = String::from_utf8_lossy(output.name);
        if !is_usual(&name)
            && let Some(range) = self.range(&name, 0)
        {
            self.edges.push(range);
        }
    }

    /// The members of an output section, in the order of their addresses. `section` is one of its lines.
    fn add_members(&mut self, section: u32) {
        let output = self.placement.sections[section as usize].output;
        let lines = self.placement.sections.iter().filter(|line| line.output == output && line.size > 0);
        let mut members: Vec<(u64, u64)> = lines.map(|line| (line.address, line.size)).collect();
        members.sort_unstable();
        for (address, size) in members {
            let edge = self.content_at(address, size);
            self.edges.push(edge);
            // The other entries of a constant pool.
            let from = self.by_address.partition_point(|&(start, ..)| start <= address);
            let inside = self.by_address[from..].iter().take_while(|(start, ..)| start - address < size);
            self.edges.extend(inside.map(|&(_, _, node)| Edge { node, offset: 0 }));
        }
    }

    /// The node of a line of the map; where no input explains the line, its bytes in the binary.
    fn content_at(&mut self, address: u64, size: u64) -> Edge {
        if let Some(edge) = self.at_address(address) {
            return edge;
        }
        let content = self.binary.section_at(address).and_then(|section| {
            let from = usize::try_from(address - section.address).ok()?;
            section.data.get(from..from.checked_add(usize::try_from(size).ok()?)?)
        });
        let hash = Hasher::new("residue").number(size).bytes(content.unwrap_or_default()).finish();
        self.special(AtomKind::Residue, "(bytes that no input explains)", hash, Origin::Leaf)
    }

    /// The placed node that holds an address.
    fn at_address(&self, address: u64) -> Option<Edge> {
        let index = self.by_address.partition_point(|&(start, ..)| start <= address).checked_sub(1)?;
        let (start, size, node) = self.by_address[index];
        let offset = address - start;
        (offset < size).then_some(Edge { node, offset: offset as i64 })
    }

    fn edge(&mut self, input: u32, reference: &Reference) -> Result<Edge, GraphError> {
        let base = match reference.target {
            Target::Atom(atom) => Edge { node: self.node_of_atom(input, atom), offset: 0 },
            Target::Symbol(symbol) => self.symbol(input, symbol)?,
        };
        Ok(Edge { node: base.node, offset: base.offset.wrapping_add(reference.offset) })
    }

    /// What a symbol of an object means in this binary.
    fn symbol(&mut self, input: u32, symbol: u32) -> Result<Edge, GraphError> {
        let described = self.inputs[input as usize].record.symbols[symbol as usize];
        if let Some(other) = self.wrapped_name(described.name) {
            let other = match self.names.find(&other) {
                Some(number) => self.named(number, &other)?,
                None => self.undefined(&other)?,
            };
            if described.kind == SymbolKind::Undefined {
                return Ok(other);
            }
            // In the object that defines the symbol GNU ld leaves it alone, and others do not.
            let own = self.named(self.names.of(input, symbol), described.name)?;
            return Ok(self.either(described.name, own, other));
        }
        self.named(self.names.of(input, symbol), described.name)
    }

    /// `--wrap foo`: an undefined `foo` means `__wrap_foo`, and `__real_foo` means `foo`.
    fn wrapped_name(&self, name: &str) -> Option<String> {
        if self.options.wrapped.is_empty() {
            return None;
        }
        match name.strip_prefix("__real_") {
            Some(real) if self.options.wrapped.contains(real) => Some(real.to_owned()),
            _ if self.options.wrapped.contains(name) => Some(format!("__wrap_{name}")),
            _ => None,
        }
    }

    /// What a name means in this binary.
    fn named(&mut self, number: u32, name: &str) -> Result<Edge, GraphError> {
        if let Some(edge) = self.known[number as usize] {
            return Ok(edge);
        }
        let name = name.split_once("@@").map_or(name, |(name, _)| name);
        let edge = match self.definitions.get(number) {
            Some(definition) => match self.preemption(name, definition) {
                Preemption::Never => self.defined(name, definition)?,
                Preemption::Always => self.import(name),
                Preemption::Perhaps => {
                    let (own, other) = (self.defined(name, definition)?, self.import(name));
                    self.either(name, own, other)
                }
            },
            None => self.undefined(name)?,
        };
        self.known[number as usize] = Some(edge);
        Ok(edge)
    }

    /// Whether another module may define the symbol instead of this shared library.
    fn preemption(&self, name: &str, definition: Definition) -> Preemption {
        let is_open = |symbol: &&DynamicSymbol| symbol.is_defined && symbol.is_preemptible;
        if !self.is_library
            || self.binary.dynamic.symbolic
            || self.dynamic.get(name.as_bytes()).is_none_or(|symbol| !is_open(symbol))
        {
            return Preemption::Never;
        }
        let is_function = match definition.kind {
            SymbolKind::Defined { atom, .. } => {
                self.inputs[definition.input as usize].record.atoms[atom as usize].kind == AtomKind::Function
            }
            _ => false,
        };
        match self.options.bound_at_home {
            Bsymbolic::No => Preemption::Always,
            Bsymbolic::Functions if is_function => Preemption::Never,
            Bsymbolic::Functions => Preemption::Always,
            Bsymbolic::NonWeakFunctions | Bsymbolic::NonWeak | Bsymbolic::All => Preemption::Perhaps,
        }
    }

    /// A reference that may mean one thing or another: both count.
    fn either(&mut self, name: &str, one: Edge, other: Edge) -> Edge {
        let hash = Hasher::new("either").bytes(name.as_bytes()).finish();
        self.special(AtomKind::Value, name, hash, Origin::Either(one, other))
    }

    /// A symbol that an object defines.
    fn defined(&mut self, name: &str, definition: Definition) -> Result<Edge, GraphError> {
        let (atom, offset) = match definition.kind {
            SymbolKind::Defined { atom, offset } | SymbolKind::Indirect { atom, offset } => (atom, offset),
            SymbolKind::Absolute { value } => return self.value(name, value),
            SymbolKind::Common { .. } => return Ok(self.common(name)),
            SymbolKind::Undefined => return self.undefined(name),
        };
        let input = &self.inputs[definition.input as usize];
        let described = &input.record.atoms[atom as usize];
        let address = input.addresses[atom as usize].map(|start| start.wrapping_add(offset));
        let by_rule =
            |builder: &mut Self| Edge { node: builder.node_of_atom(definition.input, atom), offset: offset as i64 };
        let has_address = matches!(described.kind, AtomKind::Function | AtomKind::Data | AtomKind::Zeroed)
            && described.level != Level::File
            && described.size > 0;
        match self.symbols.get(Symbol::hash_of(name)) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(found)) if has_address && address != Some(found) => {
                self.at_address(found).ok_or_else(|| GraphError::Elsewhere { symbol: name.to_owned() })
            }
            Some(Final::Address(_)) => Ok(by_rule(self)),
            _ if definition.is_contested => Err(GraphError::Contested { symbol: name.to_owned() }),
            _ => Ok(by_rule(self)),
        }
    }

    /// A symbol that no object defines.
    fn undefined(&mut self, name: &str) -> Result<Edge, GraphError> {
        if self.dynamic.contains_key(name.as_bytes()) {
            return Ok(self.import(name));
        }
        if LAYOUT_SYMBOLS.contains(&name) || name == "end" {
            return Ok(self.special(AtomKind::Value, name, Hash::of(name.as_bytes()), Origin::Leaf));
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
        if let Some((_, section)) = BOUNDARIES.iter().find(|(boundary, _)| *boundary == name)
            && let Some(edge) = self.range(section, 2)
        {
            return Ok(edge);
        }
        match self.symbols.get(Symbol::hash_of(name)) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(address)) => self.scripted(name, address),
            Some(Final::Ambiguous) => Err(GraphError::Contested { symbol: name.to_owned() }),
            None => Ok(self.special(AtomKind::Value, "(undefined)", Hash::default(), Origin::Leaf)),
        }
    }

    /// A symbol that a command line or a script places: at an atom, or at a boundary of an output section, which
    /// then counts as a whole.
    fn scripted(&mut self, name: &str, address: u64) -> Result<Edge, GraphError> {
        if let Some(edge) = self.at_address(address)
            && (edge.offset == 0 || self.nodes[edge.node as usize].kind != AtomKind::Function)
        {
            return Ok(edge);
        }
        let Some(section) = self.binary.section_at(address) else {
            return self.value(name, address);
        };
        let output = std::str::from_utf8(section.name).unwrap_or_default().to_owned();
        let offset = (address - section.address) as i64;
        match self.range(&output, 2) {
            Some(edge) => Ok(Edge { node: edge.node, offset }),
            None => self.value(name, address),
        }
    }

    /// A symbol with a value of its own.
    fn value(&mut self, name: &str, value: u64) -> Result<Edge, GraphError> {
        let hash = Hasher::new("value").number(value).finish();
        Ok(self.special(AtomKind::Value, name, hash, Origin::Leaf))
    }

    /// A symbol that the dynamic loader binds.
    fn import(&mut self, name: &str) -> Edge {
        let version = self.dynamic.get(name.as_bytes()).and_then(|symbol| symbol.version).unwrap_or_default();
        let hash = Hasher::new("import").bytes(name.as_bytes()).bytes(version).finish();
        self.special(AtomKind::Import, name, hash, Origin::Leaf)
    }

    fn common(&mut self, name: &str) -> Edge {
        let (size, align) = self.names.find(name).map(|number| self.definitions.common(number)).unwrap_or_default();
        // Each common symbol is a thing of its own, however alike two of them are.
        let identity = Hasher::new("common").bytes(name.as_bytes()).finish();
        let key = (AtomKind::Common, identity);
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0 };
        }
        let hash = Hasher::new("common").number(size).number(align).finish();
        let edge = self.special(AtomKind::Common, name, hash, Origin::Leaf);
        self.specials.insert(key, edge.node);
        edge
    }

    /// The members of an output section.
    fn range(&mut self, output: &str, side: i64) -> Option<Edge> {
        let is_member = |line: &PlacedSection| line.output == output.as_bytes() && line.size > 0;
        let first = self.placement.sections.iter().position(is_member)?;
        let hash = Hasher::new("range").bytes(output.as_bytes()).finish();
        let edge = self.special(AtomKind::Range, output, hash, Origin::Members(first as u32));
        Some(Edge { node: edge.node, offset: side })
    }

    /// A node for something that is no atom, made once.
    fn special(&mut self, kind: AtomKind, name: &str, hash: Hash, origin: Origin) -> Edge {
        let key = (kind, hash);
        if let (Some(&node), false) = (self.specials.get(&key), kind == AtomKind::Common) {
            return Edge { node, offset: 0 };
        }
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
        let node = self.add(node, origin);
        self.specials.insert(key, node);
        Edge { node, offset: 0 }
    }
}

/// A section that compilers and linkers fill by themselves: its members do not know their neighbours.
fn is_usual(section: &str) -> bool {
    let Some(name) = section.strip_prefix('.') else { return false };
    let stem = name.split('.').next().unwrap_or(name);
    USUAL_SECTIONS.contains(&stem)
}

/// The line's content runs, or is called, without anybody referring to it.
fn runs_by_itself(line: &PlacedSection) -> bool {
    let is_array = |name: &str| {
        let rest = line.name.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    };
    let output = |name: &&str| line.output == name.as_bytes();
    line.size > 0 && (RUNS_BY_ITSELF.iter().any(output) || RUNS_BY_ITSELF.iter().any(|name| is_array(name)))
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
