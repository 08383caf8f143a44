//! What standard output and error are connected to: terminals, files, pipes, or both to the same.
//!
//! In: our own descriptors. Out: what a test can find out about them.

use super::output_file;
use crate::process::sys;
use rustix::fs::{FileType, OFlags, SeekFrom, Stat, fcntl_getfl, fstat, major, minor};
use rustix::termios::{isatty, tcgetwinsize};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Linux has given `/dev/null` this number for ever.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// How the output is connected, which a test can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Whether standard output and error are terminals.
    pub terminals: [bool; 2],
    /// Both are the same file.
    pub is_one: bool,
    /// Whether they are new files, which the test gets.
    pub files: [bool; 2],
}

impl Connection {
    /// That of this process.
    pub fn own() -> Connection {
        let terminals = [isatty(io::stdout()), isatty(io::stderr())];
        let files = fstat(io::stdout()).ok().zip(fstat(io::stderr()).ok());
        let is_one = files.is_some_and(|(out, err)| is_one(&out, &err));
        // A file that was opened twice has two positions.
        let files = match is_one && !is_one_description() {
            true => [false; 2],
            false => [
                output_file::is_own(io::stdout().as_fd()),
                output_file::is_own(io::stderr().as_fd()),
            ],
        };
        Connection { terminals, is_one, files }
    }

    /// Makes the files empty again.
    pub fn rewind(&self) -> io::Result<()> {
        for (number, _) in self.files.into_iter().enumerate().filter(|(_, is_file)| *is_file) {
            with_stream(number, output_file::rewind)?;
        }
        Ok(())
    }

    /// Rows and columns of the terminal that the output goes to, if any.
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = match self.terminals {
            [true, _] => tcgetwinsize(io::stdout()),
            [_, true] => tcgetwinsize(io::stderr()),
            _ => return None,
        };
        size.ok().map(|size| (size.ws_row, size.ws_col))
    }

    /// Each that there can be.
    pub fn all() -> impl Iterator<Item = Connection> {
        let flags = || [false, true].into_iter();
        let pairs = move || flags().flat_map(move |out| flags().map(move |err| [out, err]));
        let connect = move |terminals, is_one| {
            pairs().map(move |files| Connection { terminals, is_one, files })
        };
        pairs()
            .flat_map(move |terminals| flags().flat_map(move |is_one| connect(terminals, is_one)))
    }

    /// Whether anything goes to a terminal.
    pub fn on_terminal(&self) -> bool {
        self.terminals.contains(&true)
    }
}

/// What goes to `/dev/null` has no order.
fn is_one(out: &Stat, err: &Stat) -> bool {
    let is_null =
        FileType::from_raw_mode(out.st_mode) == FileType::CharacterDevice && !isatty(io::stdout());
    (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino) && !is_null
}

/// Whether standard output and error share one position in their file.
fn is_one_description() -> bool {
    let (out, err) = (io::stdout(), io::stderr());
    let [Ok(before), Ok(same)] = [rustix::fs::tell(&out), rustix::fs::tell(&err)] else {
        return false;
    };
    if before != same || rustix::fs::seek(&out, SeekFrom::Start(before + 1)).is_err() {
        return false;
    }
    let is_shared = rustix::fs::tell(&err) == Ok(before + 1);
    rustix::fs::seek(&out, SeekFrom::Start(before)).is_ok() && is_shared
}

/// Does something with standard output or error.
pub fn with_stream<T>(number: usize, action: impl Fn(BorrowedFd) -> T) -> T {
    if number == 0 { action(io::stdout().as_fd()) } else { action(io::stderr().as_fd()) }
}

/// Why the output of a test that runs here cannot be taken down without the test noticing, if so.
pub fn obstacle() -> Option<&'static str> {
    if sys::lacks_a_standard_descriptor() {
        return Some("standard input, output or error is closed");
    }
    let (out, err) = (io::stdout(), io::stderr());
    let odd = [out.as_fd(), err.as_fd()]
        .into_iter()
        .any(|file| !can_be_written(file) || is_odd_device(file));
    odd.then_some("standard output or error is no file, pipe or terminal to write to")
}

fn can_be_written(file: BorrowedFd) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}

/// Such as `/dev/full`: who writes there may be told so.
fn is_odd_device(file: BorrowedFd) -> bool {
    fstat(file).is_ok_and(|found| match FileType::from_raw_mode(found.st_mode) {
        FileType::CharacterDevice => {
            !isatty(file) && (major(found.st_rdev), minor(found.st_rdev)) != NULL_DEVICE
        }
        FileType::BlockDevice | FileType::Directory => true,
        _ => false,
    })
}
