//! Which nodes have kept their places among the others: what a walk hashes of the order of
//! addresses is the same for every set of those.
//!
//! In: both builds, and what stands for what. Out: for each node before, whether it may have moved.
//! Of two nodes that have changed places one has moved; which one makes no difference, as long as
//! all that have not are in the same order.

use super::pairs::Pairs;
use crate::fingerprint::module_graph::ModuleGraph;
use crate::model::AtomKind;
use crate::model::manifest::{Manifest, Node};

/// Thread-local variables have addresses of their own.
type Address = (bool, u64);

/// A node with the addresses of both builds.
struct Placed<'p> {
    before: Address,
    now: Address,
    index: usize,
    nodes: (&'p Node<'p>, &'p Node<'p>),
}

/// For each module and node.
pub fn moved(before: &ModuleGraph, now: &ModuleGraph, pairs: &Pairs) -> Vec<Vec<bool>> {
    let of = |module: u32| match (before.known(module), now.known(module)) {
        (Some(one), Some(other)) => moved_in(module, one, other, pairs),
        _ => Vec::new(),
    };
    (0..before.modules.len() as u32).map(of).collect()
}

fn moved_in(module: u32, one: &Manifest, other: &Manifest, pairs: &Pairs) -> Vec<bool> {
    let mut moved = vec![true; one.nodes.len()];
    let counts = seen(one);
    let mut placed = Vec::new();
    for (index, node) in one.nodes.iter().enumerate().filter(|(index, _)| counts[*index]) {
        let partner = pairs.partner((module, index as u32));
        let Some(partner) = partner.and_then(|partner| other.nodes.get(partner as usize)) else {
            continue;
        };
        let address = |node: &Node| (node.kind == AtomKind::ThreadLocal, node.address);
        let is_literal = |node: &Node| node.kind == AtomKind::Literal;
        match (node.address, partner.address) {
            // It has no place in either.
            (0, 0) => moved[index] = false,
            (0, _) | (_, 0) => {}
            _ if is_literal(node) != is_literal(partner) => {}
            _ => placed.push(Placed {
                before: address(node),
                now: address(partner),
                index,
                nodes: (node, partner),
            }),
        }
    }
    placed.sort_by_key(|placed| (placed.before, placed.now));
    let kept = without_overlaps_that_differ(in_same_order(placed));
    kept.iter().for_each(|placed| moved[placed.index] = false);
    moved
}

/// Nodes of which something may use the address as a value.
fn seen(manifest: &Manifest) -> Vec<bool> {
    let mut seen = vec![false; manifest.nodes.len()];
    let taken = manifest.edges.iter().chain(&manifest.roots).filter(|edge| edge.takes_address);
    let exported = manifest.exports.iter().map(|export| &export.edge);
    taken.chain(exported).for_each(|edge| seen[edge.node as usize] = true);
    seen
}

/// As many as possible of which the order is the same in both, and that are at one address either
/// in both or in none. They come sorted by their addresses before.
fn in_same_order(placed: Vec<Placed>) -> Vec<Placed> {
    // Of what was at one address, all that is at one address still.
    let mut groups: Vec<Vec<Placed>> = Vec::new();
    for placed in placed {
        match groups.last_mut().filter(|group| group[0].before == placed.before) {
            None => groups.push(vec![placed]),
            Some(group) if group[0].now == placed.now => group.push(placed),
            Some(_) => {}
        }
    }
    let addresses: Vec<Address> = groups.iter().map(|group| group[0].now).collect();
    let is_kept = longest_rising(&addresses);
    groups
        .into_iter()
        .zip(is_kept)
        .filter(|(_, is_kept)| *is_kept)
        .flat_map(|(group, _)| group)
        .collect()
}

/// Which elements are in a longest strictly rising part of a sequence.
fn longest_rising(sequence: &[Address]) -> Vec<bool> {
    // For each length: the element with which the lowest part of that length ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(sequence.len());
    for (at, address) in sequence.iter().enumerate() {
        let length = ends.partition_point(|end| sequence[*end] < *address);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut is_in = vec![false; sequence.len()];
    let mut at = ends.last().copied();
    while let Some(element) = at {
        is_in[element] = true;
        at = previous[element];
    }
    is_in
}

/// Without literals that lie in others, or beside them, in another way than before: a walk tells at
/// which byte of another literal one begins.
fn without_overlaps_that_differ(placed: Vec<Placed>) -> Vec<Placed> {
    /// Literals that overlap each other: where they begin and end, in both builds.
    #[derive(Clone, Copy)]
    struct Cluster {
        starts: (u64, u64),
        ends: (u64, u64),
    }
    let mut cluster: Option<Cluster> = None;
    let mut keeps = |placed: &Placed| {
        let (one, other) = placed.nodes;
        if one.kind != AtomKind::Literal {
            return true;
        }
        if one.size != other.size {
            return false;
        }
        let starts = (one.address, other.address);
        let ends = (starts.0.saturating_add(one.size), starts.1.saturating_add(other.size));
        let Some(last) = &mut cluster else {
            cluster = Some(Cluster { starts, ends });
            return true;
        };
        if starts.0 >= last.ends.0 && starts.1 >= last.ends.1 {
            *last = Cluster { starts, ends };
            return true;
        }
        let is_same = starts.0 - last.starts.0 == starts.1 - last.starts.1;
        if is_same {
            last.ends = (last.ends.0.max(ends.0), last.ends.1.max(ends.1));
        }
        is_same
    };
    placed.into_iter().filter(|placed| keeps(placed)).collect()
}
