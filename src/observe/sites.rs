//! Call sites in a C library or in the dynamic loader: an instruction of 5 bytes that sets a
//! register, followed by `syscall`. The agent (its `lead.rs`) can replace them by a jump.
//!
//! In: the bytes of a library. Out: its call sites. Code that some jump may lead into is left out.

use super::calls;
use std::ops::Range;

/// Where a library's code lies, and its sites, both from its base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    pub start: u32,
    pub length: u32,
    /// The place of each site, and the last four bytes of its first instruction.
    pub sites: Vec<(u32, u32)>,
    pub own_ask: Option<OwnCall>,
    pub own_open: Option<OwnCall>,
}

/// A call that a library makes with a path that is a constant of its own: how it asks for the
/// attributes of a descriptor, which is `newfstatat` with an empty path, or how the loader opens
/// its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCall {
    /// The place behind the one `syscall` for it, and that of the path.
    pub instruction: u32,
    pub path: u32,
}

const SYSCALL: &[u8] = &[0x0f, 0x05];
/// `mov $number, %eax`
const SET_NUMBER: u8 = 0xb8;
/// `mov $AT_FDCWD, %edi`, and what is before it where a C library opens files for itself:
/// `mov $257, %eax; mov %rdi, %rsi`.
const SET_FOLDER: &[u8] = &[0xb8, 0x01, 0x01, 0, 0, 0x48, 0x89, 0xfe, 0xbf, 0x9c, 0xff, 0xff, 0xff];
const INSTRUCTION: usize = 5;
/// What the loader opens whenever it starts a program.
pub const CACHE: &[u8] = b"/etc/ld.so.cache";
/// What kept sites start with: those of another form are looked for again.
const FORMAT: u32 = u32::from_le_bytes(*b"SIT3");
/// The number of `clone3`, and what is behind the call where the C library starts a thread:
/// `test %rax, %rax`.
const CLONE3: &[u8] = &435u32.to_le_bytes();
const TEST: &[u8] = &[0x48, 0x85, 0xc0];

impl Sites {
    /// The sites of a library; `None` if it is not one.
    pub fn of(library: &[u8]) -> Option<Sites> {
        let (file, start) = code(library)?;
        let code = library.get(file)?;
        let is_site = |at: &usize| {
            let (before, behind) = (&code[..*at], &code[at + SYSCALL.len()..]);
            before.ends_with(SET_FOLDER)
                || sets_number(before) && (!before.ends_with(CLONE3) || behind.starts_with(TEST))
        };
        let (mut ends, targets) = scan(code);
        ends.retain(|end| is_site(end) && !is_near_a_jump_to(*end, code) && !targets.contains(end));
        let site = |end: &usize| {
            let operand = code[end - 4..*end].try_into().ok().map(u32::from_le_bytes)?;
            Some((start + u32::try_from(end - INSTRUCTION).ok()?, operand))
        };
        let sites = ends.iter().map(site).collect::<Option<Vec<_>>>()?;
        let (own_ask, own_open) = (own_ask(library, code, start), own_open(library, code, start));
        Some(Sites { start, length: u32::try_from(code.len()).ok()?, sites, own_ask, own_open })
    }

    /// As it is kept between runs.
    pub fn encode(&self) -> Vec<u8> {
        let sites = self.sites.iter().flat_map(|(place, operand)| [*place, *operand]);
        let own = [self.own_ask, self.own_open]
            .map(|own| own.map_or([0, 0], |own| [own.instruction, own.path]));
        let head = [FORMAT, self.start, self.length].into_iter().chain(own.into_iter().flatten());
        head.chain(sites).flat_map(u32::to_le_bytes).collect()
    }

    /// The reverse.
    pub fn decode(bytes: &[u8]) -> Option<Sites> {
        let mut numbers = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        numbers.next().filter(|format| *format == FORMAT)?;
        let (start, length) = (numbers.next()?, numbers.next()?);
        let mut own = || {
            let (instruction, path) = (numbers.next()?, numbers.next()?);
            Some((instruction != 0).then_some(OwnCall { instruction, path }))
        };
        let (own_ask, own_open) = (own()?, own()?);
        let sites = std::iter::from_fn(|| numbers.next().zip(numbers.next())).collect();
        Some(Sites { start, length, sites, own_ask, own_open })
    }
}

/// Whether code ends with an instruction that sets the number of a led call.
fn sets_number(code: &[u8]) -> bool {
    match code.last_chunk::<INSTRUCTION>() {
        Some(&[SET_NUMBER, a, b, c, d]) => calls::is_led(u32::from_le_bytes([a, b, c, d]).into()),
        _ => false,
    }
}

