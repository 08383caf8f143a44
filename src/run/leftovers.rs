//! Files that a test leaves behind: reports, logs, folders. They are stored with its outcome, and
//! restored when that is reused.
//!
//! In: what the run wrote or removed. Out: [`LeftFile`]s, or a reason why they cannot be stored;
//! and the reverse.

use super::beneath::Beneath;
use super::project::Project;
use crate::model::{
    Dependency, DependencyKind, DependencySet, Left, LeftFile, Outcome, PortablePath, Refusal,
    codes,
};
use crate::observe::{Kind, Use, extended};
use crate::process::sys;
use rustix::fs::{FileType, Stat};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Which permissions are kept.
const MODE: u32 = 0o7777;

/// The coarsest clock of a file system, in seconds.
const COARSEST_CLOCK: i64 = 2;

/// In nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// Takes in what a run of this duration has just left behind, up to `limit` bytes.
pub fn keep(
    project: &Project,
    used: &[Use],
    duration: Duration,
    limit: usize,
) -> Result<Vec<LeftFile>, Refusal<'static>> {
    let mut files = Vec::new();
    let mut room = limit;
    let started =
        (super::now() / 1000).saturating_sub(duration.as_secs() + 1) as i64 - COARSEST_CLOCK;
    for used in used {
        let left = match used {
            Use::Written { path, kind } => written(path, *kind, started, &mut room),
            Use::Removed { .. } => Ok(Left::Gone),
            _ => continue,
        };
        let path = used.path();
        let left = left.map_err(|reason| {
            Refusal::of_run(path.to_string_lossy().into_owned(), (codes::LEFT_BEHIND, reason))
        })?;
        files.push(LeftFile { place: project.place(path), left });
    }
    Ok(files)
}

fn written(path: &Path, kind: Kind, started: i64, room: &mut usize) -> Result<Left, String> {
    let unreadable = |error: io::Error| format!("is left behind and cannot be kept: {error}");
    if path.extension() == Some(OsStr::new("gcda")) {
        return Err("counts how often code ran (coverage), and would not go on counting".to_owned());
    }
    let found = fs::symlink_metadata(path).map_err(unreadable)?;
    if let Some(reason) = cannot_be_put_back(path, &found) {
        return Err(reason.to_owned());
    }
    let mode = found.permissions().mode() & MODE;
    match kind {
        Kind::Folder => Ok(Left::Folder { mode }),
        Kind::Link if found.mtime() < started => {
            Err("is left behind, and is a link from before the test".to_owned())
        }
        Kind::Link => {
            let target = fs::read_link(path).map_err(unreadable)?;
            Ok(Left::Link { target: target.as_os_str().as_bytes().to_vec() })
        }
        Kind::File => {
            let too_large =
                "is left behind and too large to be kept (limits.files in tasting.toml)";
            let size = usize::try_from(found.len()).unwrap_or(usize::MAX);
            *room = room.checked_sub(size).ok_or(too_large)?;
            let content = fs::read(path).map_err(unreadable)?;
            Ok(Left::File { mode, content, modified: (found.mtime(), found.mtime_nsec() as u32) })
        }
        Kind::Fifo | Kind::Socket | Kind::Device => {
            Err("is left behind and no file that can be kept".to_owned())
        }
    }
}

/// What a file has beside its content, permissions and times is not kept.
fn cannot_be_put_back(path: &Path, found: &Metadata) -> Option<&'static str> {
    let of_folder =
        path.parent().and_then(|folder| fs::metadata(folder).ok()).map(|folder| folder.gid());
    let has_own_group = found.gid() == sys::group() || Some(found.gid()) == of_folder;
    match () {
        () if found.uid() != sys::user() || !has_own_group => {
            Some("is left behind, and belongs to another user or group")
        }
        () if found.is_file() && found.nlink() > 1 => {
            Some("is left behind, and has another name (a hard link)")
        }
        () if extended::has_any(path) => Some("is left behind, and has extended attributes"),
        () => None,
    }
}

/// Puts back what a run left behind. After an error the test has to run.
pub fn put_back(
    project: &Project,
    outcome: &Outcome,
    dependency_set: &DependencySet,
) -> io::Result<()> {
    let files = &outcome.files;
    for file in files {
        keeps_its_attributes(project, file, is_overwritten(dependency_set, &file.place))?;
    }
    // Folders before what is in them; files in the order in which they were written; what is gone
    // from the inside out.
    let is_folder = |file: &&LeftFile| matches!(file.left, Left::Folder { .. });
    let (folders, mut others): (Vec<&LeftFile>, _) =
        files.iter().filter(|file| file.left != Left::Gone).partition(is_folder);
    others.sort_by_key(
        |file| if let Left::File { modified, .. } = file.left { modified } else { (0, 0) },
    );
    let mut made = Vec::new();
    let mut times = Times::new(&others, outcome);
    for file in folders.into_iter().chain(others) {
        if let Err(error) = make_one(project, file, &mut times, &mut made) {
            // The test starts where it would without us.
            made.iter().rev().for_each(|name| _ = name.remove());
            return Err(error);
        }
    }
    for file in files.iter().rev().filter(|file| file.left == Left::Gone) {
        match locate(project, file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            name => name?.remove()?,
        }
    }
    Ok(())
}

