//! Pipes that replace a test's output, so that what it prints can be recorded.
//!
//! A process that only writes cannot tell a pipe from a file. One that opens the output by a path
//! can (`echo text >/dev/stderr` empties a file): before its call continues, the pipe is replaced
//! by the real output.
//!
//! In: a call that has reached a pipe. Out: descriptors that are replaced.

use super::call::Call;
use super::content::device_and_inode;
use std::fs;
use std::io;
use std::os::fd::AsFd;

/// A pipe in the place of standard output or error.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    /// The descriptor that it stands for, of the test and of ours.
    pub number: i32,
    /// Device and inode of the pipe.
    pub pipe: (u64, u64),
    /// What is behind it is a file.
    pub is_file: bool,
}

/// What passes on at once all that is in the pipes; `false` if it must not be heard yet.
pub type PassOn = Box<dyn Fn() -> bool + Send + Sync>;

/// The pipes of a test.
pub struct StandIns {
    pub pipes: Vec<StandIn>,
    /// How many bytes of output are kept at the most.
    pub most_kept: usize,
    pub pass_on: PassOn,
}

impl StandIns {
    /// Replaces each of the caller's descriptors that is a certain pipe.
    pub(super) fn give_back(&self, call: &Call, pipe: (u64, u64)) -> io::Result<()> {
        for entry in fs::read_dir(format!("/proc/{}/fd", call.thread()))?.flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let is_it =
                fs::metadata(entry.path()).is_ok_and(|found| device_and_inode(&found) == pipe);
            let Some(number) = number.filter(|_| is_it) else { continue };
            let (out, err) = (io::stdout(), io::stderr());
            let real = if self.is_for_errors(number, pipe) { err.as_fd() } else { out.as_fd() };
            call.listener.replace(
                call.notification,
                real,
                number,
                is_closed_on_exec(call.thread(), number),
            )?;
        }
        Ok(())
    }

    /// Whether a limit of the size of files may end whoever writes to the files behind the pipes,
    /// and prints no more than what is kept.
    pub(super) fn may_outgrow(&self, limit: u64) -> bool {
        let size = |stand_in: &StandIn| {
            let (out, err) = (io::stdout(), io::stderr());
            let is_error = stand_in.number == libc::STDERR_FILENO;
            let file = if is_error { err.as_fd() } else { out.as_fd() };
            rustix::fs::fstat(file).map_or(u64::MAX, |found| found.st_size as u64)
        };
        let sizes = self.pipes.iter().filter(|stand_in| stand_in.is_file).map(size);
        sizes.max().is_some_and(|size| size.saturating_add(self.most_kept as u64) > limit)
    }

    /// Whether a pipe under a number stands for standard error: it may stand for both.
    fn is_for_errors(&self, number: i32, pipe: (u64, u64)) -> bool {
        let mut pipes = self.pipes.iter().filter(|stand_in| stand_in.pipe == pipe);
        number == libc::STDERR_FILENO && pipes.clone().any(|stand_in| stand_in.number == number)
            || pipes.all(|stand_in| stand_in.number == libc::STDERR_FILENO)
    }
}

fn is_closed_on_exec(thread: u32, number: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{number}")).unwrap_or_default();
    let flags = text
        .lines()
        .find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}
