//! (being written)

/// What a call of a linker will do.
pub mod arguments;
/// Where the linker's map comes from.
pub mod map_source;
/// The linkers' options.
pub mod options;
/// Finding the real linker.
pub mod real;
/// The whole of `tasting-ld`.
pub mod shim;
