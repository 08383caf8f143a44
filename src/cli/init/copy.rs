//! A copy of a project without what was built in it: of a git checkout what git would commit, of
//! any other folder all but the folders that build systems made.

use anyhow::Context;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that has one of these is a build system's work, or a repository's.
const MADE: [&str; 4] = ["CMakeCache.txt", "meson-private", "CACHEDIR.TAG", ".git"];

/// Copies a project into a folder that does not exist yet.
pub fn project(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    match listed(from) {
        Some(paths) => paths.iter().try_for_each(|path| entry(&from.join(path), &to.join(path))),
        None => folder(from, to),
    }
}

/// What git would commit, in this folder and below. `None` without a repository, or without git.
fn listed(from: &Path) -> Option<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
        .current_dir(from);
    let output =
        command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let paths = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let paths: Vec<PathBuf> =
        paths.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect();
    // A folder that a repository further up ignores.
    (!paths.is_empty()).then_some(paths)
}

fn folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for found in entries {
        let found = found.with_context(|| format!("cannot read {}", from.display()))?;
        let is_made =
            MADE.iter().any(|name| found.file_name() == *name || found.path().join(name).exists());
        if !is_made {
            entry(&found.path(), &to.join(found.file_name()))?;
        }
    }
    Ok(())
}

/// Copies one thing. What is neither file nor folder nor link, or has gone, is left out.
fn entry(from: &Path, to: &Path) -> anyhow::Result<()> {
    let Ok(found) = fs::symlink_metadata(from) else { return Ok(()) };
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
    }
    let copy = || format!("cannot copy {} to {}", from.display(), to.display());
    match found.file_type() {
        kind if kind.is_symlink() => {
            fs::read_link(from).and_then(|aim| symlink(aim, to)).with_context(copy)
        }
        // A submodule, or a plain folder.
        kind if kind.is_dir() => {
            fs::create_dir_all(to).with_context(copy)?;
            folder(from, to)
        }
        kind if kind.is_file() => file(from, to).with_context(copy),
        _ => Ok(()),
    }
}

/// With its times: build systems compare them.
fn file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let modified = fs::metadata(from)?.modified()?;
    match File::options().append(true).open(to) {
        Ok(file) => file.set_times(FileTimes::new().set_modified(modified)),
        // One that may not be written is nothing that a build makes.
        Err(_) => Ok(()),
    }
}
