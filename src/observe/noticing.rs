//! Calls by which a program can notice the watcher, or that behave differently under a filter. The
//! run counts as disturbed: a pass is not stored, and a failure is repeated unwatched.
//!
//! In: stopped calls. Out: disturbances.

use super::call::Call;
use super::others::is_ourselves;
use super::supervisor::Supervisor;

/// Events of inotify and fanotify that our own reading of an input causes: access, close of what
/// was not written, opening.
const READING: u64 = 0x1 | 0x10 | 0x20;
/// The same of fanotify: opening to execute, and each event that waits for a permission.
const ALSO_READING: u64 = 0x1000 | 0x7_0000;

const SEES_READING: &str = "is told who reads files, and we do";
const STRICT: &str =
    "allows itself no more than reading and writing, which does not work below a filter";
const ASKS: &str = "asks whether its system calls are filtered";
/// We set one, so that no test goes on without us.
const ASKS_FOR_SIGNAL: &str = "asks which signal it gets when its parent ends";

impl Supervisor {
    pub(super) fn note_noticing(&mut self, call: &Call) {
        let reason = match call.notification.number {
            libc::SYS_inotify_add_watch if call.argument(2) & READING != 0 => SEES_READING,
            libc::SYS_fanotify_mark if call.argument(2) & (READING | ALSO_READING) != 0 => {
                SEES_READING
            }
            libc::SYS_prctl if call.int(0) == libc::PR_GET_SECCOMP && !is_ourselves(call) => ASKS,
            libc::SYS_prctl if call.int(0) == libc::PR_GET_PDEATHSIG => ASKS_FOR_SIGNAL,
            libc::SYS_prctl if is_strict(call) => STRICT,
            libc::SYS_seccomp if call.argument(0) as u32 == libc::SECCOMP_SET_MODE_STRICT => STRICT,
            _ => return,
        };
        self.disturb(call.program_name(), reason);
    }
}

fn is_strict(call: &Call) -> bool {
    call.int(0) == libc::PR_SET_SECCOMP && call.argument(1) as u32 == libc::SECCOMP_MODE_STRICT
}
