//! The traces of recent executions of a test, as they are stored. The executed functions are left
//! out, since they are part of the execution's dependency set already, and can be many.
//!
//! In: a trace. Out: the same, from the store.

use crate::model::keys::{self, KeyOf};
use crate::model::{Hash, Trace};
use crate::store::{Store, StoreError};

/// How many earlier executions of a test can be compared with.
const SLOTS: u64 = 8;

/// Under which name the latest trace of a test is kept.
pub fn name(test: Hash) -> Hash {
    KeyOf::Trace.of(test)
}

/// Keeps the trace of an execution of a test. `is_stored`: the dependency set of the execution is
/// in the store.
pub fn keep(
    store: &dyn Store,
    test: Hash,
    mut trace: Trace,
    is_stored: bool,
) -> Result<(), StoreError> {
    let dependency_set = trace.dependency_set();
    if is_stored && dependency_set.is_narrowed() {
        trace.narrowed = dependency_set.hash().ok();
        trace.used.iter_mut().for_each(|used| used.dependency.executed.clear());
    }
    match trace.to_bytes() {
        Ok(bytes) => {
            store.put_blob(name(test), &bytes)?;
            store.put_blob(keys::earlier_trace(test, slot(&trace)), &bytes)
        }
        Err(_) => Ok(()),
    }
}

/// An execution with the same inputs takes the place of the one before: otherwise repetitions would
/// displace all others.
fn slot(trace: &Trace) -> u64 {
    let mut hasher = KeyOf::EarlierTrace.hasher();
    hasher.hash(trace.test);
    trace.used.iter().for_each(|used| _ = hasher.hash(used.value));
    u64::from(hasher.finish().0[0]) % SLOTS
}

/// The traces of earlier executions of a test, in no order.
pub fn earlier(store: &dyn Store, test: Hash) -> Vec<Trace> {
    (0..SLOTS).filter_map(|slot| of(store, keys::earlier_trace(test, slot))).collect()
}

/// The trace that was kept. Where the dependency set is gone from the store since, so is the
/// outcome.
pub fn of(store: &dyn Store, name: Hash) -> Option<Trace> {
    let mut trace = Trace::from_bytes(&store.blob(name).ok()??).ok()?;
    if let Some(narrowed) = trace.narrowed.take() {
        let dependency_sets = store.dependency_sets(trace.test).unwrap_or_default();
        let dependency_set = dependency_sets
            .into_iter()
            .find(|dependency_set| dependency_set.hash().ok() == Some(narrowed));
        for (used, dependency) in trace
            .used
            .iter_mut()
            .zip(dependency_set.into_iter().flat_map(|dependency_set| dependency_set.dependencies))
        {
            used.dependency = dependency;
        }
    }
    Some(trace)
}
