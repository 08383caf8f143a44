//! A hook in the empty function that the dynamic loader calls for debuggers when the list of
//! modules changes: a jump, which takes no signal. The loader knows that this function preserves
//! all registers.

use super::arch::{NOTHING, call, syscall};
use super::loader::{CONSISTENT, debug};
use super::modules::meet;
use crate::protocol::PAGE;
use core::arch::global_asm;

global_asm!(
    ".local tasting_hook",
    "tasting_hook:",
    "pushfq; cld",
    "push rax; push rcx; push rdx; push rsi; push rdi; push r8; push r9; push r10; push r11; push rbp",
    "mov rbp, rsp; sub rsp, 256; and rsp, -16",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps [rsp + 16 * \\n], xmm\\n; .endr",
    "call {list_changed}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps xmm\\n, [rsp + 16 * \\n]; .endr",
    "mov rsp, rbp",
    "pop rbp; pop r11; pop r10; pop r9; pop r8; pop rdi; pop rsi; pop rdx; pop rcx; pop rax; popfq",
    "ret",
    list_changed = sym list_changed,
);

unsafe extern "C" fn list_changed() {
    // SAFETY: the loader calls it, which holds its lock.
    unsafe {
        if (*debug()).state == CONSISTENT {
            meet(true);
        }
    }
}

/// `jmp`
const JUMP: usize = 5;

/// Puts the hook into the loader's function. `false` if that is not as it is known.
///
/// # Safety
/// To be called before there are other threads.
pub unsafe fn hook_loader(at: usize) -> bool {
    const READ_WRITE_EXECUTE: usize = 7;
    const READ_EXECUTE: usize = 5;
    unsafe extern "C" {
        fn tasting_hook();
    }
    // SAFETY: the loader's code is there, with what fills it up to the next function. Nobody else
    // is in it.
    unsafe {
        let code = core::slice::from_raw_parts(at as *const u8, JUMP + 3);
        let Some(nothing) = NOTHING.iter().find(|nothing| code.starts_with(nothing)) else {
            return false;
        };
        let distance = (tasting_hook as *const () as isize).wrapping_sub_unsigned(at + JUMP);
        let Ok(distance) = i32::try_from(distance) else { return false };
        let page = at & !(PAGE - 1);
        let is_whole = at - page + JUMP <= PAGE;
        if !is_filled(&code[nothing.len()..]) || !is_whole {
            return false;
        }
        if syscall(call::MPROTECT, [page, PAGE, READ_WRITE_EXECUTE, 0, 0, 0]) != 0 {
            return false;
        }
        (at as *mut u8).write_volatile(0xe9);
        ((at + 1) as *mut i32).write_unaligned(distance);
        syscall(call::MPROTECT, [page, PAGE, READ_EXECUTE, 0, 0, 0]);
        true
    }
}

/// Whether code up to the end of the jump is what assemblers and linkers fill gaps with:
/// breakpoints, or instructions that do nothing.
fn is_filled(code: &[u8]) -> bool {
    let gap = code.len().saturating_sub(3);
    match code.first() {
        Some(0xcc) => code[..gap].iter().all(|byte| *byte == 0xcc),
        Some(0x90) => code[..gap].iter().all(|byte| *byte == 0x90),
        // The longest ones come first: `66 66 2e 0f 1f 84`, `0f 1f 44`.
        Some(0x66 | 0x2e | 0x0f) => {
            let prefixes = code.iter().take_while(|byte| matches!(byte, 0x66 | 0x2e)).count();
            code[prefixes..].starts_with(&[0x0f, 0x1f])
        }
        _ => gap == 0,
    }
}
