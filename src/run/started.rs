//! Records what a test was started with, for `tasting suite`: the next time it knows what the
//! harness gives to the test.
//!
//! In: the folder that the suite names in the environment, the command. Out: one file for each
//! start, and those files read again.

use super::Options;
use super::context::{InvocationContext, STARTED};
use crate::harness::HarnessHints;
use crate::model::FormatError;
use crate::model::envelope::Format;
use crate::store::private;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

const FORMAT: Format = Format { magic: *b"TASTESTD", version: 1 };

/// The start of a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    pub words: Vec<OsString>,
    /// Absolute, and free of links.
    pub working: PathBuf,
    pub context: InvocationContext,
}

/// Notes that a test is started, if a suite wants to know. One that is started with options of its
/// own is not noted: it is for `tasting run` to decide about.
pub fn note(words: &[OsString], options: Options) {
    let Some(folder) = std::env::var_os(STARTED) else { return };
    let has_options = options.reuse_failures
        || options.audit.is_some()
        || options.harness != HarnessHints::default();
    if has_options {
        return;
    }
    // A suite that does not learn of a start has the harness start the test the next time too.
    let _ = write(Path::new(&folder), words);
}

fn write(folder: &Path, words: &[OsString]) -> std::io::Result<()> {
    let started = Started {
        words: words.to_vec(),
        working: std::env::current_dir()?,
        context: InvocationContext::probed(),
    };
    let bytes = FORMAT.encode(&started).map_err(std::io::Error::other)?;
    let path = folder.join(format!("{}.started", std::process::id()));
    private::options().write(true).create_new(true).open(path)?.write_all(&bytes)
}

/// The starts that were noted in a folder.
pub fn read(folder: &Path) -> Vec<Started> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "started"));
    let started = |path: &PathBuf| decode(&std::fs::read(path).ok()?).ok();
    paths.iter().filter_map(started).collect()
}

fn decode(bytes: &[u8]) -> Result<Started, FormatError> {
    FORMAT.decode(bytes).map(|(started, _)| started)
}
