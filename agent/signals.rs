//! SIGTRAP: the handler that notes what is executed.

use super::loader::{_r_debug, CHANGES, CONSISTENT};
use super::modules::{MODULE_COUNT, MODULES, Module, meet};
use super::processor::{BREAKPOINT, COUNTER, Code, PASSED, call, changed, leave, syscall};
use super::region::{Head, find};
use core::ffi::{c_int, c_void};
use core::ptr::addr_of;
use core::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// The way back from a signal handler.
    fn tasting_return();
}

pub const SIGTRAP: c_int = 5;
const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_NODEFER: u64 = 0x4000_0000;

/// As the kernel has it.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

unsafe fn set_action(signal: c_int, handler: usize, flags: u64, mask: u64) -> bool {
    let action =
        KernelAction { handler, flags: flags | SA_RESTORER, restorer: tasting_return as *const () as usize, mask };
    unsafe { syscall(call::SIGACTION, [signal as usize, addr_of!(action) as usize, 0, 8, 0, 0]) == 0 }
}

/// Installs the handler, and lets the signal through: it may be blocked by whoever started us.
pub unsafe fn handle_traps() -> bool {
    const SIG_UNBLOCK: usize = 1;
    let set: u64 = 1 << (SIGTRAP - 1);
    unsafe {
        // The program's own handler, which ours may call, has a breakpoint too.
        set_action(SIGTRAP, trapped as *const () as usize, SA_SIGINFO | SA_NODEFER, !set)
            && syscall(call::SIGPROCMASK, [SIG_UNBLOCK, addr_of!(set) as usize, 0, 8, 0, 0]) == 0
    }
}

/// A breakpoint: ours, or somebody else's.
unsafe extern "C" fn trapped(signal: c_int, information: *mut c_void, context: *mut c_void) {
    unsafe {
        let counter = context.byte_add(COUNTER).cast::<usize>();
        let at = (*counter).wrapping_sub(PASSED);
        if at == CHANGES.load(Ordering::Acquire) {
            if (*addr_of!(_r_debug)).state == CONSISTENT {
                meet(true);
            }
            leave(context);
        } else {
            match note(at) {
                Noted::Ours => *counter = at,
                Noted::Theirs | Noted::Nothing => pass_on(signal, information, context),
                Noted::Stuck => die(),
            }
        }
    }
}

/// What was found where execution stopped.
pub enum Noted {
    /// A function whose code is there now.
    Ours,
    /// The same, and a breakpoint of the program's own.
    Theirs,
    /// A function whose code does not come back: the program has put other pages in the place of the image.
    Stuck,
    Nothing,
}

/// Notes that a function is executed, and puts its code back.
pub unsafe fn note(at: usize) -> Noted {
    let count = MODULE_COUNT.load(Ordering::Acquire);
    let modules = addr_of!(MODULES).cast::<Module>();
    for number in 0..count {
        unsafe {
            let module = modules.add(number);
            let end = addr_of!((*module).end).read_volatile();
            if at < (*module).start || at >= end {
                continue;
            }
            let Module { base, start, region, original, .. } = *module;
            let Some((index, place, size)) = find(region, at - base) else { return Noted::Nothing };
            Head::hits(region).add(index).write_volatile(1);
            let from = base + place - start;
            let image = region.cast::<u8>().add((*region).image as usize);
            put_back(image.add(from), original.add(from), size);
            changed(base + place, size);
            let code = original.add(at - start).cast::<Code>().read_unaligned();
            return match code == BREAKPOINT {
                true => Noted::Theirs,
                false if (at as *const Code).read_volatile() == code => Noted::Ours,
                false => Noted::Stuck,
            };
        }
    }
    Noted::Nothing
}

/// Puts code in the place of breakpoints, from its end to its front: others may be about to execute it. A call of the gate, which
/// is one aligned word, goes at once. Any number of threads and processes may do so, for they write the same.
unsafe fn put_back(image: *mut u8, original: *const u8, size: usize) {
    let mut left = size / size_of::<Code>() * size_of::<Code>();
    let front = if (image as usize).is_multiple_of(8) && size >= 8 { 8 } else { 0 };
    unsafe {
        while left > front {
            left -= size_of::<Code>();
            let code = original.add(left).cast::<Code>().read_unaligned();
            image.add(left).cast::<Code>().write_volatile(code);
        }
        if front != 0 {
            image.cast::<u64>().write_volatile(original.cast::<u64>().read_unaligned());
        }
    }
}

/// What the program itself wants to be done about SIGTRAP: the C library's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    pub handler: usize,
    pub mask: [u64; 16],
    pub flags: c_int,
    pub restorer: usize,
}

pub static mut WANTED: Action = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
pub static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Does what would have been done without us.
unsafe fn pass_on(signal: c_int, information: *mut c_void, context: *mut c_void) {
    const SIG_IGN: usize = 1;
    unsafe {
        let wanted = *addr_of!(WANTED);
        if IS_WANTED.load(Ordering::Acquire) && wanted.handler > SIG_IGN {
            let handler: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) = core::mem::transmute(wanted.handler);
            return handler(signal, information, context);
        }
        // The default is to die of it; a trap that is ignored kills as well.
        die();
    }
}

/// Ends the process by the signal, now or when its handler has returned.
pub unsafe fn die() {
    unsafe {
        set_action(SIGTRAP, 0, 0, 0);
        let (process, thread) = (syscall(call::GETPID, [0; 6]), syscall(call::GETTID, [0; 6]));
        syscall(call::TGKILL, [process as usize, thread as usize, SIGTRAP as usize, 0, 0, 0]);
    }
}
