//! File operations of a replay, relative to the descriptor of a trusted folder.
//!
//! In: a trusted folder (the project's root, its build folder, …) and a path below it. The kernel
//! resolves the path, and it is refused if it leaves the folder or leads through a symbolic link.
//! An outcome's paths were free of links when they were recorded; a link that is there now was
//! created since, perhaps by another outcome.

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is only a start for other paths.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A name in an open folder.
pub struct Beneath {
    folder: OwnedFd,
    name: OsString,
}

impl Beneath {
    /// The name that `path` means below `top`.
    pub fn open(top: &Path, path: &Path) -> io::Result<Self> {
        let top = rustix::fs::openat(CWD, top, HANDLE, Mode::empty())?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let folder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            None => top,
            Some(parent) => {
                let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                rustix::fs::openat2(&top, parent, HANDLE, Mode::empty(), strictly)?
            }
        };
        Ok(Beneath { folder, name })
    }

    /// What is there, if anything; a link is not followed.
    pub fn status(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where a link leads.
    pub fn link_target(&self) -> Option<Vec<u8>> {
        rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())
            .ok()
            .map(|target| target.into_bytes())
    }

    /// The content of a plain file.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        File::from(self.open_as(OFlags::RDONLY | OFlags::NONBLOCK)?).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Sets the modification time to this one (seconds since 1970, and nanoseconds), or to now.
    pub fn set_modified(&self, modified: Option<(i64, u32)>) -> io::Result<()> {
        let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let modified =
            modified.map_or(time(0, UTIME_NOW), |(seconds, part)| time(seconds, part.into()));
        let times = Timestamps { last_access: time(0, UTIME_OMIT), last_modification: modified };
        Ok(rustix::fs::utimensat(&self.folder, &self.name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Makes a folder, unless there is one, and sets its permissions.
    pub fn make_folder(&self, mode: u32) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, &self.name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = self.open_as(OFlags::RDONLY | OFlags::DIRECTORY)?;
        File::from(folder).set_permissions(Permissions::from_mode(mode))
    }

    /// Makes a symbolic link where nothing is.
    pub fn make_link(&self, target: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(OsStr::from_bytes(target), &self.folder, &self.name)?)
    }

    /// Writes a file under another name and renames it into place, so that nobody reads half of it.
    pub fn write(&self, mode: u32, content: &[u8]) -> io::Result<()> {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // The name itself may be as long as a name can be.
        let temporary = OsString::from(format!(".tasting-{}-{call}.tmp", std::process::id()));
        let written = self.fill(&temporary, mode, content);
        let written = written.and_then(|()| {
            Ok(rustix::fs::renameat(&self.folder, &temporary, &self.folder, &self.name)?)
        });
        if written.is_err() {
            // The first error is the one to tell.
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    fn fill(&self, temporary: &OsStr, mode: u32, content: &[u8]) -> io::Result<()> {
        let new =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.folder, temporary, new, Mode::RUSR | Mode::WUSR);
        let file = match open() {
            // Left by a process of the same number that was killed.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty())?;
                open()
            }
            other => other,
        };
        let mut file = File::from(file?);
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Removes a file, a link or an empty folder, if there is one.
    pub fn remove(&self) -> io::Result<()> {
        let removed = match rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)
            }
            other => other,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn open_as(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        symlink(folder.path(), top.join("out")).unwrap();
        symlink("a", top.join("in")).unwrap();
        let opens = |path: &str| Beneath::open(&top, Path::new(path)).is_ok();
        assert!(opens("x") && opens("a/x") && opens("a/b/x"));
        assert!(
            !opens("out/x")
                && !opens("in/x")
                && !opens("../x")
                && !opens("/x")
                && !opens("a/missing/x")
        );
        assert!(!opens("a/../../x") && !opens("") && !opens("a/.."));
    }

    #[test]
    fn links_are_replaced_and_never_written_through() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("precious"), "precious").unwrap();
        symlink("precious", folder.path().join("x")).unwrap();
        let name = Beneath::open(folder.path(), Path::new("x")).unwrap();
        assert!(name.read().is_err() && name.make_folder(0o700).is_err());
        name.write(0o640, b"new").unwrap();
        assert_eq!(fs::read(folder.path().join("precious")).unwrap(), b"precious");
        assert_eq!(
            (name.read().unwrap(), name.status().unwrap().unwrap().st_mode & 0o7777),
            (b"new".to_vec(), 0o640)
        );
        name.remove().unwrap();
        name.remove().unwrap();
        assert!(name.status().unwrap().is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
