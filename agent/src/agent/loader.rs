//! The data that the dynamic loader publishes for debuggers.

use super::arch::hook_loader;
use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::addr_of;
use core::sync::atomic::AtomicUsize;

// The loader has it, or the C library, if they are there.
global_asm!(".weak _r_debug");

unsafe extern "C" {
    static _r_debug: Debug;
}

/// What the loader shows; null where there is no such loader. The compiler takes the address of a
/// variable for one that is never null, so it must not know that it is one.
#[expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read behind the pointer")]
pub fn debug() -> *const Debug {
    let mut address = addr_of!(_r_debug);
    // SAFETY: no instruction at all: the address comes out as it went in.
    unsafe { asm!("/* {0} */", inout(reg) address, options(nomem, nostack, preserves_flags)) };
    address
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
    pub dynamic: *const c_void,
    pub next: *const LinkMap,
}

/// The function that the loader calls when the list of modules changes, if there is a breakpoint in
/// it.
pub static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// Meets the libraries that the loader opens from now on.
pub unsafe fn watch_the_loader() -> bool {
    // SAFETY: the loader is there, and there are no other threads yet.
    unsafe {
        let at = (*debug()).changes;
        at != 0 && hook_loader(at)
    }
}
