//! Which processes receive the signals of a test. A signal to a process outside the test is an
//! effect that a replay does not have, and sending one also reveals whether that process exists.
//!
//! In: stopped calls that send signals, or that name the process to get them later. Out: refusals.

use super::call::Call;
use super::calls::{FIOSETOWN, SIOCSPGRP};
use super::locks::is_about_locks;
use super::memory;
use super::supervisor::Supervisor;
use crate::model::codes;
use std::io;

const LOOKS: &str = "looks into a process that is not its own";
const SENDS: &str = "sends signals to a process that is not its own";
const F_SETOWN_EX: i32 = 15;
/// Of `struct f_owner_ex`: a group of processes.
const F_OWNER_PGRP: i32 = 2;

impl Supervisor {
    /// A signal is sent, or will be. The signal 0 only asks whether there is such a process.
    pub(super) fn note_signal(&mut self, call: &Call) -> io::Result<()> {
        if is_about_locks(call) {
            return self.locks(call);
        }
        let reason = if call.notification.number == libc::SYS_kill && call.int(1) == 0 {
            LOOKS
        } else {
            SENDS
        };
        if let Some(receiver) = receiver(call)? {
            self.refuse_if(call, self.is_outside(receiver), (codes::OUTSIDE_PROCESS, reason))?;
        }
        if reason == LOOKS { Ok(()) } else { self.interrupts.sends(call) }
    }

    /// A request to a device or socket, which may name who gets its signals.
    pub(super) fn note_control(&mut self, call: &Call) -> io::Result<()> {
        self.uses_descriptor(call, 0);
        let request = call.argument(1) as u32;
        self.interrupts.controls(request);
        match request {
            FIOSETOWN | SIOCSPGRP => {
                let owner = memory::number(call.thread(), call.argument(2))? as i32;
                self.refuse_if(call, self.is_outside(owner), (codes::OUTSIDE_PROCESS, SENDS))
            }
            _ => Ok(()),
        }
    }

    /// A process is looked into.
    pub(super) fn look_into(&mut self, call: &Call, process: i32) -> io::Result<()> {
        self.refuse_if(call, self.is_outside(process), (codes::OUTSIDE_PROCESS, LOOKS))
    }

    /// Priorities are asked for or changed. Groups, other than those that the test made, and users
    /// have processes of others.
    pub(super) fn note_priority(&mut self, call: &Call, process: u32) -> io::Result<()> {
        let whose = call.int(1);
        let is_outside = match call.argument(0) as u32 {
            kind if kind == process => self.is_outside(whose),
            kind if kind == process + 1 => whose == 0 || self.is_outside(whose),
            _ => true,
        };
        self.refuse_if(call, is_outside, (codes::OUTSIDE_PROCESS, LOOKS))
    }

    /// The number of a process or thread; 0 for the caller's own group, and less for another one,
    /// or for all that there are.
    fn is_outside(&self, receiver: i32) -> bool {
        match receiver {
            0 => false,
            -1 => true,
            _ => !self.processes.has(receiver.unsigned_abs()),
        }
    }
}

/// Who gets the signals of a call, if it names anybody. The process behind a descriptor (pidfd) was
/// looked at when that was opened.
fn receiver(call: &Call) -> io::Result<Option<i32>> {
    Ok(match call.notification.number {
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo => Some(call.int(0)),
        libc::SYS_tkill | libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => Some(call.int(0)),
        libc::SYS_fcntl => match call.int(1) {
            libc::F_SETOWN => Some(call.int(2)),
            F_SETOWN_EX => {
                let [kind, process] = halves(memory::number(call.thread(), call.argument(2))?);
                Some(if kind == F_OWNER_PGRP { process.saturating_neg() } else { process })
            }
            _ => None,
        },
        _ => None,
    })
}

/// Two numbers that lie beside each other in memory.
fn halves(both: u64) -> [i32; 2] {
    let [a, b, c, d, e, f, g, h] = both.to_ne_bytes();
    [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])]
}
