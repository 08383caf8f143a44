//! The operating system calls that the standard library has no safe form of. With `observe/kernel/`
//! the only unsafe code of the crate; each call is wrapped so that the rest of the crate cannot
//! misuse it.
//!
//! In: paths, signal numbers, process ids. Out: mapped files, memory files, signal dispositions.

#![expect(
    unsafe_code,
    reason = "mmap, memfd_create, sigaction, kill and prctl have no safe wrapper in std"
)]

mod background;
mod dispositions;
mod given;
mod limits;
mod memory;
mod signals;

pub use background::{detach, pass_on_behind};
pub use given::{
    given_signals, lacks_a_standard_descriptor, start_as_given, start_test_as_given,
    was_given_no_sigpipe,
};
pub use limits::{file_size_is_limited, lacks_memory, lacks_processes, limits, powers};
pub use memory::{
    Mapped, Memory, SharedWords, can_be_executed, is_opened_once, keep_memory, map, map_file,
    map_with_metadata, prepare_memory,
};
pub use signals::{
    die_by, forward_signals_to, pass_on_signals, survive_file_size_limit, survive_signals,
    survived_signal, wait_while_signals_are_passed_on,
};

/// The user that this process acts as.
pub fn user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The group that this process acts as.
pub fn group() -> u32 {
    // SAFETY: getegid takes nothing and cannot fail.
    unsafe { libc::getegid() }
}
