//! Watching one execution: every file, program and partner that a test and all its children use, seen by a
//! seccomp filter that stops the calls which matter, shows them to us, and lets them go on. No tracing, so
//! that debuggers and LeakSanitizer work inside.
//!
//! command → `watch` → `filter` (of the table in `calls`) → stopped calls → `supervisor` → `files`, `others` →
//! `resolve` (what the path means) → `ledger` (what was met first, what is the test's own; `policy`, `content`)
//! → `closing` → uses and refusals.

/// The library that is preloaded into tests.
pub mod agent;
/// The table of watched system calls.
pub mod calls;
/// The end of the account.
mod closing;
/// Hashes of files, remembered by identity.
pub mod content;
/// Calls about files and programs.
mod files;
/// The filter as a program for the kernel.
mod filter;
/// Standard input and descriptors from outside.
pub mod inherited;
/// System calls: unsafe code.
mod kernel;
/// The account of a run.
mod ledger;
/// Entries of folders.
pub mod listing;
/// Which calls the dynamic loader makes.
mod loaders;
/// Arguments in the memory of other processes.
mod memory;
/// Calls about sockets, processes and users.
mod others;
/// How `/dev`, `/proc` and `/sys` count.
pub mod policy;
/// Which processes are the test's.
mod processes;
/// Interpreters and privileges.
mod programs;
/// What paths mean.
mod resolve;
/// Whom a test talks to.
mod sockets;
/// The thread that answers.
mod supervisor;
/// Which functions are executed.
pub mod tracing;
/// What a run used.
pub mod used;
/// From start to end.
pub mod watch;

pub use content::{Contents, Forgetful, Identity, Memory};
pub use inherited::Input;
pub use used::{Details, Kind, Use, What};
pub use watch::{CannotWatch, Watch, Watched, Watching, availability, is_watched, start, watch};
