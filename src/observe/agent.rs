//! The agent as a file, which the dynamic loader preloads into the programs of a test.
//!
//! In: a folder to keep it in. Out: its path there, and the open file.

use crate::model::Hash;
use crate::process::{atomic_write, sys};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tasting_agent::LIBRARY;

/// The agent's file, which is ours: the test does not use it.
#[derive(Clone)]
pub struct Agent {
    /// What loaders and debuggers call it.
    pub path: PathBuf,
    file: Arc<File>,
}

impl Agent {
    /// Opens the agent's file in a folder; writes it if it is not there. `None` where it could not
    /// be loaded: the loader would complain of it in the test's name.
    pub fn open(folder: &Path) -> Option<Agent> {
        let path = folder.join(file_name());
        if !path.is_absolute() {
            return None;
        }
        if opened(&path).is_none() {
            fs::create_dir_all(folder).ok()?;
            atomic_write::write(&path, None, None, &[LIBRARY]).ok()?;
        }
        let path = fs::canonicalize(path).ok()?;
        // None of these can be part of a list of libraries.
        let is_nameable =
            path.to_str().is_some_and(|text| !text.contains([' ', '\t', '\n', ':', '$']));
        let file = Arc::new(opened(&path)?);
        (is_nameable && sys::can_be_executed(&path)).then_some(Agent { path, file })
    }

    /// The file once more, to be read from its start: the offset of one that is shared moves for
    /// all.
    pub fn reopened(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    #[cfg(test)]
    pub fn test() -> Agent {
        Agent { path: "/agent.so".into(), file: Arc::new(File::open("/dev/null").unwrap()) }
    }
}

/// The name of its file.
pub fn file_name() -> String {
    format!("agent-{}.so", &Hash::of(LIBRARY).to_string()[..12])
}

/// The file at a path, if its content is the agent.
fn opened(path: &Path) -> Option<File> {
    let mut file = File::open(path).ok()?;
    let mut found = Vec::with_capacity(LIBRARY.len() + 1);
    file.read_to_end(&mut found).ok()?;
    (found == LIBRARY).then_some(file)
}
