//! The keys under which results are stored and found again, with their byte encodings.
//!
//! In: typed parts of a key. Out: hashes. A change of what a key is made of, or of what a stored
//! value means, raises [`SCHEMA`]; the golden tests below fail when a key changes by accident. No
//! key depends on a text for people, on `Debug` output or on the order in which the variants of an
//! enum are declared (`tests/it/keys.rs`).

use super::portable_path::{Base, PortablePath};
use super::{DependencyKind, FileIdentity, Hash, Hasher, Level};
use std::path::Path;

/// The version of all keys: stores of another one are not found, and their entries grow old.
pub const SCHEMA: u64 = 1;

/// What a key stands for. Its tag is part of the key, so that no two kinds of things share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// A test: command, place and invocation context.
    Test,
    Outcome,
    /// An outcome, by all of its programs, whatever of them was executed.
    WholeOutcome,
    /// An outcome that names folders of one checkout.
    CheckoutOutcome,
    Trace,
    /// One of the executions of a test that `explain` can compare with.
    EarlierTrace,
    LastUse,
    KeptManifest,
    /// What a test was seen to pass with, at each granularity of change.
    SeenGranularities,
    TwoBuilds,
    PassedWhileTraced,
    HasSanitizer,
    CallSites,
    CodeOfBinary,
    LibraryDigest,
    /// Of all that is loaded of a binary.
    LoadedDigest,
    ProgramFingerprint,
    CoveredLibraries,
    LinkerOfDriver,
    LinkerKind,
    Compiler,
    CompilerOfWrapper,
    Object,
    ObjectContext,
    CleanDeclaration,
    RemoteStore,
    Breakers,
    ContentEntry,
    /// What was used by an execution of a test, by the attributes of the files.
    Stamp,
    PatchedLibrary,
    /// With what the tests of a suite were started.
    SuiteStarts,
    /// The tests of a suite that failed the last time.
    SuiteFailures,
    /// What a walk went into, in the build that it walked through.
    Visit,
    /// The modules of such a build.
    Build,
    /// What is not the same in two builds.
    Differences,
}

impl KeyOf {
    pub const ALL: [KeyOf; 35] = [
        KeyOf::Test,
        KeyOf::Outcome,
        KeyOf::WholeOutcome,
        KeyOf::CheckoutOutcome,
        KeyOf::Trace,
        KeyOf::EarlierTrace,
        KeyOf::LastUse,
        KeyOf::KeptManifest,
        KeyOf::SeenGranularities,
        KeyOf::TwoBuilds,
        KeyOf::PassedWhileTraced,
        KeyOf::HasSanitizer,
        KeyOf::CallSites,
        KeyOf::CodeOfBinary,
        KeyOf::LibraryDigest,
        KeyOf::LoadedDigest,
        KeyOf::ProgramFingerprint,
        KeyOf::CoveredLibraries,
        KeyOf::LinkerOfDriver,
        KeyOf::LinkerKind,
        KeyOf::Compiler,
        KeyOf::CompilerOfWrapper,
        KeyOf::Object,
        KeyOf::ObjectContext,
        KeyOf::CleanDeclaration,
        KeyOf::RemoteStore,
        KeyOf::Breakers,
        KeyOf::ContentEntry,
        KeyOf::Stamp,
        KeyOf::PatchedLibrary,
        KeyOf::SuiteStarts,
        KeyOf::SuiteFailures,
        KeyOf::Visit,
        KeyOf::Build,
        KeyOf::Differences,
    ];

    fn tag(self) -> &'static str {
        match self {
            KeyOf::Test => "test",
            KeyOf::Outcome => "outcome",
            KeyOf::WholeOutcome => "whole",
            KeyOf::CheckoutOutcome => "bound to its place",
            KeyOf::Trace => "trace",
            KeyOf::EarlierTrace => "earlier trace",
            KeyOf::LastUse => "last use",
            KeyOf::KeptManifest => "kept manifest",
            KeyOf::SeenGranularities => "seen granularities",
            KeyOf::TwoBuilds => "two builds",
            KeyOf::PassedWhileTraced => "passed while traced",
            KeyOf::HasSanitizer => "has a sanitizer",
            KeyOf::CallSites => "sites",
            KeyOf::CodeOfBinary => "code",
            KeyOf::LibraryDigest => "digest of a library",
            KeyOf::LoadedDigest => "digest of what is loaded",
            KeyOf::ProgramFingerprint => "fingerprint of files",
            KeyOf::CoveredLibraries => "covered libraries",
            KeyOf::LinkerOfDriver => "linker of driver",
            KeyOf::LinkerKind => "kind of linker",
            KeyOf::Compiler => "which compiler, and its libraries",
            KeyOf::CompilerOfWrapper => "which compiler a wrapper runs",
            KeyOf::Object => "object",
            KeyOf::ObjectContext => "circumstances",
            KeyOf::CleanDeclaration => "silent declaration",
            KeyOf::RemoteStore => "remote store",
            KeyOf::Breakers => "breakers",
            KeyOf::ContentEntry => "remembered content",
            KeyOf::Stamp => "stamp",
            KeyOf::PatchedLibrary => "patched library",
            KeyOf::SuiteStarts => "starts of a suite",
            KeyOf::SuiteFailures => "failures of a suite",
            KeyOf::Visit => "visit",
            KeyOf::Build => "build",
            KeyOf::Differences => "differences",
        }
    }

    /// A hasher that has met the schema and the tag.
    pub fn hasher(self) -> Hasher {
        let mut hasher = Hasher::new(self.tag());
        hasher.number(SCHEMA);
        hasher
    }

    /// The key of something that one hash tells from all others of its kind.
    pub fn of(self, part: Hash) -> Hash {
        self.hasher().hash(part).finish()
    }

    /// The key of what follows from one file, as long as that is the same.
    pub fn of_file(self, identity: &FileIdentity) -> Hash {
        self.of(identity.hash())
    }
}

