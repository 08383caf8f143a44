//! The link shim. In: the linker's command line, its map, the objects. Out: the binary, as the real
//! linker makes it, and its manifest.

/// What a call of a linker will do.
pub mod arguments;
/// After the linker: the binary's description.
pub mod describe;
/// What is done while the linker runs.
pub mod early;
/// The files of a link.
pub mod files;
/// The binary that the linker made.
pub mod finished;
/// The reference graph.
pub mod graph;
/// One object, as it was linked.
pub mod input;
/// The objects of a link.
pub mod inputs;
/// The project's shared libraries.
pub mod libraries;
/// The objects of a binary in their places.
pub mod linked;
/// Link-time optimisation.
pub mod lto;
/// The linkers' maps.
pub mod map;
/// Where the linker's map comes from.
pub mod map_source;
/// The map while it is written.
pub mod map_text;
/// Lines of the map and sections of objects.
pub mod matching;
/// One file of a link.
pub mod open_file;
/// The linkers' options.
pub mod options;
/// Objects for scripts that know no sections of single functions.
pub mod plain_sections;
/// Finding the real linker.
pub mod real;
/// Records of objects that carry none.
pub mod remembered;
/// What linker scripts say about places.
pub mod script;
/// The sections of an object by name.
pub mod sections;
/// The whole of `tasting-ld`.
pub mod shim;
/// What each symbol means.
pub mod symbols;
