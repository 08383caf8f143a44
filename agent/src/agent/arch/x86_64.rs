//! x86-64: breakpoints, the context of a signal handler, system calls, and functions that compilers
//! expect to exist.

use core::arch::{asm, global_asm};
use core::ffi::c_void;

pub type Code = u8;
/// What is traced has gates, and the loader a hook that is no breakpoint.
pub const NEEDS_SIGNALS: bool = false;

/// The hook does nothing when nothing is traced any more.
pub unsafe fn unhook_loader() {}

/// How far the program counter has gone on when the handler is called.
pub const PASSED: usize = 1;
/// Where it is in the handler's context.
pub const COUNTER: usize = 168;
const STACK: usize = 160;
/// The function that the loader calls for debuggers does nothing: `ret`, with or without `endbr64`.
pub const NOTHING: [&[u8]; 3] = [&[0xc3], &[0xf3, 0x0f, 0x1e, 0xfa, 0xc3], &[0xf3, 0xc3]];

pub use crate::agent::gate::{area, is_possible, land, put_back, take_off};
pub use crate::agent::hook::hook_loader;
pub use crate::agent::lead::unwatched;

/// Processors of this kind see changed code by themselves.
pub unsafe fn changed(_at: usize, _size: usize) {}

/// Returns from a function that has just been entered.
pub unsafe fn leave(context: *mut c_void) {
    // SAFETY: the kernel's context has the stack pointer there, which points to where the function
    // returns to.
    unsafe {
        let stack = context.byte_add(STACK).cast::<*const usize>();
        *context.byte_add(COUNTER).cast::<usize>() = **stack;
        *stack = (*stack).add(1);
    }
}

/// The numbers of system calls.
pub mod call {
    pub const OPENAT: usize = 257;
    pub const CLOSE: usize = 3;
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const MREMAP: usize = 25;
    pub const SIGACTION: usize = 13;
    pub const SIGPROCMASK: usize = 14;
    pub const GETPID: usize = 39;
    pub const GETTID: usize = 186;
    pub const TGKILL: usize = 234;
    #[cfg(tasting_agent)]
    pub const EXIT_GROUP: usize = 231;
}

pub unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: who calls knows what the system call does.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

// The way back from a signal handler.
global_asm!(".local tasting_return", "tasting_return:", "mov rax, 15", "syscall");

// What compilers and libraries of the language call. Hidden: nobody else must come to use it.
global_asm!(
    ".globl memset, memcpy, rust_eh_personality",
    ".hidden memset, memcpy, rust_eh_personality",
    "memset: mov r8, rdi; mov eax, esi; mov rcx, rdx; rep stosb; mov rax, r8; ret",
    "memcpy: mov rax, rdi; mov rcx, rdx; rep movsb; ret",
    "rust_eh_personality: ud2",
);
