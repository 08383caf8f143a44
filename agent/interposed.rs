//! The functions of the C library with which a program could take the signal from us. A breakpoint that is met while the
//! signal is blocked kills the process.

use super::IS_ARMED;
use super::signals::{Action, IS_WANTED, SIGTRAP, WANTED};
use core::arch::global_asm;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{addr_of, addr_of_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

global_asm!(".weak dlsym");

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

fn is_armed() -> bool {
    IS_ARMED.load(Ordering::Relaxed)
}

/// The same function of the C library; looked up once.
macro_rules! next {
    ($name:literal, $kind:ty) => {{
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        let mut found = FOUND.load(Ordering::Relaxed);
        if found == 0 && dlsym as *const () as usize != 0 {
            found = unsafe { dlsym(RTLD_NEXT, concat!($name, "\0").as_ptr().cast()) } as usize;
            FOUND.store(found, Ordering::Relaxed);
        }
        (found != 0).then(|| unsafe { core::mem::transmute::<usize, $kind>(found) })
    }};
}

/// A set of signals without SIGTRAP.
unsafe fn without_trap(set: *const u64, copy: &mut [u64; 16]) -> *const u64 {
    if set.is_null() || !is_armed() {
        return set;
    }
    // Of the C library's 1024 bits the first 64 are in use.
    copy[0] = unsafe { *set } & !(1 << (SIGTRAP - 1));
    copy.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    let Some(next) = next!("sigaction", unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int) else {
        return -1;
    };
    unsafe {
        if signal == SIGTRAP && is_armed() {
            if !old.is_null() {
                *old = *addr_of!(WANTED);
            }
            if !new.is_null() {
                *addr_of_mut!(WANTED) = *new;
                IS_WANTED.store(true, Ordering::Release);
            }
            return 0;
        }
        if new.is_null() {
            return next(signal, new, old);
        }
        let mut copy = *new;
        let mut mask = [0; 16];
        copy.mask[0] = *without_trap(copy.mask.as_ptr(), &mut mask);
        next(signal, &copy, old)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if number == SIGTRAP && is_armed() {
        unsafe {
            let old = (*addr_of!(WANTED)).handler;
            *addr_of_mut!(WANTED) = Action { handler, mask: [0; 16], flags: 0, restorer: 0 };
            IS_WANTED.store(true, Ordering::Release);
            return old;
        }
    }
    match next!("signal", unsafe extern "C" fn(c_int, usize) -> usize) {
        Some(next) => unsafe { next(number, handler) },
        None => usize::MAX,
    }
}

type Masking = unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const u64, old: *mut u64) -> c_int {
    match next!("sigprocmask", Masking) {
        Some(next) => unsafe { next(how, masked(how, set, &mut [0; 16]), old) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const u64, old: *mut u64) -> c_int {
    match next!("pthread_sigmask", Masking) {
        Some(next) => unsafe { next(how, masked(how, set, &mut [0; 16]), old) },
        None => -1,
    }
}

/// What is blocked, or is all that is blocked, is so without SIGTRAP.
unsafe fn masked(how: c_int, set: *const u64, copy: &mut [u64; 16]) -> *const u64 {
    const SIG_UNBLOCK: c_int = 1;
    if how == SIG_UNBLOCK { set } else { unsafe { without_trap(set, copy) } }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(set: *const u64) -> c_int {
    match next!("sigsuspend", unsafe extern "C" fn(*const u64) -> c_int) {
        Some(next) => unsafe { next(without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(files: *mut c_void, count: usize, time: *const c_void, set: *const u64) -> c_int {
    match next!("ppoll", unsafe extern "C" fn(*mut c_void, usize, *const c_void, *const u64) -> c_int) {
        Some(next) => unsafe { next(files, count, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut c_void,
    write: *mut c_void,
    except: *mut c_void,
    time: *const c_void,
    set: *const u64,
) -> c_int {
    type Select =
        unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, *mut c_void, *const c_void, *const u64) -> c_int;
    match next!("pselect", Select) {
        Some(next) => unsafe { next(count, read, write, except, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    file: c_int,
    events: *mut c_void,
    most: c_int,
    time: c_int,
    set: *const u64,
) -> c_int {
    match next!("epoll_pwait", unsafe extern "C" fn(c_int, *mut c_void, c_int, c_int, *const u64) -> c_int) {
        Some(next) => unsafe { next(file, events, most, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}
