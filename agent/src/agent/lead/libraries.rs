//! The libraries whose calls are led. In: the loader's list, and the board with the sites of
//! libraries. Out: jumps at the sites, or a copy of the library that has them.

use super::{CONSTANTS, JUMP, SHOWN, SITE, STUB, SYSCALL, tasting_lead, tasting_lead_loader};
use crate::agent::arch::{call, syscall};
use crate::agent::loader::{LinkMap, debug};
use crate::protocol::{BREAKPOINT, Board, Library, PAGE, Site};

/// Calls for each library that is loaded and that the board tells of.
pub(super) unsafe fn each_library(
    board: *const Board,
    mut then: impl FnMut(*const LinkMap, *const Library),
) {
    // SAFETY: the loader's list and the board's libraries end where their heads say.
    unsafe {
        let mut library = board.add(1).cast::<Library>();
        for _ in 0..(*board).libraries {
            let mut link = (*debug()).modules;
            while !link.is_null() {
                if is_it(link, library) {
                    then(link, library);
                    break;
                }
                link = (*link).next;
            }
            library = sites(library).add((*library).sites as usize).cast();
        }
    }
}

pub(super) unsafe fn sites(library: *const Library) -> *const Site {
    // SAFETY: its sites are behind a library.
    unsafe { library.add(1).cast() }
}

/// Whether a module has the library's name, and its code where it is to be.
unsafe fn is_it(link: *const LinkMap, library: *const Library) -> bool {
    // SAFETY: names end with a NUL, and sites are read in a module that is the library's code.
    unsafe {
        let name = (*link).name.cast::<u8>();
        if (*link).base == 0 || name.is_null() {
            return false;
        }
        let (mut last, mut end) = (name, name);
        while *end != 0 {
            if *end == b'/' {
                last = end.add(1);
            }
            end = end.add(1);
        }
        let length = end as usize - last as usize;
        let is_named =
            length < 32 && (0..=length).all(|index| *last.add(index) == (*library).name[index]);
        let is_as_said = || {
            (0..(*library).sites as usize).all(|index| {
                let site = sites(library).add(index);
                let at = ((*link).base + (*site).place as usize) as *const u8;
                at.add(1).cast::<u32>().read_unaligned() == (*site).operand
                    && at.add(5).cast::<[u8; 2]>().read() == SYSCALL
            })
        };
        is_named
            && has_code((*link).base, library)
            && (has_id((*link).base, library) || is_as_said())
    }
}

/// Whether a module is the very library that there is a copy of. Its code need not be looked at
/// then.
unsafe fn has_id(base: usize, library: *const Library) -> bool {
    // SAFETY: only of a library that has a copy is it known where its build ID is.
    unsafe {
        (*library).pointer != 0
            && ((base + (*library).build as usize) as *const [u8; 20]).read() == (*library).id
    }
}

/// Maps the code of the library's copy in the place of its own. The jumps in it lead to where the
/// pointer says.
pub(super) unsafe fn show_copy(link: *const LinkMap, library: *const Library, copy: usize) -> bool {
    const READ_EXECUTE: usize = 5;
    const PRIVATE_FIXED: usize = 0x12;
    // SAFETY: the library's code is exchanged for a copy of it; nobody executes it yet but us, who
    // make our calls ourselves.
    unsafe {
        let base = (*link).base;
        if !has_id(base, library) {
            return false;
        }
        CONSTANTS = constants(base, library);
        ((base + (*library).pointer as usize) as *mut usize)
            .write(tasting_lead as *const () as usize);
        let (start, length) =
            (base + (*library).start as usize, ((*library).length as usize).next_multiple_of(PAGE));
        let place = [start, length, READ_EXECUTE, PRIVATE_FIXED, copy, (*library).file as usize];
        let is_shown = syscall(call::MMAP, place) == start as isize;
        if is_shown {
            SHOWN = base;
        }
        is_shown
    }
}

/// Whether one of a module's segments is the library's code.
unsafe fn has_code(base: usize, library: *const Library) -> bool {
    const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
    const LOAD_EXECUTE: u64 = 1 | 5 << 32;
    // SAFETY: a module starts with its ELF header, if its base is that of a file.
    unsafe {
        if *(base as *const u32) != MAGIC {
            return false;
        }
        let table = base + *((base + 32) as *const usize);
        let count = *((base + 56) as *const u16) as usize;
        (0..count).any(|index| {
            let header = (table + index * 56) as *const u64;
            *header == LOAD_EXECUTE
                && *header.add(2) == (*library).start.into()
                && *header.add(4) == (*library).length.into()
        })
    }
}

