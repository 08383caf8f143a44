//! The hash of an entity together with everything that its declarations use, and what that uses.
//!
//! Types refer to each other in circles. Members of a circle have the hash of the circle as a
//! whole, and of everything that any of them uses outside of it, which Tarjan's algorithm finds in
//! one pass.

use super::declarations::{EntityId, Part, Role};
use super::hashing::Hashing;
use crate::model::Hash;

/// An entity, and whether its initialiser counts, too: a type can depend on the size of a table.
type Node = u32;

fn node(entity: EntityId, with_value: bool) -> Node {
    entity << 1 | u32::from(with_value)
}

/// Hashes that were computed.
pub struct Closure {
    /// By node: number in the order of the search plus one, and the finished hash.
    found: Vec<u32>,
    lowest: Vec<u32>,
    hashes: Vec<Option<Hash>>,
    count: u32,
    /// Nodes of circles that are not complete.
    open: Vec<Node>,
}

/// A node whose uses are being followed.
struct Visit {
    node: Node,
    uses: Vec<Node>,
    next: usize,
}

impl Closure {
    pub fn new(entities: usize) -> Self {
        Closure {
            found: vec![0; entities * 2],
            lowest: vec![0; entities * 2],
            hashes: vec![None; entities * 2],
            count: 0,
            open: Vec::new(),
        }
    }

    /// The hash of an entity with everything that its declarations use.
    pub fn of(&mut self, hashing: &mut Hashing, entity: EntityId) -> Hash {
        let start = node(entity, false);
        if let Some(hash) = self.hashes[start as usize] {
            return hash;
        }
        let mut visits = vec![self.visit(hashing, start)];
        while let Some(visit) = visits.last_mut() {
            if let Some(&used) = visit.uses.get(visit.next) {
                visit.next += 1;
                let from = visit.node as usize;
                if self.found[used as usize] == 0 {
                    let visit = self.visit(hashing, used);
                    visits.push(visit);
                } else if self.hashes[used as usize].is_none() {
                    self.lowest[from] = self.lowest[from].min(self.found[used as usize]);
                }
                continue;
            }
            let done = visit.node;
            visits.pop();
            if let Some(around) = visits.last() {
                let around = around.node as usize;
                self.lowest[around] = self.lowest[around].min(self.lowest[done as usize]);
            }
            if self.lowest[done as usize] == self.found[done as usize] {
                self.finish(hashing, done);
            }
        }
        self.hashes[start as usize].unwrap_or_default()
    }

    fn visit(&mut self, hashing: &Hashing, node: Node) -> Visit {
        self.count += 1;
        self.found[node as usize] = self.count;
        self.lowest[node as usize] = self.count;
        self.open.push(node);
        Visit { node, uses: uses(hashing, node), next: 0 }
    }

    /// The circle that `first` was the first member of is complete; most are of one node.
    fn finish(&mut self, hashing: &mut Hashing, first: Node) {
        let from = self.open.iter().rposition(|&node| node == first).unwrap_or(0);
        let members = self.open.split_off(from);
        let mut own: Vec<Hash> =
            members.iter().map(|&member| hashing.entity(member >> 1, member & 1 == 1)).collect();
        let mut used: Vec<Hash> = Vec::new();
        for &member in &members {
            used.extend(
                uses(hashing, member).iter().filter_map(|&used| self.hashes[used as usize]),
            );
        }
        let mut bytes = Vec::new();
        for hashes in [&mut own, &mut used] {
            // The text's order of declarations does not count, nor how often one is used.
            hashes.sort_unstable();
            hashes.dedup();
            bytes.extend((hashes.len() as u64).to_le_bytes());
            hashes.iter().for_each(|hash| bytes.extend(hash.0));
        }
        let hash = Hash::of(&bytes);
        // A last member keeps no open circle: only now are they finished.
        members.iter().for_each(|&member| self.hashes[member as usize] = Some(hash));
    }
}

/// What the declarations of a node use.
fn uses(hashing: &Hashing, node: Node) -> Vec<Node> {
    let declarations = hashing.declarations();
    let entity = node >> 1;
    let mut found = Vec::new();
    if declarations.entities[entity as usize].value.is_some() {
        return found;
    }
    let mut add = |part: Part, is_declaration: bool| {
        for used in declarations.uses_of(part) {
            let is_variable = declarations.entities[used.entity as usize].role == Role::Variable;
            found.push(self::node(used.entity, is_declaration && is_variable));
        }
    };
    for piece in declarations.pieces_of(entity) {
        if !piece.is_repeated {
            add(piece.specifiers, true);
            add(piece.own, true);
        }
        if node & 1 == 1 {
            add(piece.initialiser, false);
        }
    }
    found
}
