//! The places in a C library, or in the dynamic loader, where it makes watched calls: an instruction of 5 bytes that sets a register, and
//! `syscall` behind it. The agent (`agent/lead.rs`) can put a jump there.
//!
//! In: the bytes of a library. Out: its sites. A place that some jump may lead into is none.

use super::calls;
use std::ops::Range;

/// Where a library's code lies, and its sites, both from its base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    pub start: u32,
    pub length: u32,
    /// The place of each site, and the last four bytes of its first instruction.
    pub sites: Vec<(u32, u32)>,
}

const SYSCALL: &[u8] = &[0x0f, 0x05];
/// `mov $number, %eax`
const SET_NUMBER: u8 = 0xb8;
/// `mov $AT_FDCWD, %edi`, and what is before it where a C library opens files for itself: `mov $257, %eax; mov %rdi, %rsi`.
const SET_FOLDER: &[u8] = &[0xb8, 0x01, 0x01, 0, 0, 0x48, 0x89, 0xfe, 0xbf, 0x9c, 0xff, 0xff, 0xff];
const INSTRUCTION: usize = 5;
/// The number of `clone3`, and what is behind the call where the C library starts a thread: `test %rax, %rax`.
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
        Some(Sites { start, length: u32::try_from(code.len()).ok()?, sites })
    }

    /// As it is kept between runs.
    pub fn encode(&self) -> Vec<u8> {
        let sites = self.sites.iter().flat_map(|(place, operand)| [*place, *operand]);
        [self.start, self.length].into_iter().chain(sites).flat_map(u32::to_le_bytes).collect()
    }

    /// The reverse.
    pub fn decode(bytes: &[u8]) -> Option<Sites> {
        let mut numbers = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let (start, length) = (numbers.next()?, numbers.next()?);
        let sites = std::iter::from_fn(|| numbers.next().zip(numbers.next())).collect();
        Some(Sites { start, length, sites })
    }
}

/// Whether code ends with an instruction that sets the number of a led call.
fn sets_number(code: &[u8]) -> bool {
    match code.last_chunk::<INSTRUCTION>() {
        Some(&[SET_NUMBER, a, b, c, d]) => calls::is_led(u32::from_le_bytes([a, b, c, d]).into()),
        _ => false,
    }
}

/// The executable segment of a 64-bit ELF file: where it is in the file, and where in memory.
fn code(file: &[u8]) -> Option<(Range<usize>, u32)> {
    const LOAD_EXECUTE: u64 = 1 | 5 << 32;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let (table, count) = (usize::try_from(number(32)?).ok()?, number(56)? & 0xffff);
    for index in 0..count as usize {
        let header = table.checked_add(index * 56)?;
        if number(header)? == LOAD_EXECUTE {
            let (offset, place, length) = (number(header + 8)?, number(header + 16)?, number(header + 32)?);
            let offset = usize::try_from(offset).ok()?;
            return Some((offset..offset.checked_add(usize::try_from(length).ok()?)?, u32::try_from(place).ok()?));
        }
    }
    None
}

/// Where each `syscall` is, and where what can be read as a jump or call over some distance leads to.
fn scan(code: &[u8]) -> (Vec<usize>, Vec<usize>) {
    let (mut calls, mut targets) = (Vec::new(), Vec::new());
    let mut last = 0;
    for (at, &byte) in code.iter().enumerate() {
        // `call` and `jmp`; behind 0x0f the conditional jumps.
        if byte == 0xe8 || byte == 0xe9 || last == 0x0f && byte & 0xf0 == 0x80 {
            let by = code.get(at + 1..at + 5).and_then(|by| by.try_into().ok()).map(i32::from_le_bytes);
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
        matches!(code[at], 0xeb | 0x70..=0x7f) && (at + 2).checked_add_signed(by.into()) == Some(place)
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
        assert_eq!(sites, Sites { start: 0x1000, length: 16, sites: vec![(0x1001, 2)] }, "closing is not watched");
        assert_eq!(Sites::decode(&sites.encode()), Some(sites));
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
    fn what_is_no_library_has_none() {
        assert_eq!(Sites::of(b"#!/bin/sh"), None);
    }
}
