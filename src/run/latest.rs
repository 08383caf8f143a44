//! The trace of the latest execution of a test, as it is kept: which functions were executed is in the shape of the execution
//! already, and can be long.
//!
//! In: a trace. Out: the same, from the store.

use crate::model::{Hash, Trace};
use crate::store::{Store, StoreError};

/// Keeps a trace under a name. `is_stored`: the shape of the execution is in the store.
pub fn keep(store: &dyn Store, name: Hash, mut trace: Trace, is_stored: bool) -> Result<(), StoreError> {
    let shape = trace.shape();
    if is_stored && shape.is_narrowed() {
        trace.narrowed = shape.hash().ok();
        trace.used.iter_mut().for_each(|used| used.dependency.executed.clear());
    }
    match trace.to_bytes() {
        Ok(bytes) => store.put_blob(name, &bytes),
        Err(_) => Ok(()),
    }
}

/// The trace that was kept. Where the shape is gone from the store since, so is the outcome.
pub fn of(store: &dyn Store, name: Hash) -> Option<Trace> {
    let mut trace = Trace::from_bytes(&store.blob(name).ok()??).ok()?;
    if let Some(narrowed) = trace.narrowed.take() {
        let shapes = store.shapes(trace.test).unwrap_or_default();
        let shape = shapes.into_iter().find(|shape| shape.hash().ok() == Some(narrowed));
        for (used, dependency) in trace.used.iter_mut().zip(shape.into_iter().flat_map(|shape| shape.dependencies)) {
            used.dependency = dependency;
        }
    }
    Some(trace)
}
