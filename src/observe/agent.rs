//! The agent as a file, which the dynamic loader can preload into the programs of a test.
//!
//! In: a folder to keep it in. Out: its path there.

use crate::model::Hash;
use crate::process::{aside, sys};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The library that `build.rs` makes of `agent/agent.rs`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));

/// The variable that names libraries for the loader to load first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The agent's file, written if it is not there. `None` where it could not be loaded: the loader would complain of it in
/// the test's name.
pub fn file(folder: &Path) -> Option<PathBuf> {
    let path = folder.join(format!("agent-{}.so", &Hash::of(LIBRARY).to_string()[..12]));
    // Neither of these can be part of a list of libraries.
    let is_nameable = |path: &Path| path.to_str().is_some_and(|text| !text.contains([' ', ':', '$']));
    let is_there = |path: &Path| fs::read(path).is_ok_and(|found| found == LIBRARY);
    if !is_nameable(&path) || !path.is_absolute() {
        return None;
    }
    if !is_there(&path) {
        fs::create_dir_all(folder).ok()?;
        aside::write(&path, None, None, &[LIBRARY]).ok()?;
    }
    (is_there(&path) && sys::can_be_executed(&path)).then_some(path)
}

/// The libraries to preload: the agent before those that somebody wants already.
pub fn preloaded(agent: &Path) -> OsString {
    let mut list = agent.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
