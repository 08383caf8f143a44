//! Calls that the agent routes past the filter ("led" calls), from the watcher's side. The agent's
//! side is its `lead.rs`.
//!
//! In: libraries that are opened. Out: the *board*, a page of shared memory that tells all
//! processes of the run where the call page is, and where in the libraries the call sites are.

use super::arch;
use super::known::{KnownLooks, SHARED};
use super::passes::Passes;
use super::patched::Room;
use super::sites::{OwnCall, Sites};
use crate::model::FileIdentity;
use crate::process::sys::Memory;
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tasting_agent::protocol::{
    self, ASK, BOARD, BOARD_MAGIC, Board, CALL, CLONE, Library, NAME, Site,
};

/// Finds sites anew in each process.
pub struct Unknown;

impl KnownSites for Unknown {
    fn of(&self, library: &Path) -> Option<Sites> {
        static FOUND: Mutex<Vec<(PathBuf, Option<Sites>)>> = Mutex::new(Vec::new());
        let mut found = FOUND.lock().ok()?;
        if let Some((_, sites)) = found.iter().find(|(path, _)| path == library) {
            return sites.clone();
        }
        let sites = Sites::of(&fs::read(library).ok()?);
        found.push((library.to_owned(), sites.clone()));
        sites
    }
}

/// What the call page has in its places.
const SYSCALL_AND_RETURN: &[u8] = &[0x0f, 0x05, 0xc3];
/// Where a thread is started: `jmp r9` in place of `ret`.
const SYSCALL_AND_JUMP: &[u8] = &[0x0f, 0x05, 0x41, 0xff, 0xe1];
const SYSCALL: u64 = 2;

const PAGE: u64 = protocol::PAGE as u64;
/// Where the table of known looks is, behind the call page and the board.
const KNOWN: u64 = PAGE + BOARD as u64;
/// Where the board has the number of its libraries.
const COUNT: u64 = PAGE + offset_of!(Board, libraries) as u64;

/// What knows the sites of libraries.
pub trait KnownSites: Send + Sync {
    fn of(&self, library: &Path) -> Option<Sites>;

    /// A copy of the library with jumps at its sites, which others can map as code.
    fn patched(&self, _library: &Path, _sites: &Sites) -> Option<(File, Room)> {
        None
    }
}

/// The call page of a run, and its board.
pub struct Lead {
    sites: Arc<dyn KnownSites>,
    page: u64,
    memory: Memory,
    known: Vec<(Vec<u8>, FileIdentity)>,
    /// How many libraries are on the board, and where it ends.
    count: u32,
    end: u64,
    pub(super) looks: KnownLooks,
    own_ask: Option<OwnCall>,
    own_open: Option<OwnCall>,
    /// The copy of the first C library that is opened.
    patched: Option<File>,
}

/// The loader of nearly all programs, which is looked at before the filter is made.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

impl Lead {
    /// For a test that inherits these descriptors from outside.
    pub fn new(sites: Arc<dyn KnownSites>, foreign: &[i32]) -> io::Result<Lead> {
        let memory = Memory::new(c"tasting-lead")?;
        let page = random_page();
        let mut code = vec![0xcc; PAGE as usize];
        for (place, steps) in
            [(CALL, SYSCALL_AND_RETURN), (ASK, SYSCALL_AND_RETURN), (CLONE, SYSCALL_AND_JUMP)]
        {
            code[place..place + steps.len()].copy_from_slice(steps);
        }
        memory.write_at(&code, 0)?;
        memory.resize(KNOWN + SHARED as u64)?;
        let foreign = foreign
            .iter()
            .filter(|number| **number < 64)
            .fold(0u64, |all, number| all | 1 << number);
        let board = Board { magic: BOARD_MAGIC, call_page: page, foreign, libraries: 0, unused: 0 };
        memory.write_at(&board.bytes(), PAGE)?;
        let looks = KnownLooks::new(&memory, KNOWN)?;
        let (known, own_ask, own_open, patched) = Default::default();
        let end = size_of::<Board>() as u64;
        let mut lead =
            Lead { sites, page, memory, known, count: 0, end, looks, own_ask, own_open, patched };
        let loader = fs::metadata(LOADER).ok();
        let sites =
            loader.and_then(|found| lead.opens(LOADER.as_bytes(), Path::new(LOADER), &found));
        (lead.own_ask, lead.own_open) =
            sites.map_or((None, None), |sites| (sites.own_ask, sites.own_open));
        Ok(lead)
    }

    /// What the filter lets through.
    pub fn passes(&self) -> Passes {
        let instruction = self.page + CALL as u64 + SYSCALL;
        Passes { instruction, own_ask: self.own_ask, own_open: self.own_open }
    }

    /// Whether the loader's cache is opened unseen.
    pub fn lets_cache_through(&self) -> bool {
        self.own_open.is_some()
    }