/// Finds `mov $AT_EMPTY_PATH, %ecx; lea path(%rip), %rsi`, and the one `mov $262, %eax; syscall`.
/// In: the library, its code, and where that lies in memory. `None` if there is another, or if the
/// path is not an empty one that nobody can write to.
fn own_ask(library: &[u8], code: &[u8], start: u32) -> Option<OwnCall> {
    const CALL: &[u8] = &[0xb8, 0x06, 0x01, 0, 0, 0x0f, 0x05];
    const EMPTY_PATH: &[u8] = &[0xb9, 0, 0x10, 0, 0, 0x48, 0x8d, 0x35];
    let (call, path) = (end_of_only(code, CALL)?, end_of_only(code, EMPTY_PATH)?);
    let distance = i32::from_le_bytes(code.get(path..path + 4)?.try_into().ok()?);
    let path = start.checked_add(u32::try_from(path + 4).ok()?)?.checked_add_signed(distance)?;
    let (file, place) = segment(library, READ, |places| places.contains(&path.into()))?;
    let content = library.get(file)?.get(usize::try_from(path - place).ok()?)?;
    (*content == 0).then_some(OwnCall { instruction: start + u32::try_from(call).ok()?, path })
}

/// The one call by which the loader opens files for itself, with the path of its cache. `None` for
/// a loader that does not look for a list of libraries to preload: by that look the watcher knows
/// that the cache is opened (`preload.rs`).
fn own_open(library: &[u8], code: &[u8], start: u32) -> Option<OwnCall> {
    const LIST: &[u8] = b"/etc/ld.so.preload\0";
    let call = end_of_only(code, &[SET_FOLDER, SYSCALL].concat())?;
    memchr::memmem::find(library, LIST)?;
    let path = end_of_only(library, &[b"\0", CACHE, b"\0"].concat())? - CACHE.len() - 1;
    // Where it is in the file, it is in memory.
    let (file, place) = segment(library, READ, |places| places.contains(&(path as u64)))?;
    let (instruction, path) = (start + u32::try_from(call).ok()?, u32::try_from(path).ok()?);
    (file.start == place as usize).then_some(OwnCall { instruction, path })
}

/// Where something ends that is there once.
fn end_of_only(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    let mut ends = memchr::memmem::find_iter(bytes, sought).map(|at| at + sought.len());
    ends.next().filter(|_| ends.next().is_none())
}

const READ: u64 = 4;
const READ_EXECUTE: u64 = 5;

/// The executable segment of a 64-bit ELF file: where it is in the file, and where in memory.
fn code(file: &[u8]) -> Option<(Range<usize>, u32)> {
    segment(file, READ_EXECUTE, |_| true)
}

/// The first loaded segment with these rights, at such places.
fn segment(
    file: &[u8],
    rights: u64,
    is_it: impl Fn(&Range<u64>) -> bool,
) -> Option<(Range<usize>, u32)> {
    const LOAD: u64 = 1;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let (table, count) = (usize::try_from(number(32)?).ok()?, number(56)? & 0xffff);
    for index in 0..count as usize {
        let header = table.checked_add(index * 56)?;
        let (offset, place, length) =
            (number(header + 8)?, number(header + 16)?, number(header + 32)?);
        if number(header)? == LOAD | rights << 32 && is_it(&(place..place.checked_add(length)?)) {
            let offset = usize::try_from(offset).ok()?;
            return Some((
                offset..offset.checked_add(usize::try_from(length).ok()?)?,
                u32::try_from(place).ok()?,
            ));
        }
    }
    None
}

/// Where each `syscall` is, and where what can be read as a jump or call over some distance leads
/// to.
fn scan(code: &[u8]) -> (Vec<usize>, Vec<usize>) {
    let (mut calls, mut targets) = (Vec::new(), Vec::new());
    let mut last = 0;
    for (at, &byte) in code.iter().enumerate() {
        // `call` and `jmp`; behind 0x0f the conditional jumps.
        if byte == 0xe8 || byte == 0xe9 || last == 0x0f && byte & 0xf0 == 0x80 {
            let by =
                code.get(at + 1..at + 5).and_then(|by| by.try_into().ok()).map(i32::from_le_bytes);
            let target = by.and_then(|by| (at + 5).checked_add_signed(by as isize));
            targets.extend(target);
        } else if last == SYSCALL[0] && byte == SYSCALL[1] {
            calls.push(at - 1);
        }
        last = byte;
    }
    (calls, targets)
}

