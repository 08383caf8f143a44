//! What a run used, as values: files, programs, folders, links, and paths that did not exist. Each
//! one can be checked later for whether it is still the same.
//!
//! Paths are absolute and resolved: links that were followed on the way are listed on their own.
//! The uses of a run are sorted and unique, so that two runs with the same uses have equal lists.

use super::content::Contents;
use super::listing;
pub use super::listing::Kind;
use super::targets::{self, Target};
use super::{extended, facts};
use crate::model::Hash;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One thing that a run depended on, or left behind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A file was opened for reading, or for writing into what it held. The content is that of
    /// before the run's own changes to it.
    Read { path: PathBuf, content: Hash },
    /// A program was started, or was the interpreter of one that was; with the libraries that the
    /// dynamic loader opened for it, in that order.
    Executed { path: PathBuf, content: Hash, libraries: Vec<PathBuf> },
    /// A file was opened for reading by the dynamic loader, on behalf of the programs that list it.
    /// `name` is the path that it was opened under, where links beside the file led from there, and
    /// nobody else followed them.
    Loaded { path: PathBuf, content: Hash, name: PathBuf },
    /// Something was found there, and no more than its attributes can have been seen.
    Exists { path: PathBuf, what: What },
    /// Something was looked for, and neither it nor anything below it was there.
    Absent { path: PathBuf },
    /// Something is there that this user may not look at.
    Denied { path: PathBuf },
    /// A folder's entries were read: their names and kinds.
    Listed { path: PathBuf, listing: Hash },
    /// A symbolic link was followed or read.
    Link { path: PathBuf, target: PathBuf },
    /// The extended attributes were asked for.
    Extended { path: PathBuf, attributes: Hash },
    /// The run writes there: what was there before, as far as that decides whether and how it
    /// succeeds.
    Target { path: PathBuf, target: Target, state: Hash },
    /// Something about the machine was asked for without a file; `path` is its name.
    Fact { path: PathBuf, value: Hash },
    /// The run made or changed it, and it is there at the end.
    Written { path: PathBuf, kind: Kind },
    /// It was there before the run, which has removed it.
    Removed { path: PathBuf },
}

/// What of a file's attributes counts. Times, owners, numbers of links and inodes do not: they
/// differ in every checkout. Of the permissions only "may be executed" does, for the rest follows
/// the user's umask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct What {
    pub kind: Kind,
    /// Where the run can have seen them; of regular files only.
    pub details: Option<Details>,
}

/// The attributes of a regular file that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Details {
    pub size: u64,
    pub executable: bool,
    /// When it was changed: of large files, whose content is not read only because their attributes
    /// were asked for.
    pub modified: Option<(i64, i64)>,
}

/// Reading a file of more than this takes longer than asking about it is worth.
const LARGE: u64 = 256 << 20;

/// Whether the content of a file does not count where no more than its attributes were seen.
pub fn is_large(found: &Metadata) -> bool {
    found.len() > LARGE
}

impl What {
    /// The kind alone.
    pub fn kind(kind: Kind) -> What {
        What { kind, details: None }
    }

    /// All that counts.
    pub fn of(found: &Metadata) -> What {
        let kind = Kind::of(found.file_type());
        let modified = is_large(found).then(|| (found.mtime(), found.mtime_nsec()));
        let details = Details { size: found.len(), executable: is_executable(found), modified };
        What { kind, details: (kind == Kind::File).then_some(details) }
    }
}

/// Whether anybody may execute it.
pub fn is_executable(found: &Metadata) -> bool {
    found.permissions().mode() & 0o111 != 0
}

/// Whether an error says that nothing is there.
pub fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Use {
    /// What it is about.
    pub fn path(&self) -> &Path {
        match self {
            Use::Read { path, .. } | Use::Executed { path, .. } | Use::Loaded { path, .. } => path,
            Use::Exists { path, .. } => path,
            Use::Absent { path } | Use::Denied { path } | Use::Removed { path } => path,
            Use::Listed { path, .. } | Use::Link { path, .. } | Use::Written { path, .. } => path,
            Use::Extended { path, .. } | Use::Target { path, .. } | Use::Fact { path, .. } => path,
        }
    }

    /// Whether a run that starts now would meet the same. What a run leaves behind asks for
    /// nothing.
    pub fn holds(&self, contents: &mut Contents) -> bool {
        let now = fs::symlink_metadata(self.path());
        match self {
            Use::Read { path, content } | Use::Loaded { path, content, .. } => {
                now.is_ok_and(|now| contents.is(path, &now, *content))
            }
            Use::Executed { path, content, .. } => {
                now.is_ok_and(|now| is_executable(&now) && contents.is(path, &now, *content))
            }
            Use::Exists { what, .. } => now.is_ok_and(|now| match what.details {
                Some(_) => What::of(&now) == *what,
                None => Kind::of(now.file_type()) == what.kind,
            }),
            Use::Absent { .. } => now.is_err_and(|error| is_absence(&error)),
            Use::Denied { path } => match now {
                Ok(_) => contents.is_denied(path),
                Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
            },
            Use::Listed { path, listing } => {
                listing::of(path).is_ok_and(|now| listing::hash(&now) == *listing)
            }
            Use::Link { path, target } => fs::read_link(path).is_ok_and(|now| now == *target),
            Use::Extended { path, attributes } => extended::of(path) == *attributes,
            Use::Target { path, target, state } => targets::state(*target, path) == *state,
            Use::Fact { path, value } => facts::value(path) == *value,
            Use::Written { .. } | Use::Removed { .. } => true,
        }
    }
}
