//! Calls git so that nothing of the user's repository changes.
//!
//! In: a folder and words. Out: git's output as bytes: paths need not be text.

use anyhow::{Context, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Would lead git elsewhere than into the folder that it is started in.
const MISLEADING: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];

/// What git says.
pub fn git<W: AsRef<OsStr>>(folder: &Path, words: &[W]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "advice.detachedHead=false",
            "-c",
            "gc.auto=0",
        ])
        .args(words);
    MISLEADING.iter().for_each(|variable| _ = command.env_remove(variable));
    // Not even an index is refreshed.
    command.env("GIT_OPTIONAL_LOCKS", "0").current_dir(folder).stdin(Stdio::null());
    let said =
        command.output().with_context(|| format!("git cannot be run in {}", folder.display()))?;
    if !said.status.success() {
        let words: Vec<_> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        bail!("git {}: {}", words.join(" "), text(&said.stderr).trim());
    }
    Ok(said.stdout)
}

/// What is for people.
pub fn text(said: &[u8]) -> String {
    String::from_utf8_lossy(said).into_owned()
}

/// A path on a line of its own.
pub fn path(said: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(said.strip_suffix(b"\n").unwrap_or(said).to_vec()))
}

/// A path among others.
pub fn part(said: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(said))
}
