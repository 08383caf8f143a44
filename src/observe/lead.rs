//! Calls that are led past the filter: the watcher's side of `agent/lead.rs`.
//!
//! In: libraries that are opened. Out: the *board*, which tells all processes of the run where the call page is, and where in the
//! libraries the sites are.

use super::filter::Passes;
use super::known::{KnownLooks, SHARED};
use super::sites::{OwnAsk, Sites};
use crate::model::FileIdentity;
use crate::process::sys::Memory;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

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

/// The path of an agent's request for the board.
pub const REQUEST: &[u8] = b"/.tasting-lead-1";

/// What an agent gets that asks whether a call may be made.
pub const GRANTED: i64 = 0x7a57_0001;
/// The same for a call that changes something: the agent counts it when it is made.
pub const GRANTED_CHANGE: i64 = 0x7a57_0002;

/// Where in the call page a call is made, and where one is made only to ask; and the places behind these instructions.
const CALL: usize = 0;
const ASK: usize = 16;
/// Where a thread is started: `jmp r9` in place of `ret`.
const CLONE: usize = 32;
const SYSCALL_AND_RETURN: &[u8] = &[0x0f, 0x05, 0xc3];
const SYSCALL_AND_JUMP: &[u8] = &[0x0f, 0x05, 0x41, 0xff, 0xe1];
const SYSCALL: u64 = 2;

const PAGE: u64 = 4096;
const BOARD: u64 = 2 * PAGE;
/// Where the table of known looks is, behind the call page and the board.
const KNOWN: u64 = PAGE + BOARD;
const MAGIC: &[u8; 8] = b"TASTELED";
const HEAD: u64 = 32;
const COUNT: u64 = PAGE + 24;
const NAME: usize = 32;

/// What knows the sites of libraries.
pub trait KnownSites: Send + Sync {
    fn of(&self, library: &Path) -> Option<Sites>;
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
    own_ask: Option<OwnAsk>,
}

/// The loader of nearly all programs, which is looked at before the filter is made.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

impl Lead {
    /// For a test that inherits these descriptors from outside.
    pub fn new(sites: Arc<dyn KnownSites>, foreign: &[i32]) -> io::Result<Lead> {
        let memory = Memory::new(c"tasting-lead")?;
        let page = random_page();
        let mut code = vec![0xcc; PAGE as usize];
        for (place, steps) in [(CALL, SYSCALL_AND_RETURN), (ASK, SYSCALL_AND_RETURN), (CLONE, SYSCALL_AND_JUMP)] {
            code[place..place + steps.len()].copy_from_slice(steps);
        }
        memory.write_at(&code, 0)?;
        memory.resize(KNOWN + SHARED as u64)?;
        let foreign = foreign.iter().filter(|number| **number < 64).fold(0u64, |all, number| all | 1 << number);
        memory.write_at(&[&MAGIC[..], &page.to_ne_bytes(), &foreign.to_ne_bytes()].concat(), PAGE)?;
        let looks = KnownLooks::new(&memory, KNOWN)?;
        let mut lead = Lead { sites, page, memory, known: Vec::new(), count: 0, end: HEAD, looks, own_ask: None };
        lead.own_ask = lead.opens(LOADER.as_bytes(), Path::new(LOADER)).and_then(|sites| sites.own_ask);
        Ok(lead)
    }

    /// What the filter lets through.
    pub fn passes(&self) -> Passes {
        Passes { instruction: self.page + CALL as u64 + SYSCALL, own_ask: self.own_ask }
    }

    /// Whether a call is made only to ask.
    pub fn asks(&self, instruction: u64) -> bool {
        instruction == self.page + ASK as u64 + SYSCALL
    }

    /// What an agent gets.
    pub fn board(&self) -> BorrowedFd<'_> {
        self.memory.descriptor()
    }

    /// A file is opened that may be a library with sites, under this name: its sites, if it is new.
    pub fn opens(&mut self, name: &[u8], file: &Path) -> Option<Sites> {
        let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if !is_led(name) {
            return None;
        }
        let library = (name.to_owned(), FileIdentity::of(&fs::metadata(file).ok()?));
        if self.known.contains(&library) {
            return None;
        }
        self.known.push(library);
        let sites = self.sites.of(file)?;
        let written = self.write(name, &sites);
        debug_assert!(written.is_ok());
        Some(sites)
    }

    /// Adds a library to the board, if there is room. The count comes last: agents may be reading.
    fn write(&mut self, name: &[u8], sites: &Sites) -> io::Result<()> {
        let mut text = name.to_owned();
        text.resize(NAME, 0);
        let numbers = [sites.start, sites.length, sites.sites.len() as u32, u32::from(is_loader(name))];
        let all = numbers.into_iter().chain(sites.sites.iter().flat_map(|(place, operand)| [*place, *operand]));
        text.extend(all.flat_map(u32::to_ne_bytes));
        if self.end + text.len() as u64 > BOARD {
            return Ok(());
        }
        self.memory.write_at(&text, PAGE + self.end)?;
        self.end += text.len() as u64;
        self.count += 1;
        self.memory.write_at(&self.count.to_ne_bytes(), COUNT)
    }
}

/// The C library, which used to have a second part for threads, and its loader.
fn is_led(name: &[u8]) -> bool {
    name.len() < NAME && (name == b"libc.so.6" || name == b"libpthread.so.0" || is_loader(name))
}

fn is_loader(name: &[u8]) -> bool {
    name.starts_with(b"ld-linux")
}

/// A page that no program has: neither where programs and libraries are loaded, nor where they ask for memory of their own.
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
            let sites = Sites { start: 1, length: 2, sites: vec![(3, 4), (5, 6)], own_ask: None };
            (library != Path::new(LOADER)).then_some(sites)
        }
    }

    #[test]
    fn libraries_come_to_the_board_once() {
        let mut lead = Lead::new(Arc::new(One), &[]).unwrap();
        for name in ["/lib/libc.so.6", "/lib/libm.so.6", "/usr/lib/libc.so.6", "ld-linux-x86-64.so.2"] {
            lead.opens(name.as_bytes(), Path::new("/bin/sh"));
        }
        let content = lead.memory.content().unwrap();
        let board = &content[PAGE as usize..];
        assert_eq!((&board[..8], board[24]), (&MAGIC[..], 2));
        assert!(board[32..].starts_with(b"libc.so.6\0"));
        assert!(board[32 + 32 + 16 + 16..].starts_with(b"ld-linux-x86-64.so.2\0"));
    }

    #[test]
    fn only_the_call_page_passes() {
        let lead = Lead::new(Arc::new(One), &[]).unwrap();
        assert!(lead.asks(lead.page + 18) && !lead.asks(lead.passes().instruction));
        assert_eq!(lead.page % PAGE, 0);
    }
}
