//! A copy of a library that already has the jumps at its call sites. Agents (`agent/lead.rs`) map
//! its code in place of the library's. All processes share the copy, whereas jumps that each
//! process writes by itself cost it a private copy of every page.
//!
//! The jumps lead to stubs at the end of the last page of the code. From there they go to the
//! address in a pointer at the end of the last page of the variables, which the agent sets.
//!
//! In: a library and its call sites. Out: the copy, and what agents have to know of it. `None` if
//! there is no room.

use super::sites::Sites;
use std::ops::Range;

/// What the name of a folder starts with that has a copy in it, under the library's own name.
pub const FOLDER: &str = "tasting-led-";

const PAGE: usize = 4096;
const POINTER: usize = 8;
/// `lea after(%rip), %rcx`, the instruction of the site, `jmp *pointer(%rip)`.
const STUB: usize = 18;
const INSTRUCTION: usize = 5;
/// An instruction and `syscall`.
const SITE: usize = 7;
const BREAKPOINT: u8 = 0xcc;

/// What agents have to know of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where the code is in the file.
    pub file: u32,
    /// Where the pointer is in memory, from the library's base.
    pub pointer: u32,
    /// Where the library says which one it is, and what it says: the linker's hash of all that is
    /// in it.
    pub build: u32,
    pub id: [u8; 20],
}

/// The room that a library has for stubs and a pointer.
pub fn room(library: &[u8], sites: &Sites) -> Option<Room> {
    let segments = segments(library)?;
    let code = segments.iter().find(|segment| {
        segment.is(LOAD, READ | EXECUTE) && segment.place == sites.start as usize
    })?;
    let (end, behind) = (code.file.end, code.file.end.next_multiple_of(PAGE));
    let is_free = library.get(end..behind).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
        && !segments
            .iter()
            .any(|other| other.kind == LOAD && other.file.start < behind && other.file.end > end);
    if !is_free || behind - end < sites.sites.len() * STUB || !code.place.is_multiple_of(PAGE) {
        return None;
    }
    let variables = segments.iter().rfind(|segment| segment.kind == LOAD)?;
    let end = variables.place + variables.size;
    let pointer = end.next_multiple_of(POINTER);
    // Behind variables that are not in the file there is nothing of the file.
    let is_empty = variables.is(LOAD, READ | WRITE) && variables.size > variables.file.len();
    if !is_empty || pointer + POINTER > end.next_multiple_of(PAGE) {
        return None;
    }
    let (build, id) = segments
        .iter()
        .filter(|segment| segment.kind == NOTE)
        .find_map(|notes| build_id(library, notes))?;
    let number = |number| u32::try_from(number).ok();
    Some(Room {
        file: number(code.file.start)?,
        pointer: number(pointer)?,
        build: number(build)?,
        id,
    })
}

/// The library with jumps at its sites.
pub fn patched(library: &[u8], sites: &Sites, room: &Room) -> Option<Vec<u8>> {
    let mut copy = library.to_vec();
    // Where something is in the file that is at a place in memory.
    let at = |place: usize| place - sites.start as usize + room.file as usize;
    let stubs = (sites.start + sites.length) as usize;
    for (index, (site, _)) in sites.sites.iter().enumerate() {
        let (site, stub) = (*site as usize, stubs + index * STUB);
        let instruction: [u8; INSTRUCTION] = library.get(at(site)..)?.first_chunk().copied()?;
        let code = copy.get_mut(at(stub)..at(stub) + STUB)?;
        code[..3].copy_from_slice(&[0x48, 0x8d, 0x0d]);
        code[3..7].copy_from_slice(&distance(stub + 7, site + SITE)?);
        code[7..12].copy_from_slice(&instruction);
        code[12..14].copy_from_slice(&[0xff, 0x25]);
        code[14..].copy_from_slice(&distance(stub + STUB, room.pointer as usize)?);
        let code = copy.get_mut(at(site)..at(site) + SITE)?;
        code[0] = 0xe9;
        code[1..5].copy_from_slice(&distance(site + INSTRUCTION, stub)?);
        // For code that would jump to the `syscall` itself.
        code[5..].fill(BREAKPOINT);
    }
    Some(copy)
}

