//! The originals of what a run changes, each saved just before the change, so that a run whose
//! result is not trusted can be undone and repeated.
//!
//! In: paths that are about to be changed. Out: the files as they were before the run
//! (`put_back.rs`), or the reason why that is not possible. For what the run itself has created,
//! its name is enough.

use super::content::Identity;
use super::listing::Kind;
use super::policy;
use super::resolve::{Found, Place};
use rustc_hash::FxHashMap;
use rustix::fs::{FlockOperation, OFlags, flock, ioctl_ficlone, lgetxattr, llistxattr};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of all private folders, beside the store.
pub const ORIGINALS: &str = "originals";

/// More is not copied of one run, or of one file, where the file system cannot share the blocks of
/// files.
const MOST: u64 = 256 << 20;
const LARGEST: u64 = 64 << 20;
/// What is kept in memory of one file, and of all.
const SMALL: u64 = 64 << 10;
const MOST_IN_MEMORY: u64 = 8 << 20;
/// More names are not kept.
const MOST_NAMES: usize = 100_000;

/// What the run has changed, and how it was before.
#[derive(Debug, Default)]
pub struct Originals {
    /// Where copies may be put; nothing is kept without.
    base: Option<PathBuf>,
    folder: Option<PrivateFolder>,
    pub(super) known: FxHashMap<PathBuf, Original>,
    /// Folders from before the run that it renamed, in that order.
    pub(super) moved: Vec<(PathBuf, PathBuf)>,
    /// When the entries of folders were last changed before.
    pub(super) folders: FxHashMap<PathBuf, Times>,
    copied: u64,
    in_memory: u64,
    /// Why not all can be put back.
    obstacle: Option<String>,
}

/// What was at a path before the run.
#[derive(Debug)]
pub(super) enum Original {
    Absent,
    File(Attributes, Content),
    Link(Attributes, PathBuf),
    Folder(Attributes),
}

#[derive(Debug)]
pub(super) enum Content {
    Here(Vec<u8>),
    Copy(PathBuf),
}

/// The attributes of something that was there.
#[derive(Debug)]
pub(super) struct Attributes {
    pub identity: Identity,
    pub file: (u64, u64),
    pub links: u64,
    pub mode: u32,
    pub owner: (u32, u32),
    pub times: Times,
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Seconds and nanoseconds of the last access and the last change.
pub(super) type Times = [(i64, i64); 2];

pub(super) fn times(found: &Metadata) -> Times {
    [(found.atime(), found.atime_nsec()), (found.mtime(), found.mtime_nsec())]
}

impl Originals {
    /// With copies in a folder of its own below `base`; none are kept if there is no such place.
    pub fn new(base: Option<PathBuf>) -> Originals {
        Originals { base, ..Originals::default() }
    }

    /// Why the run cannot be undone, if that is known already.
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    pub(super) fn hinder(&mut self, path: &Path, reason: impl std::fmt::Display) {
        if self.obstacle.is_none() {
            self.obstacle = Some(format!("{} {reason}", path.display()));
        }
    }

    /// Whether anything has to be put back.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.moved.is_empty()
    }

    /// What is at a place is about to be changed, or something to be made there.
    pub fn before_change(&mut self, place: &Place) {
        let path = &place.path;
        if self.base.is_none()
            || self.obstacle.is_some()
            || self.known.contains_key(path)
            || policy::is_pseudo(path)
        {
            return;
        }
        if self.known.len() >= MOST_NAMES {
            return self.hinder(
                path,
                format!("is one of more than {MOST_NAMES} names that the test has changed"),
            );
        }
        let is_in = |folder: &PathBuf| path.starts_with(folder);
        if self.moved.iter().any(|(old, new)| is_in(old) || is_in(new)) {
            return self.hinder(path, "is in a folder that the test has renamed");
        }
        let original = match &place.found {
            Found::Missing => Ok(Original::Absent),
            // Of the run's own making, or else noticed in the end.
            Found::There(_) if self.is_in_made_folder(path) => return,
            Found::There(found) => self.keep(path, found),
            _ => return,
        };
        match original {
            Ok(original) => {
                self.note_folder(path);
                self.known.insert(path.clone(), original);
            }
            Err(reason) => self.hinder(path, reason),
        }
    }

    fn is_in_made_folder(&self, path: &Path) -> bool {
        path.ancestors()
            .skip(1)
            .any(|folder| matches!(self.known.get(folder), Some(Original::Absent)))
    }

    /// A change of its entries is seen in a folder's times.
    fn note_folder(&mut self, path: &Path) {
        let Some(folder) = path.parent() else { return };
        if !self.folders.contains_key(folder)
            && !self.known.contains_key(folder)
            && let Ok(found) = fs::symlink_metadata(folder)
        {
            self.folders.insert(folder.to_owned(), times(&found));
        }
    }

