//! System calls that several have use for.

use super::processor::{call, syscall};

pub unsafe fn unmap(at: usize, size: usize) {
    unsafe { syscall(call::MUNMAP, [at, size, 0, 0, 0, 0]) };
}
