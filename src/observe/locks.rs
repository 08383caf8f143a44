//! Locks on files (`flock`, `fcntl`): a test that only tries to lock a file sees whether somebody
//! else has locked it. One that waits for the lock gets it in the end, whoever has it now.
//!
//! In: stopped calls. Out: notes that a file has to be as free as it was.

use super::call::Call;
use super::calls::LOCKING;
use super::memory;
use super::resolve::Found;
use super::supervisor::Supervisor;
use std::io;

/// Whether a call of `fcntl` locks a file, or asks who has locked it.
pub fn is_about_locks(call: &Call) -> bool {
    call.notification.number == libc::SYS_fcntl && LOCKING.contains(&(call.argument(1) as u32))
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
