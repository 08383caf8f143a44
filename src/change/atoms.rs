//! The atoms that differ between two builds of a program.
//!
//! In: the manifests then and now. Out: what has changed among the atoms that the program reaches,
//! each with the shortest chain of references from where the program starts.

use super::graph::{Graph, Reach};
use super::matching::{self, Partners};
use crate::fingerprint::walk::{self, Guide, Module, NodeSet, Start};
use crate::model::{AtomKind, Level, Manifest};
use std::cmp::Ordering;

/// What has become of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtomFate {
    /// Its own code or data is different.
    Changed,
    /// It is the same, but refers to something else.
    Retargeted,
    Added,
    Removed,
}

/// One atom that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomChange {
    pub what: AtomFate,
    pub name: String,
    pub kind: AtomKind,
    /// How finely it was hashed.
    pub level: Level,
    /// File and line, where there is debug information.
    pub source: Option<(String, u32)>,
    pub object: Option<String>,
    /// The number of the module that it is in: 0 for the program, then its libraries.
    pub module: usize,
    /// The names of the atoms that lead to it, from where the program starts to itself.
    pub chain: Vec<String>,
    /// What it refers to in place of what; several where one atom is used in place of another.
    pub references: Vec<(String, String)>,
    /// The line before, of code that has kept its size and its references but not its line: the
    /// change may be no more than the number of a line (`__LINE__`, as in `assert`).
    pub moved_from: Option<u32>,
}

/// Two builds of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The most telling ones first.
    pub changes: Vec<AtomChange>,
    /// What holds for the binary as a whole is different: machine, kind, interpreter, options.
    pub frame: bool,
    /// The program starts in other places, or in another order.
    pub roots: bool,
}

/// What differs between two builds: the manifests of the program and of its libraries, the
/// program's first. Where it is known what was executed of the first one, only that counts.
pub fn compare(
    before: &[Manifest],
    now: &[Manifest],
    entry: Option<&str>,
    executed: Option<&NodeSet>,
) -> Comparison {
    let frame = |modules: &[Manifest]| modules.first().map(|program| program.frame);
    let (old, new) = (Graph::new(before), Graph::new(now));
    let partners = matching::partners(&old, &new);
    let executed = executed.map(|set| {
        let modules: Vec<Module> = before.iter().map(Module::Known).collect();
        walk::entered(&modules, entry.map_or(Start::Program, Start::Entry), Guide::Set(set))
            .concat()
    });
    let builds = Builds { old: &old, new: &new, partners: &partners, executed };
    let (old_starts, new_starts) = (old.starts(entry), new.starts(entry));
    let partner = |start: &usize| partners.before[*start];
    let roots = !old_starts.iter().map(partner).eq(new_starts.iter().copied().map(Some));
    let mut changes =
        builds.changes(&old.reach(old_starts.clone()), &new.reach(new_starts.clone()));
    if changes.is_empty() {
        // What is called by name only, or by libraries that have no manifest.
        let old_reach = old.reach(old_starts.into_iter().chain(old.exported()));
        changes =
            builds.changes(&old_reach, &new.reach(new_starts.into_iter().chain(new.exported())));
    }
    changes.sort_by(by_weight);
    Comparison { changes, frame: frame(before) != frame(now), roots }
}

/// Real changes before those that may be mere line numbers, and what is near to the start first.
fn by_weight(one: &AtomChange, other: &AtomChange) -> Ordering {
    let weight =
        |change: &AtomChange| (change.what, change.moved_from.is_some(), change.chain.len());
    weight(one)
        .cmp(&weight(other))
        .then_with(|| (&one.source, &one.name).cmp(&(&other.source, &other.name)))
}

struct Builds<'g, 'm, 'a> {
    old: &'g Graph<'m, 'a>,
    new: &'g Graph<'m, 'a>,
    partners: &'g Partners,
    /// Which of the old atoms were executed, or were seen by what was; `None` if all count.
    executed: Option<Vec<bool>>,
}

