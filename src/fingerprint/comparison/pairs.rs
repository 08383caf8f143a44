//! Which node of one build stands for which of another: what a walk meets at the same place. Nodes
//! of one name come first; those of different names may be paired where no node of their own name
//! was found, and what lies behind nodes that differ is paired by name alone.
//!
//! In: both builds, and where to begin. Out: [`Pairs`], a guess. It is linear, and no node has two
//! partners.

use super::References;
use crate::fingerprint::module_graph::{ModuleGraph, Numbers, Place};
use crate::model::AtomKind;
use crate::model::manifest::Edge;
use rustc_hash::FxHashMap;

const NOBODY: u32 = u32::MAX;

/// The partners of the nodes before.
pub struct Pairs {
    partners: Numbers,
}

impl Pairs {
    pub fn new<'s>(
        before: &ModuleGraph,
        now: &ModuleGraph,
        starts: impl Iterator<Item = &'s References>,
    ) -> Self {
        let mut pairing = Pairing {
            before,
            now,
            partners: unpaired(before),
            takers: unpaired(now),
            pending: Vec::new(),
            renamed: Vec::new(),
            different: Vec::new(),
        };
        for (module, one, other) in starts {
            pairing.meet(*module, one, other);
        }
        pairing.pair_all();
        Pairs { partners: pairing.partners }
    }

    /// The node now that stands for one before.
    pub fn partner(&self, (module, node): Place) -> Option<u32> {
        let partner = self.partners.get(module as usize)?.get(node as usize)?;
        (*partner != NOBODY).then_some(*partner)
    }
}

fn unpaired(graph: &ModuleGraph) -> Numbers {
    let count = |module| graph.known(module).map_or(0, |manifest| manifest.nodes.len());
    (0..graph.modules.len() as u32).map(|module| vec![NOBODY; count(module)]).collect()
}

/// A node before, and the one that is taken for it.
type Pair = (Place, Place);

struct Pairing<'p> {
    before: &'p ModuleGraph<'p, 'p>,
    now: &'p ModuleGraph<'p, 'p>,
    partners: Numbers,
    /// The same, seen from now.
    takers: Numbers,
    /// What was paired and not gone into.
    pending: Vec<Pair>,
    /// What stands at the same place under different names.
    renamed: Vec<Pair>,
    /// What was paired although it is not the same.
    different: Vec<Pair>,
}

impl Pairing<'_> {
    fn pair_all(&mut self) {
        loop {
            if let Some(pair) = self.pending.pop() {
                self.go_into(pair);
            } else if let Some(pair) = self.different.pop() {
                self.meet_by_name(pair);
            } else if let Some(pair) = self.renamed.pop() {
                if self.is_free(pair) {
                    self.pair(pair);
                }
            } else {
                return;
            }
        }
    }

    fn is_free(&self, (one, other): Pair) -> bool {
        self.partners[one.0 as usize][one.1 as usize] == NOBODY
            && self.takers[other.0 as usize][other.1 as usize] == NOBODY
    }

    fn pair(&mut self, pair: Pair) {
        let (one, other) = pair;
        self.partners[one.0 as usize][one.1 as usize] = other.1;
        self.takers[other.0 as usize][other.1 as usize] = one.1;
        self.pending.push(pair);
    }

    /// Takes one node for another, if neither has a partner.
    fn offer(&mut self, pair: Pair) {
        if !self.is_free(pair) {
            return;
        }
        let (Some((one, _)), Some((other, _))) = (self.before.node(pair.0), self.now.node(pair.1))
        else {
            return;
        };
        if one.name == other.name && one.kind == other.kind {
            self.pair(pair);
        } else {
            self.renamed.push(pair);
        }
    }

    /// Pairs what two references lead to.
    fn meet(&mut self, module: u32, one: &Edge, other: &Edge) {
        self.offer(((module, one.node), (module, other.node)));
    }

    fn go_into(&mut self, pair: Pair) {
        let (before, now) = (self.before, self.now);
        let (Some((one, ones)), Some((other, others))) = (before.node(pair.0), now.node(pair.1))
        else {
            return;
        };
        if one.kind == AtomKind::Import {
            self.follow_loader(one.name.as_bytes());
        }
        if one.hash != other.hash || ones.len() != others.len() {
            self.different.push(pair);
            return;
        }
        for (one, other) in ones.iter().zip(others) {
            self.meet(pair.0.0, one, other);
        }
    }

    /// Pairs what the loader binds a name to.
    fn follow_loader(&mut self, name: &[u8]) {
        let (before, now) = (self.before, self.now);
        let (Some((module, ones)), Some((other, others))) =
            (before.offered(name), now.offered(name))
        else {
            return;
        };
        for (one, another) in ones.iter().zip(others).filter(|_| module == other) {
            self.meet(module, &one.edge, &another.edge);
        }
    }

    /// Pairs what two nodes refer to that are not the same: in order, but only where the names are.
    fn meet_by_name(&mut self, pair: Pair) {
        let (before, now) = (self.before, self.now);
        let (Some((_, ones)), Some((_, others))) = (before.node(pair.0), now.node(pair.1)) else {
            return;
        };
        let mut by_name: FxHashMap<(&str, AtomKind), Vec<u32>> = FxHashMap::default();
        for edge in others.iter().rev() {
            if let Some((node, _)) = now.node((pair.1.0, edge.node)) {
                by_name.entry((&node.name, node.kind)).or_default().push(edge.node);
            }
        }
        for edge in ones {
            let Some((node, _)) = before.node((pair.0.0, edge.node)) else { continue };
            if let Some(other) = by_name.get_mut(&(&*node.name, node.kind)).and_then(Vec::pop) {
                self.offer(((pair.0.0, edge.node), (pair.1.0, other)));
            }
        }
    }
}
