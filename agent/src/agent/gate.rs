//! Gates: the code at the start of functions that are entered by calls, so that recording them
//! takes no signal and little stack.
//!
//! A function starts with `e8 cc cc cc cc`, a call. Code that enters the function behind its first
//! byte hits a breakpoint at once. The call leads to an address at a fixed distance below: so below
//! each module there is a *landing area* as long as its code, in which every address leads to the
//! gate. Below programs that are not position-independent there is no room; their landing area lies
//! above, the function starts with `e8 cc cc cc 60`, and the last byte is an illegal instruction,
//! which raises SIGILL. A landing area consists of chunks. The first page of a chunk is private to
//! the process: it ends with a jump to the gate, with the module. The other pages are shared by all
//! processes, and jump there. The watcher puts calls only where they land before a jump, and not in
//! the middle of one (`observe/image.rs`).
//!
//! The gate changes no register, since compilers know which ones a function of theirs preserves,
//! and needs 64 bytes of stack. Then the function starts again, with its own code. Leaving by
//! `ret`, which is shorter, would work for nothing but the return address that the call has left.

use super::arch::{call, syscall};
use super::modules::Module;
use super::release::release_module;
use super::signals::{SIGTRAP, die};
use super::system::unmap;
use crate::protocol::{CHUNK, Head, JUMP, PAGE};
use core::arch::{asm, global_asm};
use core::mem::offset_of;

// `tasting_restore` puts a function's code back, from its end to its front: others may be about to
// execute it. In: the image, the code as it was, the size. A call of the gate that is part of one
// aligned word is replaced at once; another by way of a breakpoint, and with time for those who
// have fetched half of it. Any number of threads and processes may do so, for they write the same.
//
// `tasting_gate` is reached with the module in rax, whose value is on the stack, above it the end
// of the call at the function's front.
global_asm!(
    ".local tasting_restore, tasting_gate",
    "tasting_restore:",
    "cmp byte ptr [rdi], 0xe8; jne 7f",
    "mov eax, [rdi + 1]; and eax, 0xffffff; cmp eax, 0xcccccc; jne 7f",
    "1: cmp rdx, 5; jbe 2f",
    "dec rdx; mov al, [rsi + rdx]; mov [rdi + rdx], al; jmp 1b",
    "2: mov ecx, edi; and ecx, 7; cmp ecx, 3; ja 4f",
    "mov edx, [rsi]; movzx r8d, byte ptr [rsi + 4]; shl r8, 32; or rdx, r8",
    "shl ecx, 3; shl rdx, cl; mov r8, 0xffffffffff; shl r8, cl; not r8; and rdi, -8",
    "3: mov rax, [rdi]; mov rcx, rax; and rcx, r8; or rcx, rdx; lock cmpxchg [rdi], rcx; jne 3b",
    "ret",
    "4: mov eax, 0xe8; mov ecx, 0xcc; lock cmpxchg [rdi], cl; jne 7f",
    "mov ecx, 100",
    "5: pause; dec ecx; jnz 5b",
    "mov ecx, [rsi + 1]; mov [rdi + 1], ecx",
    "mov ecx, 100",
    "6: pause; dec ecx; jnz 6b",
    "mov edx, 1",
    "7: test rdx, rdx; jz 8f",
    "dec rdx; mov al, [rsi + rdx]; mov [rdi + rdx], al; jmp 7b",
    "8: ret",
    "tasting_gate:",
    "pushfq; push rcx; push rdx; push rsi; push rdi; push r8",
    "mov rdi, [rsp + 56]; sub rdi, 5; mov [rsp + 56], rdi",
    "sub rdi, [rax + {base}]; mov rsi, [rax + {region}]",
    "xor ecx, ecx; mov edx, [rsi + {count}]",
    "1: cmp ecx, edx; jae 9f",
    "lea r8d, [rcx + rdx]; shr r8d, 1",
    "cmp edi, [rsi + 4 * r8 + {head}]; je 3f; jb 2f",
    "lea ecx, [r8 + 1]; jmp 1b",
    "2: mov edx, r8d; jmp 1b",
    "3: mov ecx, [rsi + {count}]; lea rdx, [rsi + 8 * rcx + {head}]; mov byte ptr [rdx + r8], 1",
    "lea rdx, [rsi + 4 * rcx + {head}]; mov edx, [rdx + 4 * r8]",
    "add rdi, [rax + {base}]; sub rdi, [rax + {start}]",
    "mov rcx, rsi; mov rsi, [rax + {original}]; add rsi, rdi",
    "add rdi, rcx; add rdi, [rcx + {image}]",
    "push rax; call tasting_restore; pop rax",
    "mov rdi, [rsp + 56]; cmp byte ptr [rdi], 0xe8; jne 4f; mov ecx, [rdi + 1]; and ecx, 0xffffff; cmp ecx, 0xcccccc; je 5f",
    "4: pop r8; pop rdi; pop rsi; pop rdx; pop rcx; popfq; pop rax",
    "lea rsp, [rsp + 8]; jmp [rsp - 8]",
    // The front is still there: other pages lie in the place of the image.
    "5: push r9; push r10; push r11; push rbp; mov rbp, rsp; sub rsp, 256; and rsp, -16; cld",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps [rsp + 16 * \\n], xmm\\n; .endr",
    "mov rdi, rax; call {stuck}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps xmm\\n, [rsp + 16 * \\n]; .endr",
    "mov rsp, rbp; pop rbp; pop r11; pop r10; pop r9; jmp 4b",
    "9: ud2",
    stuck = sym stuck,
    base = const offset_of!(Module, base),
    start = const offset_of!(Module, start),
    region = const offset_of!(Module, region),
    original = const offset_of!(Module, original),
    count = const offset_of!(Head, count),
    image = const offset_of!(Head, image),
    head = const size_of::<Head>(),
);

