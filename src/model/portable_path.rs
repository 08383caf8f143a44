//! Paths that mean the same thing in another checkout: relative to the project's root, its build
//! folder, the user's home.

use super::bytes;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path that means the same thing in another checkout, where it can.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortablePath {
    pub base: Base,
    #[serde(with = "bytes")]
    pub path: Vec<u8>,
}

/// What the path of a place is relative to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Base {
    /// Nothing: an absolute path, or a name that is no path.
    #[default]
    None,
    /// The project's root.
    Root,
    /// The build folder.
    Build,
    /// The user's home.
    Home,
    /// The folder for temporary files, where `TMPDIR` names one.
    Temporary,
    /// The folder of the user's session, where `XDG_RUNTIME_DIR` names one.
    Runtime,
    /// The folder for temporary files of a build server's job.
    Job,
}

impl PortablePath {
    /// A path as it is.
    pub fn absolute(path: impl AsRef<Path>) -> Self {
        PortablePath { base: Base::None, path: path.as_ref().as_os_str().as_bytes().to_vec() }
    }
}
