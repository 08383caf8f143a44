//! The canonical walk. From the ordered roots it visits every node that can be reached, depth
//! first, numbers each node when it is first met, and hashes the sequence: the node's local hash,
//! then the numbers of its targets. Two programs give the same sequence if, and only if, what they
//! can reach is the same graph of the same pieces: content counts, and so does identity (two zeroed
//! counters have two numbers, whatever they are called and wherever they lie), and recursion needs
//! no special care, because a node that was met before is told by its number. Names and addresses
//! are not hashed. Each node and each edge is looked at once.
//!
//! A walk can be narrowed to what was executed (`Guide`): a function that was watched and not
//! executed has a number but neither content nor references. docs/soundness-argument.md has the
//! argument why that is sound.
//!
//! A symbol that the dynamic loader binds leads on into the first module that offers it.

pub use super::module_graph::{Module, ModuleGraph};

use super::module_graph::{IMPORT, Numbers, Place};
use super::visit::{NodeBits, Visit};
use crate::model::manifest::{Edge, Export, Manifest, Node};
use crate::model::{AtomKind, Hash, Hasher};

/// The finished fingerprint of a binary, or of one entry of it.
pub type Fingerprint = Hash;

/// The functions by which a program can find any exported symbol by name, or the name of any
/// exported symbol.
pub const SYMBOL_FINDERS: [&str; 6] =
    ["backtrace_symbols", "backtrace_symbols_fd", "dladdr", "dladdr1", "dlsym", "dlvsym"];

/// What tells a program where all its modules lie, and so of their headers, notes and everything
/// else that is loaded.
pub const IMAGE_FINDERS: [&str; 10] = [
    "__getauxval",
    "_dl_find_object",
    "_r_debug",
    "backtrace_symbols",
    "backtrace_symbols_fd",
    "dl_iterate_phdr",
    "dladdr",
    "dladdr1",
    "dlinfo",
    "getauxval",
];

/// Where a walk starts.
pub enum Start<'s> {
    /// At the roots of the first module, as the program does.
    Program,
    /// At one symbol of the first module.
    Entry(&'s str),
}

/// The fingerprint of the first of `modules`. `None` when the entry is not there.
pub fn fingerprint(modules: &[Module], start: Start) -> Option<Fingerprint> {
    let graph = ModuleGraph::new(modules.to_vec());
    through(&graph, start, Guide::Everything).map(|walked| walked.fingerprint)
}

/// What comes of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    pub fingerprint: Fingerprint,
    /// Leads another walk the same way.
    pub entered: NodeSet,
    /// The same for those who have this graph before them. Empty if the guide leads everywhere.
    pub visit: Visit,
}

/// A walk as far as a guide leads, one of many through the same modules. `None` too where nothing
/// can be left out.
pub fn through(graph: &ModuleGraph, start: Start, guide: Guide) -> Option<Walked> {
    // Resolvers run, with all that they call, before anybody can see what is executed.
    if !matches!(guide, Guide::Everything) && graph.has_resolvers {
        return None;
    }
    let mut walk = Walk::new(graph, guide);
    walk.frames();
    walk.missing();
    match start {
        Start::Program => walk.program(),
        Start::Entry(name) => walk.entry(name)?,
    }
    walk.order();
    walk.images();
    let visit = walk.visited();
    graph.give_back(walk.numbers, &walk.numbered);
    Some(Walked { fingerprint: walk.hasher.finish(), entered: walk.entered, visit })
}

/// Which nodes of each module a walk went into.
pub fn entered(modules: &[Module], start: Start, guide: Guide) -> Vec<Vec<bool>> {
    let graph = ModuleGraph::new(modules.to_vec());
    let mut walk = Walk::new(&graph, guide);
    match start {
        Start::Program => walk.program(),
        Start::Entry(name) => _ = walk.entry(name),
    }
    let is_entered = |number: &u32| *number != 0 && number & CLOSED == 0;
    walk.numbers.iter().map(|numbers| numbers.iter().map(is_entered).collect()).collect()
}

/// How far a walk goes.
#[derive(Clone, Copy)]
pub enum Guide<'g> {
    Everything,
    /// Of the functions only into those that were executed: for each module the sorted addresses at
    /// which they start; `None` for a module of which it is not known.
    Executed(&'g [Option<&'g [u32]>]),
    /// As another walk went: into the nodes with these numbers.
    Set(&'g NodeSet),
}

