//! The system calls of the watcher: installing the filter, receiving and answering notifications,
//! reading another process's memory. With `process/sys/` the only unsafe code of the crate, and
//! by the same rule: each call is wrapped so that the rest of the crate cannot misuse it.
//!
//! In: filters, descriptors, process ids, addresses in other processes. Out: notifications, bytes.

#![expect(
    unsafe_code,
    reason = "seccomp, its ioctls, process_vm_readv, prctl and fork have no safe wrapper in std"
)]

mod files;
mod listener;
mod tasks;

pub use files::{
    descriptor_flags, duplicate, has_capabilities, has_message_queue, is_at_its_end,
    is_open_for_writing,
};
pub use listener::{Listener, Notification, install};
pub use tasks::*;
