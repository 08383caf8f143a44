//! Signals that are sent to this process and meant for the child that it runs.
//!
//! A tool that a shim runs gets the signals that end processes. A test gets all of them, with their
//! values, as if it had our process number; and when the terminal stops it, we stop with it. What
//! the terminal sends goes to the whole process group, so that the child has it already; what a
//! process sends may be for us alone.

use super::dispositions::{self, FIRST_REAL_TIME};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The child that signals are passed on to; 0 while there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The signals that came before the child was known, a bit each.
static EARLY: AtomicU64 = AtomicU64::new(0);
/// The last signal from outside; 0 if none came.
static SURVIVED: AtomicI32 = AtomicI32::new(0);
/// When SIGTSTP came last, in seconds of the monotonic clock; 0 if it did not.
static SUSPENDED: AtomicI64 = AtomicI64::new(0);
/// This process is stopped, or about to be, because the child is.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

type Handler = extern "C" fn(libc::c_int, *const libc::siginfo_t);

/// Signals that end processes, for tools.
const ENDS: [libc::c_int; 9] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGABRT,
    // A limit on the size of files is for the child to die of; our own writing just fails.
    libc::SIGXFSZ,
];

/// What the processor reports of our own mistakes.
const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// The kernel sends these because of timers and descriptors that we never set up: the process that
/// started us did, for the program that would be in our place (`perl -e 'alarm 5; exec @ARGV'`).
const PREPARED: [libc::c_int; 5] =
    [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGIO, libc::SIGURG];

/// From the kernel these change nothing about how a test ends; files that became too large are
/// ours.
const HARMLESS: [libc::c_int; 4] = [libc::SIGWINCH, libc::SIGCHLD, libc::SIGURG, libc::SIGXFSZ];

/// Makes this process outlive signals that are meant for the tool it is about to start. Handlers,
/// not SIG_IGN: exec resets handlers, so the child starts with the dispositions that we were given.
pub fn survive_signals() {
    for signal in ENDS {
        // An ignored signal has to be ignored by the child too (`nohup make`).
        if !dispositions::is_ignored(signal) {
            install(signal, handle);
        }
    }
}

/// A limit on the size of files (`ulimit -f`) does not end this process: what it wants to keep is
/// not kept then.
pub fn survive_file_size_limit() {
    super::given::given_signals();
    install(libc::SIGXFSZ, handle);
}

/// Passes on every signal to the test that is about to be started with `start_test_as_given`, also
/// those that we were given as ignored or blocked: the test may change its mind about them. SIGTTIN
/// and SIGTTOU go to the whole process group, and stop it.
pub fn pass_on_signals() {
    super::given::given_signals();
    let is_left_alone = |signal: &libc::c_int| {
        [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU].contains(signal)
            || (libc::SIGSYS < *signal && *signal < FIRST_REAL_TIME)
    };
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| !is_left_alone(signal)) {
        install(signal, handle);
    }
    dispositions::change_mask(Some(0));
}

fn install(signal: libc::c_int, handler: Handler) {
    // SAFETY: the struct is plain data for which zero is valid, and lives through the call; the
    // handlers only touch atomics and make async-signal-safe calls.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        // Our own libc may keep one signal more for itself than that of tests (musl does).
        if libc::sigaction(signal, &new, std::ptr::null_mut()) != 0 && signal >= FIRST_REAL_TIME {
            libc::sigaction(libc::SIGRTMAX(), &new, std::ptr::null_mut());
            dispositions::copy_action(libc::SIGRTMAX(), signal);
        }
    }
}

/// Survives a signal, and passes it on unless the child has it from the same source.
extern "C" fn handle(signal: libc::c_int, origin: *const libc::siginfo_t) {
    // SAFETY: the kernel gives a handler that asks for it (SA_SIGINFO) a valid pointer.
    let origin = unsafe { &*origin };
    let is_from_kernel = origin.si_code > 0;
    if is_from_kernel && FAULTS.contains(&signal) {
        return die_of(signal);
    }
    // SAFETY: a signal of a process has its number; getpid and getsid take no pointers.
    let (is_own, leads) = unsafe {
        (!is_from_kernel && origin.si_pid() == libc::getpid(), libc::getsid(0) == libc::getpid())
    };
    if is_own {
        return;
    }
    let is_pause = [libc::SIGTSTP, libc::SIGCONT].contains(&signal);
    let is_harmless = is_from_kernel && HARMLESS.contains(&signal);
    if !is_pause && !is_harmless {
        SURVIVED.store(signal, Ordering::SeqCst);
    }
    if signal == libc::SIGTSTP {
        SUSPENDED.store(now(), Ordering::SeqCst);
    }
    // A session's leader alone is told when the terminal is gone.
    let is_for_child =
        !is_from_kernel || PREPARED.contains(&signal) || (signal == libc::SIGHUP && leads);
    if is_for_child && !(signal == libc::SIGCONT && IS_STOPPED.load(Ordering::SeqCst)) {
        match CHILD.load(Ordering::SeqCst) {
            0 => _ = EARLY.fetch_or(1 << (signal - 1), Ordering::SeqCst),
            child => forward(child, signal, origin),
        }
    }
}

