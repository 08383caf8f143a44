//! The identity of a file's content: as long as it is the same, so is the content, and need not be
//! hashed again.

use super::hash;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Clocks of file systems are coarse: within one tick, in seconds on the coarsest, a file can
/// change without looking different. So long it must not have changed before its content is
/// remembered.
const COARSEST_CLOCK: i64 = 2;

/// Device, inode, size, modification and change time. The kernel sets the last one at every write,
/// and nobody can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl FileIdentity {
    /// The identity of the file that these are the metadata of. They have to be taken *before* the
    /// content is read.
    pub fn of(metadata: &Metadata) -> Self {
        FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The device that the file is on.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// What tells it from all other files that there are now.
    pub fn device_and_inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// When the content was changed: seconds since 1970, and nanoseconds.
    pub fn modified(&self) -> (i64, i64) {
        self.modified
    }

    /// The length of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether a change from now on is sure to give it another identity: only then may its content
    /// be remembered.
    pub fn is_settled(&self) -> bool {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
        now - self.modified.0.max(self.changed.0) > COARSEST_CLOCK
    }

    /// What two equal identities have in common, at once: for where there are many.
    pub fn to_bytes(&self) -> [u8; 56] {
        let times = [self.modified.0, self.modified.1, self.changed.0, self.changed.1]
            .map(|time| time as u64);
        let mut bytes = [0; 56];
        for (place, number) in bytes
            .chunks_exact_mut(8)
            .zip([self.device, self.inode, self.size].into_iter().chain(times))
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// What two equal identities have in common.
    pub fn hash(&self) -> hash::Hash {
        let mut hasher = hash::Hasher::new("file identity");
        hasher.number(self.device).number(self.inode).number(self.size);
        for time in [self.modified.0, self.modified.1, self.changed.0, self.changed.1] {
            hasher.number(time as u64);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_alter_the_identity_new_files_are_unsettled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let identity = |content: &str| {
            std::fs::write(&path, content).unwrap();
            FileIdentity::of(&path.metadata().unwrap())
        };
        let (one, two) = (identity("a"), identity("ab"));
        assert_ne!(one.hash(), two.hash());
        assert!(!two.is_settled());
        assert!(FileIdentity::of(&std::path::Path::new("/").metadata().unwrap()).is_settled());
    }
}
