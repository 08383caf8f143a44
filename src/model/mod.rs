//! The plain types of the project: no I/O, no ELF, nothing of other folders.

pub mod envelope;
pub mod hash;
pub mod manifest;
pub mod placement;
pub mod record;
pub mod refusal;

pub use envelope::FormatError;
pub use hash::{Hash, Hasher};
pub use manifest::Manifest;
pub use placement::{PlacedSection, Placement};
pub use record::{Atom, AtomKind, Level, Record, Reference, Symbol, SymbolKind, Target};
pub use refusal::Refusal;
