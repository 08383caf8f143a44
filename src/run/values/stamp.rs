//! A stamp: one hash over what `stat` returns for everything that an execution used. As long as it
//! is the same, so are the values, and the outcome is found by a single lookup in the store instead
//! of one for each file.
//!
//! In: a dependency set. Out: its current stamp. Dependencies that `stat` does not cover enter it
//! with their value.

use super::Values;
use crate::model::keys::{KeyOf, PlainState};
use crate::model::{Base, Dependency, DependencyKind, DependencySet, FileIdentity, Hash};
use crate::observe::policy;
use crate::process::{manifest_file, sys};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;

/// From so many files on, two threads look at them.
const MANY: usize = 1024;

/// The state of all that an execution used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(Hash);

/// What goes into a stamp of one dependency.
enum StampPart<'a> {
    /// What `stat` tells of a file.
    StatRequest(StatRequest<'a>),
    /// A value, or a name of what it follows from.
    Value(Hash),
    /// A look at the same file is in it already.
    Nothing,
}

/// A file that is to be looked at: below which folder, and where.
struct StatRequest<'a> {
    top: &'a Path,
    path: &'a Path,
    follows: bool,
}

/// What `stat` tells of a file, as far as it counts.
#[derive(Clone, Copy)]
struct FileStat {
    mode: u32,
    identity: FileIdentity,
}

type StatResult = Result<FileStat, Errno>;

impl<'a> Values<'a> {
    /// The outcome that was found when all was as it is now.
    pub fn outcome_of(&self, stamp: Stamp) -> Option<Hash> {
        self.store.recall(stamp.0)
    }

    /// Remembers the outcome that was found by the values, which were looked up since the stamp was
    /// taken. A file that can change without another identity makes them uncertain.
    pub fn remember_outcome(
        &mut self,
        stamp: Stamp,
        test: Hash,
        dependency_set: &DependencySet,
        outcome: Hash,
    ) {
        let mut files = Vec::new();
        let is_same = self.take_stamp(test, dependency_set, Some(&mut files)) == Some(stamp);
        if is_same && files.iter().all(|file| file.is_settled() && self.contents.is_steady(file)) {
            self.store.remember(stamp.0, outcome);
        }
    }

    /// The stamp of what a test used; `None` where it would not be certain.
    pub fn stamp(&mut self, test: Hash, dependency_set: &DependencySet) -> Option<Stamp> {
        if self.has_stamps { self.take_stamp(test, dependency_set, None) } else { None }
    }

    /// The same, with the files and folders whose contents count.
    fn take_stamp(
        &mut self,
        test: Hash,
        dependency_set: &DependencySet,
        mut files: Option<&mut Vec<FileIdentity>>,
    ) -> Option<Stamp> {
        let parts = self.parts(dependency_set)?;
        let mut seen = stat_all(&parts).into_iter();
        let mut state = Vec::with_capacity(32 * parts.len());
        for (dependency, part) in dependency_set.dependencies.iter().zip(&parts) {
            match part {
                StampPart::StatRequest(look) => {
                    let counts = self.add(dependency, look, seen.next()?, &mut state)?;
                    if let Some(files) = &mut files {
                        files.extend(counts);
                    }
                }
                StampPart::Value(value) => state.extend(value.0),
                StampPart::Nothing => {}
            }
        }
        let mut hasher = KeyOf::Stamp.hasher();
        hasher
            .hash(test)
            .hash(dependency_set.hash().ok()?)
            .code(self.project.config.sharing.system_libraries);
        hasher.number(sys::user().into()).number(sys::group().into());
        self.project.hash_folders(&mut hasher);
        self.project
            .surroundings(&dependency_set.dependencies)
            .iter()
            .for_each(|place| _ = hasher.place(place));
        Some(Stamp(hasher.bytes(&state).finish()))
    }

