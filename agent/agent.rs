//! The agent: a tiny library that is preloaded into the programs of a test. It notes which functions are executed.
//!
//! For each module of the process it asks the watcher for a *region* of shared memory: where its functions lie, a byte for
//! each that is to be set when it is executed, and an *image* of the module's code in which every byte of every function is
//! a breakpoint. It maps the image in the place of the code. Whatever a function is entered by, and wherever, the handler of
//! SIGTRAP sets the byte, puts the function's code into the image, and lets it go on. So code that was not noted was not
//! executed: it was not there. Functions that are called in the usual way have a call of the *gate* at their front, which
//! does the same in a tenth of the time. All processes of a test share the image, which outlives them: what one has executed costs
//! the next one nothing, and nothing is lost however a process ends.
//!
//! Libraries that are opened later are met in the function that the dynamic loader calls for debuggers, between mapping a
//! library and running its constructors.
//!
//! Built by the crate's `build.rs` into a shared library without dependencies, not even on the C library. It is
//! initialised before all other modules (`-z initfirst`), so that constructors are seen too.

#![no_std]

#[cfg(target_arch = "x86_64")]
mod gate;
mod interposed;
mod loader;
mod modules;
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod processor;
mod region;
mod signals;
mod system;

#[cfg(target_arch = "x86_64")]
use gate::open_gate;
use loader::{_r_debug, watch_the_loader};
use modules::{add, meet};
#[cfg(target_arch = "aarch64")]
use processor::open_gate;
use processor::{call, syscall};
use region::request;
use signals::handle_traps;

use core::ptr::{addr_of, null};
use core::sync::atomic::{AtomicBool, Ordering};

const PAGE: usize = 4096;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        unsafe { syscall(call::EXIT_GROUP, [134, 0, 0, 0, 0, 0]) };
    }
}

static IS_ARMED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs before everything else in the process.
extern "C" fn start() {
    unsafe {
        if addr_of!(_r_debug).is_null() || (*addr_of!(_r_debug)).modules.is_null() {
            return;
        }
        let program = (*addr_of!(_r_debug)).modules;
        let given = request(null());
        if given.region.is_null() {
            // Nobody watches, or the program is not one that can be traced: neither are its libraries.
            return;
        }
        if !handle_traps() || !open_gate() || !watch_the_loader() {
            (*given.region).failed = 1;
            return given.close();
        }
        IS_ARMED.store(true, Ordering::Release);
        add(program, &given);
        given.close();
        meet(!given.is_alone);
    }
}
