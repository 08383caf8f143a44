//! A stamp: one name for what `stat` tells of all that an execution used. As long as it is the
//! same, so are the values, and the outcome that was found by them is found by a single look into
//! the store, instead of one for each file.
//!
//! In: a dependency set. Out: its stamp here and now. What `stat` does not tell goes into it as the
//! value itself.

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
enum Part<'a> {
    /// What `stat` tells of a file.
    Look(Look<'a>),
    /// A value, or a name of what it follows from.
    Value(Hash),
    /// A look at the same file is in it already.
    Nothing,
}

/// A file that is to be looked at: below which folder, and where.
struct Look<'a> {
    top: &'a Path,
    path: &'a Path,
    follows: bool,
}

/// What `stat` tells of a file, as far as it counts.
#[derive(Clone, Copy)]
struct Found {
    mode: u32,
    identity: FileIdentity,
}

type Seen = Result<Found, Errno>;

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
        let mut seen = look_at_all(&parts).into_iter();
        let mut state = Vec::with_capacity(32 * parts.len());
        for (dependency, part) in dependency_set.dependencies.iter().zip(&parts) {
            match part {
                Part::Look(look) => {
                    let counts = self.add(dependency, look, seen.next()?, &mut state)?;
                    if let Some(files) = &mut files {
                        files.extend(counts);
                    }
                }
                Part::Value(value) => state.extend(value.0),
                Part::Nothing => {}
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

    fn parts<'p>(&mut self, dependency_set: &'p DependencySet) -> Option<Vec<Part<'p>>>
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
            parts.push(if is_of_file { Part::Nothing } else { self.part(dependency)? });
        }
        Some(parts)
    }

    fn part<'p>(&mut self, dependency: &'p Dependency) -> Option<Part<'p>>
    where
        'a: 'p,
    {
        use DependencyKind::{Absent, Attributes, Exists, File, Folder, Library, Program};
        if self.counts_by_name(dependency) {
            return Some(Part::Value(self.value_by_name(dependency)));
        }
        if dependency.kind == Program {
            let path = self.project.path(&dependency.place)?;
            if manifest_file::beside(self.settings, &path).is_some() {
                return self.files_of_program(dependency, &path).map(Part::Value);
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
            return Some(Part::Value(self.value(dependency)));
        }
        let project = self.project;
        match project.folder(dependency.place.base) {
            Some(folder) => Some(Part::Look(Look::new(folder, dependency))),
            None if dependency.place.base == Base::None => {
                Some(Part::Look(Look::new(Path::new("/"), dependency)))
            }
            None => Some(Part::Value(PlainState::NoSuchFolder.value())),
        }
    }

    /// Adds what was seen of a file. Gives its identity if its content counts; `None` if nothing is
    /// certain.
    fn add(
        &mut self,
        dependency: &Dependency,
        look: &Look,
        seen: Seen,
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

impl<'p> Look<'p> {
    fn new(top: &'p Path, dependency: &'p Dependency) -> Look<'p> {
        // A library may be known by a link to it.
        Look { top, path: path_of(dependency), follows: dependency.kind == DependencyKind::Library }
    }
}

/// Looks at all files that are to be looked at, in their order.
fn look_at_all(parts: &[Part]) -> Vec<Seen> {
    if parts.len() < MANY {
        return look_at_some(parts);
    }
    let (here, there) = parts.split_at(parts.len() / 2);
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || look_at_some(there));
        let mut seen = look_at_some(here);
        seen.extend(
            other.ok().and_then(|other| other.join().ok()).unwrap_or_else(|| look_at_some(there)),
        );
        seen
    })
}

