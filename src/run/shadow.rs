//! Shadow mode: every test runs, and what would have been decided is logged.
//!
//! In: the decision. Out: the same at each granularity of change, for the log; and when the test
//! has ended like the result that would have been replayed, what is to be stored of it.

use super::choice::{self, Choice, Hit};
use super::values::Values;
use super::{Session, difference, granularity, record};
use crate::model::keys::KeyOf;
use crate::model::{
    DependencyKind, Granularities, Hash, Rebuilt, RecordedDependency, Shadow, Verdict,
};
use crate::process::quiet;
use crate::store::{Memo, Results};

/// What is remembered of a test that would have been reused, when it has shown that this would have
/// been right.
pub struct Foreseen(Vec<Hash>);

impl Foreseen {
    /// The test ended as foreseen.
    pub fn confirm(&self, session: &Session) {
        granularity::remember(session, &self.0);
    }
}

/// Notes what would be done about a test.
pub fn foresee(session: &Session, choice: &Choice) -> Option<Foreseen> {
    let (shadow, foreseen) = quiet::attempt(&session.settings, "foreseeing", || match choice {
        Choice::Reuse(hit) => would_reuse(session, hit),
        Choice::Run(_) => (would_run(session, changed(session)), None),
        Choice::Plain(_) => (would_run(session, Changed::default()), None),
    })?;
    // It is set once.
    let _ = session.shadow.set(shadow);
    foreseen
}

fn would_run(session: &Session, Changed { programs, files }: Changed) -> Shadow {
    Shadow { identity: Some(session.test.identity), programs, files, ..Shadow::default() }
}

fn would_reuse(session: &Session, hit: &Hit) -> (Shadow, Option<Foreseen>) {
    let mut values = choice::values(session);
    let dependency_sets = session.store.dependency_sets(session.test.identity).unwrap_or_default();
    let names: Vec<Vec<Hash>> = dependency_sets
        .iter()
        .map(|dependency_set| granularity::names(session, dependency_set, &mut values, None))
        .collect();
    let seen = granularity::seen(session, &names);
    let verdict = |seen: bool| if seen { Verdict::Reused } else { Verdict::Executed };
    let granularities = Granularities {
        whole: verdict(seen.whole),
        file: verdict(seen.file),
        reachable: verdict(seen.reachable),
        executed: verdict(seen.executed),
    };
    let foreseen = Foreseen(granularity::names(session, &hit.dependency_set, &mut values, None));
    values.remember();
    let saved_ms = hit.outcome.duration.as_millis() as u64;
    let reused_from = hit.outcome.origin.commit.clone();
    let identity = Some(session.test.identity);
    (Shadow { granularities, identity, saved_ms, reused_from, ..Shadow::default() }, Some(foreseen))
}

/// What has changed since the latest execution.
#[derive(Default)]
struct Changed {
    /// Names of both builds of a program, to find out what has changed in it.
    programs: Vec<Hash>,
    files: Vec<String>,
}

/// More changed files of one test are not named.
const MOST_FILES: usize = 8;

fn changed(session: &Session) -> Changed {
    let Some(trace) = choice::trace(session) else { return Changed::default() };
    let mut values = choice::values(session);
    let differences = difference::of_dependencies(&session.project, &trace, &mut values);
    let mut changed = Changed::default();
    for difference in differences {
        let Some(used) = difference.used.and_then(|number| trace.used.get(number)) else {
            continue;
        };
        match used.dependency.kind {
            DependencyKind::Program => changed.programs.extend(rebuilt(session, used, &mut values)),
            DependencyKind::Library
            | DependencyKind::File
            | DependencyKind::Absent
            | DependencyKind::Folder
            | DependencyKind::Link
            | DependencyKind::Declared => changed.files.push(difference.subject),
            _ => {}
        }
    }
    changed.files.truncate(MOST_FILES);
    changed
}

/// Keeps both builds of a program. Gives the name under which they are found.
fn rebuilt(session: &Session, used: &RecordedDependency, values: &mut Values) -> Option<Hash> {
    let files = values.manifests(&used.dependency);
    let now = files
        .iter()
        .map(|file| record::keep_manifest(session, values, file))
        .collect::<Option<Vec<_>>>()?;
    let project = &session.project;
    let builds = Rebuilt {
        program: project.show(&used.dependency.place),
        libraries: values
            .covered_libraries(&used.dependency)
            .map(|library| project.show(library))
            .collect(),
        entry: project.entry(&used.dependency.place).map(str::to_owned),
        before: used.manifests.clone(),
        now,
        executed: used.dependency.executed.clone(),
    };
    let bytes = builds.to_bytes().ok()?;
    let name = KeyOf::TwoBuilds.of(Hash::of(&bytes));
    (session.store.has_blob(name) || session.store.put_blob(name, &bytes).is_ok()).then_some(name)
}
