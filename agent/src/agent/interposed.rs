//! Functions of the C library by which a program could handle SIGTRAP itself, or change code. They
//! do what the originals do; before that, the agent restores the code that would be in the way.

use super::release::{is_landing, release_everything, release_range};
use super::signals::is_ours;
use super::symbols;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

const PROT_WRITE: c_int = 2;

/// The same function of the next library; looked up once.
pub fn next(found: &AtomicUsize, name: &str) -> usize {
    let mut address = found.load(Ordering::Relaxed);
    if address == 0 {
        address = symbols::next(name.as_bytes());
        found.store(address, Ordering::Relaxed);
    }
    address
}

/// The program handles a signal itself.
pub fn handles(signal: c_int) {
    if is_ours(signal) {
        release_everything();
    }
}

/// Something is put in the place of a landing area.
fn maps(at: usize, size: usize, flags: c_int) {
    const MAP_FIXED: c_int = 0x10;
    if flags & MAP_FIXED != 0 && is_landing(at, size) {
        release_everything();
    }
}

/// Functions that call the next one of their name after something else was done.
macro_rules! interpose {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty: $before:expr;)*) => {$(
        /// The function of the C library. Fails where there is none, as for a caller who cannot
        /// have linked it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            static FOUND: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
            $before;
            let next = $crate::agent::interposed::next(&FOUND, stringify!($name));
            if next == 0 {
                return -1isize as $result;
            }
            // SAFETY: a function of this name has this type.
            unsafe { core::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> $result>(next)($($argument),*) }
        }
    )*};
}
#[cfg(target_arch = "aarch64")]
pub(super) use interpose;

interpose! {
    signal(signal: c_int, handler: usize) -> usize: handles(signal);
    ssignal(signal: c_int, handler: usize) -> usize: handles(signal);
    bsd_signal(signal: c_int, handler: usize) -> usize: handles(signal);
    sysv_signal(signal: c_int, handler: usize) -> usize: handles(signal);
    __sysv_signal(signal: c_int, handler: usize) -> usize: handles(signal);
    sigset(signal: c_int, handler: usize) -> usize: handles(signal);
    sigignore(signal: c_int) -> c_int: handles(signal);
    mprotect(at: usize, size: usize, rights: c_int) -> c_int: if rights & PROT_WRITE != 0 { release_range(at, size) };
    mmap(at: usize, size: usize, rights: c_int, flags: c_int, file: c_int, offset: usize) -> usize: maps(at, size, flags);
    mmap64(at: usize, size: usize, rights: c_int, flags: c_int, file: c_int, offset: usize) -> usize: maps(at, size, flags);
    pkey_mprotect(at: usize, size: usize, rights: c_int, key: c_int) -> c_int: if rights & PROT_WRITE != 0 { release_range(at, size) };
}

#[cfg(target_arch = "x86_64")]
interpose! {
    sigaction(signal: c_int, new: *const u64, old: *mut u64) -> c_int: handles(signal);
}

/// What is done before a call of `syscall`. In: the number and arguments of a system call. Out: the
/// next function of that name.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn before_syscall(words: &[usize; 6]) -> usize {
    use super::arch::call;
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    match words[0] {
        call::SIGACTION => handles(words[1] as c_int),
        call::MPROTECT if words[3] as c_int & PROT_WRITE != 0 => release_range(words[1], words[2]),
        _ => {}
    }
    match next(&FOUND, "syscall") {
        0 => fails as *const () as usize,
        next => next,
    }
}

/// Stands in for a function that no library has.
#[cfg(target_arch = "x86_64")]
extern "C" fn fails() -> c_int {
    -1
}

/// The function of the C library, which is jumped to: it takes any number of arguments, so nothing
/// may be left on the stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "push rbp; mov rbp, rsp; push rax; push r9; push r9; push r8; push rcx; push rdx; push rsi; push rdi",
        "mov rdi, rsp; and rsp, -16; call {before}; mov r11, rax",
        "lea rsp, [rbp - 64]; pop rdi; pop rsi; pop rdx; pop rcx; pop r8; pop r9; pop r9; pop rax; pop rbp",
        "jmp r11",
        before = sym before_syscall,
    )
}
