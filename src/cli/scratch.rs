//! A temporary folder in which things are tried out.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Removed with all that is in it when it is dropped.
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A new folder, for us alone. The purpose is a part of its name.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let folder =
            std::env::temp_dir().join(format!("tasting-{purpose}-{}-{time}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Scratch { folder: fs::canonicalize(folder)? })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command that runs there, with a store of its own, and with no other settings than those
    /// that name the real tools.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let kept = ["TASTING_CC", "TASTING_CXX", "TASTING_LD"];
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("TASTING_") && !kept.contains(&&*name_text) {
                command.env_remove(&name);
            }
        }
        command.env("TASTING_DIR", self.path("store")).env("TASTING_ROOT", &self.folder);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Runs a command. The last line of its complaints is the error.
    pub fn succeed(command: &mut Command) -> Result<Output, String> {
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(output);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