/// A set of nodes, by the numbers that a walk gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    bits: Vec<u8>,
}

impl NodeSet {
    /// The set that `bytes` gave.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        NodeSet { bits: bytes.to_vec() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bits
    }

    fn has(&self, number: u32) -> bool {
        self.bits.get(number as usize / 8).is_some_and(|byte| byte >> (number % 8) & 1 == 1)
    }

    fn insert(&mut self, number: u32) {
        let at = number as usize / 8;
        if self.bits.len() <= at {
            self.bits.resize(at + 1, 0);
        }
        self.bits[at] |= 1 << (number % 8);
    }
}

/// In the number of a node: the walk has not gone into it.
const CLOSED: u32 = 1 << 31;

struct Walk<'w, 'm, 'a> {
    graph: &'w ModuleGraph<'m, 'a>,
    /// For each known module: the number that each node was given, 0 for none. Imports have a mark
    /// of their own.
    numbers: Numbers,
    /// The nodes that have a number, for whoever uses the numbers next.
    numbered: Vec<Place>,
    next_number: u32,
    pending: Vec<Place>,
    finds_by_name: bool,
    finds_images: bool,
    guide: Guide<'w>,
    entered: NodeSet,
    /// The nodes whose addresses are used as values.
    taken: Vec<Place>,
    hasher: Hasher,
}

impl<'w, 'm, 'a> Walk<'w, 'm, 'a> {
    fn new(graph: &'w ModuleGraph<'m, 'a>, guide: Guide<'w>) -> Self {
        Walk {
            graph,
            numbers: graph.numbers(),
            numbered: Vec::new(),
            next_number: 0,
            pending: Vec::new(),
            finds_by_name: graph.finds_by_name,
            finds_images: false,
            guide,
            entered: NodeSet::default(),
            taken: Vec::new(),
            hasher: Hasher::new("fingerprint"),
        }
    }

    fn known(&self, module: u32) -> Option<&'m Manifest<'a>> {
        self.graph.known(module)
    }

    /// What holds for each module as a whole.
    fn frames(&mut self) {
        for module in &self.graph.modules {
            match module {
                Module::Known(manifest) | Module::Late(manifest) => {
                    self.hasher.number(1).hash(manifest.frame)
                }
                Module::Foreign { content, .. } => self.hasher.number(2).hash(*content),
            };
        }
    }

    /// All that the program's start, the dynamic loader and foreign modules can call.
    fn program(&mut self) {
        self.roots(0);
        // A program's exports (all its functions, with -rdynamic) count where another module asks
        // for them, which the walk sees when all modules are known: by their imports, by
        // `foreign_uses`, or because symbols are found by name.
        if let Some(manifest) = self
            .known(0)
            .filter(|manifest| manifest.shared_library || self.graph.modules.len() == 1)
        {
            manifest.exports.iter().for_each(|export| self.visit_export(0, export));
        }
        self.found_by_others();
    }

    /// One function in place of the program's entry: what runs before and beside it counts as well.
    fn entry(&mut self, name: &str) -> Option<()> {
        let manifest = self.known(0)?;
        let is_named = |node: &Node| node.name == name && is_definition(node.kind);
        let exported =
            manifest.exports.iter().filter(|export| export.name == name).map(|export| export.edge);
        let defined = manifest.nodes.iter().enumerate().filter(|(_, node)| is_named(node));
        // Static functions of several files may bear the name: all of them count.
        let mut entries: Vec<Edge> = defined
            .map(|(index, _)| Edge { node: index as u32, offset: 0, takes_address: false })
            .collect();
        // A node has one name, but may be exported under several.
        entries.extend(exported);
        if entries.is_empty() {
            return None;
        }
        entries.into_iter().for_each(|edge| self.visit(0, edge));
        self.roots(usize::from(!manifest.shared_library));
        self.found_by_others();
        Some(())
    }

    /// The roots of all modules, less the first `skip` of the first one.
    fn roots(&mut self, skip: usize) {
        for index in 0..self.graph.modules.len() as u32 {
            let Some(manifest) = self.known(index) else { continue };
            self.hasher.number(3);
            let skip = if index == 0 { skip } else { 0 };
            manifest.roots.iter().skip(skip).for_each(|root| self.visit(index, *root));
        }
    }

