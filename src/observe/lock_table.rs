//! The kernel's table of locked files.
//!
//! In: inodes. Out: whether they are locked.

use std::fs;

/// Whether any process has locked a file of this inode. The device is left out: some file systems
/// show another one there than `stat` does, and a lock too many costs no more than a run.
pub fn is_locked(inode: u64) -> bool {
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    table.lines().any(|line| inode_of(line) == Some(inode))
}

/// The inode of the file in a line of `/proc/locks`. Leases are no locks.
fn inode_of(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    fields.find(|field| matches!(*field, "POSIX" | "FLOCK" | "OFDLCK"))?;
    let file = fields.find(|field| field.matches(':').count() == 2)?;
    file.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn lines_tell_the_inode() {
        let line = "1: POSIX  ADVISORY  WRITE 5433 08:01:7864448 128 128";
        assert_eq!(inode_of(line), Some(7_864_448));
        assert_eq!(inode_of("2: -> FLOCK  ADVISORY  WRITE 1 fe:00:12 0 EOF"), Some(12));
        assert_eq!(inode_of("3: OFDLCK ADVISORY  READ  -1 00:2b:7 0 EOF"), Some(7));
        assert_eq!(inode_of("4: LEASE  ACTIVE    READ  77 fe:00:9 0 EOF"), None);
    }

    #[test]
    fn a_lock_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        assert!(!is_locked(inode));
        file.as_file().lock().unwrap();
        assert!(is_locked(inode));
    }
}
