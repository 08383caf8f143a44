//! Which calls come from the dynamic loader: those whose instruction lies in the loader's own code.
//! A file that the loader opens is a library, whose code runs; a file that anything else opens is
//! data.
//!
//! In: threads, and the addresses of their calls. Out: whether that is within the loader.

use super::kernel::{self, Mapping};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The names of loaders that are files of their own. (With musl, the loader is the C library.)
const NAMES: [&str; 4] = ["ld-linux", "ld64.so", "ld.so", "ld-2."];

/// Where the loader's code lies in each process that has been looked at.
#[derive(Debug, Default)]
pub struct Loaders {
    known: FxHashMap<u32, Range<u64>>,
    /// The program of the thread that was looked at last, and when.
    program: Option<(u32, Instant, PathBuf)>,
}

/// So long a number is not given to another process: that takes hundreds of processes that start
/// and end.
const NUMBERS_LAST: Duration = Duration::from_millis(5);

impl Loaders {
    /// The program of a thread, which waits in a call.
    pub fn program_of(&mut self, thread: u32) -> io::Result<&Path> {
        let is_known =
            |(of, at, _): &(u32, Instant, PathBuf)| *of == thread && at.elapsed() < NUMBERS_LAST;
        let known = match self.program.take().filter(is_known) {
            Some(known) => known,
            None => (thread, Instant::now(), fs::read_link(format!("/proc/{thread}/exe"))?),
        };
        Ok(&self.program.insert(known).2)
    }

    /// Whether an instruction of a thread's process is the loader's.
    pub fn makes(&mut self, thread: u32, instruction: u64) -> bool {
        if self.known.get(&thread).is_some_and(|code| code.contains(&instruction)) {
            return true;
        }
        let code = code_around(thread, instruction);
        let is_loader = code.is_some();
        self.known.extend(code.map(|code| (thread, code)));
        is_loader
    }

    /// A thread is about to become another program, perhaps under another number.
    pub fn forget(&mut self) {
        self.known.clear();
        self.program = None;
    }
}

/// The addresses of the loader's code, if an instruction is within it.
fn code_around(thread: u32, instruction: u64) -> Option<Range<u64>> {
    let mut maps = File::open(format!("/proc/{thread}/maps")).ok()?;
    if let Ok(mapping) = kernel::mapping_at(&maps, instruction) {
        let Mapping { range, is_code, name } = mapping?;
        return (is_code && is_loader(&name)).then_some(range);
    }
    // Before Linux 6.11.
    let mut text = String::new();
    maps.read_to_string(&mut text).ok()?;
    text.lines().find_map(code_of_loader).filter(|code| code.contains(&instruction))
}

/// The addresses in a line of a process's memory map, if it is the code of a loader.
fn code_of_loader(line: &str) -> Option<Range<u64>> {
    let (addresses, rest) = line.split_once(' ')?;
    if !rest.starts_with("r-x") || !is_loader(&rest.as_bytes()[rest.find('/')?..]) {
        return None;
    }
    let (start, end) = addresses.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// Whether a file is a loader, by its name.
pub fn is_loader(file: &[u8]) -> bool {
    let name = Path::new(OsStr::from_bytes(file)).file_name().unwrap_or_default().as_bytes();
    NAMES.iter().any(|loader| name.starts_with(loader.as_bytes()))
}

/// Whether the loader could open it, as far as its name tells. It saves looking at who opens
/// ordinary files.
pub fn can_be_a_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.windows(3).any(|part| part == b".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_loader() {
        let line =
            "7f1000-7f2000 r-xp 00001000 fe:00 12 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
        assert_eq!(code_of_loader(line), Some(0x7f1000..0x7f2000));
        for other in [
            "7f1000-7f2000 r--p 00001000 fe:00 12 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "7f1000-7f2000 r-xp 00001000 fe:00 12 /lib/ld-musl-x86_64.so.1",
            "7f1000-7f2000 r-xp 00001000 fe:00 12 /usr/lib/libc.so.6",
            "7f1000-7f2000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code_of_loader(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_code_is_not_the_loader() {
        let here = code_of_loader as *const () as u64;
        assert!(!Loaders::default().makes(std::process::id(), here));
    }

    #[test]
    fn the_loader_of_this_process() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code = maps.lines().find_map(code_of_loader).expect("tests are linked dynamically");
        let mut loaders = Loaders::default();
        for place in [code.start, code.end - 1] {
            assert!(loaders.makes(std::process::id(), place));
        }
        assert!(!loaders.makes(std::process::id(), code.end));
        assert_eq!(loaders.known[&std::process::id()], code);
    }

    #[test]
    fn programs_are_known_until_another_is_started() {
        let mut loaders = Loaders::default();
        let own = std::env::current_exe().unwrap();
        for _ in 0..2 {
            assert_eq!(loaders.program_of(std::process::id()).unwrap(), own);
        }
        loaders.program = Some((1 << 30, Instant::now(), own));
        assert!(loaders.program_of(1 << 29).is_err());
        loaders.forget();
        assert!(loaders.program_of(1 << 30).is_err());
    }

    #[test]
    fn names_of_libraries() {
        assert!(
            can_be_a_library(Path::new("/lib/libx.so"))
                && can_be_a_library(Path::new("a/libx.so.1.2"))
        );
        assert!(!can_be_a_library(Path::new("/x.so/data")));
    }
}