    fn parts<'p>(&mut self, dependency_set: &'p DependencySet) -> Option<Vec<StampPart<'p>>>
    where
        'a: 'p,
    {
        let dependencies = &dependency_set.dependencies;
        let mut files = dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::File)
            .peekable();
        let mut parts = Vec::with_capacity(dependencies.len());
        for dependency in dependencies {
            let is_of_file = dependency.kind == DependencyKind::Attributes && {
                // Both are in the order of their places.
                while files.next_if(|file| file.place < dependency.place).is_some() {}
                files.peek().is_some_and(|file| file.place == dependency.place)
            };
            parts.push(if is_of_file { StampPart::Nothing } else { self.part(dependency)? });
        }
        Some(parts)
    }

    fn part<'p>(&mut self, dependency: &'p Dependency) -> Option<StampPart<'p>>
    where
        'a: 'p,
    {
        use DependencyKind::{Absent, Attributes, Exists, File, Folder, Library, Program};
        if self.counts_by_name(dependency) {
            return Some(StampPart::Value(self.value_by_name(dependency)));
        }
        if dependency.kind == Program {
            let path = self.project.path(&dependency.place)?;
            if manifest_file::beside(self.settings, &path).is_some() {
                return self.files_of_program(dependency, &path).map(StampPart::Value);
            }
        }
        let is_ordinary =
            dependency.place.base != Base::None || !policy::is_pseudo(path_of(dependency));
        if !is_ordinary
            || !matches!(
                dependency.kind,
                Absent | Attributes | Exists | File | Folder | Library | Program
            )
        {
            return Some(StampPart::Value(self.value(dependency)));
        }
        let project = self.project;
        match project.folder(dependency.place.base) {
            Some(folder) => Some(StampPart::StatRequest(StatRequest::new(folder, dependency))),
            None if dependency.place.base == Base::None => {
                Some(StampPart::StatRequest(StatRequest::new(Path::new("/"), dependency)))
            }
            None => Some(StampPart::Value(PlainState::NoSuchFolder.value())),
        }
    }

    /// Adds what was seen of a file. Gives its identity if its content counts; `None` if nothing is
    /// certain.
    fn add(
        &mut self,
        dependency: &Dependency,
        look: &StatRequest,
        seen: StatResult,
        state: &mut Vec<u8>,
    ) -> Option<Option<FileIdentity>> {
        use DependencyKind::{Absent, Attributes, Exists, Folder};
        let found = match seen {
            Ok(found) => found,
            // Something may be there all the same: a link that leads nowhere.
            Err(_) if look.follows => return None,
            Err(Errno::NOENT | Errno::NOTDIR) => {
                state.push(b'-');
                return Some(None);
            }
            Err(_) => return None,
        };
        if dependency.kind == Absent {
            state.push(b'+');
            return Some(None);
        }
        let kind = FileType::from_raw_mode(found.mode);
        state.extend(kind.as_raw_mode().to_le_bytes());
        match (dependency.kind, kind) {
            (Folder, FileType::Directory) | (_, FileType::RegularFile) => {}
            // What a link leads to is another folder.
            (Folder, _) => return None,
            // The permissions of folders count for nobody.
            _ => return Some(None),
        }
        if dependency.kind == Exists {
            return Some(None);
        }
        state.extend(found.mode.to_le_bytes());
        state.extend(found.identity.to_bytes());
        if dependency.kind == Attributes {
            return Some(None);
        }
        let path = || look.top.join(look.path);
        if dependency.kind != Folder
            && self.contents.is_device_in_memory(found.identity.device(), path)
        {
            return None;
        }
        Some(Some(found.identity))
    }
}

fn path_of(dependency: &Dependency) -> &Path {
    Path::new(OsStr::from_bytes(&dependency.place.path))
}

impl<'p> StatRequest<'p> {
    fn new(top: &'p Path, dependency: &'p Dependency) -> StatRequest<'p> {
        // A library may be known by a link to it.
        StatRequest {
            top,
            path: path_of(dependency),
            follows: dependency.kind == DependencyKind::Library,
        }
    }
}

/// Looks at all files that are to be looked at, in their order.
fn stat_all(parts: &[StampPart]) -> Vec<StatResult> {
    if parts.len() < MANY {
        return stat_in_order(parts);
    }
    let (here, there) = parts.split_at(parts.len() / 2);
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || stat_in_order(there));
        let mut seen = stat_in_order(here);
        seen.extend(
            other.ok().and_then(|other| other.join().ok()).unwrap_or_else(|| stat_in_order(there)),
        );
        seen
    })
}

/// What is in one folder comes together, as a rule: each folder is looked up once.
fn stat_in_order(parts: &[StampPart]) -> Vec<StatResult> {
    let mut last: Option<(&Path, &[u8], Option<OwnedFd>)> = None;
    let mut seen = Vec::with_capacity(parts.len());
    for part in parts {
        let StampPart::StatRequest(StatRequest { top, path, follows }) = part else { continue };
        let flags = if *follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let path = path.as_os_str().as_bytes();
        let (inside, name) =
            path.split_at(memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1));
        if !last.as_ref().is_some_and(|(of, folder, _)| of == top && *folder == inside) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder =
                openat(CWD, top.join(OsStr::from_bytes(inside)), flags, Mode::empty()).ok();
            last = Some((top, inside, folder));
        }
        let found = match last.as_ref().and_then(|(.., folder)| folder.as_ref()) {
            Some(folder) if !name.is_empty() => statat(folder, name, flags),
            _ => statat(CWD, top.join(OsStr::from_bytes(path)), flags),
        };
        seen.push(found.map(|found| FileStat { mode: found.st_mode, identity: identity(&found) }));
    }
    seen
}

/// What `FileIdentity::of` makes of the same file.
fn identity(found: &Stat) -> FileIdentity {
    FileIdentity {
        device: found.st_dev,
        inode: found.st_ino,
        size: found.st_size as u64,
        modified: (found.st_mtime, found.st_mtime_nsec as i64),
        changed: (found.st_ctime, found.st_ctime_nsec as i64),
    }
}

#[cfg(test)]
#[path = "stamp_tests.rs"]
mod tests;
