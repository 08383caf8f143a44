//! Two versions of a function: which executions of the one could do something else in the other.
//!
//! In: the [`Flow`] then and now, and the edges that an execution went through. Out: whether the
//! execution has to be repeated, by the four algorithms of T. Ball, "On the limit of control flow
//! analysis for regression test selection" (1998), each more precise than the one before; and which
//! blocks are different.
//!
//! The *intersection* pairs blocks that are reached by the same way in both versions. An edge after
//! which the two are no longer at equal blocks is *rejected*. For explanations only: no decision
//! depends on it.

use crate::flow::canonical::content;
use crate::flow::{Exit, Flow};
use crate::model::Hash;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// An edge of the first version: a block and the label of an exit.
pub type Edge = (u32, u32);

/// How precisely to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// Rothermel and Harrold: an edge was executed that is rejected on some way.
    Edges,
    /// … and that is rejected on a way through executed blocks.
    PartialReachability,
    /// … and that is rejected on a way of executed edges.
    FullReachability,
    /// … and that way can be part of a whole one which executes exactly those edges.
    ValidReachability,
}

/// How often a function was called. Ways that start anew can be put together to any set of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    Once,
    Many,
}

/// Beyond this the last algorithm is too slow, and says what the one before it does.
const MOST_STATES: usize = 100_000;
const MOST_EDGES: usize = 64;

/// The blocks that two versions of a function reach by the same ways.
pub struct Intersection<'f> {
    old: &'f Flow,
    starts: Vec<(u32, u32)>,
    /// The versions are entered in places that do not correspond: nothing is known.
    is_void: bool,
    /// The exits of each pair; `None` for those out of the function.
    pairs: FxHashMap<(u32, u32), Vec<Option<Way>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pair(u32, u32),
    /// To different blocks. The number is that of the first version's.
    Rejected(u32),
}

impl<'f> Intersection<'f> {
    pub fn new(old: &'f Flow, now: &'f Flow) -> Self {
        let contents = |flow: &Flow| flow.blocks.iter().map(content).collect::<Vec<Hash>>();
        let (old_contents, new_contents) = (contents(old), contents(now));
        let entries = |flow: &Flow| -> Vec<u32> {
            (0..flow.blocks.len() as u32)
                .filter(|&number| flow.blocks[number as usize].is_entry)
                .collect()
        };
        let (old_entries, new_entries) = (entries(old), entries(now));
        let is_equal =
            |one: u32, other: u32| old_contents[one as usize] == new_contents[other as usize];
        let starts: Vec<(u32, u32)> =
            old_entries.iter().copied().zip(new_entries.iter().copied()).collect();
        let is_void = old_entries.len() != new_entries.len()
            || starts.iter().any(|&(one, other)| !is_equal(one, other));
        let mut intersection =
            Intersection { old, starts: starts.clone(), is_void, pairs: FxHashMap::default() };
        let mut open = if is_void { Vec::new() } else { starts };
        while let Some(pair) = open.pop() {
            if intersection.pairs.contains_key(&pair) {
                continue;
            }
            let exits =
                old.blocks[pair.0 as usize].exits.iter().zip(&now.blocks[pair.1 as usize].exits);
            let ways = exits.map(|exits| match exits {
                (Exit::Block(one), Exit::Block(other)) if is_equal(*one, *other) => {
                    Some(Way::Pair(*one, *other))
                }
                (Exit::Block(one), _) => Some(Way::Rejected(*one)),
                // Equal blocks leave the function by the same exits.
                (Exit::Outside, _) => None,
            });
            let ways: Vec<Option<Way>> = ways.collect();
            open.extend(ways.iter().flatten().filter_map(|way| match way {
                Way::Pair(one, other) => Some((*one, *other)),
                Way::Rejected(_) => None,
            }));
            intersection.pairs.insert(pair, ways);
        }
        intersection
    }

