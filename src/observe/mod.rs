//! Watching one execution: every file, program and partner that a test and all its children use,
//! seen by a seccomp filter that stops the calls which matter, shows them to us, and lets them go
//! on. No tracing, so that debuggers and LeakSanitizer work inside.
//!
//! command → `watch` → `filter` (of the table in `calls`) → stopped calls → `supervisor` → `files`,
//! `others` → `resolve` (what the path means) → `ledger` (what was met first, what is the test's
//! own; `policy`, `content`) → `closing` → uses and refusals.

/// What a row of the table of system calls says.
pub mod act;
/// Whom socket addresses mean.
mod addresses;
/// The library that is preloaded into tests.
pub mod agent;
/// What differs between processors.
pub mod arch;
/// A call that the filter has stopped.
mod call;
/// The table of watched system calls.
pub mod calls;
/// What a run makes and changes itself.
mod changes;
/// Who connects to the servers of a test.
mod clients;
/// The end of the account.
mod closing;
/// Hashes of files, remembered by identity.
pub mod content;
/// Debuggers of traced processes.
mod debuggers;
/// Descriptors from outside, wherever they turn up.
mod descriptors;
/// What is known of a path.
mod entries;
/// Extended attributes of files.
pub mod extended;
/// What is asked of the machine without a file.
pub mod facts;
/// Calls about files and programs.
mod files;
/// The filter as a program for the kernel.
mod filter;
/// What agents show in the place of code.
mod image;
/// Standard input and descriptors from outside.
pub mod inherited;
/// The instructions of filters.
mod instructions;
/// Processes whose signal handlers interrupt calls.
mod interrupts;
/// System calls: unsafe code.
mod kernel;
/// Looks that need not be asked for again.
mod known;
/// Calls that are led past the filter.
pub mod lead;
/// The account of a run.
mod ledger;
/// The names under which libraries were opened.
mod library_names;
/// Entries of folders.
pub mod listing;
/// Which calls the dynamic loader makes.
mod loaders;
/// Files that somebody has locked.
mod lock_table;
/// Locks on files.
mod locks;
/// Arguments in the memory of other processes.
mod memory;
/// Calls that make, change and remove names.
mod names;
/// What can be noticed of the watcher.
mod noticing;
/// Calls that open files.
mod opens;
/// How files were before the run changed them.
pub mod originals;
/// Calls about sockets, processes and users.
mod others;
/// What the filter lets through.
mod passes;
/// Copies of libraries with jumps in them.
pub mod patched;
/// How `/dev`, `/proc` and `/sys` count.
pub mod policy;
/// How the agent gets into programs.
mod preload;
/// Files of processes that show the watcher.
mod process_files;
/// Which processes are the test's.
mod processes;
/// Interpreters and privileges.
mod programs;
/// Undoing a run.
mod put_back;
/// Whom signals go to.
mod receivers;
/// What loaders and agents ask for.
mod requests;
/// What paths mean.
mod resolve;
/// Where libraries make watched calls.
pub mod sites;
/// Whom a test talks to.
mod sockets;
/// Pipes in the place of the output.
pub mod stand_ins;
/// Calls that start programs.
mod starts;
/// The thread that answers.
mod supervisor;
/// What is at places that are written to.
pub mod targets;
/// Which functions are executed.
pub mod tracing;
/// What a run used.
pub mod used;
/// From start to end.
pub mod watch;

pub use content::{Contents, Forgetful, Identity, Memory};
pub use inherited::Input;
pub use listing::Kind;
pub use originals::Originals;
pub use used::{Details, Use, What};
pub use watch::{CannotWatch, Watch, Watched, Watching, availability, is_watched, start, watch};
