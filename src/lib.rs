//! Tasting reuses test results. The modules stand in the order in which the data flows; each may
//! import only those above it that `tests/it/layers.rs` lists for it.
//!
//! source → `compile` → object + record → `link` → binary + manifest → `fingerprint` → a key for
//! the test → `store` → an outcome.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("x86-64 and AArch64 are known; CONTRIBUTING.md says what another processor needs");

/// The plain types that the stages hand to each other, and their formats on disk.
pub mod model;

/// ELF: objects and archives read, records made of them and carried in them, binaries inspected.
pub mod elf;

/// Control flow inside functions, from machine code: blocks, their hashes, where each can lead.
pub mod flow;

/// Other programs and files: finding the real tool, running it, response files, atomic writes.
pub mod process;

/// What is remembered of executions: dependency sets, outcomes, decisions; kept within a limit.
pub mod store;

/// The cache of finished objects, beside the store.
pub mod objects;

/// The syntax of C: preprocessed unit → definitions, their hashes and references, and the meaning
/// of the whole.
pub mod ast;

/// The compile shim: source → object + record.
pub mod compile;

/// Manifest → fingerprint: the walk over references, components, global hashes, needed libraries.
pub mod fingerprint;

/// The link shim: objects → binary + manifest.
pub mod link;

/// Watching one execution: what a test and all its children use.
pub mod observe;

/// What is known of test harnesses and frameworks.
pub mod harness;

/// The runner hook: decide, replay, execute, record.
pub mod run;

/// A whole suite in one process: what its harness knows, decided at once, run by the harness where
/// need be.
pub mod suite;

/// Two builds of a program: what has changed, and how it is reached.
pub mod change;

/// What people and machines are shown.
pub mod report;

/// The `tasting` command, one file per subcommand.
pub mod cli;
