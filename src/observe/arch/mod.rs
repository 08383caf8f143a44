//! What the watcher knows of the processor that it is built for: numbers of system calls, and what
//! the agent can do there. One file per processor, each with the same names.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod processor;

pub use processor::*;
