//! Which processes have signal handlers that interrupt calls: handlers installed without
//! SA_RESTART. A watched call of such a process can fail with EINTR where it would not have failed
//! unwatched, unless the agent has routed it past the filter (`lead`). So this file notes which
//! signals can arrive: those that the test sends, timers, children that end, terminals of the
//! test's own. (Signals from outside also reach `tasting run`.)
//!
//! In: handlers that are installed, programs that are started, calls that send signals. Out:
//! whether a thread's calls can be interrupted.

use super::arch;
use super::call::Call;
use super::calls::{FIOASYNC, FIOSETOWN, SIOCSPGRP};
use super::kernel;
use super::memory;
use super::processes::leader_and_parent;
use rustc_hash::FxHashMap;
use std::io;

/// Signals that come of what the program itself does, not while it waits in a call; and those that
/// cannot be handled.
const NEVER_INTERRUPT: [i32; 11] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// No real tree is as deep.
const MOST_PARENTS: usize = 64;

/// Signals of terminals.
const OF_TERMINALS: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGWINCH,
];

/// A set of signals.
type Signals = u64;

/// The set of one signal; all of them if there is no such signal.
fn only(signal: i32) -> Signals {
    u32::try_from(signal - 1).ok().and_then(|bit| 1u64.checked_shl(bit)).unwrap_or(u64::MAX)
}

#[derive(Debug)]
pub struct Interrupts {
    /// For which signals processes have handlers that interrupt calls; none for those that have
    /// started another program since.
    known: FxHashMap<u32, Signals>,
    /// Some process has, or had, such a handler.
    any: bool,
    /// Signals that can come.
    sent: Signals,
    /// Programs whose watched calls can be interrupted, and by which signals.
    exposed: Vec<(String, Signals)>,
}

impl Default for Interrupts {
    /// Which processes have children is not known; and a terminal from outside may stop a test or
    /// change its size at any time.
    fn default() -> Interrupts {
        let always = [libc::SIGCHLD, libc::SIGWINCH, libc::SIGTSTP, libc::SIGCONT];
        let sent = always.into_iter().fold(0, |set, signal| set | only(signal));
        Interrupts { known: FxHashMap::default(), any: false, sent, exposed: Vec::new() }
    }
}

impl Interrupts {
    /// A thread installs a signal handler, which its memory tells at `action`.
    pub(super) fn installs(&mut self, thread: u32, signal: i32, action: u64) -> io::Result<()> {
        let action = memory::bytes(thread, action, 16)?;
        let (handler, flags) = (memory::number_in(&action, 0), memory::number_in(&action, 8));
        let is_function = handler != libc::SIG_DFL as u64 && handler != libc::SIG_IGN as u64;
        if is_function && flags & libc::SA_RESTART as u64 == 0 && !NEVER_INTERRUPT.contains(&signal)
        {
            let signals = self.handled(thread) | only(signal);
            self.known.insert(process_of(thread), signals);
            self.any = true;
        }
        Ok(())
    }

    /// A thread starts another program, in which handlers are what they were at first.
    pub(super) fn starts_program(&mut self, thread: u32) {
        if self.any {
            self.known.insert(process_of(thread), 0);
        }
    }

    /// A call that sends a signal, or makes the kernel send one later.
    pub(super) fn sends(&mut self, call: &Call) -> io::Result<()> {
        self.sent |= match call.notification.number {
            libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_pidfd_send_signal => only(call.int(1)),
            libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => only(call.int(2)),
            number if arch::ALARM == Some(number) => only(libc::SIGALRM),
            libc::SYS_setitimer => match call.int(0) {
                libc::ITIMER_REAL => only(libc::SIGALRM),
                libc::ITIMER_VIRTUAL => only(libc::SIGVTALRM),
                _ => only(libc::SIGPROF),
            },
            libc::SYS_timer_create | libc::SYS_mq_notify => told_by_event(call)?,
            libc::SYS_fcntl => told_by_descriptor(call),
            _ => u64::MAX,
        };
        Ok(())
    }

    /// Whether a call is `prctl` with PR_SET_PDEATHSIG, which makes a signal come when the parent
    /// ends.
    pub(super) fn is_about_parents_end(&mut self, call: &Call) -> bool {
        let is_so =
            call.notification.number == libc::SYS_prctl && call.int(0) == libc::PR_SET_PDEATHSIG;
        if is_so && call.int(1) != 0 {
            self.sent |= only(call.int(1));
        }
        is_so
    }

