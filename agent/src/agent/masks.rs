//! AArch64, where all functions have breakpoints: the functions of the C library by which a program
//! could block SIGTRAP, wait for it, or run on a stack that is too small for its handler. Before
//! they do their work, all code is restored.

use super::interposed::{handles, interpose};
use super::release::release_everything;
use super::signals::TRAP;
use core::ffi::{c_int, c_void};

const SIG_UNBLOCK: c_int = 1;
const SIGEV_THREAD: c_int = 2;
/// With less, the frame of one more signal may be too much.
const SMALL_STACK: usize = 16384;

/// A set of signals, of which the kernel knows 64.
type Set = *const u64;

fn blocks(set: Set) {
    // SAFETY: programs give sets, or null.
    if !set.is_null() && unsafe { *set } & TRAP != 0 {
        release_everything();
    }
}

fn blocks_by(how: c_int, set: Set) {
    if how != SIG_UNBLOCK {
        blocks(set);
    }
}

fn blocks_old(mask: c_int) {
    if mask as u64 & TRAP != 0 {
        release_everything();
    }
}

/// The function of a `struct sigevent` runs in a thread in which all signals are blocked.
fn notifies(event: *const c_int) {
    const NOTIFY: usize = 3;
    // SAFETY: programs give such a struct, or null.
    if !event.is_null() && unsafe { *event.add(NOTIFY) } == SIGEV_THREAD {
        release_everything();
    }
}

/// A `struct sigaction`: the handler, the signals that are blocked while it runs.
fn acts(signal: c_int, action: *const u64) {
    handles(signal);
    if !action.is_null() {
        blocks(action.wrapping_add(1));
    }
}

/// A `stack_t`: the address, flags, the size.
fn has_stack(stack: *const usize) {
    // SAFETY: programs give such a struct, or null.
    if !stack.is_null() && unsafe { *stack.add(2) } < SMALL_STACK {
        release_everything();
    }
}

interpose! {
    sigaction(signal: c_int, new: *const u64, old: *mut u64) -> c_int: acts(signal, new);
    sighold(signal: c_int) -> c_int: handles(signal);
    sigblock(mask: c_int) -> c_int: blocks_old(mask);
    sigsetmask(mask: c_int) -> c_int: blocks_old(mask);
    sigpause(mask: c_int) -> c_int: blocks_old(mask);
    sigprocmask(how: c_int, set: Set, old: *mut u64) -> c_int: blocks_by(how, set);
    pthread_sigmask(how: c_int, set: Set, old: *mut u64) -> c_int: blocks_by(how, set);
    pthread_attr_setsigmask_np(attributes: *mut c_void, set: Set) -> c_int: blocks(set);
    sigsuspend(set: Set) -> c_int: blocks(set);
    sigwait(set: Set, signal: *mut c_int) -> c_int: blocks(set);
    sigwaitinfo(set: Set, information: *mut c_void) -> c_int: blocks(set);
    sigtimedwait(set: Set, information: *mut c_void, time: *const c_void) -> c_int: blocks(set);
    signalfd(file: c_int, set: Set, flags: c_int) -> c_int: blocks(set);
    ppoll(files: *mut c_void, count: usize, time: *const c_void, set: Set) -> c_int: blocks(set);
    pselect(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, time: *const c_void, set: Set) -> c_int: blocks(set);
    epoll_pwait(file: c_int, events: *mut c_void, most: c_int, time: c_int, set: Set) -> c_int: blocks(set);
    epoll_pwait2(file: c_int, events: *mut c_void, most: c_int, time: *const c_void, set: Set) -> c_int: blocks(set);
    sigaltstack(new: *const usize, old: *mut usize) -> c_int: has_stack(new);
    timer_create(clock: c_int, event: *const c_int, timer: *mut c_void) -> c_int: notifies(event);
    mq_notify(queue: c_int, event: *const c_int) -> c_int: notifies(event);
    getaddrinfo_a(mode: c_int, list: *mut c_void, count: c_int, event: *const c_int) -> c_int: notifies(event);
    lio_listio(mode: c_int, list: *mut c_void, count: c_int, event: *const c_int) -> c_int: release_everything();
    aio_read(request: *mut c_void) -> c_int: release_everything();
    aio_write(request: *mut c_void) -> c_int: release_everything();
    aio_fsync(operation: c_int, request: *mut c_void) -> c_int: release_everything();
}
