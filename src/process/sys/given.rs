//! What this process was given by its parent: closed standard descriptors, ignored and blocked
//! signals. Commands are started with the same.
//!
//! Rust's start code, which runs before `main`, opens closed standard descriptors and ignores
//! SIGPIPE, and nothing tells afterwards what was there before. So this is the one file with a
//! function that runs before `main`: it makes three system calls and stores their results.

use super::dispositions::{FIRST_REAL_TIME, bit, change_mask, ignore, is_ignored};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

static CLOSED: AtomicU32 = AtomicU32::new(0);
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note_what_is_given;

extern "C" fn note_what_is_given() {
    for number in 0..3 {
        // SAFETY: F_GETFD takes no pointers.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
    IGNORES_SIGPIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    BLOCKED.store(change_mask(None), Ordering::Relaxed);
}

/// Whether standard input, output or error was closed when this process started.
pub fn lacks_a_standard_descriptor() -> bool {
    CLOSED.load(Ordering::Relaxed) != 0
}

/// Whether this process was started with SIGPIPE ignored.
pub fn was_given_no_sigpipe() -> bool {
    IGNORES_SIGPIPE.load(Ordering::Relaxed)
}

/// The signals that this process was given as ignored, and those given as blocked, a bit each, as
/// far as they tell test runs apart. To be asked for the first time before `survive_signals`. Those
/// that libc keeps for itself are left out: whether they are ignored depends on whether the process
/// that started this one ever had a second thread.
pub fn given_signals() -> (u64, u64) {
    let of_libc = (libc::SIGSYS + 1..FIRST_REAL_TIME).fold(0, |set, signal| set | bit(signal));
    (given_as_ignored() & !of_libc, BLOCKED.load(Ordering::Relaxed))
}

/// All signals that this process was given as ignored: what the first call found, before a handler
/// of ours or of libc's.
fn given_as_ignored() -> u64 {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let is_ignored = |signal: &i32| {
        if *signal == libc::SIGPIPE { was_given_no_sigpipe() } else { is_ignored(*signal) }
    };
    *IGNORED.get_or_init(|| (1..=64).filter(is_ignored).fold(0, |set, signal| set | bit(signal)))
}

/// Lets a command start with closed descriptors and signals as we were given them: Rust would give
/// it others.
pub fn start_as_given(command: &mut Command) {
    let (closed, blocked) = (CLOSED.load(Ordering::Relaxed), BLOCKED.load(Ordering::Relaxed));
    let no_sigpipe = was_given_no_sigpipe();
    if closed == 0 && blocked == 0 && !no_sigpipe {
        return;
    }
    // SAFETY: only async-signal-safe calls that take no pointers but to locals.
    unsafe {
        command.pre_exec(move || {
            for number in (0..3).filter(|number| closed & (1 << number) != 0) {
                libc::close(number);
            }
            if no_sigpipe {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            change_mask(Some(blocked));
            Ok(())
        });
    }
}

/// The same for a command that gets all signals that are sent to us (`pass_on_signals`): what we
/// were given as ignored, and catch to pass it on, is ignored there.
pub fn start_test_as_given(command: &mut Command) {
    start_as_given(command);
    let ignored = given_as_ignored();
    if ignored == 0 {
        return;
    }
    // SAFETY: setting signals is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            (1..=64).filter(|signal| ignored & bit(*signal) != 0).for_each(ignore);
            Ok(())
        });
    }
}