    /// Whether a call is made only to ask.
    pub fn asks(&self, instruction: u64) -> bool {
        instruction == self.page + ASK as u64 + SYSCALL
    }

    /// What an agent gets.
    pub fn board(&self) -> BorrowedFd<'_> {
        self.memory.descriptor()
    }

    /// The copy of the C library, which agents get as well.
    pub fn patched(&self) -> Option<BorrowedFd<'_>> {
        self.patched.as_ref().map(File::as_fd)
    }

    /// A file is opened that may be a library with sites, under this name: its sites, if it is new.
    pub fn opens(&mut self, name: &[u8], file: &Path, found: &Metadata) -> Option<Sites> {
        let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if !is_led(name) {
            return None;
        }
        let library = (name.to_owned(), FileIdentity::of(found));
        if self.known.contains(&library) {
            return None;
        }
        self.known.push(library);
        let sites = self.sites.of(file)?;
        let is_wanted = name == C_LIBRARY && self.patched.is_none();
        let (patched, room) = is_wanted.then(|| self.sites.patched(file, &sites)).flatten().unzip();
        self.patched = self.patched.take().or(patched);
        let written = self.write(name, &sites, room);
        debug_assert!(written.is_ok());
        Some(sites)
    }

    /// Adds a library to the board, if there is room. The count comes last: agents may be reading.
    fn write(&mut self, name: &[u8], sites: &Sites, room: Option<Room>) -> io::Result<()> {
        let Sites { start, length, .. } = *sites;
        let is_loader = is_loader(name);
        let is_used = |site: &&(u32, u32)| !is_loader || arch::OPENING_LIBRARIES.contains(&site.1);
        let used: Vec<(u32, u32)> = sites.sites.iter().filter(is_used).copied().collect();
        let (count, is_loader) = (used.len() as u32, u32::from(is_loader));
        let Room { file, pointer, build, id } =
            room.unwrap_or(Room { file: 0, pointer: 0, build: 0, id: [0; 20] });
        let mut library = Library {
            name: [0; NAME],
            start,
            length,
            sites: count,
            is_loader,
            file,
            pointer,
            build,
            id,
        };
        library.name[..name.len()].copy_from_slice(name);
        let mut bytes = library.bytes().to_vec();
        bytes.extend(used.iter().flat_map(|&(place, operand)| Site { place, operand }.bytes()));
        if self.end + bytes.len() as u64 > BOARD as u64 {
            return Ok(());
        }
        self.memory.write_at(&bytes, PAGE + self.end)?;
        self.end += bytes.len() as u64;
        self.count += 1;
        self.memory.write_at(&self.count.to_ne_bytes(), COUNT)
    }
}

const C_LIBRARY: &[u8] = b"libc.so.6";

/// The C library, which used to have a second part for threads, and its loader.
fn is_led(name: &[u8]) -> bool {
    name.len() < NAME && (name == C_LIBRARY || name == b"libpthread.so.0" || is_loader(name))
}

fn is_loader(name: &[u8]) -> bool {
    name.starts_with(b"ld-linux")
}

/// A page that no program has: neither where programs and libraries are loaded, nor where they ask
/// for memory of their own.
fn random_page() -> u64 {
    const FIRST: u64 = 0x2000_0000_0000;
    const PAGES: u64 = 1 << 32;
    FIRST + RandomState::new().hash_one("call page") % PAGES * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl KnownSites for One {
        fn of(&self, library: &Path) -> Option<Sites> {
            let sites = Sites {
                start: 1,
                length: 2,
                sites: vec![(3, 4), (5, 6)],
                own_ask: None,
                own_open: None,
            };
            (library != Path::new(LOADER)).then_some(sites)
        }
    }

    #[test]
    fn libraries_come_to_the_board_once() {
        let mut lead = Lead::new(Arc::new(One), &[]).unwrap();
        for name in
            ["/lib/libc.so.6", "/lib/libm.so.6", "/usr/lib/libc.so.6", "ld-linux-x86-64.so.2"]
        {
            lead.opens(name.as_bytes(), Path::new("/bin/sh"), &fs::metadata("/bin/sh").unwrap());
        }
        let content = lead.memory.content().unwrap();
        let board = &content[PAGE as usize..];
        assert_eq!((&board[..8], board[24]), (&BOARD_MAGIC.to_ne_bytes()[..], 2));
        assert!(board[32..].starts_with(b"libc.so.6\0"));
        assert!(board[32 + 80 + 16..].starts_with(b"ld-linux-x86-64.so.2\0"));
    }

    #[test]
    fn only_the_call_page_passes() {
        let lead = Lead::new(Arc::new(One), &[]).unwrap();
        assert!(lead.asks(lead.page + 18) && !lead.asks(lead.passes().instruction));
        assert_eq!(lead.page % PAGE, 0);
    }
}
