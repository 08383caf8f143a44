//! What the agent needs of the processor: breakpoints, what a handler finds in its context, system
//! calls. One file per processor, each with the same names.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod processor;

pub use processor::*;
