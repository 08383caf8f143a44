//! The walk, held against an oracle: two programs have the same fingerprint if, and only if, the
//! graphs that their roots reach are the same but for names and numbers.

use super::*;
use crate::fingerprint::graphs::{Graph, graph, renumbered};
use proptest::prelude::*;
use proptest::sample::Index;

fn of(graph: &Graph) -> Fingerprint {
    let manifest = graph.manifest();
    fingerprint(&[Module::Known(&manifest)], Start::Program).unwrap()
}

/// Walks both graphs at once, pairing what stands at the same place. Ordered edges leave no other
/// choice of pairs, so that the graphs are the same if the pairs never contradict each other.
fn are_same(one: &Graph, other: &Graph) -> bool {
    let mut partners: Vec<Option<usize>> = vec![None; one.nodes.len()];
    let mut taken: Vec<Option<usize>> = vec![None; other.nodes.len()];
    let mut pending = Vec::new();
    let pair = |list: &[(usize, i64)],
                others: &[(usize, i64)],
                pending: &mut Vec<(usize, usize)>| {
        pending.extend(list.iter().zip(others).map(|(one, other)| (one.0, other.0)));
        list.len() == others.len() && list.iter().zip(others).all(|(one, other)| one.1 == other.1)
    };
    if !pair(&one.roots, &other.roots, &mut pending) {
        return false;
    }
    while let Some((left, right)) = pending.pop() {
        match (partners[left], taken[right]) {
            (Some(partner), Some(back)) if (partner, back) == (right, left) => continue,
            (None, None) => (partners[left], taken[right]) = (Some(right), Some(left)),
            _ => return false,
        }
        let (left, right) = (&one.nodes[left], &other.nodes[right]);
        if left.hash != right.hash || !pair(&left.edges, &right.edges, &mut pending) {
            return false;
        }
    }
    true
}

proptest! {
    #[test]
    fn equal_if_and_only_if_the_graphs_are_the_same(one in graph(3, 2), other in graph(3, 2)) {
        prop_assert_eq!(of(&one) == of(&other), are_same(&one, &other));
    }

    #[test]
    fn numbers_and_names_do_not_count(graph in graph(8, 3), order in any::<u64>()) {
        let (mut other, _) = renumbered(&graph, order);
        other.names = "other";
        prop_assert!(are_same(&graph, &other));
        prop_assert_eq!(of(&graph), of(&other));
    }

    #[test]
    fn unreached_code_does_not_count(graph in self::graph(6, 3), more in self::graph(4, 3), order in any::<u64>()) {
        let mut other = graph.clone();
        let all = graph.nodes.len() + more.nodes.len();
        for mut node in more.nodes {
            // They may refer to anything; nothing refers to them.
            node.edges.iter_mut().for_each(|edge| edge.0 = (edge.0 * 7 + 3) % all);
            other.nodes.push(node);
        }
        prop_assert_eq!(of(&graph), of(&renumbered(&other, order).0));
    }

    #[test]
    fn a_changed_node_counts_where_it_is_reached(graph in graph(8, 3), at in any::<Index>()) {
        let at = at.index(graph.nodes.len());
        let mut other = graph.clone();
        other.nodes[at].hash = 99;
        prop_assert_eq!(of(&graph) != of(&other), graph.reached_from_roots()[at]);
    }

    /// `x++` becomes `y++`: another thing with the same content.
    #[test]
    fn a_redirected_edge_counts(graph in graph(6, 1), at in any::<Index>(), to in any::<Index>()) {
        let sources: Vec<usize> = (0..graph.nodes.len()).filter(|&node| !graph.nodes[node].edges.is_empty()).collect();
        prop_assume!(!sources.is_empty());
        let mut other = graph.clone();
        other.nodes[sources[at.index(sources.len())]].edges[0].0 = to.index(graph.nodes.len());
        prop_assert_eq!(of(&graph) == of(&other), are_same(&graph, &other));
    }

    /// The program calls one function of a library: what that one and the library's roots reach
    /// counts, no more.
    #[test]
    fn libraries_count_as_far_as_they_are_used(library in graph(6, 3), used in any::<Index>(), at in any::<Index>()) {
        let (used, at) = (used.index(library.nodes.len()), at.index(library.nodes.len()));
        let program = program_importing("used");
        let whole = |library: &Graph| {
            let mut library = library.manifest();
            let edge = Edge { node: used as u32, offset: 0, takes_address: false };
            library.exports = vec![Export { name: "used", version: "", edge }];
            fingerprint(&[Module::Known(&program), Module::Known(&library)], Start::Program).unwrap()
        };
        let mut changed = library.clone();
        changed.nodes[at].hash = 99;
        let counts = library.reached_from_roots()[at] || library.reached_from(&[used])[at];
        prop_assert_eq!(whole(&library) != whole(&changed), counts);
    }
}

