//! The plain types of the project: no I/O, no ELF, nothing of other folders.

pub mod bytes;
pub mod calendar;
pub mod code;
pub mod codes;
pub mod decision;
pub mod envelope;
pub mod execution;
mod flat;
pub mod hash;
pub mod identity;
pub mod keys;
pub mod manifest;
pub mod node;
pub mod outcome;
pub mod placement;
pub mod portable_path;
pub mod record;
pub mod refusal;

pub use code::{Code, Function};
pub use decision::{
    Audit, Decision, Disturbed, Granularities, Mark, Rebuilt, Shadow, Stats, Step, Treatment,
    Verdict,
};
pub use envelope::FormatError;
pub use execution::{
    Dependency, DependencyKind, DependencySet, LastUse, RecordedDependency, Trace,
};
pub use hash::{Hash, Hasher};
pub use identity::FileIdentity;
pub use manifest::Manifest;
pub use outcome::{Exit, Left, LeftFile, Origin, Outcome, Stream};
pub use placement::{PlacedSection, Placement};
pub use portable_path::{Base, PortablePath};
pub use record::{Atom, AtomKind, Level, Record, Reference, Symbol, SymbolKind, Target};
pub use refusal::{Refusal, Why};