    /// What is reached by symbol name from outside of the known modules.
    fn found_by_others(&mut self) {
        self.foreign_uses();
        if self.finds_by_name {
            for index in 0..self.graph.modules.len() as u32 {
                let exports =
                    self.known(index).map(|manifest| &manifest.exports[..]).unwrap_or_default();
                for export in exports {
                    let edge = Edge { takes_address: true, ..export.edge };
                    self.visit_export(index, &Export { edge, ..*export });
                }
            }
        }
    }

    fn visit_export(&mut self, module: u32, export: &Export) {
        self.hasher.number(4).bytes(export.name.as_bytes()).bytes(export.version.as_bytes());
        self.visit(module, export.edge);
    }

    /// Symbols that a module wants and none has, or perhaps not in the version that it wants. The
    /// loader binds what functions refer to whether or not they are ever executed, and does not
    /// start a program for which that fails.
    fn missing(&mut self) {
        for name in &self.graph.missing {
            self.hasher.number(7).bytes(name);
        }
        for (name, version) in &self.graph.versions {
            self.hasher.number(8).bytes(name.as_bytes()).bytes(version.as_bytes());
        }
    }

    /// Symbols that modules without a manifest take from modules with one.
    fn foreign_uses(&mut self) {
        for name in &self.graph.foreign_uses {
            self.hasher.number(5).bytes(name);
            self.offered(name, Edge { takes_address: true, ..Edge::default() });
            self.walk_pending();
        }
    }

    /// Hashes a reference, and everything behind it that was not met before.
    fn visit(&mut self, module: u32, edge: Edge) {
        self.reference(module, edge);
        self.walk_pending();
    }

    fn walk_pending(&mut self) {
        while let Some((module, node)) = self.pending.pop() {
            self.node(module, node);
        }
    }

    /// Hashes one node with its references, and leaves the new ones for later.
    fn node(&mut self, module: u32, index: u32) {
        let Some((node, references)) = self.graph.node((module, index)) else { return };
        self.hasher.hash(node.hash).number(references.len() as u64);
        let first = self.pending.len();
        for edge in references {
            self.reference(module, *edge);
        }
        // The first target is to be walked first.
        self.pending[first..].reverse();
    }

    /// Hashes which node a reference means, following the dynamic loader.
    fn reference(&mut self, module: u32, edge: Edge) {
        if self.numbers[module as usize][edge.node as usize] == IMPORT && self.import(module, edge)
        {
            return;
        }
        self.number(module, edge);
    }

    /// Follows an import into the module that offers it, if one does.
    fn import(&mut self, module: u32, edge: Edge) -> bool {
        let Some(node) =
            self.known(module).and_then(|manifest| manifest.nodes.get(edge.node as usize))
        else {
            return false;
        };
        self.finds_by_name |= SYMBOL_FINDERS.contains(&&*node.name);
        self.finds_images |= IMAGE_FINDERS.contains(&&*node.name);
        let is_offered = self.graph.offers.contains_key(node.name.as_bytes());
        if is_offered {
            // A reference that the loader binds is not the same as one that was bound when the
            // module was linked.
            self.hasher.number(6).hash(node.hash);
            self.take(module, edge);
            self.offered(node.name.as_bytes(), edge);
        }
        is_offered
    }

    /// Hashes what the known modules offer under a name: every version of it that the first of them
    /// has.
    fn offered(&mut self, name: &[u8], edge: Edge) {
        let Some((module, exports)) = self.graph.offered(name) else { return };
        for export in exports {
            self.hasher.bytes(export.version.as_bytes());
            let offset = export.edge.offset.wrapping_add(edge.offset);
            self.number(module, Edge { node: export.edge.node, offset, ..edge });
        }
    }

    /// Notes that an address is used as a value, if it is.
    fn take(&mut self, module: u32, edge: Edge) {
        if edge.takes_address {
            self.taken.push((module, edge.node));
        }
    }

