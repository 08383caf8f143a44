//! What a test is given besides its arguments: standard input, and other descriptors that the
//! parent process left open. Their content is no file with a path, so using one is noticed and
//! refused.
//!
//! In: our own descriptors, before the test is started. Out: what each of them is.

use super::content::{Contents, Identity, device_and_inode};
use super::kernel;
use super::policy::is_pseudo;
use crate::model::Hash;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

/// What standard input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Closed, `/dev/null`, or what `make -j` has in its place: nothing can come from there.
    Empty,
    /// A file that is open for reading only, from this position on.
    File {
        path: PathBuf,
        identity: Identity,
        content: Hash,
        position: u64,
    },
    Terminal,
    Pipe,
    Socket,
    /// A device, a folder, or a file without a name.
    Other,
    /// What the caller gave, who has to know about it.
    Given,
}

/// A descriptor from outside that is not to be used.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub number: i32,
    /// What tells it apart, wherever else it turns up.
    pub file: (u64, u64),
    /// A file that has a size, and in which there are positions.
    pub is_regular: bool,
    pub name: String,
}

/// The first numbers under which shells put descriptors aside.
pub const PUT_ASIDE: Range<i32> = 10..16;

/// The numbers under which descriptors from outside are met.
pub fn watched_numbers(foreign: &[Foreign]) -> Vec<i32> {
    let mut numbers: Vec<i32> = foreign.iter().map(|foreign| foreign.number).collect();
    if !foreign.is_empty() {
        numbers.extend(PUT_ASIDE);
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// More leaked descriptors than this make the filter too long.
pub const MOST_FOREIGN: usize = 48;

/// What standard input is, and whether using it has to be noticed.
pub fn standard_input(contents: &mut Contents) -> (Input, Option<Foreign>) {
    let Some(file) = kernel::duplicate(0) else { return (Input::Empty, None) };
    let Ok(found) = file.metadata() else { return (Input::Other, None) };
    let kind = found.file_type();
    if kind.is_char_device() && found.rdev() == NULL_DEVICE {
        return (Input::Empty, None);
    }
    if kind.is_fifo() && is_of_a_parallel_make(&file) {
        return (Input::Empty, None);
    }
    if kind.is_file()
        && let Some(input) = regular(&file, contents)
    {
        return (input, None);
    }
    let (input, name) = match kind {
        kind if kind.is_fifo() => (Input::Pipe, "a pipe"),
        kind if kind.is_socket() => (Input::Socket, "a socket"),
        kind if kind.is_char_device() && io::IsTerminal::is_terminal(&file) => {
            (Input::Terminal, "a terminal")
        }
        _ => (Input::Other, "no ordinary file"),
    };
    let name = format!("standard input ({name})");
    (
        input,
        Some(Foreign {
            number: 0,
            file: device_and_inode(&found),
            is_regular: kind.is_file(),
            name,
        }),
    )
}

/// Of the jobs that `make -j` runs at a time, one gets make's own standard input, and the others a
/// pipe at its end: which is which is chance. Nothing comes from either where make's own is empty.
fn is_of_a_parallel_make(file: &File) -> bool {
    std::env::var_os("MAKELEVEL").is_some() && kernel::is_at_its_end(file)
}

/// Linux has given it this number for ever.
const NULL_DEVICE: u64 = 1 << 8 | 3;

fn regular(file: &File, contents: &mut Contents) -> Option<Input> {
    use std::io::Seek;
    let (mode, _) = kernel::descriptor_flags(0)?;
    let path =
        fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))).ok()?;
    let named = fs::symlink_metadata(&path).ok()?;
    if !super::content::same_file(&named, &file.metadata().ok()?) || is_pseudo(&path) {
        return None;
    }
    if mode & libc::O_ACCMODE != libc::O_RDONLY {
        return None;
    }
    let content = contents.of(&path, &named).ok()?;
    let position = (&*file).stream_position().ok()?;
    Some(Input::File { path, identity: Identity::of(&named), content, position })
}

impl Input {
    /// Whether standard input is still what it was, apart from the position in it.
    pub fn is_unchanged(&self) -> bool {
        let Input::File { identity, .. } = self else { return true };
        kernel::duplicate(0)
            .and_then(|file| file.metadata().ok())
            .is_some_and(|now| Identity::of(&now) == *identity)
    }
}

/// The other descriptors that the test will inherit: pipes and sockets of our parent process.
/// Folders are left out, since what is opened from there has a path. Standard output and error are
/// the outcome.
pub fn others() -> Vec<Foreign> {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut foreign: Vec<Foreign> =
        numbers.filter(|&number| number > 2).filter_map(inherited).collect();
    foreign.sort_by_key(|foreign| foreign.number);
    foreign
}

/// Those that are left out, with what they are: a test can tell one folder from another.
pub fn known() -> Vec<(i32, PathBuf)> {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_known = |number: &i32| {
        let is_passed_on =
            kernel::descriptor_flags(*number).is_some_and(|(_, closed_on_exec)| !closed_on_exec);
        is_passed_on && inherited(*number).is_none()
    };
    let mut known: Vec<(i32, PathBuf)> = numbers
        .filter(|&number| number > 2)
        .filter(is_known)
        .filter_map(|number| Some((number, fs::read_link(format!("/proc/self/fd/{number}")).ok()?)))
        .collect();
    known.sort_unstable();
    known
}

fn inherited(number: i32) -> Option<Foreign> {
    let (mode, closed_on_exec) = kernel::descriptor_flags(number)?;
    if closed_on_exec || mode & libc::O_PATH != 0 {
        return None;
    }
    let found = kernel::duplicate(number)?.metadata().ok()?;
    let is_null = found.file_type().is_char_device() && found.rdev() == NULL_DEVICE;
    if found.is_dir() || is_null {
        return None;
    }
    let target = fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
    let name = format!("descriptor {number} ({})", target.display());
    Some(Foreign { number, file: device_and_inode(&found), is_regular: found.is_file(), name })
}
