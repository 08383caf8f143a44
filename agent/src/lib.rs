//! The agent, and the protocol between it and the watcher. The crate is built twice: by `build.rs`,
//! as the shared library that is loaded into programs (`agent`), and as the library that `tasting`
//! uses, which contains the first one as bytes.

#![no_std]

pub mod looks;
pub mod protocol;

// Clippy reads it as a part of the second one.
#[cfg(any(tasting_agent, clippy))]
mod agent;

/// The shared library, as a file.
#[cfg(not(tasting_agent))]
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));