fn distance(from: usize, to: usize) -> Option<[u8; 4]> {
    i32::try_from(to as i64 - from as i64).ok().map(i32::to_le_bytes)
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;

/// A part of a file that belongs to a place in memory.
struct Segment {
    kind: u32,
    rights: u32,
    file: Range<usize>,
    place: usize,
    /// In memory.
    size: usize,
}

impl Segment {
    fn is(&self, kind: u32, rights: u32) -> bool {
        (self.kind, self.rights) == (kind, rights)
    }
}

/// The segments of a 64-bit ELF file.
fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    const SIZE: usize = 56;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let bytes = |at: usize| file.get(at..)?.first_chunk::<8>();
    let number = |at: usize| usize::try_from(u64::from_le_bytes(*bytes(at)?)).ok();
    let half = |at: usize| Some(u32::from_le_bytes(*bytes(at)?.first_chunk()?));
    let (table, count) = (number(32)?, number(56)? & 0xffff);
    let segment = |index: usize| {
        let header = table.checked_add(index * SIZE)?;
        let offset = number(header + 8)?;
        Some(Segment {
            kind: half(header)?,
            rights: half(header + 4)?,
            file: offset..offset.checked_add(number(header + 32)?)?,
            place: number(header + 16)?,
            size: number(header + 40)?,
        })
    };
    (0..count).map(segment).collect()
}

/// Where the build ID is in memory, and what it is.
fn build_id(library: &[u8], notes: &Segment) -> Option<(usize, [u8; 20])> {
    const HEAD: usize = 12;
    const GNU_BUILD_ID: u32 = 3;
    const NAME: &[u8] = b"GNU\0";
    let content = library.get(notes.file.clone())?;
    let number =
        |at: usize| content.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let mut at = 0;
    while let (Some(name), Some(length), Some(kind)) = (number(at), number(at + 4), number(at + 8))
    {
        let name_end = (at + HEAD).checked_add((name as usize).next_multiple_of(4))?;
        let id = content.get(name_end..name_end.checked_add(length as usize)?)?;
        if kind == GNU_BUILD_ID && content[at + HEAD..].starts_with(NAME) {
            return Some((notes.place + name_end, id.try_into().ok()?));
        }
        at = name_end + (length as usize).next_multiple_of(4);
    }
    None
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod tests {
    use super::*;

    fn c_library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps
            .lines()
            .find(|line| line.ends_with("/libc.so.6"))
            .expect("tests are linked dynamically");
        std::fs::read(&line[line.find('/').unwrap()..]).unwrap()
    }

    /// From each site the code goes to its stub, and from there to the pointer, with the place
    /// behind the site in rcx.
    #[test]
    fn every_libc_site_jumps_through_the_pointer() {
        let library = c_library();
        let sites = Sites::of(&library).unwrap();
        let Some(room) = room(&library, &sites) else { return };
        let copy = patched(&library, &sites, &room).unwrap();
        let at = |place: usize| place - sites.start as usize + room.file as usize;
        let target = |at_: usize, end: usize| {
            (end as i64 + i64::from(i32::from_le_bytes(copy[at(at_)..][..4].try_into().unwrap())))
                as usize
        };
        assert!(sites.sites.len() > 20);
        for (site, operand) in &sites.sites {
            let site = *site as usize;
            let stub = target(site + 1, site + 5);
            assert_eq!((copy[at(site)], &copy[at(site) + 5..][..2]), (0xe9, &[0xcc, 0xcc][..]));
            assert_eq!(&copy[at(stub)..][..3], &[0x48, 0x8d, 0x0d]);
            assert_eq!(target(stub + 3, stub + 7), site + SITE);
            assert_eq!(copy[at(stub) + 8..][..4], operand.to_le_bytes());
            assert_eq!(&copy[at(stub) + 12..][..2], &[0xff, 0x25]);
            assert_eq!(target(stub + 14, stub + 18), room.pointer as usize);
        }
        let differing = library.iter().zip(&copy).filter(|(one, other)| one != other).count();
        assert!(copy.len() == library.len() && differing <= sites.sites.len() * (SITE + STUB));
    }

    #[test]
    fn libraries_without_room_are_not_copied() {
        let library = c_library();
        let sites = Sites::of(&library).unwrap();
        let Some(found) = room(&library, &sites) else { return };
        let many = Sites { sites: sites.sites.repeat(99), ..sites.clone() };
        assert_eq!(room(&library, &many), None, "too many stubs");
        let mut other = library.clone();
        other[found.file as usize + sites.length as usize] = 1;
        assert_eq!(room(&other, &sites), None, "something is behind the code");
        assert_eq!(room(b"\x7fELF\x02\x01", &sites), None);
        let id = library.windows(20).position(|window| window == found.id).unwrap();
        let mut nameless = library.clone();
        nameless[id - 16..id].fill(0);
        assert_eq!(room(&nameless, &sites), None, "no build ID");
    }
}