/// Where a module's constants lie: the segment behind its code, which can only be read.
pub(super) unsafe fn constants(base: usize, library: *const Library) -> [usize; 2] {
    const LOAD_READ: u64 = 1 | 4 << 32;
    // SAFETY: as in `has_code`.
    unsafe {
        let table = base + *((base + 32) as *const usize);
        let count = *((base + 56) as *const u16) as usize;
        for index in 0..count {
            let header = (table + index * 56) as *const u64;
            if *header == LOAD_READ && *header.add(2) > (*library).start.into() {
                let start = base + *header.add(2) as usize;
                return [start, start + *header.add(4) as usize];
            }
        }
        [0, 0]
    }
}

/// Writes the code that the sites of a library jump to. Gives how many there are.
pub(super) unsafe fn write_stubs(
    link: *const LinkMap,
    library: *const Library,
    stubs: *mut u8,
    used: usize,
) -> usize {
    // SAFETY: there is room for the stubs, and the sites are the library's code.
    unsafe {
        let count = (*library).sites as usize;
        if (used + count) * STUB > PAGE || !is_near((*link).base, library, stubs) {
            return used;
        }
        if (*library).is_loader == 0 {
            CONSTANTS = constants((*link).base, library);
        }
        let target = if (*library).is_loader != 0 {
            tasting_lead_loader as *const ()
        } else {
            tasting_lead as *const ()
        };
        for index in 0..count {
            let stub = stubs.add((used + index) * STUB);
            let site = (*link).base + (*sites(library).add(index)).place as usize;
            stub.cast::<[u8; 2]>().write([0x48, 0xb9]);
            stub.add(2).cast::<usize>().write_unaligned(site + SITE);
            stub.add(10).cast::<[u8; 5]>().write(*(site as *const [u8; 5]));
            stub.add(15).write(JUMP);
            stub.add(16)
                .cast::<i32>()
                .write_unaligned((target as isize - (stub as isize + STUB as isize)) as i32);
        }
        used + count
    }
}

/// Whether a jump leads from each of the library's sites to the stubs.
unsafe fn is_near(base: usize, library: *const Library, stubs: *const u8) -> bool {
    const FARTHEST: usize = 0x7000_0000;
    // SAFETY: the library is one of the board.
    let end = unsafe { base + (*library).start as usize + (*library).length as usize };
    base.abs_diff(stubs as usize) < FARTHEST && end.abs_diff(stubs as usize) < FARTHEST
}

/// Puts jumps in the place of a library's sites. Code that jumps to the `syscall` itself hits a
/// breakpoint.
pub(super) unsafe fn replace_sites(
    link: *const LinkMap,
    library: *const Library,
    stubs: *mut u8,
    first: usize,
) -> usize {
    const READ_EXECUTE: usize = 5;
    const READ_WRITE_EXECUTE: usize = 7;
    // SAFETY: it runs before there are other threads, and no thread is in the code that is
    // replaced; what it jumps to is written.
    unsafe {
        let count = (*library).sites as usize;
        if (*link).base == SHOWN
            || (first + count) * STUB > PAGE
            || !is_near((*link).base, library, stubs)
        {
            return first;
        }
        let start = ((*link).base + (*library).start as usize) & !(PAGE - 1);
        let end = (*link).base + (*library).start as usize + (*library).length as usize;
        let length = (end - start).next_multiple_of(PAGE);
        if syscall(call::MPROTECT, [start, length, READ_WRITE_EXECUTE, 0, 0, 0]) == 0 {
            for index in 0..count {
                let site = (*link).base + (*sites(library).add(index)).place as usize;
                let stub = stubs.add((first + index) * STUB) as isize;
                let [a, b, c, d] = ((stub - (site as isize + 5)) as i32).to_le_bytes();
                (site as *mut [u8; SITE]).write([JUMP, a, b, c, d, BREAKPOINT, BREAKPOINT]);
            }
            syscall(call::MPROTECT, [start, length, READ_EXECUTE, 0, 0, 0]);
        }
        first + count
    }
}
