//! What the latest execution of a test covers, as address ranges in its binaries: everything that
//! has to be the same for its result to be reused. The laboratory destroys the rest and checks
//! whether the test notices.
//!
//! In: a command. Out: for each program that it ran and each library of that, the atoms, and which
//! of them count.

use super::{Session, choice};
use crate::fingerprint::execution::Placed;
use crate::model::DependencyKind;
use crate::process::Settings;
use std::ffi::OsString;
use std::path::PathBuf;

/// A program or library.
pub struct Cover {
    pub path: PathBuf,
    /// Functions that were not executed do not count.
    pub is_narrowed: bool,
    pub atoms: Vec<Placed>,
}

/// The cover of the latest execution of a test. `None` if there is none, or none that can be
/// reused.
pub fn of(words: &[OsString]) -> Option<Vec<Cover>> {
    let session = Session::open(words, Settings::from_environment())?.ok()?;
    let trace = choice::trace(&session).filter(|trace| trace.refusals.is_empty())?;
    let mut values = choice::values(&session);
    let mut covers = Vec::new();
    let programs = trace.used.iter().map(|used| &used.dependency);
    for program in programs.filter(|dependency| dependency.kind == DependencyKind::Program) {
        let is_narrowed = !program.executed.is_empty();
        let modules = values.extent(program).into_iter();
        covers.extend(modules.map(|(path, atoms)| Cover { path, is_narrowed, atoms }));
    }
    Some(covers)
}