    /// Hashes the order in memory of all that has its address used as a value: programs compare
    /// such values, sort by them, and go through maps that have them as keys. The order within
    /// a module is the same in each run, wherever the module is loaded; that of two modules is
    /// the loader's. Only the order of what the walk has met counts, so that something else may
    /// come to lie between. Things at one address (folded by the linker) are told from things at
    /// two, and so is a literal that is the end of another one.
    fn order(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.sort_unstable();
        taken.dedup();
        let place = |&(module, index): &Place| {
            let node =
                self.known(module)?.nodes.get(index as usize).filter(|node| node.address != 0)?;
            // The addresses of thread-local variables are those of another space.
            let is_thread_local = node.kind == AtomKind::ThreadLocal;
            let number = self.numbers[module as usize][index as usize];
            Some(((module, is_thread_local, node.address), number, node))
        };
        let mut places: Vec<_> = taken.iter().filter_map(place).collect();
        places.sort_unstable_by_key(|&(place, number, node)| (place, number, &*node.name));
        let mut last = None;
        let mut text = None;
        for (place, number, node) in places {
            self.hasher.number(9).number(u64::from(Some(place) == last)).number(place.0.into());
            match number {
                // The loader binds it: it was numbered where it is defined.
                IMPORT => self.hasher.bytes(node.name.as_bytes()),
                number => self.hasher.number((number & !CLOSED).into()),
            };
            last = Some(place);
            if node.kind == AtomKind::Literal {
                let (start, module) = (node.address, place.0);
                let within = text.filter(|&(other, _, end)| other == module && start < end);
                self.hasher.number(within.map_or(0, |(_, from, _)| start - from + 1));
                text = Some((module, start, start.saturating_add(node.size)))
                    .filter(|_| within.is_none())
                    .or(text);
            }
        }
    }

    /// Which nodes it went into.
    fn visited(&self) -> Visit {
        let mut nodes = NodeBits::none(self.graph.count());
        for &(module, node) in &self.numbered {
            if self.numbers[module as usize][node as usize] & CLOSED == 0 {
                nodes.insert(self.graph.position((module, node)));
            }
        }
        let (finds_by_name, finds_images) = (self.finds_by_name, self.finds_images);
        Visit { nodes, finds_by_name, finds_images }
    }

    /// All that is loaded, if the program can find out where that is. Modules without a manifest
    /// count by content anyway.
    fn images(&mut self) {
        for index in (0..self.graph.modules.len() as u32).filter(|_| self.finds_images) {
            let digest = self.known(index).map(|manifest| manifest.digest);
            self.hasher.number(10).hash(digest.unwrap_or_default());
        }
    }

    /// Hashes a node's number, giving it one if it has none.
    fn number(&mut self, module: u32, edge: Edge) {
        self.take(module, edge);
        let mut number = self.numbers[module as usize][edge.node as usize];
        if number == 0 || number == IMPORT {
            if !matches!(self.guide, Guide::Everything) {
                self.numbered.push((module, edge.node));
            }
            self.next_number += 1;
            number = self.next_number | CLOSED;
        }
        if number & CLOSED != 0 && self.goes_into(module, edge, number & !CLOSED) {
            number &= !CLOSED;
            self.entered.insert(number);
            self.pending.push((module, edge.node));
        }
        self.numbers[module as usize][edge.node as usize] = number;
        // A closed node has another number than an open one: where a walk went is part of what it
        // saw.
        self.hasher.pair(number.into(), edge.offset as u64);
    }

    /// Whether the walk goes on behind a reference. What cannot be watched, or is no function,
    /// counts whether or not it was executed.
    fn goes_into(&self, module: u32, edge: Edge, number: u32) -> bool {
        let Some(node) =
            self.known(module).and_then(|manifest| manifest.nodes.get(edge.node as usize))
        else {
            return true;
        };
        match self.guide {
            Guide::Everything => true,
            _ if !node.traceable => true,
            Guide::Set(set) => set.has(number),
            Guide::Executed(places) => match places.get(module as usize) {
                Some(Some(places)) => u32::try_from(node.address)
                    .map_or(true, |address| places.binary_search(&address).is_ok()),
                _ => true,
            },
        }
    }
}

/// A node that a symbol of its own name defines.
pub fn is_definition(kind: AtomKind) -> bool {
    !matches!(
        kind,
        AtomKind::Literal
            | AtomKind::Import
            | AtomKind::Value
            | AtomKind::Range
            | AtomKind::Residue
    )
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