fn program_importing(name: &'static str) -> Manifest<'static> {
    let mut program = Graph::of(&[(1, &[1]), (2, &[])], &[0]).manifest();
    program.nodes[1].kind = AtomKind::Import;
    program.nodes[1].name = name.into();
    program
}

/// With a ⇄ b → c, a change of c reaches a.
#[test]
fn recursion_does_not_hide_what_lies_behind() {
    let program = |c| Graph::of(&[(1, &[1]), (2, &[0, 2]), (c, &[])], &[0]);
    assert_ne!(of(&program(3)), of(&program(4)));
    let from_b = |c| of(&Graph { roots: vec![(1, 0)], ..program(c) });
    assert_ne!(from_b(3), from_b(4));
}

#[test]
fn a_function_that_calls_itself_is_not_one_that_calls_its_twin() {
    let itself = Graph::of(&[(1, &[0])], &[0]);
    let twin = Graph::of(&[(1, &[1]), (1, &[1])], &[0]);
    let back = Graph::of(&[(1, &[1]), (1, &[0])], &[0]);
    assert_ne!(of(&itself), of(&twin));
    assert_ne!(of(&itself), of(&back));
    assert_ne!(of(&twin), of(&back));
}

#[test]
fn long_chains_and_rings_need_no_stack() {
    for is_ring in [false, true] {
        let long = Graph::chain(100_000, is_ring);
        let mut changed = long.clone();
        changed.nodes[99_999].hash = 99;
        assert_ne!(of(&long), of(&changed));
    }
}

/// The first module that offers a symbol wins, as it does for the dynamic loader.
#[test]
fn the_first_offer_wins() {
    let program = program_importing("f");
    let library = |hash| {
        let mut library = Graph::of(&[(hash, &[])], &[]).manifest();
        library.exports = vec![Export {
            name: "f",
            version: "",
            edge: Edge { node: 0, offset: 0, takes_address: false },
        }];
        library
    };
    let order = |first: &Manifest, second: &Manifest| {
        let modules = [Module::Known(&program), Module::Known(first), Module::Known(second)];
        fingerprint(&modules, Start::Program).unwrap()
    };
    let (one, other, third) = (library(1), library(2), library(3));
    assert_ne!(order(&one, &other), order(&other, &one));
    assert_eq!(order(&one, &other), order(&one, &third));
}

/// A symbol that no module offers is told from another by its own hash.
#[test]
fn imports_without_an_offer_count_by_themselves() {
    let mut program = program_importing("f");
    let before = fingerprint(&[Module::Known(&program)], Start::Program);
    program.nodes[1].hash = Hash([7; 16]);
    assert_ne!(before, fingerprint(&[Module::Known(&program)], Start::Program));
}

/// A program whose root refers to nodes 1, 2 and 3, each at its address; of some the address is
/// used as a value.
fn at_addresses(addresses: [u64; 3], takes: [bool; 3]) -> Fingerprint {
    let mut manifest = Graph::of(&[(1, &[1, 2, 3]), (2, &[]), (2, &[]), (2, &[])], &[0]).manifest();
    for (at, address) in addresses.into_iter().enumerate() {
        manifest.nodes[at + 1].address = address;
        manifest.edges[at].takes_address = takes[at];
    }
    fingerprint(&[Module::Known(&manifest)], Start::Program).unwrap()
}

#[test]
fn order_of_used_addresses_counts() {
    let all = [true; 3];
    assert_eq!(
        at_addresses([10, 20, 30], all),
        at_addresses([10, 500, 900], all),
        "something came between"
    );
    assert_ne!(
        at_addresses([10, 20, 30], all),
        at_addresses([20, 10, 30], all),
        "two changed places"
    );
    assert_ne!(
        at_addresses([10, 20, 30], all),
        at_addresses([10, 10, 30], all),
        "two were folded into one"
    );
}

#[test]
fn order_of_other_addresses_does_not_count() {
    let some = [true, false, true];
    assert_eq!(at_addresses([10, 20, 30], some), at_addresses([10, 40, 30], some));
    assert_ne!(at_addresses([10, 20, 30], some), at_addresses([30, 20, 10], some));
    assert_eq!(at_addresses([10, 20, 30], [false; 3]), at_addresses([30, 10, 20], [false; 3]));
}
