//! Small graphs for the property tests, and manifests made of them.

use crate::model::manifest::{Edge, Manifest, Node};
use crate::model::{AtomKind, Hash, Level};
use proptest::prelude::*;

/// A graph as plain lists.
#[derive(Clone, Debug)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    pub roots: Vec<(usize, i64)>,
    /// What the names of its nodes begin with.
    pub names: &'static str,
}

#[derive(Clone, Debug)]
pub struct GraphNode {
    pub hash: u8,
    /// Targets and offsets.
    pub edges: Vec<(usize, i64)>,
}

/// Graphs of up to `most` nodes with few different local hashes: nodes are often alike.
pub fn graph(most: usize, hashes: u8) -> impl Strategy<Value = Graph> {
    (1..=most).prop_flat_map(move |count| {
        let edges = move |most| {
            prop::collection::vec((0..count, prop::sample::select(vec![0, 0, 0, 8])), 0..=most)
        };
        let node = (0..hashes, edges(3)).prop_map(|(hash, edges)| GraphNode { hash, edges });
        (prop::collection::vec(node, count), edges(2)).prop_map(|(nodes, roots)| Graph {
            nodes,
            roots,
            names: "n",
        })
    })
}

/// The same graph with its nodes in another order, and the new number of each node.
pub fn renumbered(graph: &Graph, order: u64) -> (Graph, Vec<usize>) {
    let count = graph.nodes.len();
    let mut keys: Vec<(u64, usize)> = (0..count)
        .map(|node| ((order ^ node as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7, node))
        .collect();
    keys.sort_unstable();
    let mut number = vec![0; count];
    keys.iter().enumerate().for_each(|(new, &(_, old))| number[old] = new);
    let moved = |edges: &[(usize, i64)]| {
        edges.iter().map(|&(node, offset)| (number[node], offset)).collect()
    };
    let nodes = keys.iter().map(|&(_, old)| {
        let GraphNode { hash, edges } = &graph.nodes[old];
        GraphNode { hash: *hash, edges: moved(edges) }
    });
    (Graph { nodes: nodes.collect(), roots: moved(&graph.roots), names: graph.names }, number)
}

impl Graph {
    /// Nodes by hash and targets, and the roots.
    pub fn of(nodes: &[(u8, &[usize])], roots: &[usize]) -> Self {
        let edges = |targets: &[usize]| targets.iter().map(|&node| (node, 0)).collect();
        let nodes = nodes
            .iter()
            .map(|&(hash, targets)| GraphNode { hash, edges: edges(targets) })
            .collect();
        Graph { nodes, roots: edges(roots), names: "n" }
    }

    /// Each node refers to the next one; in a ring the last one to the first.
    pub fn chain(count: usize, is_ring: bool) -> Self {
        let next = |node: usize| {
            if node + 1 < count || is_ring { vec![((node + 1) % count, 0)] } else { vec![] }
        };
        let nodes = (0..count).map(|node| GraphNode { hash: 1, edges: next(node) }).collect();
        Graph { nodes, roots: vec![(0, 0)], names: "n" }
    }

    /// Which nodes can be reached from some of them, those included.
    pub fn reached_from(&self, from: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut pending = from.to_vec();
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                pending.extend(self.nodes[node].edges.iter().map(|edge| edge.0));
            }
        }
        reached
    }

    pub fn reached_from_roots(&self) -> Vec<bool> {
        let roots: Vec<usize> = self.roots.iter().map(|root| root.0).collect();
        self.reached_from(&roots)
    }

    pub fn manifest(&self) -> Manifest<'static> {
        let edge = |&(node, offset): &(usize, i64)| Edge {
            node: node as u32,
            offset,
            takes_address: false,
        };
        let node = |(index, node): (usize, &GraphNode)| Node {
            name: format!("{}{index}", self.names).into(),
            kind: AtomKind::Function,
            level: Level::Code,
            hash: Hash([node.hash; 16]),
            input: 0,
            address: 0,
            size: 0,
            traceable: false,
            file: 0,
            line: 0,
            references: node.edges.len() as u32,
        };
        Manifest {
            nodes: self.nodes.iter().enumerate().map(node).collect(),
            edges: self.nodes.iter().flat_map(|node| node.edges.iter().map(edge)).collect(),
            roots: self.roots.iter().map(edge).collect(),
            ..Manifest::default()
        }
    }
}
