//! The state of paths that a run writes to, as far as it decides whether and how the write
//! succeeds. A file that an earlier run has left there makes no difference; a folder, a link or a
//! read-only file does.
//!
//! In: paths, before the run changes them. Out: states, as hashes.

use super::lock_table;
use crate::model::{Hash, Hasher};
use rustix::fs::{Access, AtFlags, CWD, StatxFlags, accessat, lgetxattr, statx};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PERMISSIONS: u32 = 0o7777;
const NONE: u64 = u64::MAX;

/// STATX_ATTR_APPEND: nothing can be emptied or removed there, though `access` allows it to be
/// written.
const ONLY_GROWS: u64 = 0x20;

/// As long as an access control list of a thousand entries.
const LONGEST_LIST: usize = 8 * 1024;

/// How a run writes to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A file is opened there, and emptied if it is there.
    Overwritten,
    /// A file is changed that keeps its permissions.
    Permissions,
    /// A file whose time of change is that of a file that is left behind.
    Time,
    /// Something is renamed to it.
    Replaced,
    /// A folder in which something is made, removed or renamed.
    Writable,
    /// A file that is locked, or asked whether it is.
    Locked,
}

/// The state of a place for a run that writes to it in this way.
pub fn state(target: Target, path: &Path) -> Hash {
    let found = fs::symlink_metadata(path).ok();
    let mut hasher = Hasher::new("target");
    match (target, &found) {
        (Target::Writable, _) => {
            _ = hasher.number(kind(found.as_ref())).number(may_write(path, true).into());
            if let Some(found) = &found {
                add_what_is_inherited(&mut hasher, path, found);
            }
        }
        (Target::Locked, found) => {
            _ = hasher
                .number(found.as_ref().is_some_and(|it| lock_table::is_locked(it.ino())).into())
        }
        (Target::Permissions, None) => _ = hasher.number(NONE),
        (Target::Permissions, Some(found)) => {
            _ = hasher
                .number((found.mode() & PERMISSIONS).into())
                .number((found.nlink() > 1).into());
        }
        (Target::Time, found) => {
            return time(found.as_ref().map(|found| (found.mtime(), found.mtime_nsec())));
        }
        // To those who write, a file that can be written is as good as none.
        (_, None) => {}
        (Target::Overwritten, Some(file)) if file.is_file() => {
            let has_other_names = file.nlink() > 1;
            if has_other_names || !may_write(path, false) {
                hasher.number(1).number(has_other_names.into());
            }
        }
        (Target::Replaced, Some(other)) if !other.is_dir() => {}
        (_, found) => _ = hasher.number(2).number(kind(found.as_ref())),
    }
    hasher.finish()
}

/// The state of a place of which nothing counts but the time of change.
pub fn time(modified: Option<(i64, i64)>) -> Hash {
    let mut hasher = Hasher::new("time of change");
    if let Some((seconds, nanoseconds)) = modified {
        hasher.number(seconds as u64).number(nanoseconds as u64);
    }
    hasher.finish()
}

/// Whether a file has the permissions that a thread would give to a new one, made with this mode.
pub fn is_made_so(found: &Metadata, thread: u32, mode: u64) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    mask.is_some_and(|mask| found.mode() & PERMISSIONS == mode as u32 & PERMISSIONS & !mask)
}

/// The bits that tell what kind of thing it is.
fn kind(found: Option<&Metadata>) -> u64 {
    found.map_or(0, |found| u64::from(found.mode() & libc::S_IFMT))
}

/// Whether this user may write to a file, or make names in a folder.
fn may_write(path: &Path, is_folder: bool) -> bool {
    let access = if is_folder { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
    let grows = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
        && !grows.is_ok_and(|found| found.stx_attributes.bits() & ONLY_GROWS != 0)
}

/// What files and folders that are made in a folder get from it: its group (set-group-id), its
/// default access control list. Most folders hand nothing on, and add nothing.
fn add_what_is_inherited(hasher: &mut Hasher, path: &Path, folder: &Metadata) {
    if folder.mode() & libc::S_ISGID != 0 {
        hasher.number(1).number(folder.gid().into());
    }
    let mut list = vec![0; LONGEST_LIST];
    if let Ok(length) = lgetxattr(path, "system.posix_acl_default", &mut list[..]) {
        hasher.number(2).bytes(&list[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_is_as_good_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let nothing = state(Target::Overwritten, &path);
        fs::write(&path, "text").unwrap();
        assert_eq!(state(Target::Overwritten, &path), nothing);
        fs::hard_link(&path, folder.path().join("y")).unwrap();
        assert_ne!(state(Target::Overwritten, &path), nothing);
        assert_eq!(
            state(Target::Replaced, &path),
            state(Target::Replaced, &folder.path().join("none"))
        );
        assert_ne!(state(Target::Replaced, folder.path()), state(Target::Replaced, &path));
    }
}
