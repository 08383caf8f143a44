//! Which processes belong to the test: those whose calls were stopped, and their descendants.
//!
//! In: numbers of threads and processes. Out: whether they are the test's.

use rustc_hash::FxHashSet;
use std::fs::{self, File};
use std::io::{self, Read};

/// No real tree is as deep.
const MOST_PARENTS: usize = 64;

/// The threads that have been seen.
#[derive(Debug, Default)]
pub struct Processes {
    seen: FxHashSet<u32>,
}

impl Processes {
    /// A call of this thread came to us.
    pub fn saw(&mut self, thread: u32) {
        self.seen.insert(thread);
    }

    /// Whether a process or thread is the test's.
    pub fn has(&self, process: u32) -> bool {
        let mut at = process;
        for _ in 0..MOST_PARENTS {
            if self.seen.contains(&at) {
                return true;
            }
            match leader_and_parent(at) {
                // A thread: its process counts.
                Some((leader, _)) if leader != at => at = leader,
                Some((_, parent)) if parent > 1 => at = parent,
                // A process that is gone tells nobody anything, but its number can have been the
                // test's.
                _ => return false,
            }
        }
        false
    }

    /// The names of those that still run.
    pub fn alive(&self) -> Vec<String> {
        let mut alive: Vec<String> =
            self.seen.iter().filter_map(|thread| name_if_alive(*thread)).collect();
        alive.sort_unstable();
        alive.dedup();
        alive
    }
}

/// The process that a thread belongs to, and that process's parent.
pub(super) fn leader_and_parent(thread: u32) -> Option<(u32, u32)> {
    let status = read(thread, "status").ok()?;
    let status = str::from_utf8(&status).ok()?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((field("Tgid:")?, field("PPid:")?))
}

/// A file of `/proc` about a thread. Most are short, but do not say so: at once, as far as it can
/// be.
pub(super) fn read(thread: u32, name: &str) -> io::Result<Vec<u8>> {
    const ENOUGH: usize = 16 << 10;
    let mut content = Vec::with_capacity(ENOUGH);
    // Not asked for its size and position first.
    File::open(format!("/proc/{thread}/{name}"))?.take(u64::MAX).read_to_end(&mut content)?;
    Ok(content)
}

fn name_if_alive(thread: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let running = !field("State:")?.starts_with(['Z', 'X']) && field("Seccomp:") == Some("2");
    running.then(|| field("Name:").unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_belong_to_their_parents() {
        let mut processes = Processes::default();
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        assert!(!processes.has(child.id()));
        processes.saw(std::process::id());
        assert!(processes.has(child.id()));
        assert!(!processes.has(1));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
