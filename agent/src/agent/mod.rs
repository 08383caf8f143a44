//! The agent: a small library that is preloaded into the programs of a test. It records which
//! functions are executed.
//!
//! For each module of the process it asks the watcher for a *region* of shared memory. The region
//! has the addresses of the functions, one byte for each that is set when it is executed, and an
//! *image* of the module's code in which every byte of every function is a breakpoint. The agent
//! maps the image in place of the code. However a function is entered, and wherever, its byte is
//! set, and its code is put into the image. So code that was not recorded was not executed: it was
//! not there.
//!
//! Functions start with a call of the *gate* (`gate.rs`), which takes no signal; functions that
//! cannot have one are not traced, and count as executed. Code that enters a function past its
//! start, which compilers never emit, reaches the handler of SIGTRAP (`signals.rs`). Programs that
//! handle SIGTRAP themselves get their own code back (`release.rs`). AArch64 has no gates: there,
//! breakpoints do all of this, and all code is restored where the signal is blocked (`masks.rs`).
//! All processes of a test share the image, which outlives them: a function that one has executed
//! costs the next one nothing, and nothing is lost however a process ends.
//!
//! Libraries that are opened later are noticed in the function that the dynamic loader calls for
//! debuggers, between mapping a library and running its constructors.
//!
//! Built by `build.rs` into a shared library without dependencies, not even on the C library. It is
//! initialised before all other modules (`-z initfirst`), so that constructors are seen too.

mod arch;
#[cfg(target_arch = "x86_64")]
mod gate;
#[cfg(target_arch = "x86_64")]
mod hook;
mod interposed;
#[cfg(target_arch = "x86_64")]
mod known;
#[cfg(target_arch = "x86_64")]
mod lead;
mod loader;
#[cfg(target_arch = "aarch64")]
mod masks;
mod modules;
mod region;
mod release;
mod signals;
mod symbols;
mod system;

use crate::protocol::Head;
use arch::is_possible;
use loader::{debug, watch_the_loader};
use modules::{add, meet};
use signals::{handle_traps, stop_handling};

use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(tasting_agent)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        // SAFETY: it ends the process.
        unsafe { arch::syscall(arch::call::EXIT_GROUP, [134, 0, 0, 0, 0, 0]) };
    }
}

static IS_ARMED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs before everything else in the process.
extern "C" fn start() {
    // SAFETY: nothing else runs yet in the process, and the loader's list is complete.
    unsafe {
        if debug().is_null() || (*debug()).modules.is_null() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        let Some(given) = lead::lead() else { return };
        #[cfg(target_arch = "aarch64")]
        let given = region::request(core::ptr::null());
        let program = (*debug()).modules;
        if given.region.is_null() {
            // Nobody watches, or the program is not one that can be traced: neither are its
            // libraries.
            return;
        }
        if !is_possible() || !handle_traps(Head::has_illegal_fronts(given.region)) {
            (*given.region).failed = 1;
            return given.close();
        }
        if !watch_the_loader() {
            stop_handling();
            (*given.region).failed = 1;
            return given.close();
        }
        IS_ARMED.store(true, Ordering::Release);
        add(program, &given);
        given.close();
        meet(!given.is_alone);
    }
}
