//! Locks on files (`flock`, `fcntl`): a test that only tries to lock a file sees whether somebody
//! else has locked it. One that waits for the lock gets it in the end, whoever has it now.
//!
//! In: stopped calls. Out: notes that a file has to be as free as it was.

use super::call::Call;
use super::memory;
use super::resolve::Found;
use super::supervisor::Supervisor;
use std::fs;
use std::io;

/// What `fcntl` is told to lock a file, or to ask who has locked it.
pub const COMMANDS: &[u32] = &[
    libc::F_GETLK as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_OFD_GETLK as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
];

/// Whether a call of `fcntl` is one of these.
pub fn is_about_locks(call: &Call) -> bool {
    call.notification.number == libc::SYS_fcntl && COMMANDS.contains(&(call.argument(1) as u32))
}

impl Supervisor {
    /// A file is locked, or is asked about.
    pub(super) fn locks(&mut self, call: &Call) -> io::Result<()> {
        let Some(waits) = waits_for_lock(call)? else { return Ok(()) };
        let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
        let place = self.place_of(call, None, link.as_bytes(), true);
        if let Some(place) = place.filter(|place| matches!(place.found, Found::There(_))) {
            self.ledger.locks(&place.path, waits, &|process| self.processes.has(process));
        }
        Ok(())
    }
}

/// Whether a call waits until it has its lock; `None` if it only gives one back.
fn waits_for_lock(call: &Call) -> io::Result<Option<bool>> {
    let command = call.int(1);
    if call.notification.number == libc::SYS_flock {
        return Ok(Some(command & libc::LOCK_NB == 0));
    }
    // The kind is the first field of `struct flock`, of 16 bits.
    let kind = memory::number(call.thread(), call.argument(2))?.to_ne_bytes();
    let is_asking = matches!(command, libc::F_GETLK | libc::F_OFD_GETLK);
    let gives_back = !is_asking && i16::from_ne_bytes([kind[0], kind[1]]) == libc::F_UNLCK as i16;
    Ok((!gives_back).then_some(matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW)))
}

/// Whether any process has locked a file of this inode. The device is left out: some file systems
/// show another one there than `stat` does, and a lock too many costs no more than a run.
pub fn is_locked(inode: u64) -> bool {
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    table.lines().any(|line| inode_of(line) == Some(inode))
}

/// The inode of the file in a line of `/proc/locks`. Leases are no locks.
fn inode_of(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    fields.find(|field| matches!(*field, "POSIX" | "FLOCK" | "OFDLCK"))?;
    let file = fields.find(|field| field.matches(':').count() == 2)?;
    file.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn lines_tell_the_inode() {
        let line = "1: POSIX  ADVISORY  WRITE 5433 08:01:7864448 128 128";
        assert_eq!(inode_of(line), Some(7_864_448));
        assert_eq!(inode_of("2: -> FLOCK  ADVISORY  WRITE 1 fe:00:12 0 EOF"), Some(12));
        assert_eq!(inode_of("3: OFDLCK ADVISORY  READ  -1 00:2b:7 0 EOF"), Some(7));
        assert_eq!(inode_of("4: LEASE  ACTIVE    READ  77 fe:00:9 0 EOF"), None);
    }

    #[test]
    fn a_lock_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        assert!(!is_locked(inode));
        file.as_file().lock().unwrap();
        assert!(is_locked(inode));
    }
}
