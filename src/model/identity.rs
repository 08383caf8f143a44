//! The identity of a file's content: as long as it is the same, so is the content, and need not be hashed again.

use super::{Hash, Hasher};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// How long a file must not have changed before its content is remembered. Clocks of file systems are coarse: within one
/// tick (2 s on the coarsest) a file can change without looking different.
const SETTLED: Duration = Duration::from_secs(5);

/// Device, inode, size, modification and change time. The kernel sets the last one at every write, and nobody can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// The identity of the file that these are the metadata of. They have to be taken *before* the content is read.
    pub fn of(metadata: &Metadata) -> Self {
        FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the file was last changed so long ago that another change would be seen. A time in the future is not.
    pub fn settled(&self, now: SystemTime) -> bool {
        let changed = Duration::new(self.changed.0.max(0) as u64, self.changed.1.clamp(0, 999_999_999) as u32);
        let age = SystemTime::UNIX_EPOCH.checked_add(changed).and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age > SETTLED)
    }

    /// What two equal identities have in common.
    pub fn hash(&self) -> Hash {
        let mut hasher = Hasher::new("file identity");
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
    fn a_change_is_another_identity_and_a_new_file_is_not_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let identity = |content: &str| {
            std::fs::write(&path, content).unwrap();
            FileIdentity::of(&path.metadata().unwrap())
        };
        let (one, two) = (identity("a"), identity("ab"));
        assert_ne!(one.hash(), two.hash());
        assert!(!two.settled(SystemTime::now()));
        assert!(two.settled(SystemTime::now() + 2 * SETTLED));
        assert!(!two.settled(SystemTime::UNIX_EPOCH));
    }
}
