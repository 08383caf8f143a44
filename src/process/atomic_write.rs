//! Atomic writes: a file is written under another name in the same folder and renamed into place,
//! so that nobody ever reads half of it, and so that a file which is hard-linked elsewhere (into a
//! compiler cache's store) is replaced here without being edited there.
//!
//! In: a path and the parts of the new content. Out: the file, whole, or untouched and an error.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Writes `parts`, one after the other, as the content of `path`. The new file gets the permissions
/// of `like` (of any new file, if there is none), and the modification time `modified`, if one is
/// given.
pub fn write(
    path: &Path,
    like: Option<&Metadata>,
    modified: Option<SystemTime>,
    parts: &[impl AsRef<[u8]>],
) -> io::Result<()> {
    let target = behind_links(path)?;
    let (file, temporary) = create(&target)?;
    let written = fill(file, like, modified, parts).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The first error is the one to tell; a file that is left behind is the lesser problem.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Makes `path` a copy of `source`, whose content is `content`: one that shares its blocks, where
/// the file system can do that.
pub fn write_from(path: &Path, source: &File, content: &[u8]) -> io::Result<()> {
    let target = behind_links(path)?;
    let (file, temporary) = create(&target)?;
    let copy = |mut file: File| match rustix::fs::ioctl_ficlone(&file, source) {
        Ok(()) => Ok(()),
        Err(_) => file.write_all(content),
    };
    let written = copy(file).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Whether `path` could be written that way: its folder may be closed, or its name too long for a
/// longer one.
pub fn is_possible(path: &Path) -> bool {
    let made = behind_links(path).and_then(|target| create(&target));
    made.is_ok_and(|(_, temporary)| fs::remove_file(temporary).is_ok())
}

/// A symbolic link stays one: what it points at is replaced, as a tool that writes through it would
/// do.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => fs::canonicalize(path),
        _ => Ok(path.to_owned()),
    }
}

/// A new file beside `target`, under a name that no other process and no other call uses.
fn create(target: &Path) -> io::Result<(File, PathBuf)> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}-{call}.tmp", std::process::id()));
    let temporary = target.with_file_name(name);
    let file = match OpenOptions::new().write(true).create_new(true).open(&temporary) {
        // Left by a process of the same number that was killed; nobody living uses this name.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&temporary)?;
            OpenOptions::new().write(true).create_new(true).open(&temporary)?
        }
        other => other?,
    };
    Ok((file, temporary))
}

fn fill(
    mut file: File,
    like: Option<&Metadata>,
    modified: Option<SystemTime>,
    parts: &[impl AsRef<[u8]>],
) -> io::Result<()> {
    for part in parts {
        file.write_all(part.as_ref())?;
    }
    if let Some(like) = like {
        file.set_permissions(like.permissions())?;
    }
    if let Some(modified) = modified {
        file.set_times(FileTimes::new().set_modified(modified))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::time::Duration;

    #[test]
    fn replacing_keeps_mode_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.o"), folder.path().join("in-a-cache"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(&path, &other).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 123_456_789);
        let like = fs::metadata(&path).unwrap();
        write(&path, Some(&like), Some(time), &[&b"ne"[..], b"w"]).unwrap();
        let now = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!((now.mode() & 0o777, now.modified().unwrap()), (0o751, time));
        assert_eq!(fs::read(&other).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        write(&link, None, None, &[b"new"]).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_name_can_be_too_long() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_possible(&folder.path().join("x".repeat(200))));
        assert!(!is_possible(&folder.path().join("x".repeat(255))));
        assert!(!is_possible(&folder.path().join("missing/x")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a-folder");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, None, None, &[b"x"]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
