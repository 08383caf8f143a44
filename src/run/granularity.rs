//! Would a result have been reused if changes were detected more coarsely: by whole binaries, by
//! object files, or by everything that can be reached? Decisions do not depend on it; shadow mode
//! shows the granularities side by side.
//!
//! In: what an execution used. Out: a hash for each granularity; the store knows it if the same was
//! seen before.

use super::Session;
use super::values::{self, Values};
use crate::model::keys::KeyOf;
use crate::model::{
    DependencyKind, DependencySet, Granularities, Hash, Hasher, RecordedDependency,
};
use crate::store::Memo;
use std::collections::BTreeSet;

/// More names of one test are not remembered.
const MOST_NAMES: usize = 4096;

/// What an execution used, as one name for each granularity. `used`: as it was when the test ran;
/// else as it is now. Each name covers the finer ones, so that what is the same at one granularity
/// is the same at those after it.
pub fn names(
    session: &Session,
    dependency_set: &DependencySet,
    values: &mut Values,
    used: Option<&[RecordedDependency]>,
) -> Vec<Hash> {
    let mut now = values.whole(dependency_set);
    for (now, traced) in now.iter_mut().zip(used.unwrap_or_default()) {
        // What the test itself has changed since counts as it was before.
        if traced.dependency.executed.is_empty() {
            *now = traced.value;
        }
    }
    let dependency_set = values::whole(dependency_set);
    let Some(reachable) =
        Values::key(&session.project, session.test.identity, &dependency_set, &now)
    else {
        return Vec::new();
    };
    let (mut file, mut whole) = (Hasher::new("file granularity"), Hasher::new("whole granularity"));
    file.hash(reachable);
    for program in
        dependency_set.dependencies.iter().filter(|used| used.kind == DependencyKind::Program)
    {
        if let Some(coarse) = values.coarse(program) {
            file.hash(coarse.files);
            whole.hash(coarse.whole);
        }
    }
    let file = file.finish();
    vec![
        whole.hash(file).finish(),
        file,
        Hasher::new("static granularity").hash(reachable).finish(),
    ]
}

/// Remembers what was seen to pass.
pub fn remember(session: &Session, names: &[Hash]) {
    let mut known = known(session);
    let before = known.len();
    known.extend(names);
    if known.len() == before || known.len() > MOST_NAMES {
        return;
    }
    let bytes: Vec<u8> = known.iter().flat_map(|name| name.0).collect();
    if let Err(error) = session.store.put_blob(name(session), &bytes) {
        session
            .settings
            .log(format_args!("the granularities of a test are not remembered: {error}"));
    }
}

/// At which granularities one of these executions was seen before; whether it is reused in fact is
/// known already.
pub fn seen(session: &Session, names: &[Vec<Hash>]) -> Granularities<bool> {
    let known = known(session);
    let has = |number: usize| {
        names.iter().any(|names| names.get(number).is_some_and(|name| known.contains(name)))
    };
    Granularities { whole: has(0), file: has(1), reachable: has(2), executed: true }
}

fn known(session: &Session) -> BTreeSet<Hash> {
    let bytes = session.store.blob(name(session)).ok().flatten().unwrap_or_default();
    bytes.as_chunks().0.iter().map(|name| Hash(*name)).collect()
}

fn name(session: &Session) -> Hash {
    KeyOf::SeenGranularities.of(session.test.identity)
}
