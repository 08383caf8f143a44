//! Standard output or error that is a file of the test's own.
//!
//! A test whose output goes to a new file that no other process has open (`test >log 2>&1`) gets
//! that file itself, so that seeking, `ftruncate` and comparing it with other files work as without
//! Tasting. What it printed is read from the file at the end. If other processes may write to the
//! file as well, its content would not all be the test's: then the test gets a pipe.
//!
//! In: our own descriptors. Out: whether they are such files, and what was written to them.

use crate::process::sys;
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, ftruncate, inotify, seek, tell};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// No chain of processes is as long.
const MOST_ANCESTORS: usize = 64;

/// Whether a descriptor is a new file of ours alone.
pub fn is_own(file: BorrowedFd) -> bool {
    let Ok(found) = fstat(file) else { return false };
    let is_new = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_size == 0
        && tell(file).is_ok_and(|position| position == 0)
        && fcntl_getfl(file).is_ok_and(|flags| !flags.contains(OFlags::APPEND));
    is_new && is_alone(file)
}

/// Whether nobody else has a file open. An open file that is shared is shared with relatives: with
/// the processes that we descend from, or that descend from the same.
fn is_alone(file: BorrowedFd) -> bool {
    let Ok(path) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) else {
        return false;
    };
    let own = std::process::id();
    if !sys::is_opened_once(file) || is_open_below(own, &path, MOST_ANCESTORS) {
        return false;
    }
    let Some((parent, session)) = parent_and_session(own) else { return false };
    let is_other = |process: &u32| *process != own;
    let Some(mut relatives) = children(parent) else { return false };
    relatives.retain(is_other);
    // Of strangers, which have the same parent since their own has ended, nothing is to be seen.
    if relatives.into_iter().any(|process| has_open(process, &path).unwrap_or(false)) {
        return false;
    }
    let mut at = parent;
    for _ in 0..MOST_ANCESTORS {
        if has_open(at, &path).unwrap_or(at > 1) {
            return false;
        }
        match parent_and_session(at) {
            // What is beyond the session has started it, and writes elsewhere.
            Some((parent, of)) if of == session && parent > 0 && at != session => at = parent,
            _ => return true,
        }
    }
    false
}

/// Whether a descendant of a process has a file open: one that was there before us, such as the
/// other end of a pipe that a shell has made (`test < <(command)`).
fn is_open_below(process: u32, path: &Path, depth: usize) -> bool {
    let has_it =
        |child: u32| has_open(child, path).unwrap_or(true) || is_open_below(child, path, depth - 1);
    depth == 0 || children(process).is_none_or(|children| children.into_iter().any(has_it))
}

/// Whether a process has a file open; `None` if that cannot be seen.
fn has_open(process: u32, path: &Path) -> Option<bool> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    Some(
        descriptors
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path)),
    )
}

fn children(process: u32) -> Option<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let mut all = Vec::new();
    for thread in threads.flatten() {
        let text = match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => text,
            // A thread that has ended meanwhile.
            Err(_) if !thread.path().exists() => continue,
            Err(_) => return None,
        };
        all.extend(text.split_ascii_whitespace().filter_map(|number| number.parse::<u32>().ok()));
    }
    Some(all)
}

/// The parent of a process, and its session.
fn parent_and_session(process: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some((parent, session))
}

/// Makes such a file empty again, for the next attempt.
pub fn rewind(file: BorrowedFd) -> io::Result<()> {
    ftruncate(file, 0)?;
    seek(file, SeekFrom::Start(0))?;
    Ok(())
}

/// A file that a test prints to.
pub struct OutputFile {
    pub number: usize,
    file: fs::File,
    mode: u32,
    /// Tells of others that have written to the file and closed it.
    closed: Option<OwnedFd>,
}

/// What a test has written to a file.
pub enum Written {
    Text(Vec<u8>),
    TooLong,
    /// It is not known what of it the test has printed.
    Unclear,
}

impl OutputFile {
    pub fn new(number: usize, file: BorrowedFd) -> io::Result<OutputFile> {
        let file = fs::File::from(file.try_clone_to_owned()?);
        let mode = fstat(&file)?.st_mode;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let watch = || {
            let closed =
                inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
                    .ok()?;
            inotify::add_watch(&closed, &path, inotify::WatchFlags::CLOSE_WRITE).ok()?;
            Some(closed)
        };
        let closed = watch();
        Ok(OutputFile { number, file, mode, closed })
    }

    /// What is there, if the test alone has written it, one piece behind the other.
    pub fn text(&self, limit: usize) -> io::Result<Written> {
        let found = fstat(&self.file)?;
        let size = found.st_size as u64;
        let is_in_order = tell(&self.file)? == size && found.st_mode == self.mode;
        let is_undisturbed = self.closed.as_ref().is_some_and(|closed| {
            rustix::io::read(closed, &mut [0u8; 512]) == Err(rustix::io::Errno::AGAIN)
        });
        if !is_in_order || !is_undisturbed || !is_alone(self.file.as_fd()) {
            return Ok(Written::Unclear);
        }
        if size > limit as u64 {
            return Ok(Written::TooLong);
        }
        let mut text = vec![0; size as usize];
        // By its path, since it need not be open for reading.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        fs::File::open(path)?.read_exact_at(&mut text, 0)?;
        Ok(Written::Text(text))
    }
}