impl Builds<'_, '_, '_> {
    fn changes(&self, old_reach: &Reach, new_reach: &Reach) -> Vec<AtomChange> {
        let now = (0..self.new.len()).filter(|&number| new_reach.contains(number));
        let mut changes: Vec<AtomChange> =
            now.filter_map(|number| self.change(number, new_reach)).collect();
        let gone = (0..self.old.len()).filter(|&number| old_reach.contains(number));
        let gone = gone.filter(|&number| {
            self.partners.before[number].is_none() && is_reported(self.old, number)
        });
        let gone = gone.filter(|&number| self.counted(number));
        changes
            .extend(gone.map(|number| described(self.old, number, old_reach, AtomFate::Removed)));
        changes
    }

    /// Whether an old atom counts.
    fn counted(&self, number: usize) -> bool {
        self.executed.as_ref().is_none_or(|executed| executed.get(number) == Some(&true))
    }

    /// Whether something new can have been executed: if what leads to it was.
    fn matters(&self, number: usize, reach: &Reach) -> bool {
        let before =
            reach.chain(number).into_iter().rev().find_map(|number| self.partners.now[number]);
        before.is_none_or(|partner| self.counted(partner))
    }

    /// What has become of an atom that is there now.
    fn change(&self, number: usize, reach: &Reach) -> Option<AtomChange> {
        let Some(partner) = self.partners.now[number] else {
            return (is_reported(self.new, number) && self.matters(number, reach))
                .then(|| described(self.new, number, reach, AtomFate::Added));
        };
        if !self.counted(partner) {
            return None;
        }
        let (before, now) = (self.old.node(partner), self.new.node(number));
        let references = self.references(partner, number);
        if before.hash != now.hash {
            let is_moved =
                before.size == now.size && references.as_ref().is_some_and(Vec::is_empty);
            let line = self
                .old
                .source(partner)
                .map(|(_, line)| line)
                .filter(|line| *line != now.line && now.line > 0);
            let moved_from = line.filter(|_| is_moved && now.kind == AtomKind::Function);
            return Some(AtomChange {
                moved_from,
                ..described(self.new, number, reach, AtomFate::Changed)
            });
        }
        match references {
            Some(references) if references.is_empty() => None,
            references => {
                let references = references.unwrap_or_default();
                Some(AtomChange {
                    references,
                    ..described(self.new, number, reach, AtomFate::Retargeted)
                })
            }
        }
    }

    /// What an atom refers to now in place of what it referred to; `None` if there are more
    /// references, or fewer.
    fn references(&self, partner: usize, number: usize) -> Option<Vec<(String, String)>> {
        let (before, now) = (self.old.targets(partner), self.new.targets(number));
        if before.len() != now.len() {
            return None;
        }
        let pairs = before.iter().zip(now);
        let different = pairs.filter(|((old, old_offset), (new, new_offset))| {
            self.partners.before[*old] != Some(*new) || old_offset != new_offset
        });
        let name = |graph: &Graph, number: usize| graph.node(number).name.to_string();
        Some(
            different
                .map(|((old, _), (new, _))| (name(self.old, *old), name(self.new, *new)))
                .collect(),
        )
    }
}

/// Whether a new or lost atom is worth a line of its own. Literals and imports are told by those
/// who use them.
fn is_reported(graph: &Graph, number: usize) -> bool {
    !matches!(
        graph.node(number).kind,
        AtomKind::Literal | AtomKind::Import | AtomKind::Value | AtomKind::Range
    )
}

fn described(graph: &Graph, number: usize, reach: &Reach, what: AtomFate) -> AtomChange {
    let node = graph.node(number);
    let mut chain: Vec<String> =
        reach.chain(number).into_iter().map(|number| graph.node(number).name.to_string()).collect();
    // An import and what it is bound to have the same name.
    chain.dedup();
    AtomChange {
        what,
        name: node.name.to_string(),
        kind: node.kind,
        level: node.level,
        source: graph.source(number).map(|(file, line)| (file.to_owned(), line)),
        object: graph.object(number).map(str::to_owned),
        module: graph.module(number),
        chain,
        references: Vec::new(),
        moved_from: None,
    }
}

#[cfg(test)]
#[path = "atoms_tests.rs"]
mod tests;
