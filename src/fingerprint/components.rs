//! The global hash of every node: what it is together with all that it reaches. Recursion is
//! condensed: the nodes of a strongly connected component share one hash over the local hashes of
//! *all* members and the global hashes of everything that *any* member reaches outside. (With a ⇄ b
//! → c, a change of c reaches a.)
//!
//! The fingerprint does not need it; it is there to show which subtree a change lies in.

use crate::model::manifest::Manifest;
use crate::model::{Hash, Hasher};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// The global hash of each node, in linear time.
pub fn global_hashes(manifest: &Manifest) -> Vec<Hash> {
    let starts = manifest.edge_starts();
    let count = manifest.nodes.len();
    let mut graph = DiGraph::<(), (), u32>::with_capacity(count, manifest.edges.len());
    for _ in 0..count {
        graph.add_node(());
    }
    for node in 0..count {
        for edge in edges(manifest, &starts, node) {
            graph.add_edge((node as u32).into(), edge.node.into(), ());
        }
    }
    let mut component_of = vec![u32::MAX; count];
    let mut global = vec![Hash::default(); count];
    // Components come in such an order that what a component reaches was finished before it.
    for (number, component) in kosaraju_scc(&graph).into_iter().enumerate() {
        let members: Vec<usize> = component.into_iter().map(|node| node.index()).collect();
        members.iter().for_each(|&node| component_of[node] = number as u32);
        let mut parts: Vec<Hash> = members
            .iter()
            .map(|&node| {
                member_hash(manifest, &starts, node, number as u32, &component_of, &global)
            })
            .collect();
        let own = parts.clone();
        parts.sort_unstable();
        let mut whole = Hasher::new("component");
        for part in parts {
            whole.hash(part);
        }
        let whole = whole.finish();
        for (&node, own) in members.iter().zip(own) {
            global[node] = Hasher::new("global").hash(whole).hash(own).finish();
        }
    }
    global
}

/// One member: what it is, which members it refers to, and the finished hashes of what lies
/// outside.
fn member_hash(
    manifest: &Manifest,
    starts: &[u32],
    node: usize,
    component: u32,
    component_of: &[u32],
    global: &[Hash],
) -> Hash {
    let mut hasher = Hasher::new("member");
    hasher.hash(manifest.nodes[node].hash);
    for edge in edges(manifest, starts, node) {
        let target = edge.node as usize;
        // The name keeps apart what is equal in content: two zeroed counters.
        hasher
            .number(edge.offset as u64)
            .bytes(without_numbers(&manifest.nodes[target].name).as_bytes());
        let inside = component_of[target] == component;
        hasher.hash(if inside { manifest.nodes[target].hash } else { global[target] });
    }
    hasher.finish()
}

fn edges<'m>(
    manifest: &'m Manifest,
    starts: &[u32],
    node: usize,
) -> &'m [crate::model::manifest::Edge] {
    manifest.edges.get(starts[node] as usize..starts[node + 1] as usize).unwrap_or_default()
}

/// A name without the numbers that compilers append: `buf.0`, `foo.constprop.1`, `.L.str.7`.
pub fn without_numbers(name: &str) -> &str {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    match stem.strip_suffix('.') {
        Some(stem) if !stem.is_empty() && stem.len() < name.len() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::graphs::{Graph, graph};
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn changed(one: &Graph, other: &Graph) -> Vec<bool> {
        let (one, other) = (global_hashes(&one.manifest()), global_hashes(&other.manifest()));
        one.iter().zip(&other).map(|(one, other)| one != other).collect()
    }

    proptest! {
        #[test]
        fn a_change_affects_exactly_its_predecessors(graph in graph(8, 3), at in any::<Index>()) {
            let at = at.index(graph.nodes.len());
            let mut other = graph.clone();
            other.nodes[at].hash = 99;
            let reaches: Vec<bool> = (0..graph.nodes.len()).map(|node| graph.reached_from(&[node])[at]).collect();
            prop_assert_eq!(changed(&graph, &other), reaches);
        }

        #[test]
        fn an_added_edge_changes_exactly_its_predecessors(graph in graph(8, 3), at in any::<Index>(), to in any::<Index>()) {
            let (at, to) = (at.index(graph.nodes.len()), to.index(graph.nodes.len()));
            let mut other = graph.clone();
            other.nodes[at].edges.push((to, 0));
            let reaches: Vec<bool> = (0..graph.nodes.len()).map(|node| graph.reached_from(&[node])[at]).collect();
            prop_assert_eq!(changed(&graph, &other), reaches);
        }
    }

    /// With a ⇄ b → c, a change of c reaches a.
    #[test]
    fn recursion_does_not_hide_what_lies_behind() {
        let program = |c| Graph::of(&[(1, &[1]), (2, &[0, 2]), (c, &[]), (5, &[])], &[0]);
        assert_eq!(changed(&program(3), &program(4)), [true, true, true, false]);
    }

    /// `x++` becomes `y++` within a cycle: the same content under another name.
    #[test]
    fn identity_counts_within_a_component() {
        let program = |target| Graph::of(&[(1, &[target]), (2, &[0]), (2, &[0])], &[0]);
        assert_eq!(changed(&program(1), &program(2)), [true, true, true]);
    }

    #[test]
    fn long_chains_and_rings_need_no_stack() {
        for is_ring in [false, true] {
            let long = Graph::chain(100_000, is_ring);
            let mut other = long.clone();
            other.nodes[99_999].hash = 99;
            assert!(changed(&long, &other).into_iter().all(|changed| changed));
        }
    }

    #[test]
    fn names_without_what_compilers_append() {
        assert_eq!(without_numbers("buf.0"), "buf");
        assert_eq!(without_numbers("foo.constprop.12"), "foo.constprop");
        assert_eq!(without_numbers("x86"), "x86");
        assert_eq!(without_numbers(".7"), ".7");
        assert_eq!(without_numbers(""), "");
    }
}
