//! Manifest → fingerprint. In: a binary's manifest and those of the libraries that it needs. Out:
//! the fingerprint, which is equal for two binaries when nothing that they can reach is different.

mod code_readers;
pub mod comparison;
pub mod components;
pub mod execution;
#[cfg(test)]
mod graphs;
pub mod libraries;
mod module_cache;
mod module_graph;
pub mod modules;
pub mod visit;
pub mod walk;

pub use module_cache::ModuleCache;
pub use modules::{FingerprintError, Opened, fingerprint};
pub use walk::Fingerprint;