    /// No way through the first version is different in the second.
    pub fn is_same(&self) -> bool {
        !self.is_void
            && !self.pairs.values().flatten().any(|way| matches!(way, Some(Way::Rejected(_))))
    }

    /// How many blocks of the first version are paired with several of the second. Without any, the
    /// first algorithm is as precise as the third.
    pub fn multiply_visited(&self) -> usize {
        let mut partners: FxHashMap<u32, u32> = FxHashMap::default();
        self.pairs.keys().for_each(|(one, _)| *partners.entry(*one).or_default() += 1);
        partners.values().filter(|count| **count > 1).count()
    }

    /// The edges of the first version after which something else follows on some way.
    pub fn rejected_edges(&self) -> FxHashSet<Edge> {
        let mut edges = FxHashSet::default();
        for ((one, _), ways) in &self.pairs {
            let rejected =
                ways.iter().enumerate().filter(|(_, way)| matches!(way, Some(Way::Rejected(_))));
            edges.extend(rejected.map(|(label, _)| (*one, label as u32)));
        }
        edges
    }

    /// Whether an execution that went through these edges, and no others, may do something else in
    /// the second version.
    pub fn must_run(&self, algorithm: Algorithm, executed: &FxHashSet<Edge>, calls: Calls) -> bool {
        if self.is_void {
            return true;
        }
        match algorithm {
            Algorithm::Edges => self.rejected_edges().iter().any(|edge| executed.contains(edge)),
            Algorithm::PartialReachability => {
                let blocks = self.executed_blocks(executed);
                self.reaches(executed, |_, to| blocks.contains(&to))
            }
            Algorithm::FullReachability => {
                self.reaches(executed, |edge, _| executed.contains(&edge))
            }
            Algorithm::ValidReachability => {
                self.must_run(Algorithm::FullReachability, executed, calls)
                    && (calls == Calls::Many || self.reaches_validly(executed).unwrap_or(true))
            }
        }
    }

    fn executed_blocks(&self, executed: &FxHashSet<Edge>) -> FxHashSet<u32> {
        let mut blocks: FxHashSet<u32> = self.starts.iter().map(|(one, _)| *one).collect();
        for &(from, label) in executed {
            blocks.insert(from);
            if let Some(Exit::Block(to)) = self.exit((from, label)) {
                blocks.insert(to);
            }
        }
        blocks
    }

    fn exit(&self, (from, label): Edge) -> Option<Exit> {
        self.old.blocks.get(from as usize)?.exits.get(label as usize).copied()
    }

