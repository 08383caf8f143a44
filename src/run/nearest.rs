//! The stored execution that a test is compared with when `tasting explain` reports why it would
//! run: the nearest one. After switching branches or undoing an edit, that is not the latest.
//!
//! In: the stored traces of a test. Out: the one with the fewest differences from the current
//! state, and those differences.

use super::difference::{self, Difference};
use super::project::Project;
use super::values::Values;
use super::{Session, latest};
use crate::model::{DependencyKind, Hash, Manifest, RecordedDependency, Trace};
use crate::store::Store;
use std::collections::HashMap;
use std::fs;

/// An execution, and what is different from it.
pub struct Compared {
    pub trace: Trace,
    pub differences: Vec<Difference>,
    /// The changed programs among those.
    pub programs: Vec<Builds>,
}

/// Two builds of a program: the bytes of the manifests of the program and its libraries.
pub struct Builds {
    pub program: String,
    /// The libraries that have a manifest, in the order of these.
    pub libraries: Vec<String>,
    /// The function that the project's tests start in.
    pub entry: Option<String>,
    pub before: Vec<Vec<u8>>,
    pub now: Vec<Vec<u8>>,
    /// What was executed of the first one; nothing if that is not known.
    pub executed: Vec<u8>,
    /// Why there are none.
    pub note: String,
}

impl Compared {
    /// What is different from an execution.
    pub fn with(session: &Session, trace: Trace, values: &mut Values) -> Compared {
        let mut differences = difference::of_context(&session.test, &trace);
        differences.extend(difference::of_dependencies(&session.project, &trace, values));
        let used = differences.iter().filter_map(|difference| trace.used.get(difference.used?));
        let is_there = |used: &&RecordedDependency| {
            session.project.path(&used.dependency.place).is_some_and(|path| path.exists())
        };
        let programs =
            used.filter(|used| used.dependency.kind == DependencyKind::Program).filter(is_there);
        let programs =
            programs.map(|used| builds(&session.project, &*session.store, used, values)).collect();
        Compared { trace, differences, programs }
    }

    /// How far it is away: things that are different, and among those changed atoms.
    fn distance(&self) -> (usize, usize) {
        (self.differences.len(), self.programs.iter().map(changed_atoms).sum())
    }
}

/// A program as it was when it was used, and as it is.
pub fn builds(
    project: &Project,
    store: &dyn Store,
    used: &RecordedDependency,
    values: &mut Values,
) -> Builds {
    let kept = used
        .manifests
        .iter()
        .map(|name| store.blob(*name).ok().flatten())
        .collect::<Option<Vec<_>>>();
    let now =
        values.manifests(&used.dependency).iter().map(fs::read).collect::<Result<Vec<_>, _>>();
    let (before, now) = (kept.unwrap_or_default(), now.unwrap_or_default());
    let note = match values.note(&used.dependency) {
        Some(note) => note,
        None if !used.note.is_empty() => format!("in the last run: {}", used.note),
        None if before.is_empty() => {
            "the manifests of the last run are not in the store any more".to_owned()
        }
        None => String::new(),
    };
    let program = project.show(&used.dependency.place);
    let libraries =
        values.covered_libraries(&used.dependency).map(|library| project.show(library)).collect();
    let entry = project.entry(&used.dependency.place).map(str::to_owned);
    Builds {
        program,
        libraries,
        entry,
        before,
        now,
        executed: used.dependency.executed.clone(),
        note,
    }
}

/// The nearest of the executions that are kept, if one is nearer than the latest. One that could
/// not be reused in any case is no answer.
pub fn than(latest: &Compared, session: &Session, values: &mut Values) -> Option<Compared> {
    let can_be_reused = |trace: &Trace| trace.refusals.is_empty() && trace.exit_code == 0;
    let earlier = latest::earlier(&*session.store, session.test.name);
    let compared = earlier
        .into_iter()
        .filter(can_be_reused)
        .map(|trace| Compared::with(session, trace, values));
    let nearest = compared
        .min_by_key(|compared| (compared.distance(), u64::MAX - compared.trace.origin.time))?;
    (nearest.distance() < latest.distance()).then_some(nearest)
}

/// How many atoms of either build the other one has not. A build that cannot be read is as far away
/// as can be.
fn changed_atoms(builds: &Builds) -> usize {
    match (atoms(&builds.before), atoms(&builds.now)) {
        (Some(before), Some(now)) => surplus(&before, &now) + surplus(&now, &before),
        _ => usize::MAX >> 16,
    }
}

fn atoms(manifests: &[Vec<u8>]) -> Option<HashMap<Hash, usize>> {
    let mut atoms = HashMap::new();
    for bytes in manifests {
        let manifest = Manifest::decode(bytes).ok()?;
        manifest.nodes.iter().for_each(|node| *atoms.entry(node.hash).or_default() += 1);
    }
    (!atoms.is_empty()).then_some(atoms)
}

fn surplus(of: &HashMap<Hash, usize>, over: &HashMap<Hash, usize>) -> usize {
    let more = |(hash, count): (&Hash, &usize)| {
        count.saturating_sub(over.get(hash).copied().unwrap_or_default())
    };
    of.iter().map(more).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_atoms_count_with_multiplicity() {
        let [one, two] = [1, 2].map(|byte| Hash([byte; 16]));
        let (twice, once) =
            (HashMap::from([(one, 2), (two, 1)]), HashMap::from([(one, 1), (two, 1)]));
        assert_eq!((surplus(&twice, &once), surplus(&once, &twice)), (1, 0));
    }
}