unsafe extern "C" {
    fn tasting_gate();
    fn tasting_restore(image: *mut u8, original: *const u8, size: usize);
}

/// The program has put other pages in the place of a module's code, copies of ours most likely.
unsafe extern "C" fn stuck(module: *mut Module) {
    // SAFETY: the module is the one that the landing area was made for.
    unsafe {
        if !release_module(module) {
            die(SIGTRAP);
        }
    }
}

/// Puts the code of a function in the place of breakpoints.
///
/// # Safety
/// Both have to be as long as the function, and one of a module's image and its original code.
pub unsafe fn put_back(image: *mut u8, original: *const u8, size: usize) {
    // SAFETY: as the caller promises. It is a function of the C calling convention.
    unsafe { tasting_restore(image, original, size) }
}

/// The processor checks that functions return to where they were called: then nothing can be called
/// in a function's place.
pub fn is_possible() -> bool {
    let shadow: usize;
    // SAFETY: it reads a register; processors that do not know the instruction leave the zero.
    unsafe { asm!("xor {0:e}, {0:e}", "rdsspq {0}", out(reg) shadow) };
    shadow == 0
}

/// Where the landing area of a module is, and its length.
pub fn area(module: &Module) -> (usize, usize) {
    // SAFETY: a module with a range has a region.
    let distance = unsafe { (*module.region).distance };
    (module.start.wrapping_add(distance as usize), module.end - module.start + PAGE)
}

/// Maps the landing area of a module. `false` if something else is there.
///
/// # Safety
/// The module's range and region have to be those of its code, and `code` the file that the watcher
/// gave with the region.
pub unsafe fn land(module: *const Module, code: usize) -> bool {
    const READ_EXECUTE: usize = 5;
    const SHARED_NOREPLACE: usize = 0x10_0001;
    // SAFETY: the caller promises a module; what is mapped was free before.
    unsafe {
        let landing = (*(*module).region).landing as usize;
        let (start, length) = area(&*module);
        if landing == 0 {
            return true;
        }
        for at in (0..length).step_by(CHUNK) {
            let (place, size) = (start.wrapping_add(at), CHUNK.min(length - at));
            let mapped =
                syscall(call::MMAP, [place, size, READ_EXECUTE, SHARED_NOREPLACE, code, landing]);
            if mapped != place as isize {
                if mapped > 0 {
                    unmap(mapped as usize, size);
                }
                unmap(start, at);
                return false;
            }
            if !put_jump(module, place) {
                unmap(start, at + size);
                return false;
            }
        }
        true
    }
}

/// Unmaps the landing area of a module that is not executed any more.
///
/// # Safety
/// As for `land`, which has mapped it.
pub unsafe fn take_off(module: &Module) {
    let (start, length) = area(module);
    // SAFETY: the area is ours, and nobody is in it.
    unsafe {
        if (*module.region).landing != 0 {
            unmap(start, length);
        }
    }
}

/// Makes the first page of a chunk, which leads to the gate.
unsafe fn put_jump(module: *const Module, page: usize) -> bool {
    const READ_WRITE: usize = 3;
    const READ_EXECUTE: usize = 5;
    const PRIVATE_ANONYMOUS_FIXED: usize = 0x32;
    const NOP: u8 = 0x90;
    // SAFETY: the page is one that was mapped just now, and is replaced by one that can be written
    // to.
    unsafe {
        let place = [page, PAGE, READ_WRITE, PRIVATE_ANONYMOUS_FIXED, usize::MAX, 0];
        if syscall(call::MMAP, place) != page as isize {
            return false;
        }
        let (nops, jump) = (page as *mut u8, (page + PAGE - JUMP) as *mut u8);
        nops.write_bytes(NOP, PAGE - JUMP);
        // push rax; mov rax, module; jmp [rip]; the gate
        jump.cast::<[u8; 3]>().write([0x50, 0x48, 0xb8]);
        jump.add(3).cast::<usize>().write_unaligned(module as usize);
        jump.add(11).cast::<[u8; 6]>().write([0xff, 0x25, 0, 0, 0, 0]);
        jump.add(17).cast::<usize>().write_unaligned(tasting_gate as *const () as usize);
        syscall(call::MPROTECT, [page, PAGE, READ_EXECUTE, 0, 0, 0]) == 0
    }
}
