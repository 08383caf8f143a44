//! Hashes of files. Each file is read as rarely as possible: a hash is remembered by the file's
//! identity, within a run, and between runs by a `Memory`.
//!
//! In: paths. Out: hashes, and the identities that they belong to.

use super::kernel;
pub use crate::model::FileIdentity as Identity;
use crate::model::{Hash, Hasher};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is read at once. Tests read mostly small files.
const BUFFER: usize = 128 * 1024;

/// A larger file, such as the image of a disk, is not worth the time that its hash takes.
const LARGEST: u64 = 4 << 30;

/// Of files of the kernel, whose size nobody knows, no more than this is read.
const MOST_OF_A_PSEUDO_FILE: u64 = 1 << 20;

/// What tells one file from another, whatever they are called.
pub fn device_and_inode(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether two names lead to the same file.
pub fn same_file(one: &Metadata, other: &Metadata) -> bool {
    device_and_inode(one) == device_and_inode(other)
}

/// What remembers contents between runs.
pub trait Memory: Send + Sync {
    /// The content that a file of this identity had.
    fn recall(&self, identity: &Identity) -> Option<Hash>;
    /// Called once, at the end of a run, with what was hashed in it and can be relied on.
    fn remember(&self, learned: &[(Identity, Hash)]);
}

/// Remembers nothing.
pub struct Forgetful;

impl Memory for Forgetful {
    fn recall(&self, _identity: &Identity) -> Option<Hash> {
        None
    }

    fn remember(&self, _learned: &[(Identity, Hash)]) {}
}

/// Hashes files, and knows what it has hashed.
pub struct Contents {
    memory: Arc<dyn Memory>,
    known: FxHashMap<Identity, Hash>,
    /// Devices whose files are in memory, and others.
    in_memory: FxHashMap<u64, bool>,
    learned: Vec<(Identity, Hash)>,
    /// Files that others have open for writing. What they write by way of mapped memory leaves the
    /// times as they are.
    unsteady: FxHashSet<Identity>,
    buffer: Vec<u8>,
}

impl Contents {
    /// With a memory behind it.
    pub fn new(memory: Arc<dyn Memory>) -> Contents {
        Contents {
            memory,
            known: FxHashMap::default(),
            in_memory: FxHashMap::default(),
            learned: Vec::new(),
            unsteady: FxHashSet::default(),
            buffer: Vec::new(),
        }
    }

    /// The content of the regular file at `path`, of which `found` was just found out.
    pub fn of(&mut self, path: &Path, found: &Metadata) -> io::Result<Hash> {
        let identity = Identity::of(found);
        if self.is_in_memory(path, found) || self.unsteady.contains(&identity) {
            return Ok(self.read(path)?.1);
        }
        if let Some(hash) = self.known.get(&identity) {
            return Ok(*hash);
        }
        if let Some(hash) = self.memory.recall(&identity) {
            self.known.insert(identity, hash);
            return Ok(hash);
        }
        if identity.size() > LARGEST {
            return Err(io::Error::other("it is too large"));
        }
        // To be asked before the content is read: who opens the file for writing from now on leaves
        // new times.
        let is_steady =
            open(path).is_ok_and(|file| kernel::is_open_for_writing(&file) != Some(true));
        let (identity, hash) = self.read(path)?;
        if !is_steady {
            self.unsteady.insert(identity);
            return Ok(hash);
        }
        self.known.insert(identity, hash);
        if identity.is_settled() {
            self.learned.push((identity, hash));
        }
        Ok(hash)
    }

    /// Whether a file that was found can have changed without looking different.
    pub fn is_unsteady(&self, found: &Metadata) -> bool {
        self.unsteady.contains(&Identity::of(found))
    }

    /// The same of a file of an identity, as far as its content was read.
    pub fn is_steady(&self, identity: &Identity) -> bool {
        !self.unsteady.contains(identity)
    }

    /// Whether a file is in a file system (tmpfs) where writing to it by way of mapped memory
    /// leaves its times as they are.
    pub fn is_in_memory(&mut self, path: &Path, found: &Metadata) -> bool {
        self.is_device_in_memory(found.dev(), || path.to_owned())
    }

    /// The same of all files of a device, of which one is at the path.
    pub fn is_device_in_memory(&mut self, device: u64, path: impl FnOnce() -> PathBuf) -> bool {
        const KINDS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
        let look = || {
            rustix::fs::statfs(path()).is_ok_and(|system| KINDS.contains(&(system.f_type as u64)))
        };
        *self.in_memory.entry(device).or_insert_with(look)
    }

    /// Reads and hashes a file; again, if it changed meanwhile.
    fn read(&mut self, path: &Path) -> io::Result<(Identity, Hash)> {
        for _ in 0..3 {
            let mut file = open(path)?;
            let before = Identity::of(&file.metadata()?);
            let hash = self.hash(&mut file)?;
            if Identity::of(&file.metadata()?) == before {
                return Ok((before, hash));
            }
        }
        Err(io::Error::other("it changes while it is read"))
    }

    /// The content of a file of the kernel, which has no identity.
    pub fn of_pseudo_file(&mut self, path: &Path) -> io::Result<Hash> {
        self.hash(&mut open(path)?.take(MOST_OF_A_PSEUDO_FILE))
    }

    fn hash(&mut self, file: &mut impl Read) -> io::Result<Hash> {
        let mut hasher = Hasher::default();
        self.buffer.resize(BUFFER, 0);
        loop {
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(count) => _ = hasher.part_of_content(&self.buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a file that was found has this content.
    pub fn is(&mut self, path: &Path, found: &Metadata, content: Hash) -> bool {
        self.of_any(path, found).is_ok_and(|now| now == content)
    }

    /// The content of a file, be it one of the kernel's.
    pub fn of_any(&mut self, path: &Path, found: &Metadata) -> io::Result<Hash> {
        match super::policy::is_pseudo(path) {
            _ if !found.is_file() => Err(io::Error::other("it is not a regular file")),
            true => self.of_pseudo_file(path),
            false => self.of(path, found),
        }
    }

    /// Whether this user may not read it.
    pub fn is_denied(&self, path: &Path) -> bool {
        open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Hands what was learned to the memory.
    pub fn remember(&mut self) {
        if !self.learned.is_empty() {
            self.memory.remember(&self.learned);
            self.learned.clear();
        }
    }
}

/// Opens without following a link, waiting for a writer, or getting a terminal.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_changed_file_has_another_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut contents = Contents::new(Arc::new(Forgetful));
        fs::write(&path, "one").unwrap();
        let one = contents.of(&path, &fs::metadata(&path).unwrap()).unwrap();
        assert_eq!(one, Hash::of(b"one"));
        fs::write(&path, "other").unwrap();
        let other = contents.of(&path, &fs::metadata(&path).unwrap()).unwrap();
        assert_eq!(other, Hash::of(b"other"));
        assert!(contents.learned.is_empty(), "the file is too young to be remembered");
    }

    #[test]
    fn long_files_are_hashed_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let long = vec![7; 3 * BUFFER + 11];
        fs::write(&path, &long).unwrap();
        let mut contents = Contents::new(Arc::new(Forgetful));
        assert_eq!(contents.of(&path, &fs::metadata(&path).unwrap()).unwrap(), Hash::of(&long));
    }
}
