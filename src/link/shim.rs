//! The whole of `tasting-ld`: it runs the real linker, asks it for its map, and has the manifest made.
//!
//! In: a linker's command line. Out: exactly what the real linker does, and a manifest beside the binary. Our
//! own work begins when the linker has ended, and whatever happens to it shows in the log file only.

use super::arguments::{self, LinkerInvocation, LinkerJob, UserMap};
use super::real;
use crate::process::linker::{self, LinkerKind};
use crate::process::quiet::quietly;
use crate::process::spawn::{self, Change, Program};
use crate::process::sys::{self, Mapped, Memory};
use crate::process::{Settings, guard, handover, response};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The whole of `tasting-ld`. It ends as the real linker ends.
pub fn main() -> ! {
    let settings = Settings::from_environment();
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let found = real::linker(&settings, &called, &arguments).unwrap_or_else(|error| {
        eprintln!("tasting-ld: {error}");
        std::process::exit(spawn::NOT_FOUND)
    });
    let call = Call { settings: &settings, linker: Program::at(found.path), user: &arguments[found.words..] };
    if settings.disable || guard::is_inside(guard::LINKER) {
        call.pass_through();
    }
    match call.understand() {
        LinkerInvocation::PassThrough(why) => {
            settings.log(format_args!("passed through: {why}"));
            call.pass_through()
        }
        LinkerInvocation::Link(job) => call.link(&job),
    }
}

/// One call of the linker.
struct Call<'a> {
    settings: &'a Settings,
    linker: Program,
    /// The user's arguments, as given.
    user: &'a [OsString],
}

impl Call<'_> {
    fn understand(&self) -> LinkerInvocation {
        let expanded = response::expand(self.user);
        if expanded.opaque {
            return LinkerInvocation::PassThrough("a response file cannot be read");
        }
        let folder = std::env::current_dir().unwrap_or_default();
        arguments::parse(&expanded.arguments, &folder)
    }

    /// What the linker, and what it starts, gets to see: the environment as it would be without us.
    fn environment(&self) -> Vec<Change> {
        let mut changes = handover::restored();
        changes.push(guard::mark(guard::LINKER));
        changes
    }

    fn pass_through(&self) -> ! {
        spawn::become_or_fail(&self.linker, self.user, &self.environment())
    }

    fn link(&self, job: &LinkerJob) -> ! {
        let kind = linker::kind(self.settings, &self.linker.path);
        let map = MapSource::choose(job, kind);
        // None must survive a link that we could not describe.
        let _ = fs::remove_file(self.settings.manifest_path(&job.output));
        let arguments = with_map(self.user, &map);
        let status = spawn::run(&self.linker, &arguments, &self.environment())
            .unwrap_or_else(|error| spawn::fail_to_run(&self.linker.path, &error));
        if status.success() {
            quietly(self.settings, job.output.display(), || {
                let map = map.read();
                after(self.settings, job, kind, map.as_deref())
            });
        }
        spawn::end_like(status)
    }
}

/// Where the map comes from.
enum MapSource {
    /// Nobody writes one that we could read.
    None,
    /// We ask for it.
    Ours(Memory),
    /// The user asked for it. With what was there before, so that an old one is not taken for it.
    Users(PathBuf, Option<Metadata>),
}

impl MapSource {
    fn choose(job: &LinkerJob, kind: LinkerKind) -> Self {
        match &job.map {
            _ if kind == LinkerKind::Other || job.relocatable => MapSource::None,
            UserMap::Stdout => MapSource::None,
            UserMap::None => Memory::new(c"tasting-map").map_or(MapSource::None, MapSource::Ours),
            UserMap::File(path) => {
                let path = map_file(path, &job.output, kind);
                let before = fs::metadata(&path).ok();
                MapSource::Users(path, before)
            }
        }
    }

    fn read(&self) -> Option<Mapped> {
        match self {
            MapSource::None => None,
            MapSource::Ours(memory) => memory.content().ok(),
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

/// The user's arguments, with the option for our map in front: should the user ask for one in a way that we
/// missed, the last one counts. `-flavor` has to stay the first.
fn with_map(user: &[OsString], map: &MapSource) -> Vec<OsString> {
    let MapSource::Ours(memory) = map else { return user.to_vec() };
    let mut option = OsString::from("-Map=");
    option.push(memory.path());
    let front = if user.first().is_some_and(|word| word == "-flavor") { user.len().min(2) } else { 0 };
    let mut arguments = user.to_vec();
    arguments.insert(front, option);
    arguments
}

/// Describes what was linked.
fn after(
    settings: &Settings,
    job: &LinkerJob,
    linker: LinkerKind,
    map: Option<&[u8]>,
) -> Result<(), std::convert::Infallible> {
    let size = map.map_or(0, <[u8]>::len);
    settings.log(format_args!("{}: linked by {linker:?}, map of {size} bytes", job.output.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_users_map_lies() {
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
        let map = MapSource::choose(&LinkerJob::default(), LinkerKind::Gold);
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let asked = with_map(&words(&["-o", "x"]), &map);
        assert!(asked[0].as_bytes().starts_with(b"-Map=/proc/") && asked[1..] == words(&["-o", "x"]));
        assert_eq!(with_map(&words(&["-flavor", "gnu", "x"]), &map)[..2], words(&["-flavor", "gnu"]));
    }

    #[test]
    fn no_map_is_asked_for_where_it_would_show_or_fail() {
        let asks = |job: &LinkerJob, kind| matches!(MapSource::choose(job, kind), MapSource::Ours(_));
        let plain = LinkerJob::default();
        assert!(asks(&plain, LinkerKind::GnuLd) && !asks(&plain, LinkerKind::Other));
        assert!(!asks(&LinkerJob { map: UserMap::Stdout, ..plain.clone() }, LinkerKind::GnuLd));
        assert!(!asks(&LinkerJob { relocatable: true, ..plain }, LinkerKind::GnuLd));
    }

    #[test]
    fn an_old_map_of_the_user_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.map");
        fs::write(&path, "old").unwrap();
        let job = LinkerJob { map: UserMap::File(path.clone()), ..LinkerJob::default() };
        let map = MapSource::choose(&job, LinkerKind::Lld);
        assert!(map.read().is_none());
        fs::remove_file(&path).unwrap();
        fs::write(folder.path().join("another"), "").unwrap();
        fs::write(&path, "new").unwrap();
        assert_eq!(map.read().as_deref(), Some(&b"new"[..]));
    }
}
