//! The modules of the process: those in the loader's list.

use super::IS_ARMED;
use super::arch::{call, land, syscall, take_off};
use super::loader::{LinkMap, debug};
use super::region::{Given, request};
use super::system::unmap;
use crate::protocol::Head;
use core::ptr::{addr_of, addr_of_mut, null, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

const MOST_MODULES: usize = 1024;

/// A module that was met. The range is empty for those that are not traced, and for those that were
/// closed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Module {
    link: *const LinkMap,
    pub base: usize,
    pub start: usize,
    pub end: usize,
    pub region: *mut Head,
    /// The code as it was.
    pub original: *const u8,
}

const NO_MODULE: Module =
    Module { link: null(), base: 0, start: 0, end: 0, region: null_mut(), original: null() };

/// Each module has its own place in the list as long as the process lives, so that handlers can
/// read it at any time.
pub static mut MODULES: [Module; MOST_MODULES] = [NO_MODULE; MOST_MODULES];
pub static MODULE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Makes the list of modules fit the loader's. Asks about the new ones, if there is something to be
/// had.
pub unsafe fn meet(asks: bool) {
    // SAFETY: the loader's list is complete whenever this is called, and it is locked.
    unsafe {
        let debug = debug();
        let modules = addr_of_mut!(MODULES).cast::<Module>();
        for number in 0..MODULE_COUNT.load(Ordering::Acquire) {
            let module = modules.add(number);
            if !(*module).link.is_null() && !is_listed((*module).link) {
                forget(module);
            }
        }
        let mut link = (*debug).modules;
        while !link.is_null() {
            if !is_met(link) {
                let name = (*link).name;
                // The kernel's own module has no file.
                let has_file = !name.is_null() && *name != 0;
                let given = if has_file && asks { request(name) } else { Given::NOTHING };
                add(link, &given);
                given.close();
            }
            link = (*link).next;
        }
        if (*debug).version > 1 && !(*debug).next.is_null() {
            // The same library can be there once more, unseen.
            (0..MODULE_COUNT.load(Ordering::Acquire)).for_each(|number| fail(modules.add(number)));
        }
    }
}

unsafe fn is_listed(sought: *const LinkMap) -> bool {
    // SAFETY: as in `meet`: the loader's list is complete.
    unsafe {
        let mut link = (*debug()).modules;
        while !link.is_null() && link != sought {
            link = (*link).next;
        }
        !link.is_null()
    }
}

unsafe fn is_met(link: *const LinkMap) -> bool {
    let modules = addr_of!(MODULES).cast::<Module>();
    // SAFETY: modules keep their places in the list.
    (0..MODULE_COUNT.load(Ordering::Acquire))
        .any(|number| unsafe { (*modules.add(number)).link == link })
}

unsafe fn fail(module: *const Module) {
    // SAFETY: a module's region is mapped as long as the module has it.
    unsafe {
        if !(*module).region.is_null() {
            (*(*module).region).failed = 1;
        }
    }
}

/// A module that was closed. No thread is in its code any more.
unsafe fn forget(module: *mut Module) {
    // SAFETY: the loader has unmapped the module; its area, code and region are ours.
    unsafe {
        let Module { start, end, region, original, .. } = *module;
        if end > start {
            take_off(&*module);
        }
        (*module).link = null();
        (*module).region = null_mut();
        addr_of_mut!((*module).end).write_volatile(0);
        if end > start {
            unmap(original as usize, end - start);
            unmap(region as usize, Head::size(region));
        }
    }
}

/// Adds a module to the list, with breakpoints in place of its functions if it has a region.
pub unsafe fn add(link: *const LinkMap, given: &Given) {
    // SAFETY: the loader has mapped the module; its place in the list is not used yet.
    unsafe {
        let region = given.region;
        let number = MODULE_COUNT.load(Ordering::Acquire);
        if number == MOST_MODULES {
            if !region.is_null() {
                (*region).failed = 1;
            }
            return;
        }
        let module = addr_of_mut!(MODULES).cast::<Module>().add(number);
        *module = Module { link, base: (*link).base, region, ..NO_MODULE };
        let is_traced =
            !region.is_null() && IS_ARMED.load(Ordering::Acquire) && prepare(module, given.code);
        MODULE_COUNT.store(number + 1, Ordering::Release);
        let is_shown = is_traced && show(module, given.code);
        if !region.is_null() && !is_shown {
            (*region).failed = 1;
        }
    }
}

/// Puts the code of a module aside, where functions are taken from when they are executed, and
/// prepares for the calls of the gate.
unsafe fn prepare(module: *mut Module, code: usize) -> bool {
    const MAYMOVE_DONTUNMAP: usize = 5;
    const MAYMOVE_FIXED: usize = 3;
    // SAFETY: the range is the module's code, which nobody executes now: the loader has just mapped
    // it, or nothing runs yet.
    unsafe {
        let Head { start, length, samples, .. } = *(*module).region;
        let (start, length) = ((*module).base + start as usize, length as usize);
        for (at, code) in samples {
            if ((start + at as usize) as *const u64).read_unaligned() != code {
                // Not what was linked.
                return false;
            }
        }
        // The kernel chooses where to.
        let aside = syscall(call::MREMAP, [start, length, length, MAYMOVE_DONTUNMAP, 0, 0]);
        if aside < 0 {
            return false;
        }
        (*module).original = aside as *const u8;
        (*module).start = start;
        (*module).end = start + length;
        if !land(module, code) {
            // Nothing is shown: the code goes back to its place.
            (*module).end = start;
            syscall(call::MREMAP, [aside as usize, length, length, MAYMOVE_FIXED, start, 0]);
            return false;
        }
        true
    }
}

/// Maps the image in the place of a module's code.
unsafe fn show(module: *const Module, code: usize) -> bool {
    const READ_EXECUTE: usize = 5;
    const SHARED_FIXED: usize = 0x11;
    // SAFETY: the range is that of code that was put aside.
    unsafe {
        let Module { start, end, region, .. } = *module;
        let place =
            [start, end - start, READ_EXECUTE, SHARED_FIXED, code, (*region).image as usize];
        syscall(call::MMAP, place) == start as isize
    }
}