/// What is in one folder comes together, as a rule: each folder is looked up once.
fn look_at_some(parts: &[Part]) -> Vec<Seen> {
    let mut last: Option<(&Path, &[u8], Option<OwnedFd>)> = None;
    let mut seen = Vec::with_capacity(parts.len());
    for part in parts {
        let Part::Look(Look { top, path, follows }) = part else { continue };
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
        seen.push(found.map(|found| Found { mode: found.st_mode, identity: identity(&found) }));
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
mod tests {
    use super::*;
    use crate::fingerprint::ModuleCache;
    use crate::model::Place;
    use crate::observe::{Contents, Forgetful, Input};
    use crate::process::Settings;
    use crate::run::project::Project;
    use crate::store::{FileStore, Options};
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::sync::Arc;

    struct Bench {
        _folder: tempfile::TempDir,
        top: PathBuf,
        project: Project,
        store: FileStore,
        settings: Settings,
        modules: ModuleCache,
    }

    impl Bench {
        fn new() -> Bench {
            // Not in /tmp, which can be a file system in memory.
            let here = std::env::current_exe().unwrap();
            let folder = tempfile::tempdir_in(here.parent().unwrap()).unwrap();
            let top = fs::canonicalize(folder.path()).unwrap();
            fs::write(top.join("tasting.toml"), "").unwrap();
            let settings = Settings::default();
            let project = Project::find(&top, None, &settings).unwrap();
            let store = FileStore::new(&top.join("store"), Options::default());
            Bench {
                _folder: folder,
                top,
                project,
                store,
                settings,
                modules: ModuleCache::default(),
            }
        }

        fn values(&self) -> Values<'_> {
            let contents = Contents::new(Arc::new(Forgetful));
            Values::new(
                &self.project,
                &self.settings,
                &self.store,
                contents,
                Input::Empty,
                &self.modules,
            )
            .with_stamps()
        }

        fn set(&self, used: &[(DependencyKind, &str)]) -> DependencySet {
            let on = |(kind, path): &(DependencyKind, &str)| {
                Dependency::on(*kind, self.project.place(Path::new(path)))
            };
            let mut dependencies: Vec<Dependency> = used.iter().map(on).collect();
            dependencies.sort_unstable();
            DependencySet { dependencies }
        }

        fn stamp(&self, used: &[(DependencyKind, &str)]) -> Option<Stamp> {
            self.values().stamp(Hash::of(b"test"), &self.set(used))
        }
    }

    #[test]
    fn every_change_that_a_value_shows_is_another_stamp() {
        use DependencyKind::{Absent, Attributes, Exists, File as Content, Folder, Link};
        let bench = Bench::new();
        let path = |name: &str| bench.top.join(name).to_str().unwrap().to_owned();
        let [file, other, folder, link, missing] =
            ["file", "other", "folder", "link", "missing"].map(path);
        let write = |path: &str, text: &str| fs::write(path, text).unwrap();
        write(&file, "one");
        write(&other, "one");
        fs::create_dir(&folder).unwrap();
        symlink("file", &link).unwrap();
        let used = [
            (Content, &file[..]),
            (Absent, &missing),
            (Exists, &folder),
            (Attributes, &file),
            (Attributes, &other),
            (Folder, &folder),
            (Link, &link),
        ];
        let mut seen = vec![bench.stamp(&used).unwrap()];
        assert_eq!(bench.stamp(&used), Some(seen[0]), "nothing has changed");
        let mut check = |what: &str| {
            let now = bench.stamp(&used).unwrap();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        let times = fs::metadata(&file).unwrap();
        write(&file, "two");
        let times = fs::FileTimes::new().set_modified(times.modified().unwrap());
        File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
        check("content of the same size, with the old time");
        write(&other, "longer");
        check("size");
        fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
        check("it can be executed");
        write(&missing, "");
        check("it is there");
        write(&format!("{folder}/new"), "");
        check("an entry");
        fs::remove_file(&link).unwrap();
        symlink("other", &link).unwrap();
        check("where a link leads");
        fs::remove_file(&other).unwrap();
        check("it is gone");
        fs::remove_dir_all(&folder).unwrap();
        symlink(".", &folder).unwrap();
        assert_eq!(
            bench.stamp(&used),
            None,
            "it is not known what is in the folder that a link leads to"
        );
    }

    #[test]
    fn places_and_kinds_do_not_stand_for_each_other() {
        use DependencyKind::{Attributes, Exists, File as Content};
        let bench = Bench::new();
        let path = |name: &str| bench.top.join(name).to_str().unwrap().to_owned();
        let [one, two] = ["one", "two"].map(path);
        fs::write(&one, "x").unwrap();
        fs::hard_link(&one, &two).unwrap();
        let stamps: Vec<_> = [
            &[(Content, &one[..])][..],
            &[(Content, &two)],
            &[(Attributes, &one)],
            &[(Exists, &one)],
            &[(Content, &one), (Attributes, &one)],
            &[(Content, &one), (Attributes, &two)],
        ]
        .iter()
        .map(|used| bench.stamp(used).unwrap())
        .collect();
        let different: std::collections::BTreeSet<_> = stamps.iter().map(|stamp| stamp.0).collect();
        assert_eq!(different.len(), stamps.len());
    }

    #[test]
    fn what_may_change_unseen_has_no_stamp_or_is_not_remembered() {
        let bench = Bench::new();
        let file = bench.top.join("file").to_str().unwrap().to_owned();
        fs::write(&file, "one").unwrap();
        let test = Hash::of(b"test");
        let keep = |used: &[(DependencyKind, &str)]| {
            let (set, mut values) = (bench.set(used), bench.values());
            let stamp = values.stamp(test, &set)?;
            values.now(&set);
            values.remember_outcome(stamp, test, &set, Hash::of(b"outcome"));
            values.outcome_of(stamp)
        };
        assert_eq!(keep(&[(DependencyKind::File, &file)]), None, "it is too young");
        assert_eq!(
            keep(&[(DependencyKind::Folder, bench.top.to_str().unwrap())]),
            None,
            "it is too young"
        );
        let settled = "/etc/passwd";
        assert_eq!(keep(&[(DependencyKind::File, settled)]), Some(Hash::of(b"outcome")));
        assert_eq!(keep(&[(DependencyKind::File, settled), (DependencyKind::File, &file)]), None);
        let in_memory = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        assert_eq!(
            bench.stamp(&[(DependencyKind::File, in_memory.path().to_str().unwrap())]),
            None
        );
    }

    #[test]
    fn many_files_are_seen_in_their_order() {
        let bench = Bench::new();
        let names: Vec<String> = (0..2 * MANY).map(|number| format!("{number:05}")).collect();
        names.iter().for_each(|name| fs::write(bench.top.join(name), "").unwrap());
        let place = |name: &String| Place { base: Base::Root, path: name.as_bytes().to_vec() };
        let on = |name: &String| Dependency::on(DependencyKind::File, place(name));
        let set = DependencySet { dependencies: names.iter().map(on).collect() };
        let mut values = bench.values();
        let parts = values.parts(&set).unwrap();
        let seen: Vec<_> =
            look_at_all(&parts).into_iter().map(|seen| seen.unwrap().identity).collect();
        let expected: Vec<_> = names
            .iter()
            .map(|name| FileIdentity::of(&fs::metadata(bench.top.join(name)).unwrap()))
            .collect();
        assert_eq!(seen, expected);
    }
}
