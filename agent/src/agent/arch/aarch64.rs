//! AArch64: breakpoints, the context of a signal handler, system calls, and functions that
//! compilers expect to exist.

use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::agent::loader::CHANGES;
use crate::agent::modules::Module;
use crate::protocol::{BREAKPOINT, PAGE};

pub type Code = u32;
/// All functions have breakpoints only, and so has the loader.
pub const NEEDS_SIGNALS: bool = true;
pub const PASSED: usize = 0;
pub const COUNTER: usize = 440;
const LINK: usize = 424;
/// `ret`, with or without `bti c`.
pub const NOTHING: [&[u8]; 2] =
    [&[0xc0, 0x03, 0x5f, 0xd6], &[0x5f, 0x24, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6]];

/// Makes changed code known to the processor.
pub unsafe fn changed(at: usize, size: usize) {
    /// No processor has shorter lines in its caches.
    const LINE: usize = 16;
    let mut line = at & !(LINE - 1);
    while line < at + size {
        // SAFETY: it cleans and invalidates lines of caches, which changes no memory.
        unsafe { asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) line) };
        line += LINE;
    }
    // SAFETY: as above: barriers.
    unsafe { asm!("dsb ish", "isb") };
}

/// Returns from a function that has just been entered.
pub unsafe fn leave(context: *mut c_void) {
    // SAFETY: the kernel's context has the program counter and the link register there.
    unsafe { *context.byte_add(COUNTER).cast::<usize>() = *context.byte_add(LINK).cast::<usize>() };
}

/// There are breakpoints only.
pub fn is_possible() -> bool {
    true
}

pub unsafe fn land(_module: *const Module, _code: usize) -> bool {
    true
}

pub fn area(_module: &Module) -> (usize, usize) {
    (0, 0)
}

pub unsafe fn take_off(_module: &Module) {}

/// Puts the code of a function in the place of breakpoints, from its end to its front: others may
/// be about to execute it. Any number of threads and processes may do so, for they write the same.
pub unsafe fn put_back(image: *mut u8, original: *const u8, size: usize) {
    let mut left = size / size_of::<Code>();
    // SAFETY: both are as long as the function.
    unsafe {
        while left > 0 {
            left -= 1;
            image
                .cast::<Code>()
                .add(left)
                .write_volatile(original.cast::<Code>().add(left).read_unaligned());
        }
    }
}

/// Puts a breakpoint into the function that the loader calls when it has mapped a library.
pub unsafe fn hook_loader(at: usize) -> bool {
    const READ_WRITE_EXECUTE: usize = 7;
    // SAFETY: the loader's code is there, and nobody else is in it yet.
    unsafe {
        let is_there =
            |code: &&[u8]| (0..code.len()).all(|index| *((at + index) as *const u8) == code[index]);
        let page = at & !(PAGE - 1);
        if !NOTHING.iter().any(is_there)
            || syscall(call::MPROTECT, [page, PAGE, READ_WRITE_EXECUTE, 0, 0, 0]) != 0
        {
            return false;
        }
        CHANGES.store(at, Ordering::Release);
        FRONT.store((at as *const Code).read_unaligned(), Ordering::Release);
        (at as *mut Code).write_unaligned(BREAKPOINT);
        changed(at, size_of::<Code>());
        true
    }
}

/// What was in the place of the breakpoint.
static FRONT: AtomicU32 = AtomicU32::new(0);

/// Takes the breakpoint out again.
pub unsafe fn unhook_loader() {
    let at = CHANGES.load(Ordering::Acquire);
    if at != 0 {
        // SAFETY: it writes back what was there, an instruction.
        unsafe {
            (at as *mut Code).write_unaligned(FRONT.load(Ordering::Acquire));
            changed(at, size_of::<Code>());
        }
    }
}

/// The numbers of system calls.
pub mod call {
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const LSEEK: usize = 62;
    pub const MMAP: usize = 222;
    pub const MPROTECT: usize = 226;
    pub const MUNMAP: usize = 215;
    pub const MREMAP: usize = 216;
    pub const SIGACTION: usize = 134;
    pub const SIGPROCMASK: usize = 135;
    pub const GETPID: usize = 172;
    pub const GETTID: usize = 178;
    pub const TGKILL: usize = 131;
    #[cfg(tasting_agent)]
    pub const EXIT_GROUP: usize = 94;
}

/// Nothing is led here: all calls are made alike.
pub unsafe fn unwatched(number: usize, arguments: [usize; 6]) -> isize {
    // SAFETY: as the caller promises for the call.
    unsafe { syscall(number, arguments) }
}

pub unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: who calls knows what the system call does.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c, in("x3") d,
             in("x4") e, in("x5") f, options(nostack));
    }
    result
}

// The way back from a signal handler.
global_asm!(".local tasting_return", "tasting_return:", "mov x8, #139", "svc 0");

// What compilers and libraries of the language call. Hidden: nobody else must come to use it.
global_asm!(
    ".globl memset, memcpy, rust_eh_personality",
    ".hidden memset, memcpy, rust_eh_personality",
    "memset: mov x3, x0",
    "1: cbz x2, 2f; strb w1, [x3], #1; sub x2, x2, #1; b 1b",
    "2: ret",
    "memcpy: mov x3, x0",
    "1: cbz x2, 2f; ldrb w4, [x1], #1; strb w4, [x3], #1; sub x2, x2, #1; b 1b",
    "2: ret",
    "rust_eh_personality: brk #1",
);
