//! One file of the store: written atomically, and read only if it is a plain file of a plausible
//! size.

use super::{StoreError, private};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How the names of files end that are being written.
pub const SUFFIX: &str = ".tmp";

/// A file under a name that nobody else uses. It is removed again unless it is put into its place.
pub struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    /// Writes a file that is its owner's alone into `folder`, which is made if need be.
    pub fn write(folder: &Path, content: &[u8]) -> Result<Self, StoreError> {
        Self::write_with(private::options(), private::create_folder, folder, content)
    }

    /// The same for a file that others may read, as the umask has it.
    pub fn write_public(folder: &Path, content: &[u8]) -> Result<Self, StoreError> {
        Self::write_with(OpenOptions::new(), |folder| fs::create_dir_all(folder), folder, content)
    }

    fn write_with(
        mut options: OpenOptions,
        create_folder: impl FnOnce(&Path) -> io::Result<()>,
        folder: &Path,
        content: &[u8],
    ) -> Result<Self, StoreError> {
        let path = folder.join(format!("{:016x}{SUFFIX}", random()));
        options.write(true).create_new(true);
        let create = || options.open(&path);
        let file = create().or_else(|error| match error.kind() {
            ErrorKind::NotFound => create_folder(folder).and_then(|()| create()),
            _ => Err(error),
        });
        let mut file = file.map_err(|error| StoreError::io("write into", folder, error))?;
        let temporary = TemporaryFile { path };
        file.write_all(content).map_err(|error| StoreError::io("write into", folder, error))?;
        Ok(temporary)
    }

    /// Where it is until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file into its place, whatever is there. What is there already changes places with
    /// it and is removed: where one file is renamed to another, ext4 writes the new one to the disk
    /// first.
    pub fn replace(self, target: &Path) -> Result<(), StoreError> {
        let rename = |how| renameat_with(CWD, &self.path, CWD, target, how);
        if rename(RenameFlags::EXCHANGE).is_ok() {
            // What was there goes with `self`.
            return Ok(());
        }
        fs::rename(&self.path, target).map_err(|error| StoreError::io("write", target, error))?;
        std::mem::forget(self);
        Ok(())
    }

    /// Puts the file into its place if nothing is there; says whether it is there now.
    pub fn claim(&self, target: &Path) -> Result<bool, StoreError> {
        match fs::hard_link(&self.path, target) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // File systems without hard links: the gap between looking and renaming is small.
            Err(_) if fs::symlink_metadata(target).is_ok() => Ok(false),
            Err(_) => fs::rename(&self.path, target)
                .map_err(|error| StoreError::io("write", target, error))
                .map(|()| true),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // What stays behind is cleaned away later.
        let _ = fs::remove_file(&self.path);
    }
}

/// Names must differ between processes, also where several containers with equal process numbers
/// share a store.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The content of a file; `None` if there is none.
pub fn read(path: &Path, largest: usize) -> Result<Option<(Vec<u8>, File)>, StoreError> {
    match read_plain(path, largest) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path, error)),
    }
}

/// Opens a file to be read. A pipe in its place does not stop anyone.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

fn read_plain(path: &Path, largest: usize) -> io::Result<(Vec<u8>, File)> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > largest as u64 {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "it is no plain file of a sensible size",
        ));
    }
    let mut content = Vec::with_capacity(metadata.len() as usize);
    (&mut file).take(largest as u64).read_to_end(&mut content)?;
    Ok((content, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_exclusive_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, target) = (folder.path().join("a/b"), folder.path().join("a/b/c"));
        assert!(TemporaryFile::write(&inside, b"one").unwrap().claim(&target).unwrap());
        assert!(!TemporaryFile::write(&inside, b"two").unwrap().claim(&target).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"one");
        TemporaryFile::write(&inside, b"three").unwrap().replace(&target).unwrap();
        assert_eq!(read(&target, 100).unwrap().unwrap().0, b"three");
        assert_eq!(fs::read_dir(inside).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_of_limited_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        fs::write(&path, [0; 11]).unwrap();
        assert!(read(&path, 10).is_err());
        assert!(read(folder.path(), 10).is_err());
        assert!(read(&folder.path().join("none"), 10).unwrap().is_none());
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read(&pipe, 10).is_err());
    }
}
