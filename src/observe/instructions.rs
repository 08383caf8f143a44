//! Instructions of seccomp filters, and the offsets of the fields that they read.
//!
//! In: numbers. Out: instructions, in the kernel's format.

use libc::sock_filter;

pub const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
pub const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
pub const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
pub const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
pub const EQUAL_OTHER: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_X) as u16;
pub const SUBTRACT_OTHER: u16 = (libc::BPF_ALU | libc::BPF_SUB | libc::BPF_X) as u16;
/// `A` becomes the other register.
pub const TO_OTHER: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
pub const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Where the parts of `seccomp_data` stand.
pub const NUMBER: u32 = 0;
pub const MACHINE: u32 = 4;
pub const INSTRUCTION: u32 = 8;
pub const ARGUMENTS: u32 = 16;

/// An instruction: what it does, with which number, and how far the next one is if it says yes or
/// no.
pub fn step(code: u16, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code, jt: yes, jf: no, k }
}