    /// Whether an executed edge is rejected on a way of edges that may be followed.
    fn reaches(&self, executed: &FxHashSet<Edge>, may_follow: impl Fn(Edge, u32) -> bool) -> bool {
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut open = self.starts.clone();
        while let Some(pair) = open.pop() {
            if !seen.insert(pair) {
                continue;
            }
            for (label, way) in self.pairs.get(&pair).into_iter().flatten().enumerate() {
                let edge = (pair.0, label as u32);
                match way {
                    Some(Way::Rejected(_)) if executed.contains(&edge) => return true,
                    Some(Way::Pair(one, other)) if may_follow(edge, *one) => {
                        open.push((*one, *other))
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Whether a way of executed edges is rejected and can go on, in the first version, so that all
    /// of them are executed. `None`: there are too many ways.
    fn reaches_validly(&self, executed: &FxHashSet<Edge>) -> Option<bool> {
        let mut numbers: Vec<Edge> =
            executed.iter().copied().filter(|edge| self.exit(*edge).is_some()).collect();
        numbers.sort_unstable();
        if numbers.len() > MOST_EDGES {
            return None;
        }
        let rest = Rest::new(self.old, &numbers);
        let mut seen: FxHashSet<((u32, u32), u64)> = FxHashSet::default();
        let mut open: VecDeque<((u32, u32), u64)> =
            self.starts.iter().map(|start| (*start, 0)).collect();
        while let Some((pair, done)) = open.pop_front() {
            if !seen.insert((pair, done)) {
                continue;
            }
            if seen.len() > MOST_STATES {
                return None;
            }
            for (label, way) in self.pairs.get(&pair).into_iter().flatten().enumerate() {
                let Ok(number) = numbers.binary_search(&(pair.0, label as u32)) else { continue };
                let done = done | 1 << number;
                match way {
                    Some(Way::Rejected(to)) if rest.can_be_done(*to, done) => return Some(true),
                    Some(Way::Pair(one, other)) => open.push_back(((*one, *other), done)),
                    _ => {}
                }
            }
        }
        Some(false)
    }
}

/// What an execution still has to go through.
struct Rest<'e> {
    edges: &'e [Edge],
    ends: Vec<Option<u32>>,
    /// Which blocks each block reaches by executed edges; itself as well.
    reach: FxHashMap<u32, FxHashSet<u32>>,
}

impl<'e> Rest<'e> {
    fn new(flow: &Flow, edges: &'e [Edge]) -> Self {
        let end = |(from, label): &Edge| match flow.blocks[*from as usize].exits[*label as usize] {
            Exit::Block(to) => Some(to),
            Exit::Outside => None,
        };
        let ends: Vec<Option<u32>> = edges.iter().map(end).collect();
        let mut rest = Rest { edges, ends, reach: FxHashMap::default() };
        for block in edges.iter().map(|edge| edge.0).chain(rest.ends.clone().into_iter().flatten())
        {
            let reached = rest.reached(block);
            rest.reach.insert(block, reached);
        }
        rest
    }

    fn reached(&self, start: u32) -> FxHashSet<u32> {
        let mut reached = FxHashSet::default();
        let mut open = vec![start];
        while let Some(block) = open.pop() {
            if reached.insert(block) {
                let out = self.edges.iter().zip(&self.ends).filter(|(edge, _)| edge.0 == block);
                open.extend(out.filter_map(|(_, end)| *end));
            }
        }
        reached
    }

    fn reaches(&self, from: u32, to: u32) -> bool {
        self.reach.get(&from).is_some_and(|reached| reached.contains(&to))
    }

    /// Whether some way from a block goes through all edges that have not been gone through: they
    /// have to follow each other.
    fn can_be_done(&self, block: u32, done: u64) -> bool {
        let open: Vec<usize> =
            (0..self.edges.len()).filter(|number| done & (1 << number) == 0).collect();
        let follows = |one: usize, other: usize| {
            self.ends[one].is_some_and(|end| self.reaches(end, self.edges[other].0))
        };
        open.iter().all(|&edge| self.reaches(block, self.edges[edge].0))
            && open.iter().all(|&one| {
                open.iter().all(|&other| one == other || follows(one, other) || follows(other, one))
            })
    }
}

/// The blocks of the second version that the first one has not, or, where each has the same ones,
/// those that lead elsewhere.
pub fn changed_blocks(old: &Flow, now: &Flow) -> Vec<u32> {
    let missing = without_partner(now, old);
    if !missing.is_empty() {
        return missing;
    }
    let intersection = Intersection::new(now, old);
    let mut sources: Vec<u32> =
        intersection.rejected_edges().into_iter().map(|(block, _)| block).collect();
    sources.sort_unstable();
    sources.dedup();
    sources
}

/// The blocks of one version for which the other has none of the same content left.
pub fn without_partner(flow: &Flow, other: &Flow) -> Vec<u32> {
    let mut left: FxHashMap<Hash, u32> = FxHashMap::default();
    other.blocks.iter().for_each(|block| *left.entry(content(block)).or_default() += 1);
    let is_left = |number: &u32| match left.get_mut(&content(&flow.blocks[*number as usize])) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    (0..flow.blocks.len() as u32).filter(is_left).collect()
}

#[cfg(test)]
#[path = "control_flow_tests.rs"]
mod tests;
