//! The handler of SIGTRAP, which records functions that are entered past their gates, or have none
//! (AArch64). It also handles SIGILL where functions start with a call that ends with an illegal
//! instruction.

use super::arch::{
    COUNTER, Code, NEEDS_SIGNALS, PASSED, call, changed, leave, put_back, syscall, unwatched,
};
use super::loader::{CHANGES, CONSISTENT, debug};
use super::modules::{MODULE_COUNT, MODULES, Module, meet};
use super::region::find;
use super::release::{release_module, release_to_debugger};
use crate::protocol::{BREAKPOINT, FRONT_ABOVE, Head, SHOW_CODE};
use core::ffi::{c_int, c_void};
use core::ptr::{addr_of, addr_of_mut, null};
use core::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// The way back from a signal handler.
    fn tasting_return();
}

pub const SIGTRAP: c_int = 5;
const SIGILL: c_int = 4;
/// The signal in a set of signals.
pub const TRAP: u64 = 1 << (SIGTRAP - 1);
const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SIG_DFL: usize = 0;

/// As the kernel has it.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

static IS_HANDLING: AtomicBool = AtomicBool::new(false);
static IS_HANDLING_ILLEGAL: AtomicBool = AtomicBool::new(false);

/// Whether a signal is one that we handle.
pub fn is_ours(signal: c_int) -> bool {
    signal == SIGTRAP || signal == SIGILL && IS_HANDLING_ILLEGAL.load(Ordering::Acquire)
}

fn set_action(signal: c_int, handler: usize, flags: u64) -> bool {
    let restorer = tasting_return as *const () as usize;
    let action = KernelAction { handler, flags: flags | SA_RESTORER, restorer, mask: !TRAP };
    // SAFETY: the kernel reads a struct that lives through the call. These signals never interrupt
    // calls: the watcher has no use for knowing of their handlers.
    unsafe {
        unwatched(call::SIGACTION, [signal as usize, addr_of!(action) as usize, 0, 8, 0, 0]) == 0
    }
}

/// Whether a signal's action is the default one, and whether the signal is let through.
fn state(signal: c_int) -> (bool, bool) {
    let mut action = KernelAction { handler: 1, flags: 0, restorer: 0, mask: 0 };
    let mut blocked = u64::MAX;
    // SAFETY: the kernel writes to two locals that live through the calls.
    unsafe {
        syscall(
            call::SIGACTION,
            [signal as usize, null::<u8>() as usize, addr_of_mut!(action) as usize, 8, 0, 0],
        );
        syscall(call::SIGPROCMASK, [0, 0, addr_of_mut!(blocked) as usize, 8, 0, 0]);
    }
    (action.handler == SIG_DFL, blocked & 1 << (signal - 1) == 0)
}

/// Installs the handler. Where the signal is ignored or blocked, by our parent process, it stays
/// so, and gates do without.
pub fn handle_traps(has_illegal_fronts: bool) -> bool {
    const FLAGS: u64 = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    let handler = trapped as *const () as usize;
    let (is_default, is_open) = state(SIGTRAP);
    if NEEDS_SIGNALS && !(is_default && is_open) {
        return false;
    }
    let is_handled = is_default && set_action(SIGTRAP, handler, FLAGS);
    IS_HANDLING.store(is_handled, Ordering::Release);
    let is_handled_too =
        has_illegal_fronts && state(SIGILL).0 && set_action(SIGILL, handler, FLAGS);
    IS_HANDLING_ILLEGAL.store(is_handled_too, Ordering::Release);
    is_handled || !is_default
}

/// Leaves the signal to the program.
pub fn stop_handling() {
    if IS_HANDLING.swap(false, Ordering::AcqRel) {
        set_action(SIGTRAP, SIG_DFL, 0);
    }
    if IS_HANDLING_ILLEGAL.swap(false, Ordering::AcqRel) {
        set_action(SIGILL, SIG_DFL, 0);
    }
}

