//! Where the linker's map comes from: a file in memory that we ask the linker to write; or the
//! user's own map file, which is read and left as it is.
//!
//! In: what will be linked, and by which kind of linker. Out: the arguments that ask for the map,
//! and afterwards the map.

use super::arguments::{LinkerJob, UserMap};
use crate::process::linker::LinkerKind;
use crate::process::sys::{self, Mapped, Memory};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Where the map comes from.
pub enum MapSource {
    /// Nobody writes one that we could read.
    None,
    /// We ask for it, under this path.
    Ours(Memory, PathBuf),
    /// The user asked for it. With what was there before, so that an old one is not taken for it.
    Users(PathBuf, Option<Metadata>),
}

impl MapSource {
    /// The source for this link. An object (`-r`) is not placed, so no map of it is needed; a
    /// linker that we do not know is not asked for one.
    pub fn choose(job: &LinkerJob, kind: Option<LinkerKind>) -> Self {
        let Some(kind) = kind.filter(|_| !job.relocatable) else { return MapSource::None };
        match &job.map {
            UserMap::Stdout => MapSource::None,
            // mold 1.10 fails an assertion when a map is to show a function that `--defsym` has
            // named.
            UserMap::None if kind == LinkerKind::Mold && !job.defsyms.is_empty() => MapSource::None,
            UserMap::None => Self::ours(kind).unwrap_or(MapSource::None),
            UserMap::File(path) => {
                let path = map_file(path, &job.output, kind);
                let before = fs::metadata(&path).ok();
                MapSource::Users(path, before)
            }
        }
    }

    fn ours(kind: LinkerKind) -> Option<Self> {
        let memory = Memory::new(c"tasting-map").ok()?;
        let mut path = memory.path();
        if kind == LinkerKind::Lld {
            // lld first tries whether it can make a file beside the map, which it cannot in /proc.
            let link = std::env::temp_dir().join(format!("tasting-map-{}", std::process::id()));
            // One of the same name was left by a process that was killed.
            let _ = fs::remove_file(&link);
            symlink(&path, &link).ok()?;
            path = link;
        }
        Some(MapSource::Ours(memory, path))
    }

    /// The user's arguments, with the option for our map in front: should the user ask for one in a
    /// way that we missed, the last one counts. `-flavor` has to stay the first.
    pub fn ask(&self, user: &[OsString]) -> Vec<OsString> {
        let mut arguments = user.to_vec();
        if let MapSource::Ours(_, path) = self {
            let mut option = OsString::from("-Map=");
            option.push(path);
            let front = if user.first().is_some_and(|word| word == "-flavor") {
                user.len().min(2)
            } else {
                0
            };
            arguments.insert(front, option);
        }
        arguments
    }

    /// To be called when the linker has ended, however it ended.
    pub fn close(&self) {
        if let MapSource::Ours(memory, path) = self
            && *path != memory.path()
        {
            let _ = fs::remove_file(path);
        }
    }

    /// The map, if one was written.
    pub fn read(&self) -> Option<Mapped> {
        match self {
            MapSource::None => None,
            MapSource::Ours(memory, _) => memory.content().ok().filter(|map| !map.is_empty()),
            MapSource::Users(path, before) => {
                let state = |file: &Metadata| (file.ino(), file.ctime(), file.ctime_nsec());
                let after = fs::metadata(path).ok().filter(|file| file.is_file())?;
                let written = before.as_ref().is_none_or(|before| state(before) != state(&after));
                if written { sys::map(path).ok() } else { None }
            }
        }
    }
}

/// GNU ld writes a map that names a folder into that folder, and puts the output's path for `%`.
fn map_file(given: &Path, output: &Path, kind: LinkerKind) -> PathBuf {
    if kind != LinkerKind::GnuLd {
        return given.to_owned();
    }
    let with_output = |before: &[u8], name: &Path, after: &[u8]| {
        let bytes = [before, name.as_os_str().as_bytes(), after].concat();
        PathBuf::from(OsString::from_vec(bytes))
    };
    let bytes = given.as_os_str().as_bytes();
    if let Some(at) = bytes.iter().position(|&byte| byte == b'%') {
        let ending = &bytes[at + 1..];
        return with_output(&bytes[..at], output, if ending.is_empty() { b".map" } else { ending });
    }
    match output.file_name() {
        Some(name) if given.is_dir() => given.join(with_output(b"", Path::new(name), b".map")),
        _ => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_map_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let of = |given: &Path, kind| map_file(given, Path::new("sub/x"), kind);
        assert_eq!(of(Path::new("x.map"), LinkerKind::GnuLd), Path::new("x.map"));
        assert_eq!(of(Path::new("%"), LinkerKind::GnuLd), Path::new("sub/x.map"));
        assert_eq!(of(Path::new("%.bar"), LinkerKind::GnuLd), Path::new("sub/x.bar"));
        assert_eq!(of(folder.path(), LinkerKind::GnuLd), folder.path().join("x.map"));
        assert_eq!(of(Path::new("%"), LinkerKind::Lld), Path::new("%"));
    }

    #[test]
    fn our_map_is_asked_for_in_front() {
        let map = MapSource::choose(&LinkerJob::default(), Some(LinkerKind::Gold));
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let asked = map.ask(&words(&["-o", "x"]));
        assert!(
            asked[0].as_bytes().starts_with(b"-Map=/proc/") && asked[1..] == words(&["-o", "x"])
        );
        assert_eq!(map.ask(&words(&["-flavor", "gnu", "x"]))[..2], words(&["-flavor", "gnu"]));
    }

    #[test]
    fn no_map_where_it_would_be_seen() {
        let asks =
            |job: &LinkerJob, kind| matches!(MapSource::choose(job, kind), MapSource::Ours(..));
        let plain = LinkerJob::default();
        assert!(asks(&plain, Some(LinkerKind::GnuLd)) && !asks(&plain, None));
        assert!(!asks(
            &LinkerJob { map: UserMap::Stdout, ..plain.clone() },
            Some(LinkerKind::GnuLd)
        ));
        assert!(!asks(&LinkerJob { relocatable: true, ..plain }, Some(LinkerKind::GnuLd)));
    }

    #[test]
    fn stale_user_maps_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.map");
        fs::write(&path, "old").unwrap();
        let job = LinkerJob { map: UserMap::File(path.clone()), ..LinkerJob::default() };
        let map = MapSource::choose(&job, Some(LinkerKind::Lld));
        assert!(map.read().is_none());
        fs::remove_file(&path).unwrap();
        fs::write(folder.path().join("another"), "").unwrap();
        fs::write(&path, "new").unwrap();
        assert_eq!(map.read().as_deref(), Some(&b"new"[..]));
    }
}
