//! Files of `/proc/PID` that reveal the watcher: `status` shows the filter, `maps` shows the agent
//! and its memory.
//!
//! A process that opens `status` gets a copy without the filter. `maps` cannot be corrected in this
//! way, because code is replaced too. Runtimes read it to find their stacks (the C library,
//! libsigsegv in `grep`), which is harmless; a program that was told to read it
//! (`grep -c x /proc/self/maps`) counts as disturbed.
//!
//! In: files of processes that are opened. Out: a replacement for the file, or a disturbance.

use super::call::Call;
use super::policy;
use super::resolve::Place;
use super::supervisor::Supervisor;
use crate::process::sys::Memory;
use memchr::memmem;
use std::fs::{self, File};
use std::path::Path;

const OWN_MEMORY: &[u8] = b"/memfd:tasting";
const MAPPED: &str = "reads what is mapped into memory, which is more while it is watched";

impl Supervisor {
    /// Whether the caller has got a file of ours in the place of the one that it opens for reading.
    pub(super) fn shows_process_file(
        &mut self,
        call: &Call,
        place: &Place,
        path: &[u8],
        flags: i32,
    ) -> bool {
        if policy::names_mapped_files(&place.path) {
            self.meets_mapped_files(call, place, path);
            return false;
        }
        policy::is_status_of_process(&place.path)
            && self.give_status(call, &place.path, flags).is_some()
    }

    fn give_status(&self, call: &Call, path: &Path, flags: i32) -> Option<()> {
        let before = self
            .powerless
            .then(|| has_no_new_privileges(&fs::read("/proc/self/status").unwrap_or_default()));
        let mut text = without_filter(&fs::read_to_string(path).ok()?, before)?;
        if path.to_str().and_then(policy::process_of) == Some(call.thread()) {
            text = while_running(&text);
        }
        let memory = Memory::new(c"status").ok()?;
        memory.write_at(text.as_bytes(), 0).ok()?;
        // A description of its own, at the start, which cannot be written to.
        let file = File::open(memory.path()).ok()?;
        let is_closed_on_exec = flags & libc::O_CLOEXEC != 0;
        call.answered
            .set(call.listener.give_file(call.notification, &file, is_closed_on_exec).is_ok());
        call.answered.get().then_some(())
    }

    fn meets_mapped_files(&mut self, call: &Call, place: &Place, path: &[u8]) {
        let list = fs::read(place.path.with_file_name("maps")).unwrap_or_default();
        if memmem::find(&list, OWN_MEMORY).is_some() && is_told(call.thread(), path) {
            self.disturb(call.program_name(), MAPPED);
        }
    }
}

/// Whether a process was told a path in its arguments.
fn is_told(thread: u32, path: &[u8]) -> bool {
    fs::read(format!("/proc/{thread}/cmdline"))
        .is_ok_and(|words| memmem::find(&words, path).is_some())
}

fn has_no_new_privileges(status: &[u8]) -> bool {
    memmem::find(status, b"\nNoNewPrivs:\t1").is_some()
}

/// A status as it would be with one filter less. `before` says whether there were no new privileges
/// before that filter.
fn without_filter(status: &str, before: Option<bool>) -> Option<String> {
    let number = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok())
    };
    let filters = number("Seccomp_filters:")?.checked_sub(1)?;
    let mode = if filters == 0 { 0 } else { number("Seccomp:")? };
    let line = |line: &str| match line.split_once(":\t") {
        Some(("Seccomp", _)) => format!("Seccomp:\t{mode}\n"),
        Some(("Seccomp_filters", _)) => format!("Seccomp_filters:\t{filters}\n"),
        Some(("NoNewPrivs", had)) => {
            format!("NoNewPrivs:\t{}\n", before.map_or(had, |had| if had { "1" } else { "0" }))
        }
        _ => format!("{line}\n"),
    };
    Some(status.lines().map(line).collect())
}

/// The status of a thread as it is when the thread itself reads it: it waits for us now.
fn while_running(status: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("State:\t") {
            "State:\tR (running)\n".into()
        } else {
            format!("{line}\n")
        }
    };
    status.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_our_filter() {
        let status = "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\nThreads:\t1\n";
        let plain = "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\nThreads:\t1\n";
        assert_eq!(without_filter(status, Some(false)).unwrap(), plain);
        let two = status.replace("filters:\t1", "filters:\t2");
        assert_eq!(without_filter(&two, None).unwrap(), status);
        assert_eq!(without_filter(plain, None), None);
        assert_eq!(
            while_running("Name:\tx\nState:\tS (sleeping)\nTgid:\t1\n"),
            "Name:\tx\nState:\tR (running)\nTgid:\t1\n"
        );
    }
}