/// A breakpoint, ours or somebody else's, or a signal that somebody sent.
unsafe extern "C" fn trapped(signal: c_int, information: *const c_int, context: *mut c_void) {
    const CODE: usize = 2;
    const VALUE: usize = 24;
    const SI_QUEUE: c_int = -1;
    const SI_KERNEL: c_int = 0x80;
    const TRAP_BRKPT: c_int = 1;
    // SAFETY: the kernel calls it with a siginfo_t and a ucontext_t.
    unsafe {
        let code = *information.add(CODE);
        let counter = context.byte_add(COUNTER).cast::<usize>();
        let at = (*counter).wrapping_sub(PASSED);
        if signal == SIGILL {
            // An instruction is not passed that cannot be executed.
            if !(code > 0 && is_end_of_front(*counter) && note(*counter)) {
                die(signal);
            }
        } else if code == SI_QUEUE && *information.byte_add(VALUE).cast::<u64>() == SHOW_CODE {
            release_to_debugger();
        } else if code != SI_KERNEL && code != TRAP_BRKPT {
            // What a program gets by default that does not handle it.
            die(signal);
        } else if at == CHANGES.load(Ordering::Acquire) {
            if (*debug()).state == CONSISTENT {
                meet(true);
            }
            leave(context);
        } else if note(at) {
            *counter = at;
        } else {
            die(signal);
        }
    }
}

/// Notes that a function is executed, and puts its code back. `false` if there is none, or a
/// breakpoint of the program's own.
unsafe fn note(at: usize) -> bool {
    let count = MODULE_COUNT.load(Ordering::Acquire);
    let modules = addr_of_mut!(MODULES).cast::<Module>();
    for number in 0..count {
        // SAFETY: modules keep their places in the list; what a region says of places and sizes was
        // checked when it was made.
        unsafe {
            let module = modules.add(number);
            let end = addr_of!((*module).end).read_volatile();
            if at < (*module).start || at >= end {
                continue;
            }
            let Module { base, start, region, original, .. } = *module;
            let Some((index, place, size)) = find(region, at - base) else { return false };
            Head::hits(region).add(index).write_volatile(1);
            let from = base + place - start;
            let image = region.cast::<u8>().add((*region).image as usize);
            put_back(image.add(from), original.add(from), size);
            changed(base + place, size);
            let code = original.add(at - start).cast::<Code>().read_unaligned();
            // If it does not come back, the program has put other pages in the place of the image.
            return code != BREAKPOINT
                && ((at as *const Code).read_volatile() == code || release_module(module));
        }
    }
    false
}

/// Whether what lies at a place is the last byte of a front that is there no more when the function
/// has been executed.
fn is_end_of_front(at: usize) -> bool {
    let modules = addr_of!(MODULES).cast::<Module>();
    (0..MODULE_COUNT.load(Ordering::Acquire)).any(|number| {
        // SAFETY: modules keep their places in the list, and what is read is in a module's code.
        unsafe {
            let Module { start, end, .. } = *modules.add(number);
            at >= start + 4
                && at < end
                && ((at - 4) as *const [u8; 5]).read_volatile() == FRONT_ABOVE
        }
    })
}

/// Ends the process by a signal.
pub unsafe fn die(signal: c_int) {
    const SIG_UNBLOCK: usize = 1;
    set_action(signal, SIG_DFL, 0);
    let set: u64 = 1 << (signal - 1);
    // SAFETY: the calls take numbers, and one of them a set that lives through it.
    unsafe {
        syscall(call::SIGPROCMASK, [SIG_UNBLOCK, addr_of!(set) as usize, 0, 8, 0, 0]);
        let (process, thread) = (syscall(call::GETPID, [0; 6]), syscall(call::GETTID, [0; 6]));
        syscall(call::TGKILL, [process as usize, thread as usize, signal as usize, 0, 0, 0]);
    }
}
