//! Two builds of a program, compared once for all of its executions: which nodes would a walk not
//! see as they were? What an execution went into and none of those is walked to the same hash in
//! the other build, so that it need not be walked. docs/soundness-argument.md has the argument.
//!
//! In: the modules as they were and as they are. Out: [`Differences`]. Where the comparison is not
//! certain, or not fine enough, a node counts as changed: then somebody has to walk.
//!
//! Which node of the one build stands for which of the other (`pairs`) is a guess. Nothing is taken
//! from it that is not checked here.

mod order;
mod pairs;

use self::pairs::Pairs;
use super::module_graph::{Module, ModuleGraph, Place};
use super::visit::{NodeBits, Visit};
use super::walk::{Start, is_definition};
use crate::model::AtomKind;
use crate::model::manifest::{Edge, Export, Manifest, Node};
use serde::{Deserialize, Serialize};

/// What is not the same in two builds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences {
    /// Of the nodes before: those of which a walk would see something else now.
    changed: NodeBits,
    /// For walks that go on to all that is exported.
    exports: bool,
    /// For walks that see all that is loaded.
    images: bool,
}

impl Differences {
    /// Whether a walk that went this way before may see something else now.
    pub fn touch(&self, visit: &Visit) -> bool {
        !self.changed.is_apart_from(&visit.nodes)
            || (self.exports && visit.finds_by_name)
            || (self.images && visit.finds_images)
    }
}

/// A reference of a module as it was, and the one that stands in its place now.
type References = (u32, Edge, Edge);

/// Compares two builds. `None` if every walk from there sees something else, or may do so.
pub fn compare(before: &ModuleGraph, now: &ModuleGraph, start: Start) -> Option<Differences> {
    if !have_same_surroundings(before, now) {
        return None;
    }
    let starts = starts(before, now, start)?;
    let (exports, has_same_exports) = exports(before, now);
    let pairs = Pairs::new(before, now, starts.iter().chain(&exports));
    let comparison = Comparison::new(before, now, pairs);
    let begins_alike =
        starts.iter().all(|(module, one, other)| comparison.are_same(*module, one, other))
            && before.foreign_uses.iter().all(|name| comparison.is_bound_alike(name, true));
    let exported_alike = |(module, one, other): &References| {
        let taken = |edge: &Edge| Edge { takes_address: true, ..*edge };
        comparison.are_same(*module, &taken(one), &taken(other))
    };
    let digests = |graph: &ModuleGraph| -> Vec<_> {
        modules(graph).map(|module| graph.known(module).map(|manifest| manifest.digest)).collect()
    };
    begins_alike.then(|| Differences {
        changed: comparison.changed(),
        exports: !has_same_exports || !exports.iter().all(exported_alike),
        images: digests(before) != digests(now),
    })
}

fn modules(graph: &ModuleGraph) -> std::ops::Range<u32> {
    0..graph.modules.len() as u32
}

/// Whether all is the same that a walk hashes whatever it goes into.
fn have_same_surroundings(before: &ModuleGraph, now: &ModuleGraph) -> bool {
    let is_same = |(one, other): (&Module, &Module)| match (one, other) {
        (Module::Known(one), Module::Known(other)) | (Module::Late(one), Module::Late(other)) => {
            one.frame == other.frame && one.shared_library == other.shared_library
        }
        (Module::Foreign { content: one, .. }, Module::Foreign { content: other, .. }) => {
            one == other
        }
        _ => false,
    };
    before.modules.len() == now.modules.len()
        && before.modules.iter().zip(&now.modules).all(is_same)
        && before.missing == now.missing
        && before.versions == now.versions
        && before.foreign_uses == now.foreign_uses
        && before.finds_by_name == now.finds_by_name
        && !before.has_resolvers
        && !now.has_resolvers
}

/// Where every walk begins, as long as it is as much.
fn starts(before: &ModuleGraph, now: &ModuleGraph, start: Start) -> Option<Vec<References>> {
    let mut starts = Vec::new();
    let program = (before.known(0)?, now.known(0)?);
    let mut add = |module, ones: Vec<Edge>, others: Vec<Edge>| {
        let is_as_much = ones.len() == others.len();
        starts.extend(ones.into_iter().zip(others).map(|(one, other)| (module, one, other)));
        is_as_much.then_some(())
    };
    if let Start::Entry(name) = start {
        add(0, entries(program.0, name), entries(program.1, name))?;
    }
    for module in modules(before) {
        let (Some(one), Some(other)) = (before.known(module), now.known(module)) else { continue };
        let is_replaced =
            module == 0 && matches!(start, Start::Entry(_)) && !program.0.shared_library;
        let skip = usize::from(is_replaced);
        let roots = |roots: &[Edge]| roots.iter().skip(skip).copied().collect();
        add(module, roots(&one.roots), roots(&other.roots))?;
    }
    if matches!(start, Start::Program) && (program.0.shared_library || before.modules.len() == 1) {
        let edges = |exports: &[Export]| exports.iter().map(|export| export.edge).collect();
        is_named_alike(&program.0.exports, &program.1.exports).then_some(())?;
        add(0, edges(&program.0.exports), edges(&program.1.exports))?;
    }
    Some(starts)
}

/// What a walk takes for the functions and variables of a name.
fn entries(manifest: &Manifest, name: &str) -> Vec<Edge> {
    let is_named = |node: &Node| node.name == name && is_definition(node.kind);
    let defined = manifest.nodes.iter().enumerate().filter(|(_, node)| is_named(node));
    let defined = defined.map(|(index, _)| Edge { node: index as u32, ..Edge::default() });
    let exported = manifest.exports.iter().filter(|export| export.name == name);
    defined.chain(exported.map(|export| export.edge)).collect()
}

