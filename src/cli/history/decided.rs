//! What was decided about the tests of a commit, from the log of the replay.
//!
//! In: the decisions since its tests began. Out: each test once, with what has changed in the
//! programs that it runs.

use super::names;
use crate::change;
use crate::fingerprint::walk::NodeSet;
use crate::model::{Audit, Decision, Hash, Manifest, Rebuilt, Shadow, Verdict};
use crate::report::history::{Changed, Test, Text, changes, short};
use crate::store::{FileStore, Journal, Memo, Options};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How a shell shows the signals by which people and machines interrupt a test: HUP, INT, QUIT,
/// KILL, TERM.
const INTERRUPTED: [i32; 5] = [128 + 1, 128 + 2, 128 + 3, 128 + 9, 128 + 15];

/// The log, and what was found out about the programs in it.
pub struct Decided {
    log: FileStore,
    /// The tree that paths are seen from.
    root: PathBuf,
    comparisons: Comparisons,
}

impl Decided {
    /// Nothing is known yet.
    pub fn new(store: &Path, root: &Path) -> Decided {
        let open = || FileStore::new(store, Options::default());
        let (log, comparisons) = (open(), Comparisons::new(open()));
        Decided { log, root: root.to_owned(), comparisons }
    }

    /// What was decided about the tests since then.
    pub fn since(&mut self, begun: u64) -> anyhow::Result<Vec<Test>> {
        let decisions = self.log.decisions(usize::MAX)?;
        let decisions = decisions
            .into_iter()
            .filter(|decision| decision.time >= begun && decision.shadow.is_some());
        let decisions = once_each(decisions.collect());
        let names = self.names(&decisions);
        Ok(decisions.iter().zip(names).map(|(decision, name)| self.test(decision, &name)).collect())
    }

    /// Commands that are several tests, by their environment, have numbers.
    fn names(&self, decisions: &[Decision]) -> Vec<String> {
        let mut same: HashMap<String, Vec<Hash>> = HashMap::new();
        let named: Vec<(String, Hash)> = decisions
            .iter()
            .map(|decision| {
                (names::of(&decision.argv, &decision.cwd, &self.root), identity(decision))
            })
            .collect();
        named.iter().for_each(|(name, test)| same.entry(name.clone()).or_default().push(*test));
        // Not the order in which they ended, which is another one at each commit.
        same.values_mut().for_each(|tests| tests.sort_unstable());
        let number = |name: &str, test: Hash| {
            same[name].iter().position(|other| *other == test).unwrap_or(0)
        };
        let named = named.into_iter().map(|(name, test)| match number(&name, test) {
            0 => name,
            number => format!("{name} ({})", number + 1),
        });
        named.collect()
    }

    fn test(&mut self, decision: &Decision, name: &str) -> Test {
        let shadow = decision.shadow.as_ref();
        let granularities = shadow.map(|shadow| shadow.granularities).unwrap_or_default();
        let changed = shadow.map(|shadow| self.comparisons.changed(shadow)).unwrap_or_default();
        Test {
            name: Text::from(name),
            decision: granularities,
            exit_code: decision.exit_code,
            failed: decision.told_failure.then_some(true),
            reason: Text::from(&*reason(decision)),
            sort: Text::from(&*decision.sort),
            duration_ms: decision.duration_ms,
            audit: decision.audit,
            disturbed: decision.disturbed.as_deref().map(Text::from),
            ast: None,
            changed,
        }
    }
}

/// Builds of programs in a store, compared.
pub struct Comparisons {
    store: FileStore,
    known: HashMap<Hash, Vec<Changed>>,
}

impl Comparisons {
    /// None is known yet.
    pub fn new(store: FileStore) -> Comparisons {
        Comparisons { store, known: HashMap::new() }
    }

    /// What made a test run: in its programs, and files.
    pub fn changed(&mut self, shadow: &Shadow) -> Vec<Changed> {
        let programs = shadow.programs.iter().flat_map(|name| self.program(*name));
        let files = shadow.files.iter().map(|path| Changed::file(path));
        programs.collect::<Vec<_>>().into_iter().chain(files).collect()
    }

    fn program(&mut self, name: Hash) -> Vec<Changed> {
        let compare = || compare(&self.store, name).unwrap_or_default();
        self.known.entry(name).or_insert_with(compare).clone()
    }
}

/// Why it ran, or whose result would have been reused.
pub fn reason(decision: &Decision) -> String {
    let shadow = decision.shadow.as_ref().filter(|_| decision.audit == Some(Audit::Same));
    match shadow.filter(|shadow| shadow.granularities.executed == Verdict::Reused) {
        Some(shadow) => {
            let from = shadow.reused_from.as_deref().unwrap_or("an earlier run");
            format!("unchanged since {}", short(from))
        }
        None => decision.reason.clone(),
    }
}

fn identity(decision: &Decision) -> Hash {
    decision.shadow.as_ref().and_then(|shadow| shadow.identity).unwrap_or_default()
}

/// Of a test that ran twice, the first decision counts, except that a miss is never passed over,
/// and that the replay may have been interrupted in the midst of the first.
fn once_each(decisions: Vec<Decision>) -> Vec<Decision> {
    let mut found: Vec<Decision> = Vec::new();
    let mut places = HashMap::new();
    for decision in decisions {
        let place = *places
            .entry((decision.argv.clone(), decision.cwd.clone(), identity(&decision)))
            .or_insert(found.len());
        match found.get_mut(place) {
            None => found.push(decision),
            Some(known) if weight(&decision) > weight(known) => *known = decision,
            Some(_) => {}
        }
    }
    found
}

fn weight(decision: &Decision) -> u8 {
    match decision.audit {
        _ if INTERRUPTED.contains(&decision.exit_code) => 0,
        Some(Audit::Missed) => 2,
        _ => 1,
    }
}

/// What has changed between two builds of a program, as they are in the store.
fn compare(store: &FileStore, name: Hash) -> Option<Vec<Changed>> {
    let builds = Rebuilt::from_bytes(&store.blob(name).ok()??).ok()?;
    let read = |names: &[Hash]| {
        names.iter().map(|name| store.blob(*name).ok()?).collect::<Option<Vec<_>>>()
    };
    let (before, now) = (read(&builds.before)?, read(&builds.now)?);
    let (before, now) = (manifests(&before)?, manifests(&now)?);
    let set = NodeSet::from_bytes(&builds.executed);
    let executed = (!builds.executed.is_empty()).then_some(&set);
    let narrowed = change::compare(&before, &now, builds.entry.as_deref(), executed);
    Some(changes::of(&narrowed))
}

fn manifests(bytes: &[Vec<u8>]) -> Option<Vec<Manifest<'_>>> {
    bytes.iter().map(|bytes| Manifest::decode(bytes).ok()).collect()
}