/// Our own mistake: it happens again once nobody catches it.
fn die_of(signal: libc::c_int) {
    // SAFETY: both calls are async-signal-safe and take no pointers here.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Sends a signal with the value that came with it, if one did.
fn forward(child: libc::pid_t, signal: libc::c_int, origin: &libc::siginfo_t) {
    match origin.si_code {
        // SAFETY: a queued signal has a value, which is only passed on; sigqueue is
        // async-signal-safe.
        libc::SI_QUEUE => _ = unsafe { libc::sigqueue(child, signal, origin.si_value()) },
        _ => send(child, signal),
    }
}

fn send(process: libc::pid_t, signal: libc::c_int) {
    // SAFETY: kill takes no pointers and is async-signal-safe.
    unsafe { libc::kill(process, signal) };
}

/// Seconds of the monotonic clock.
fn now() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives through the call, which is async-signal-safe.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec.max(1)
}

/// Names the child that signals go to, and passes on what came before it was known.
/// `None` once it has been waited for, since its number may then be another process's.
pub fn forward_signals_to(child: Option<u32>) {
    let child = child.and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
    CHILD.store(child, Ordering::SeqCst);
    if child != 0 {
        let early = EARLY.swap(0, Ordering::SeqCst);
        for signal in (1..=64).filter(|signal| early & (1 << (signal - 1)) != 0) {
            send(child, signal);
        }
    }
}

/// The last signal that came from outside and can have changed how the child ends.
pub fn survived_signal() -> Option<i32> {
    Some(SURVIVED.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Waits for the end of a child that gets our signals. When the terminal stops it, we stop as well,
/// so that a process that waits for us sees it; we continue together.
pub fn wait_while_signals_are_passed_on(child: &mut Child) -> io::Result<ExitStatus> {
    forward_signals_to(Some(child.id()));
    while let Some(signal) = next_stop(child.id()) {
        if was_suspended() {
            stop_with(child.id(), signal);
        }
    }
    // Its number is its own until it has been waited for.
    forward_signals_to(None);
    child.wait()
}

/// The signal that has stopped a process; `None` once it has ended.
fn next_stop(process: u32) -> Option<i32> {
    let wait = |flags| {
        // SAFETY: the struct is plain data for which zero is valid, and lives through the call.
        unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let result = libc::waitid(libc::P_PID, process, &mut found, flags);
            (result == 0).then_some(found)
        }
    };
    loop {
        match wait(libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT) {
            None if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Some(found) if found.si_code == libc::CLD_STOPPED => {
                // Seen, and not to be seen again.
                wait(libc::WSTOPPED | libc::WNOHANG);
                // SAFETY: a report of waitid has a status.
                return Some(unsafe { found.si_status() });
            }
            _ => return None,
        }
    }
}

/// Whether the terminal, or somebody in its place, wants us to stop. A child that stops itself is
/// not followed: nobody would wake us with it.
fn was_suspended() -> bool {
    const AT_MOST: i64 = 5;
    let is_recent = || {
        let at = SUSPENDED.load(Ordering::SeqCst);
        at != 0 && now() - at <= AT_MOST
    };
    if !is_recent() {
        // The child may have got its signal before us.
        std::thread::sleep(Duration::from_millis(20));
    }
    let is_suspended = is_recent();
    SUSPENDED.store(0, Ordering::SeqCst);
    is_suspended
}

/// Stops this process by the signal that has stopped the child. Returns when both go on.
fn stop_with(child: u32, signal: i32) {
    IS_STOPPED.store(true, Ordering::SeqCst);
    // SAFETY: no pointers; the signal's handler is put back.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    if signal == libc::SIGTSTP {
        install(signal, handle);
    }
    // Who continues the whole process group has reached the child, or is about to.
    for _ in 0..5 {
        if !is_stopped(child) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if is_stopped(child) {
        send(child as libc::pid_t, libc::SIGCONT);
    }
    IS_STOPPED.store(false, Ordering::SeqCst);
}

fn is_stopped(process: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// Ends this process by a signal, without a core dump: the child has left the one that matters.
pub fn die_by(signal: i32) {
    // SAFETY: this prctl takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    // Not by way of libc, which lets nobody near the signals that it keeps for itself.
    dispositions::set_action(signal, &[libc::SIG_DFL as u64, 0, 0, 0]);
    dispositions::change_mask(Some(dispositions::change_mask(None) & !dispositions::bit(signal)));
    // SAFETY: raise takes no pointers.
    unsafe { libc::raise(signal) };
}
