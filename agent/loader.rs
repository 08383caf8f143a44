//! What the dynamic loader shows to debuggers.

use super::PAGE;
use super::processor::{BREAKPOINT, Code, NOTHING, call, changed, syscall};
use core::arch::global_asm;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::addr_of;
use core::sync::atomic::{AtomicUsize, Ordering};

// The loader has it, or the C library, if they are there.
global_asm!(".weak _r_debug");

unsafe extern "C" {
    pub static _r_debug: Debug;
}

/// What the loader shows to debuggers.
#[repr(C)]
pub struct Debug {
    pub version: c_int,
    pub modules: *const LinkMap,
    /// Called whenever the list of modules changes.
    changes: usize,
    pub state: c_int,
    loader: usize,
    /// From version 2 on: the modules of another namespace.
    pub next: *const Debug,
}

/// The list of modules is complete.
pub const CONSISTENT: c_int = 0;

/// A module, as the loader lists it.
#[repr(C)]
pub struct LinkMap {
    pub base: usize,
    pub name: *const c_char,
    dynamic: *const c_void,
    pub next: *const LinkMap,
}

/// The function that the loader calls when the list of modules changes.
pub static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// Puts a breakpoint into the function that the loader calls when it has mapped a library.
pub unsafe fn watch_the_loader() -> bool {
    const READ_WRITE_EXECUTE: usize = 7;
    unsafe {
        let at = (*addr_of!(_r_debug)).changes;
        let is_there = |code: &&[u8]| (0..code.len()).all(|index| *((at + index) as *const u8) == code[index]);
        if at == 0 || !NOTHING.iter().any(is_there) {
            return false;
        }
        let page = at & !(PAGE - 1);
        if syscall(call::MPROTECT, [page, PAGE, READ_WRITE_EXECUTE, 0, 0, 0]) != 0 {
            return false;
        }
        CHANGES.store(at, Ordering::Release);
        (at as *mut Code).write_unaligned(BREAKPOINT);
        changed(at, size_of::<Code>());
        true
    }
}
