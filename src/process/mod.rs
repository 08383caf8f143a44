//! Other programs and files: all that the shims do which is not about code and hashes.
//!
//! In: argument lists, the environment, paths. Out: the real tool, found and run; response files
//! expanded; files written atomically.

/// Small answers of other programs, remembered between calls.
pub mod answers;
/// Files that are written whole or not at all.
pub mod atomic_write;
/// Finding the real compiler.
pub mod find;
/// Two shims in a row do the work once.
pub mod guard;
/// What the compiler's shim tells the linker's shim, through the driver between them.
pub mod handover;
/// Finding the real linker, and what kind it is.
pub mod linker;
/// Where manifests lie.
pub mod manifest_file;
/// What the names of tools say.
pub mod names;
/// Calls that only probe the tool.
pub mod probe;
/// Work of our own that must never be noticed.
pub mod quiet;
/// `@file` arguments.
pub mod response;
/// Programs on `PATH`, and which of them are shims.
pub mod search;
/// The `TASTING_*` variables and the log file.
pub mod settings;
/// The small caches of the shims.
pub mod side_caches;
/// Starting the real tool.
pub mod spawn;
/// System calls: the crate's only unsafe code.
pub mod sys;

pub use settings::Settings;