    /// A folder is about to get another name. All that is in it has another name then, too.
    pub fn before_move(&mut self, old: &Path, new: &Path, is_exchange: bool) {
        if self.base.is_none() || self.obstacle.is_some() {
            return;
        }
        if is_exchange {
            return self.hinder(old, "is a folder that changes places with another");
        }
        let is_inside = |path: &PathBuf, folder: &Path| path.starts_with(folder) && path != folder;
        if matches!(self.known.get(old), Some(Original::Absent)) || self.is_in_made_folder(old) {
            let inside: Vec<PathBuf> =
                self.known.keys().filter(|path| is_inside(path, old)).cloned().collect();
            for path in inside {
                if let (Ok(rest), Some(original)) =
                    (path.strip_prefix(old), self.known.remove(&path))
                {
                    self.known.insert(new.join(rest), original);
                }
            }
            return;
        }
        if self.known.keys().any(|path| is_inside(path, old) || is_inside(path, new)) {
            return self.hinder(
                old,
                "is a folder that the test renames after it has changed something in it",
            );
        }
        if let Some(parent) = new.parent() {
            self.note_folder(&parent.join("new"));
        }
        self.moved.push((old.to_owned(), new.to_owned()));
    }

    fn keep(&mut self, path: &Path, found: &Metadata) -> Result<Original, String> {
        let unreadable =
            |error: io::Error| format!("is about to be changed and cannot be kept: {error}");
        let attributes = || Attributes::of(path, found).map_err(unreadable);
        match Kind::of(found.file_type()) {
            Kind::File => Ok(Original::File(attributes()?, self.copy(path, found)?)),
            Kind::Folder => Ok(Original::Folder(attributes()?)),
            Kind::Link => {
                Ok(Original::Link(attributes()?, fs::read_link(path).map_err(unreadable)?))
            }
            Kind::Fifo | Kind::Socket | Kind::Device => {
                Err("is changed, and no file that can be kept".to_owned())
            }
        }
    }

    /// Keeps the content of a file.
    fn copy(&mut self, path: &Path, found: &Metadata) -> Result<Content, String> {
        let unreadable =
            |error: io::Error| format!("is about to be changed and cannot be kept: {error}");
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let from = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map_err(unreadable)?;
        if found.len() <= SMALL && self.in_memory + found.len() <= MOST_IN_MEMORY {
            let mut content = Vec::with_capacity(found.len() as usize + 1);
            (&from).take(SMALL + 1).read_to_end(&mut content).map_err(unreadable)?;
            self.in_memory += content.len() as u64;
            return Ok(Content::Here(content));
        }
        let number = self.known.len();
        let copy = self.folder().map_err(unreadable)?.path.join(number.to_string());
        let to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&copy)
            .map_err(unreadable)?;
        if ioctl_ficlone(&to, &from).is_err() {
            if found.len() > LARGEST || self.copied + found.len() > MOST {
                return Err("is about to be changed and too large to be kept".to_owned());
            }
            self.copied += found.len();
            io::copy(&mut &from, &mut &to).map_err(unreadable)?;
        }
        Ok(Content::Copy(copy))
    }

    fn folder(&mut self) -> io::Result<&PrivateFolder> {
        match self.folder {
            Some(ref folder) => Ok(folder),
            None => {
                let base = self.base.as_deref().ok_or(io::ErrorKind::NotFound)?;
                Ok(self.folder.insert(PrivateFolder::new(base)?))
            }
        }
    }
}

impl Attributes {
    fn of(path: &Path, found: &Metadata) -> io::Result<Attributes> {
        Ok(Attributes {
            identity: Identity::of(found),
            file: (found.dev(), found.ino()),
            links: found.nlink(),
            mode: found.mode() & 0o7777,
            owner: (found.uid(), found.gid()),
            times: times(found),
            extended: extended(path)?,
        })
    }
}

/// The extended attributes of something, with their values.
pub(super) fn extended(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = [0; 4096];
    let length = match llistxattr(path, &mut names) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => 0,
        Err(error) => return Err(error.into()),
    };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut value = vec![0; 64 << 10];
            let length = lgetxattr(path, name, value.as_mut_slice())?;
            value.truncate(length);
            Ok((name.to_vec(), value))
        })
        .collect()
}

/// A folder that nobody else may look into, which is removed in the end. Whose process has died is
/// told by its lock.
#[derive(Debug)]
struct PrivateFolder {
    path: PathBuf,
    _lock: File,
}

impl PrivateFolder {
    fn new(base: &Path) -> io::Result<PrivateFolder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let private = |recursive| {
            let mut builder = DirBuilder::new();
            builder.mode(0o700).recursive(recursive);
            builder
        };
        private(true).create(base)?;
        remove_stale(base);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{}-{number}", std::process::id()));
        private(false).create(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(PrivateFolder { path, _lock: lock })
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what processes have left that ended before they could.
pub fn remove_stale(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        let is_stale = File::open(&folder).is_ok_and(|lock| {
            // Locked a moment after it is made.
            let is_old = lock.metadata().is_ok_and(|found| {
                found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 60))
            });
            is_old && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        });
        if is_stale {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}