fn is_named_alike(exports: &[Export], others: &[Export]) -> bool {
    let is_same =
        |(one, other): (&Export, &Export)| one.name == other.name && one.version == other.version;
    exports.len() == others.len() && exports.iter().zip(others).all(is_same)
}

/// What both builds export under one name, and whether that is all.
fn exports(before: &ModuleGraph, now: &ModuleGraph) -> (Vec<References>, bool) {
    let (mut exports, mut is_all) = (Vec::new(), true);
    for module in modules(before) {
        let (Some(one), Some(other)) = (before.known(module), now.known(module)) else { continue };
        is_all &= is_named_alike(&one.exports, &other.exports);
        let mut others = other.exports.iter().peekable();
        for export in &one.exports {
            while others.next_if(|other| other.name < export.name).is_some() {}
            if let Some(other) = others.next_if(|other| other.name == export.name) {
                exports.push((module, export.edge, other.edge));
            }
        }
    }
    (exports, is_all)
}

/// Two builds, with what stands for what.
struct Comparison<'c> {
    before: &'c ModuleGraph<'c, 'c>,
    now: &'c ModuleGraph<'c, 'c>,
    pairs: Pairs,
    /// For each node before: whether a reference to it and one to its partner are the same to a
    /// walk, apart from its address.
    alike: Vec<Vec<bool>>,
    /// Nodes of which the place among the others may have changed.
    moved: Vec<Vec<bool>>,
}

impl<'c> Comparison<'c> {
    fn new(before: &'c ModuleGraph<'c, 'c>, now: &'c ModuleGraph<'c, 'c>, pairs: Pairs) -> Self {
        let moved = order::moved(before, now, &pairs);
        let mut comparison = Comparison { before, now, pairs, alike: Vec::new(), moved };
        let alike = modules(before).map(|module| {
            let count = before.known(module).map_or(0, |manifest| manifest.nodes.len());
            (0..count as u32).map(|node| comparison.is_alike((module, node))).collect()
        });
        comparison.alike = alike.collect();
        comparison
    }

    /// A node and its partner.
    fn both(&self, place: Place) -> Option<(&'c Node<'c>, &'c Node<'c>)> {
        let other = self.pairs.partner(place)?;
        Some((self.before.node(place)?.0, self.now.node((place.0, other))?.0))
    }

    /// Whether a walk that meets a node before and its partner now does the same, without going
    /// into them.
    fn is_alike(&self, place: Place) -> bool {
        let Some((one, other)) = self.both(place) else { return false };
        let is_import = one.kind == AtomKind::Import;
        is_same_when_numbered(one, other)
            && (!is_import
                || (one.hash == other.hash && self.is_bound_alike(one.name.as_bytes(), false)))
    }

    /// Whether the loader binds a name to the same nodes. The addresses of those count as well, if
    /// somebody takes them.
    fn is_bound_alike(&self, name: &[u8], takes_address: bool) -> bool {
        let (one, other) = match (self.before.offered(name), self.now.offered(name)) {
            (None, None) => return true,
            (Some(one), Some(other)) if one.0 == other.0 && one.1.len() == other.1.len() => {
                (one, other)
            }
            _ => return false,
        };
        one.1.iter().zip(other.1).all(|(export, now)| {
            let place = (one.0, export.edge.node);
            export.version == now.version
                && export.edge.offset == now.edge.offset
                && self.pairs.partner(place) == Some(now.edge.node)
                && self.both(place).is_some_and(|(one, other)| is_same_when_numbered(one, other))
                && !(takes_address && self.is_moved(place))
        })
    }

    fn is_moved(&self, (module, node): Place) -> bool {
        self.moved[module as usize][node as usize]
    }

    /// Whether two references are the same to a walk.
    fn are_same(&self, module: u32, one: &Edge, other: &Edge) -> bool {
        let place = (module, one.node);
        one.offset == other.offset
            && one.takes_address == other.takes_address
            && self.pairs.partner(place) == Some(other.node)
            && self.alike[module as usize][one.node as usize]
            && !(one.takes_address && self.can_be_seen_elsewhere(place))
    }

    /// Whether the address of a node, or of what an import is bound to, may lie elsewhere among the
    /// others.
    fn can_be_seen_elsewhere(&self, place: Place) -> bool {
        let import = self.before.node(place).map(|(node, _)| node);
        let import = import.filter(|node| node.kind == AtomKind::Import);
        self.is_moved(place)
            || import.is_some_and(|node| !self.is_bound_alike(node.name.as_bytes(), true))
    }

    /// The nodes in which a walk may see something else than before.
    fn changed(&self) -> NodeBits {
        let mut changed = NodeBits::none(self.before.count());
        for (module, alike) in self.alike.iter().enumerate() {
            for node in 0..alike.len() as u32 {
                let place = (module as u32, node);
                if !self.is_unchanged(place) {
                    changed.insert(self.before.position(place));
                }
            }
        }
        changed
    }

    fn is_unchanged(&self, place: Place) -> bool {
        let Some(other) = self.pairs.partner(place) else { return false };
        let (Some((one, ones)), Some((other, others))) =
            (self.before.node(place), self.now.node((place.0, other)))
        else {
            return false;
        };
        one.hash == other.hash
            && ones.len() == others.len()
            && ones.iter().zip(others).all(|(one, other)| self.are_same(place.0, one, other))
    }
}

/// Whether two nodes are the same to a walk that gives them a number: it looks at whether they can
/// be left out, and at the names of imports.
fn is_same_when_numbered(one: &Node, other: &Node) -> bool {
    let is_import = one.kind == AtomKind::Import;
    one.traceable == other.traceable
        && is_import == (other.kind == AtomKind::Import)
        && (!is_import || one.name == other.name)
}

#[cfg(test)]
mod tests;
