//! Restores original code: where a program could notice the agent, it gets the code that it would
//! have without. What is then executed unseen counts as executed.
//!
//! There are two degrees: all functions, for programs that handle SIGTRAP themselves; private pages
//! for a module, if the program changes its code, or for all modules, if a debugger attaches.

use super::IS_ARMED;
use super::arch::{area, call, changed, put_back, syscall, unhook_loader};
use super::modules::{MODULE_COUNT, MODULES, Module};
use super::signals::stop_handling;
use super::system::unmap;
use crate::protocol::Head;
use core::ptr::{addr_of, addr_of_mut};
use core::sync::atomic::Ordering;

fn for_each_module(act: unsafe fn(*mut Module)) {
    for number in 0..MODULE_COUNT.load(Ordering::Acquire) {
        // SAFETY: modules keep their places in the list; those that are not traced have an empty
        // range.
        unsafe {
            let module = addr_of_mut!(MODULES).cast::<Module>().add(number);
            if (*module).end > (*module).start {
                act(module);
            }
        }
    }
}

/// Gives up: all code is shown as it is, and SIGTRAP is the program's.
pub fn release_everything() {
    if IS_ARMED.load(Ordering::Acquire) {
        for_each_module(restore);
        // SAFETY: it writes back what was there, an instruction.
        unsafe { unhook_loader() };
        stop_handling();
        IS_ARMED.store(false, Ordering::Release);
    }
}

/// Puts all functions of a module back, which count as executed then.
///
/// # Safety
/// The module has to have a region, and its code has to be put aside.
unsafe fn restore(module: *mut Module) {
    // SAFETY: as the caller promises; numbers, places and sizes are those of the region, and lie
    // within image and code.
    unsafe {
        let Module { base, start, region, original, .. } = *module;
        (*region).failed = 1;
        let image = region.cast::<u8>().add((*region).image as usize);
        for number in 0..(*region).count as usize {
            let (place, size) = Head::function(region, number);
            let from = base + place - start;
            let hit = Head::hits(region).add(number);
            if hit.read_volatile() == 0 {
                hit.write_volatile(1);
                put_back(image.add(from), original.add(from), size);
                changed(base + place, size);
            }
        }
    }
}

/// Gives a module pages of its own code, which the program may change. All of the module counts as
/// executed. `false` if it cannot be done.
///
/// # Safety
/// The module has to have been shown.
pub unsafe fn release_module(module: *mut Module) -> bool {
    const READ_WRITE: usize = 3;
    const READ_EXECUTE: usize = 5;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    const MAYMOVE_FIXED: usize = 3;
    // SAFETY: the new pages are ours until they are moved, at once, to where the same code lies
    // now. What the gate needs of the module stays: other threads may be there.
    unsafe {
        let Module { start, end, region, original, .. } = *module;
        (*region).failed = 1;
        let length = end - start;
        let copy = syscall(call::MMAP, [0, length, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0]);
        if copy < 0 {
            return false;
        }
        (copy as *mut u8).copy_from_nonoverlapping(original, length);
        changed(copy as usize, length);
        let is_moved = syscall(call::MPROTECT, [copy as usize, length, READ_EXECUTE, 0, 0, 0]) == 0
            && syscall(call::MREMAP, [copy as usize, length, length, MAYMOVE_FIXED, start, 0])
                == start as isize;
        if !is_moved {
            unmap(copy as usize, length);
            return false;
        }
        addr_of_mut!((*module).end).write_volatile(start);
        true
    }
}

/// Gives all modules pages of their own, which debuggers can write to. The program comes last: by
/// it the watcher sees that it is done.
pub fn release_to_debugger() {
    IS_ARMED.store(false, Ordering::Release);
    for number in (0..MODULE_COUNT.load(Ordering::Acquire)).rev() {
        // SAFETY: as in `for_each_module`.
        unsafe {
            let module = addr_of_mut!(MODULES).cast::<Module>().add(number);
            if (*module).end > (*module).start {
                release_module(module);
            }
        }
    }
    // SAFETY: it writes back what was there, an instruction.
    unsafe { unhook_loader() };
}

/// Whether the landing area of a module lies in a range.
pub fn is_landing(at: usize, size: usize) -> bool {
    let modules = addr_of!(MODULES).cast::<Module>();
    (0..MODULE_COUNT.load(Ordering::Acquire)).any(|number| {
        // SAFETY: as in `for_each_module`.
        unsafe {
            let module = &*modules.add(number);
            let (start, length) = if module.end > module.start { area(module) } else { (0, 0) };
            length != 0 && at < start.saturating_add(length) && start < at.saturating_add(size)
        }
    })
}

/// Gives the modules whose code lies in a range pages of their own.
pub fn release_range(at: usize, size: usize) {
    for number in 0..MODULE_COUNT.load(Ordering::Acquire) {
        // SAFETY: as in `for_each_module`.
        unsafe {
            let module = addr_of_mut!(MODULES).cast::<Module>().add(number);
            let (start, end) = ((*module).start, (*module).end);
            if start < end && at < end && start < at.saturating_add(size) {
                release_module(module);
            }
        }
    }
}
