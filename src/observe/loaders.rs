//! Which calls the dynamic loader makes: those whose instruction lies in its own code. What it opens is a library, whose code
//! runs; what anybody else opens is data.
//!
//! In: threads, and where they make a call. Out: whether that is within the loader.

use rustc_hash::FxHashMap;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names of loaders that are files of their own. (With musl, the loader is the C library.)
const NAMES: [&str; 4] = ["ld-linux", "ld64.so", "ld.so", "ld-2."];

/// Where the loader's code lies in each process that has been looked at.
#[derive(Debug, Default)]
pub struct Loaders {
    known: FxHashMap<u32, Range<u64>>,
}

impl Loaders {
    /// Whether an instruction of a thread's process is the loader's.
    pub fn makes(&mut self, thread: u32, instruction: u64) -> bool {
        let range = self.known.entry(thread).or_insert_with(|| {
            let maps = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
            maps.lines().find_map(code_of_loader).unwrap_or_default()
        });
        range.contains(&instruction)
    }

    /// A thread is about to become another program, perhaps under another number.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

/// The addresses in a line of a process's memory map, if it is the code of a loader.
fn code_of_loader(line: &str) -> Option<Range<u64>> {
    let (addresses, rest) = line.split_once(' ')?;
    let path = &rest[rest.find('/')?..];
    let name = Path::new(path).file_name()?.to_str()?;
    if !rest.starts_with("r-x") || !NAMES.iter().any(|loader| name.starts_with(loader)) {
        return None;
    }
    let (start, end) = addresses.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// Whether the loader could open it, as far as its name tells. It saves looking at who opens ordinary files.
pub fn can_be_a_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.windows(3).any(|part| part == b".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_loader() {
        let line = "7f1000-7f2000 r-xp 00001000 fe:00 12 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
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
        let mut loaders = Loaders::default();
        let here = code_of_loader as *const () as u64;
        assert!(!loaders.makes(std::process::id(), here));
        assert!(loaders.known[&std::process::id()].start > 0, "tests are linked dynamically");
    }

    #[test]
    fn names_of_libraries() {
        assert!(can_be_a_library(Path::new("/lib/libx.so")) && can_be_a_library(Path::new("a/libx.so.1.2")));
        assert!(!can_be_a_library(Path::new("/x.so/data")));
    }
}
