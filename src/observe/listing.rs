//! The entries of a folder, as far as a program can tell them apart: names and kinds.
//!
//! In: a folder. Out: its entries, sorted by name, and their hash.

use crate::model::keys::Code;
use crate::model::{Hash, Hasher};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::{fs, io};

/// Names and kinds.
pub type Listing = BTreeMap<OsString, Kind>;

/// What is in a folder now.
pub fn of(folder: &Path) -> io::Result<Listing> {
    fs::read_dir(folder)?
        .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), Kind::of(entry.file_type()?)))))
        .collect()
}

/// The hash of a listing.
pub fn hash(listing: &Listing) -> Hash {
    let mut hasher = Hasher::new("listing");
    for (name, kind) in listing {
        hasher.bytes(name.as_bytes()).code(*kind);
    }
    hasher.finish()
}

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    File,
    Folder,
    Link,
    Fifo,
    Socket,
    Device,
}

impl Code for Kind {
    fn code(self) -> u64 {
        match self {
            Kind::File => 0,
            Kind::Folder => 1,
            Kind::Link => 2,
            Kind::Fifo => 3,
            Kind::Socket => 4,
            Kind::Device => 5,
        }
    }
}

impl Kind {
    /// The kind of what was found.
    pub fn of(kind: fs::FileType) -> Kind {
        match kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_fifo() => Kind::Fifo,
            kind if kind.is_socket() => Kind::Socket,
            _ => Kind::Device,
        }
    }
}
