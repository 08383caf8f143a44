//! Debuggers that attach to a process which is traced already. The debugger must see the process's
//! own code, without breakpoints, in pages that it can write to. The agent restores these when it
//! receives a signal.
//!
//! In: a process that is about to be debugged. Out: nothing; from then on its program is
//! fingerprinted as a whole.

use super::call::Call;
use super::kernel;
use super::memory;
use super::supervisor::Supervisor;
use crate::model::codes;
use std::fs;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};
use tasting_agent::protocol::SHOW_CODE;

/// So long an agent may take to hear of it, and then to do it.
const PATIENCE: Duration = Duration::from_millis(500);
const WORK: Duration = Duration::from_millis(20);

/// How the memory with the code of traced functions is named among what is mapped.
const CODE: &str = "/memfd:tasting-code";
/// The size of `struct iovec`, and as many as the kernel takes in one call.
const PART: usize = 16;
const MOST_PARTS: u64 = 1024;

const SHOWS_MEMORY: &str = "reads the memory of a process whose functions are traced";

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

    /// Parts of the memory of a process are read by a call: are they in its traced code?
    pub(super) fn reads_memory(&mut self, call: &Call, process: u32) {
        let count = call.argument(4).min(MOST_PARTS) as usize;
        let parts =
            memory::bytes(call.thread(), call.argument(3), count * PART).unwrap_or_default();
        let number = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        let parts = parts.as_chunks::<8>().0.as_chunks::<2>().0;
        let parts = parts.iter().map(|[start, length]| (number(start), number(length)));
        let code = traced_code(process);
        let is_in_code = |(start, length): (u64, u64)| {
            code.iter().any(|code| start < code.end && code.start < start.saturating_add(length))
        };
        if parts.into_iter().any(is_in_code) {
            self.shows_memory(call, process);
        }
    }

    /// The memory of a process is going to be read: where its functions are traced, it holds
    /// breakpoints.
    pub(super) fn shows_memory(&mut self, call: &Call, process: u32) {
        let Some(tracer) = &self.tracer else { return };
        let program = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        if tracer.is_traced(&program) {
            self.disturb(call.program_name(), SHOWS_MEMORY);
        }
    }
}

/// Where the memory of a process shows code of ours.
fn traced_code(process: u32) -> Vec<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    maps.lines().filter(|line| line.contains(CODE)).filter_map(range).collect()
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
