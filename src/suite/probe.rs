//! The context in which a harness starts its tests, found by having it start `tasting context FILE`
//! in place of a test.
//!
//! In: a way to start a command. Out: its [`InvocationContext`].

use super::SuiteError;
use crate::run::context::InvocationContext;
use crate::store::private;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The subcommand that writes the context of its process to a file.
pub const SUBCOMMAND: &str = "context";

/// A folder for one probe, which goes with it.
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder for the files of this process.
    pub fn new() -> Result<Folder, SuiteError> {
        let top = std::env::temp_dir();
        let name = |attempt: u32| format!("tasting-suite-{}-{attempt}", std::process::id());
        for attempt in 0..1000 {
            let path = top.join(name(attempt));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(SuiteError::NoFolder(error)),
            }
        }
        Err(SuiteError::NoFolder(std::io::ErrorKind::AlreadyExists.into()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file that the probe writes.
    pub fn answer(&self) -> PathBuf {
        self.0.join("context")
    }

    /// The command that is started in the place of a test.
    pub fn command(&self) -> Result<[OsString; 3], String> {
        let own = std::env::current_exe()
            .map_err(|error| format!("this program cannot be found: {error}"))?;
        Ok([own.into_os_string(), SUBCOMMAND.into(), self.answer().into_os_string()])
    }

    /// What the probe found.
    pub fn context(&self) -> Result<InvocationContext, String> {
        let bytes = std::fs::read(self.answer())
            .map_err(|_| "the harness did not start a test that only looks around")?;
        InvocationContext::from_bytes(&bytes)
            .map_err(|error| format!("a probe came back damaged: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes the context of this process to a file.
pub fn write(path: &Path) -> std::io::Result<()> {
    let bytes = InvocationContext::probed().to_bytes().map_err(std::io::Error::other)?;
    private::options().write(true).create_new(true).open(path)?.write_all(&bytes)
}
