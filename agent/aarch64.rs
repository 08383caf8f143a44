//! AArch64: breakpoints, what a handler finds in its context, system calls, and what compilers expect to be there.

use core::arch::{asm, global_asm};
use core::ffi::c_void;

pub type Code = u32;
/// `brk #0x7a57`
pub const BREAKPOINT: Code = 0xd420_0000 | 0x7a57 << 5;
pub const PASSED: usize = 0;
pub const COUNTER: usize = 440;
const LINK: usize = 424;
/// `ret`, with or without `bti c`.
pub const NOTHING: [&[u8]; 2] = [&[0xc0, 0x03, 0x5f, 0xd6], &[0x5f, 0x24, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6]];

/// Makes changed code known to the processor.
pub unsafe fn changed(at: usize, size: usize) {
    /// No processor has shorter lines in its caches.
    const LINE: usize = 16;
    let mut line = at & !(LINE - 1);
    while line < at + size {
        unsafe { asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) line) };
        line += LINE;
    }
    unsafe { asm!("dsb ish", "isb") };
}

/// Returns from a function that has just been entered.
pub unsafe fn leave(context: *mut c_void) {
    unsafe { *context.byte_add(COUNTER).cast::<usize>() = *context.byte_add(LINK).cast::<usize>() };
}

/// There are breakpoints only.
pub unsafe fn open_gate() -> bool {
    true
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
    pub const EXIT_GROUP: usize = 94;
}

pub unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
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