/// Puts one thing back, and notes its name if nothing was there.
fn make_one(
    project: &Project,
    file: &LeftFile,
    times: &mut Times,
    made: &mut Vec<Beneath>,
) -> io::Result<()> {
    let name = locate(project, file)?;
    let is_new = name.status()?.is_none();
    let done = put_back_one(&name, &file.left, times);
    if is_new {
        made.push(name);
    }
    done
}

fn is_overwritten(dependency_set: &DependencySet, place: &PortablePath) -> bool {
    let is = |used: &Dependency| used.kind == DependencyKind::Overwritten && used.place == *place;
    dependency_set.dependencies.iter().any(is)
}

/// A file that is there already keeps its owner and its extended attributes when it is written; and
/// its permissions, if it is written from its start.
fn keeps_its_attributes(
    project: &Project,
    file: &LeftFile,
    is_overwritten: bool,
) -> io::Result<()> {
    let (Left::File { mode, .. }, Ok(name)) = (&file.left, locate(project, file)) else {
        return Ok(());
    };
    let Some(found) = name.status()? else { return Ok(()) };
    let has_attributes = || project.path(&file.place).is_some_and(|path| extended::has_any(&path));
    match () {
        () if is_overwritten && found.st_mode & MODE != *mode => {
            Err(io::Error::other("a file has other permissions now"))
        }
        () if found.st_uid != sys::user() => {
            Err(io::Error::other("a file belongs to another user now"))
        }
        () if has_attributes() => Err(io::Error::other("a file has extended attributes now")),
        () => Ok(()),
    }
}

/// The name that a file is to have here, without following any link on the way to it.
fn locate(project: &Project, file: &LeftFile) -> io::Result<Beneath> {
    let elsewhere = || io::Error::other("it belongs to a folder that is not here");
    let (top, path) = project.top_and_path(&file.place).ok_or_else(elsewhere)?;
    match path.as_os_str().is_empty() {
        false => Beneath::open(top, path),
        true => Beneath::open(
            top.parent().ok_or_else(elsewhere)?,
            Path::new(top.file_name().ok_or_else(elsewhere)?),
        ),
    }
}

fn put_back_one(name: &Beneath, left: &Left, times: &mut Times) -> io::Result<()> {
    match left {
        Left::Gone => Ok(()),
        Left::Folder { mode } => name.make_folder(*mode),
        Left::Link { target } if name.link_target().as_ref() == Some(target) => {
            name.set_modified(None)
        }
        Left::Link { target } => name.remove().and_then(|()| name.make_link(target)),
        Left::File { mode, content, modified } => {
            put_back_file(name, *mode, content)?;
            name.set_modified(Some(times.next(*modified)))
        }
    }
}

fn put_back_file(name: &Beneath, mode: u32, content: &[u8]) -> io::Result<()> {
    let is_file = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let found = name.status()?;
    let is_same = found.as_ref().filter(|found| is_file(found)).is_some_and(|found| {
        found.st_size as u64 == content.len() as u64
            && found.st_mode & MODE == mode
            && name.read().is_ok_and(|now| now == content)
    });
    if is_same {
        return Ok(());
    }
    if found.is_some_and(|found| !is_file(&found)) {
        name.remove()?;
    }
    name.write(mode, content)
}

/// The times that files get, one after the other in the order in which the run wrote them. Those
/// that were written one behind the other are so again, by a nanosecond: the clock of a file system
/// stands still for milliseconds.
struct Times<'a> {
    outcome: &'a Outcome,
    now: i128,
    /// How many other times are still to come.
    left: i128,
    last: Option<(i64, u32)>,
}

impl Times<'_> {
    fn new<'a>(files: &[&LeftFile], outcome: &'a Outcome) -> Times<'a> {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let now = i128::from(now.tv_sec) * SECOND + i128::from(now.tv_nsec);
        let mut written: Vec<(i64, u32)> = files
            .iter()
            .filter_map(|file| match file.left {
                Left::File { modified, .. } => is_written(modified, outcome).then_some(modified),
                _ => None,
            })
            .collect();
        written.dedup();
        Times { outcome, now, left: written.len() as i128, last: None }
    }

    /// A file that the run has written is as new as if it were written now. One whose time was set
    /// (`touch -d`, `cp -p`) keeps it.
    fn next(&mut self, modified: (i64, u32)) -> (i64, u32) {
        if !is_written(modified, self.outcome) {
            return modified;
        }
        if self.last.replace(modified) != Some(modified) {
            self.left -= 1;
        }
        let time = self.now - self.left;
        (time.div_euclid(SECOND) as i64, time.rem_euclid(SECOND) as u32)
    }
}

/// Whether a file has its time from being written by the run.
fn is_written(modified: (i64, u32), outcome: &Outcome) -> bool {
    let end = outcome.origin.time / 1000;
    let start = end.saturating_sub(outcome.duration.as_secs() + 1);
    modified.0 + COARSEST_CLOCK >= start as i64 && modified.0 <= end as i64 + COARSEST_CLOCK
}
