//! The regions of memory that are shared with the watcher, one for each module.

use super::arch::{call, syscall};
use super::system::unmap;
use crate::protocol::{Head, PAGE, REGION_MAGIC, REGION_REQUEST, RegionAnswer};
use core::ffi::c_char;
use core::ptr::null_mut;

const LONGEST_PATH: usize = 4096;

impl Head {
    unsafe fn places(region: *mut Head) -> *const u32 {
        // SAFETY: they are behind the head.
        unsafe { region.add(1).cast() }
    }

    unsafe fn sizes(region: *mut Head) -> *const u32 {
        // SAFETY: they are behind the places.
        unsafe { Head::places(region).add((*region).count as usize) }
    }

    /// The bytes that say what was executed.
    pub(super) unsafe fn hits(region: *mut Head) -> *mut u8 {
        // SAFETY: they are behind the sizes.
        unsafe { Head::sizes(region).add((*region).count as usize).cast_mut().cast() }
    }

    /// Whether the landing area lies above the code, so that the last byte of fronts is an illegal
    /// instruction.
    pub(super) unsafe fn has_illegal_fronts(region: *mut Head) -> bool {
        // SAFETY: the head is mapped.
        unsafe { (*region).landing != 0 && ((*region).distance as i64) > 0 }
    }

    /// The place and size of a function, by its number.
    pub(super) unsafe fn function(region: *mut Head, number: usize) -> (usize, usize) {
        // SAFETY: the number is less than the region's count.
        unsafe {
            (*Head::places(region).add(number) as usize, *Head::sizes(region).add(number) as usize)
        }
    }

    /// How long the region is.
    pub(super) unsafe fn size(region: *mut Head) -> usize {
        // SAFETY: the head is mapped.
        unsafe { ((*region).image + (*region).length + (*region).landing_length) as usize }
    }
}

/// What the watcher has for a module.
pub struct Given {
    /// Null if there is nothing.
    pub region: *mut Head,
    /// The file of the region once more, only to be read: nobody can write to code that is mapped
    /// from it.
    pub code: usize,
    /// None of the libraries that the loader has opened so far has a region.
    pub is_alone: bool,
}

impl Given {
    pub const NOTHING: Given = Given { region: null_mut(), code: 0, is_alone: false };

    /// Nothing more is wanted.
    pub unsafe fn close(&self) {
        if !self.region.is_null() {
            // SAFETY: the descriptor was given to us alone.
            unsafe { syscall(call::CLOSE, [self.code, 0, 0, 0, 0, 0]) };
        }
    }
}

/// Asks the watcher about a module, or about the program if it has no name. It seems to open a
/// file, and gets two.
pub unsafe fn request(name: *const c_char) -> Given {
    const AT_FDCWD: usize = -100isize as usize;
    const O_PATH: usize = 0o10000000;
    let mut path = [0u8; LONGEST_PATH];
    path[..REGION_REQUEST.len()].copy_from_slice(REGION_REQUEST);
    let mut length = REGION_REQUEST.len();
    // SAFETY: a name ends with a NUL, and the path has room; descriptors are those that the watcher
    // has given.
    unsafe {
        let mut from = name.cast::<u8>();
        while !from.is_null() && *from != 0 && length < LONGEST_PATH - 1 {
            path[length] = *from;
            from = from.add(1);
            length += 1;
        }
        let answer = syscall(call::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_PATH, 0, 0, 0]);
        RegionAnswer::unpack(answer as i64).map_or(Given::NOTHING, |answer| take(answer))
    }
}

/// Maps the region that the watcher has given.
pub unsafe fn take(answer: RegionAnswer) -> Given {
    let (file, code) = (answer.region as usize, answer.code as usize);
    // SAFETY: the descriptors were given to us alone.
    unsafe {
        let region = map(file);
        syscall(call::CLOSE, [file, 0, 0, 0, 0, 0]);
        if region.is_null() {
            syscall(call::CLOSE, [code, 0, 0, 0, 0, 0]);
        }
        Given { region, code, is_alone: answer.is_alone }
    }
}

unsafe fn map(file: usize) -> *mut Head {
    const SEEK_END: usize = 2;
    const READ_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    // SAFETY: the kernel chooses where; a file that is shorter than its head says is unmapped
    // again.
    unsafe {
        let size = syscall(call::LSEEK, [file, 0, SEEK_END, 0, 0, 0]);
        if size < PAGE as isize {
            return null_mut();
        }
        let region = syscall(call::MMAP, [0, size as usize, READ_WRITE, MAP_SHARED, file, 0]);
        if region < 0 {
            return null_mut();
        }
        let head = region as *mut Head;
        if (*head).magic != REGION_MAGIC || Head::size(head) != size as usize {
            (*head).failed = 1;
            unmap(region as usize, size as usize);
            return null_mut();
        }
        head
    }
}

/// The function that lies at a place: its number, place and size.
pub unsafe fn find(region: *mut Head, place: usize) -> Option<(usize, usize, usize)> {
    // SAFETY: numbers are less than the region's count.
    unsafe {
        let (places, sizes) = (Head::places(region), Head::sizes(region));
        let (mut low, mut high) = (0, (*region).count as usize);
        while low < high {
            let middle = (low + high) / 2;
            if *places.add(middle) as usize <= place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        let (start, size) = (*places.add(index) as usize, *sizes.add(index) as usize);
        (place < start + size).then_some((index, start, size))
    }
}