/// Whether something that can be read as a short jump leads to a place.
fn is_near_a_jump_to(place: usize, code: &[u8]) -> bool {
    let leads_here = |at: usize| {
        let by = code.get(at + 1).map_or(0, |by| *by as i8);
        matches!(code[at], 0xeb | 0x70..=0x7f)
            && (at + 2).checked_add_signed(by.into()) == Some(place)
    };
    (place.saturating_sub(130)..(place + 127).min(code.len())).any(leads_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library of this code, which lies at 0x1000.
    fn library(code: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x1000];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[56] = 1;
        let header = [1 | 5 << 32, 0x1000, 0x1000, 0x1000, code.len() as u64, code.len() as u64];
        for (index, number) in header.iter().enumerate() {
            file[64 + index * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        [&file, code].concat()
    }

    /// `open`, and something behind it.
    fn open(rest: &[u8]) -> Vec<u8> {
        [&[0x90, 0xb8, 2, 0, 0, 0, 0x0f, 0x05, 0xc3], rest].concat()
    }

    #[test]
    fn sites_are_found() {
        let sites = Sites::of(&library(&open(&[0xb8, 3, 0, 0, 0, 0x0f, 0x05]))).unwrap();
        let expected = Sites {
            start: 0x1000,
            length: 16,
            sites: vec![(0x1001, 2)],
            own_ask: None,
            own_open: None,
        };
        assert_eq!(sites, expected, "closing is not watched");
        assert_eq!(Sites::decode(&sites.encode()[4..]), None, "of another form");
        assert_eq!(Sites::decode(&sites.encode()), Some(sites));
    }

    /// `fstat`, with constants behind the code: the path is the first of them, or the second.
    fn fstat(path: u8, constants: &[u8]) -> Vec<u8> {
        let code = [
            0xb9,
            0,
            0x10,
            0,
            0,
            0x48,
            0x8d,
            0x35,
            path + 7,
            0,
            0,
            0,
            0xb8,
            6,
            1,
            0,
            0,
            0x0f,
            0x05,
        ];
        let mut file = library(&code);
        file[56] = 2;
        let header =
            [1 | 4 << 32, 0x1000 + code.len() as u64, 0x1013, 0x1013, constants.len() as u64, 0];
        for (index, number) in header.iter().enumerate() {
            file[64 + 56 + index * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        [&file, constants].concat()
    }

    #[test]
    fn the_empty_path_of_a_library_is_found() {
        let sites = Sites::of(&fstat(1, b"a\0")).unwrap();
        assert_eq!(sites.own_ask, Some(OwnCall { instruction: 0x1013, path: 0x1014 }));
        assert_eq!(Sites::decode(&sites.encode()), Some(sites));
        assert_eq!(Sites::of(&fstat(0, b"a\0")).unwrap().own_ask, None, "it is not empty");
        assert_eq!(Sites::of(&fstat(2, b"a\0")).unwrap().own_ask, None, "it is not there");
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn the_loader_of_this_machine_asks_for_descriptors() {
        let Ok(loader) = std::fs::read("/lib64/ld-linux-x86-64.so.2") else { return };
        // From 2.33 on glibc asks so.
        let is_new = memchr::memmem::find(&loader, b"GLIBC_2.35").is_some();
        let sites = Sites::of(&loader).unwrap();
        assert!(!is_new || sites.own_ask.is_some() && sites.own_open.is_some());
        assert_eq!(Sites::decode(&sites.encode()), Some(sites.clone()));
        let path = sites.own_open.map_or(0, |own| own.path) as usize;
        assert!(!is_new || loader[path..].starts_with(b"/etc/ld.so.cache\0"));
    }

    #[test]
    fn a_site_that_is_jumped_into_is_none() {
        for jump in [
            &[0xebu8, (-5i8) as u8][..],
            &[0x74, (-5i8) as u8],
            &[0xe9, 0xf8, 0xff, 0xff, 0xff],
            &[0x0f, 0x84, 0xf7, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(Sites::of(&library(&open(jump))).unwrap().sites, [], "{jump:x?}");
        }
        let to_its_front = [0xeb, (-10i8) as u8];
        assert_eq!(Sites::of(&library(&open(&to_its_front))).unwrap().sites.len(), 1);
    }

    #[test]
    fn other_files_have_no_call_sites() {
        assert_eq!(Sites::of(b"#!/bin/sh"), None);
    }
}
