//! Debuggers that get hold of a process which is traced already: it has to show them its own code,
//! without breakpoints of ours, in pages that they can write to. Its agent does that when it is
//! told to, by a signal.
//!
//! In: a process that is about to be debugged. Out: nothing; its program counts whole then.

use super::kernel;
use super::supervisor::Supervisor;
use crate::model::codes;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use tasting_agent::protocol::SHOW_CODE;

/// So long an agent may take to hear of it, and then to do it.
const PATIENCE: Duration = Duration::from_millis(500);
const WORK: Duration = Duration::from_millis(20);

impl Supervisor {
    /// A debugger is going to get hold of a process.
    pub(super) fn gets_debugger(&mut self, process: u32) {
        let Some(tracer) = &self.tracer else { return };
        let Ok(program) = fs::read_link(format!("/proc/{process}/exe")) else { return };
        if !tracer.is_traced(&program)
            || !is_handling_traps(process)
            || !kernel::queue_trap(process, SHOW_CODE)
        {
            return;
        }
        let start = Instant::now();
        while tracer.is_traced(&program) && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(WORK);
        self.ledger.refuse_path(
            &program,
            (codes::DEBUGGER, "gets a debugger while its functions are traced"),
        );
    }
}

/// Whether the signal has a handler and is not blocked: else it would do something else.
fn is_handling_traps(process: u32) -> bool {
    const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let set = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name));
        text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
    };
    set("SigCgt:").is_some_and(|caught| caught & TRAP != 0)
        && set("SigBlk:").is_some_and(|blocked| blocked & TRAP == 0)
}
