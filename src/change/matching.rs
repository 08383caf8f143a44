//! Which atom of one build is which atom of another. Names are for people and may occur twice, so
//! this is a guess; nothing but explanations depends on it.
//!
//! In: two graphs. Out: for each node its partner in the other graph, if it has one.

use super::graph::Graph;
use crate::model::{AtomKind, Hash};
use rustc_hash::FxHashMap;

/// The partners of the nodes of either graph.
pub struct Partners {
    pub before: Vec<Option<usize>>,
    pub now: Vec<Option<usize>>,
}

/// What two nodes have to have in common.
#[derive(Clone, Copy)]
struct Round {
    name: bool,
    object: bool,
    hash: bool,
}

/// From what is almost certain to what is probable: the same thing in the same file; in another
/// file (objects that the driver compiles and links in one go have other names each time); changed;
/// renamed.
const ROUNDS: [Round; 5] = [
    Round { name: true, object: true, hash: true },
    Round { name: true, object: false, hash: true },
    Round { name: true, object: true, hash: false },
    Round { name: true, object: false, hash: false },
    Round { name: false, object: false, hash: true },
];

type Key<'a> = (AtomKind, Option<&'a str>, Option<&'a str>, Option<Hash>);

impl Round {
    fn key<'m>(self, graph: &Graph<'m, '_>, number: usize) -> Option<Key<'m>> {
        let node = graph.node(number);
        // A literal is its content, and is called so: another content is another literal.
        if node.kind == AtomKind::Literal && !self.hash {
            return None;
        }
        let object =
            || graph.object(number).map(|object| object.rsplit('/').next().unwrap_or(object));
        Some((
            node.kind,
            self.name.then(|| unnumbered(&node.name)),
            self.object.then(object).flatten(),
            self.hash.then_some(node.hash),
        ))
    }
}

/// A name without what the compiler counts: `buf` of `buf.0`, `foo.constprop` of `foo.constprop.1`,
/// `.LC` of `.LC7`.
fn unnumbered(name: &str) -> &str {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match stem.strip_suffix('.') {
        Some(front) if stem.len() < name.len() && !front.is_empty() => front,
        _ if stem == ".LC" => stem,
        _ => name,
    }
}

/// Finds the partners, in the order of the nodes where there are several.
pub fn partners(before: &Graph, now: &Graph) -> Partners {
    let mut partners = Partners { before: vec![None; before.len()], now: vec![None; now.len()] };
    for round in ROUNDS {
        let mut free: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
        for number in (0..before.len()).rev().filter(|&number| partners.before[number].is_none()) {
            if let Some(key) = round.key(before, number) {
                free.entry(key).or_default().push(number);
            }
        }
        for number in 0..now.len() {
            if partners.now[number].is_some() {
                continue;
            }
            let partner = round.key(now, number).and_then(|key| free.get_mut(&key)?.pop());
            if let Some(partner) = partner {
                partners.now[number] = Some(partner);
                partners.before[partner] = Some(number);
            }
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::unnumbered;

    #[test]
    fn compiler_counters_are_no_part_of_names() {
        for (name, stem) in [
            ("buf.0", "buf"),
            ("foo.constprop.12", "foo.constprop"),
            (".LC7", ".LC"),
            ("v2", "v2"),
            ("x.y", "x.y"),
            (".5", ".5"),
            ("", ""),
        ] {
            assert_eq!(unnumbered(name), stem);
        }
    }
}