/// A type with a number for each of its values, which never changes: what keys are made of instead
/// of discriminants.
pub trait Code: Copy {
    fn code(self) -> u64;
}

impl Code for Base {
    fn code(self) -> u64 {
        match self {
            Base::None => 0,
            Base::Root => 1,
            Base::Build => 2,
            Base::Home => 3,
            Base::Temporary => 4,
            Base::Runtime => 5,
            Base::Job => 6,
        }
    }
}

impl Code for Level {
    fn code(self) -> u64 {
        match self {
            Level::Code => 0,
            Level::Ast => 1,
            Level::File => 2,
        }
    }
}

impl Code for DependencyKind {
    fn code(self) -> u64 {
        match self {
            DependencyKind::Input => 0,
            DependencyKind::Program => 1,
            DependencyKind::Library => 2,
            DependencyKind::File => 3,
            DependencyKind::Absent => 4,
            DependencyKind::Denied => 5,
            DependencyKind::Exists => 6,
            DependencyKind::Attributes => 7,
            DependencyKind::Folder => 8,
            DependencyKind::Link => 9,
            DependencyKind::Declared => 10,
            DependencyKind::Mentioned => 11,
            DependencyKind::Fact => 12,
            DependencyKind::Overwritten => 13,
            DependencyKind::Permissions => 14,
            DependencyKind::Replaced => 15,
            DependencyKind::Writable => 16,
            DependencyKind::Extended => 17,
            DependencyKind::Time => 18,
            DependencyKind::Locked => 19,
        }
    }
}

impl Hasher {
    /// One value of a type whose values have numbers.
    pub fn code(&mut self, value: impl Code) -> &mut Self {
        self.number(value.code())
    }

    /// A place: its base, and the path from there.
    pub fn place(&mut self, place: &PortablePath) -> &mut Self {
        self.code(place.base).bytes(&place.path)
    }

    /// Numbers, led by how many there are.
    pub fn numbers(&mut self, numbers: &[u64]) -> &mut Self {
        self.number(numbers.len() as u64);
        numbers.iter().fold(self, |hasher, number| hasher.number(*number))
    }
}

/// The key of an outcome: the test, what it used, and what that is. `surroundings` are the folders
/// around the project, where they count.
pub fn outcome(
    test: Hash,
    dependency_set: Hash,
    surroundings: &[PortablePath],
    values: &[Hash],
) -> Hash {
    let mut hasher = KeyOf::Outcome.hasher();
    hasher.hash(test).hash(dependency_set).number(values.len() as u64);
    surroundings.iter().for_each(|place| _ = hasher.place(place));
    values.iter().for_each(|value| _ = hasher.hash(*value));
    hasher.finish()
}

/// The key of one of a test's earlier executions, of which each has a slot.
pub fn earlier_trace(test: Hash, slot: u64) -> Hash {
    KeyOf::EarlierTrace.hasher().hash(test).number(slot).finish()
}

/// The key of the latest use of a binary. Other checkouts and projects have binaries of the same
/// names.
pub fn last_use(root: &Path, place: &PortablePath) -> Hash {
    KeyOf::LastUse.hasher().bytes(root.as_os_str().as_encoded_bytes()).place(place).finish()
}

/// A state that is the whole value of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainState {
    Absent,
    Denied,
    There,
    Unknown,
    /// The place is relative to a folder that this project has not.
    NoSuchFolder,
    /// A library that the fingerprint of the program covers.
    Covered,
    /// A library of the system, of which the project counts the name alone.
    OfTheSystem,
}

impl PlainState {
    /// The value of a dependency in this state.
    pub fn value(self) -> Hash {
        let tag: &[u8] = match self {
            PlainState::Absent => b"absent",
            PlainState::Denied => b"denied",
            PlainState::There => b"there",
            PlainState::Unknown => b"unknown",
            PlainState::NoSuchFolder => b"no such folder",
            PlainState::Covered => b"covered",
            PlainState::OfTheSystem => b"of the system",
        };
        Hasher::new("state").bytes(tag).finish()
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
