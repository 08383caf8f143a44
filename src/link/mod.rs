//! (being written)

/// What a call of a linker will do.
pub mod arguments;
/// The linkers' options.
pub mod options;
/// Finding the real linker.
pub mod real;
/// The whole of `tasting-ld`.
pub mod shim;