    /// A request to a device or socket.
    pub(super) fn controls(&mut self, request: u32) {
        if [FIOASYNC, FIOSETOWN, SIOCSPGRP].contains(&request) {
            self.sent |= only(libc::SIGIO) | only(libc::SIGURG);
        }
    }

    /// A path is used. Who makes a terminal sends signals by it.
    pub(super) fn opens(&mut self, path: &[u8]) {
        if path.ends_with(b"/ptmx") {
            self.sent |= OF_TERMINALS.iter().fold(0, |set, signal| set | only(*signal));
        }
    }

    /// A thread makes a watched call that is not led.
    pub(super) fn exposes(&mut self, thread: u32, name: impl FnOnce() -> String) {
        let handled = self.handled(thread);
        if handled != 0
            && self.exposed.last().is_none_or(|(_, signals)| signals & handled != handled)
        {
            self.exposed.push((name(), handled));
        }
    }

    /// A program whose calls may have been interrupted. The signal may be sent long after the
    /// handler was seen, and a call that was interrupted before the watcher got to see it is never
    /// seen: so neither order counts.
    pub(super) fn interrupted(&mut self) -> Option<String> {
        let index = self.exposed.iter().position(|(_, signals)| signals & self.sent != 0)?;
        Some(self.exposed.swap_remove(index).0)
    }

    /// For which signals the process of a thread has handlers that interrupt calls. Children have
    /// the handlers of their parents.
    fn handled(&self, thread: u32) -> Signals {
        if !self.any {
            return 0;
        }
        let mut at = thread;
        for _ in 0..MOST_PARENTS {
            if let Some(signals) = self.known.get(&at) {
                return *signals;
            }
            if at == std::process::id() {
                return 0;
            }
            match leader_and_parent(at) {
                Some((leader, _)) if leader != at => at = leader,
                Some((_, parent)) if parent > 1 => at = parent,
                // Whose child it was, nobody knows.
                _ => return u64::MAX,
            }
        }
        u64::MAX
    }
}

/// The signal of the `struct sigevent` in argument 1; SIGALRM if there is none.
fn told_by_event(call: &Call) -> io::Result<Signals> {
    if call.argument(1) == 0 {
        return Ok(only(libc::SIGALRM));
    }
    let event = memory::bytes(call.thread(), call.argument(1), 16)?;
    let signal = memory::number_in(&event, 8) as u32;
    Ok(i32::try_from(signal).map_or(u64::MAX, only))
}

/// The signal that tells of a descriptor, if the call asks for one.
fn told_by_descriptor(call: &Call) -> Signals {
    const F_SETSIG: i32 = 10;
    const REQUESTS: [i32; 4] = [8, 15, 1024, 1026];
    match call.int(1) {
        F_SETSIG => only(call.int(2)),
        request if REQUESTS.contains(&request) => only(libc::SIGIO) | only(libc::SIGURG),
        _ => 0,
    }
}

fn process_of(thread: u32) -> u32 {
    if kernel::is_first_thread(thread) == Some(true) {
        return thread;
    }
    leader_and_parent(thread).map_or(thread, |(leader, _)| leader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_do_not_come_interrupt_nothing() {
        let own = std::process::id();
        let handling = |signal| {
            let known = FxHashMap::from_iter([(own, only(signal))]);
            let mut interrupts = Interrupts { known, any: true, ..Interrupts::default() };
            interrupts.exposes(own, || "x".to_owned());
            interrupts
        };
        let is_interrupted = |interrupts: &mut Interrupts| interrupts.interrupted().is_some();
        let mut interrupts = handling(libc::SIGHUP);
        assert!(!is_interrupted(&mut interrupts));
        interrupts.opens(b"/dev/ptmx");
        assert!(
            is_interrupted(&mut interrupts),
            "the handler was seen before the signal could come"
        );
        let mut interrupts = handling(libc::SIGIO);
        assert!(!is_interrupted(&mut interrupts));
        interrupts.controls(FIOASYNC);
        assert!(is_interrupted(&mut interrupts));
        interrupts.starts_program(own);
        interrupts.exposes(own, || "x".to_owned());
        assert!(!is_interrupted(&mut interrupts), "another program has no handlers");
        assert!(is_interrupted(&mut handling(libc::SIGCHLD)));
    }
}
