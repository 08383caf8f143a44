//! The link shim. In: the linker's command line, its map, the objects. Out: the binary, as the real linker makes it,
//! and its manifest.

pub mod describe;
pub mod graph;
pub mod inputs;
pub mod map;
pub mod matching;
pub mod symbols;
