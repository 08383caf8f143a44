//! The entries of a folder, as far as a program can tell them apart: names and kinds.
//!
//! In: a folder. Out: its entries in the order of their names, and their hash.

use super::used::Kind;
use crate::model::{Hash, Hasher};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
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
