//! The gate: what the fronts of functions call. No register changes, for compilers know which ones a function of theirs leaves
//! alone. Then the function starts anew, with its own code. The shorter way out by `ret` would be fit for nothing but the
//! return address that the call left.

use super::PAGE;
use super::processor::{call, syscall};
use super::signals::{Noted, die, note};
use core::arch::{asm, global_asm};

global_asm!(
    ".local tasting_gate",
    "tasting_gate:",
    "pushfq; cld",
    "push rax; push rcx; push rdx; push rsi; push rdi; push r8; push r9; push r10; push r11; push rbp",
    "mov rbp, rsp; sub rsp, 256; and rsp, -16",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps [rsp + 16 * \\n], xmm\\n; .endr",
    "mov rdi, [rbp + 88]; sub rdi, {call}; mov [rbp + 88], rdi",
    "call {entered}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps xmm\\n, [rsp + 16 * \\n]; .endr",
    "mov rsp, rbp",
    "pop rbp; pop r11; pop r10; pop r9; pop r8; pop rdi; pop rsi; pop rdx; pop rcx; pop rax; popfq",
    "lea rsp, [rsp + 8]; jmp [rsp - 8]",
    call = const CALL_OF_THE_GATE,
    entered = sym entered,
);

/// The address of the gate's address, which is the same in all processes, and as short as an instruction can have it. It is made
/// of breakpoints and of an instruction that there is not, for whoever enters a function in the middle of the call.
const GATE: usize = 0x60cc_cccc;
/// `call [GATE]`
const CALL_OF_THE_GATE: usize = 7;

/// Calls of the gate come here, with the place that called.
unsafe extern "C" fn entered(at: usize) {
    unsafe {
        if matches!(note(at), Noted::Stuck | Noted::Nothing) {
            die();
        }
    }
}

/// Puts the gate where it is called.
pub unsafe fn open_gate() -> bool {
    unsafe extern "C" {
        fn tasting_gate();
    }
    const READ_WRITE: usize = 3;
    const READ: usize = 1;
    const PRIVATE_ANONYMOUS_NOREPLACE: usize = 0x10_0022;
    unsafe {
        let shadow: usize;
        asm!("xor {0:e}, {0:e}", "rdsspq {0}", out(reg) shadow);
        // The processor checks that functions return to where they were called.
        if shadow != 0 {
            return false;
        }
        let page = GATE & !(PAGE - 1);
        let place = [page, PAGE, READ_WRITE, PRIVATE_ANONYMOUS_NOREPLACE, usize::MAX, 0];
        if syscall(call::MMAP, place) != page as isize {
            return false;
        }
        (GATE as *mut usize).write_unaligned(tasting_gate as *const () as usize);
        syscall(call::MPROTECT, [page, PAGE, READ, 0, 0, 0]) == 0
    }
}
