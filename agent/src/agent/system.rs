//! System calls that several files need.

use super::arch::{call, syscall};

pub unsafe fn unmap(at: usize, size: usize) {
    // SAFETY: as the caller promises: the range is ours, and not used any more.
    unsafe { syscall(call::MUNMAP, [at, size, 0, 0, 0, 0]) };
}
