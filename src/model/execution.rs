//! What one execution used: its dependency set, which says *what* was used, without the values. The
//! values in the build at hand, hashed in order, are the key of the outcome.

use super::envelope::FormatError;
use super::outcome::Origin;
use super::portable_path::PortablePath;
use super::{Hash, bytes};
use serde::{Deserialize, Serialize};

/// Everything that an execution used, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencySet {
    pub dependencies: Vec<Dependency>,
}

/// One thing that an execution used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dependency {
    pub kind: DependencyKind,
    pub place: PortablePath,
    /// For a program: the libraries that the dynamic loader opened for it, in that order.
    pub libraries: Vec<PortablePath>,
    /// For a program whose functions were traced: those that were executed, as the numbers that the
    /// walk over them gives. Empty if all of it counts.
    #[serde(with = "bytes")]
    pub executed: Vec<u8>,
}

impl Dependency {
    /// On all of something.
    pub fn on(kind: DependencyKind, place: PortablePath) -> Self {
        Dependency { kind, place, libraries: Vec::new(), executed: Vec::new() }
    }
}

/// What something was used as, which decides what its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DependencyKind {
    /// The standard input: its content.
    Input,
    /// A program that was executed: its fingerprint, or its content.
    Program,
    /// A library that the dynamic loader mapped, and nobody else read: nothing where the
    /// fingerprint of each program that it was mapped into covers it, else its content.
    Library,
    /// A file that was read: its content.
    File,
    /// A name that was looked for in vain: that there is still nothing.
    Absent,
    /// Something that may not be looked at: that it still may not.
    Denied,
    /// Something that was found: what kind of thing it is.
    Exists,
    /// Something whose attributes were asked for: kind, size, whether it can be executed.
    Attributes,
    /// A folder that was listed: the names in it.
    Folder,
    /// A symbolic link that was followed: where it leads.
    Link,
    /// Files that the project declares as inputs of all its tests, by a pattern: their names and
    /// contents.
    Declared,
    /// A part of the surroundings that the outcome mentions: a folder above the project, its
    /// length, an ignored variable.
    Mentioned,
    /// Something about the machine that is asked without a file: a free port, a terminal.
    Fact,
    /// A name under which a file is written anew: whether that is possible.
    Overwritten,
    /// A file that is changed and keeps its permissions: what they are.
    Permissions,
    /// A name that something is renamed to: whether a folder has it.
    Replaced,
    /// A folder in which names are made or removed: whether that is possible.
    Writable,
    /// Extended attributes that were asked for.
    Extended,
    /// A file whose time of change is that of a file that is left behind (`cp -p`, `chmod`).
    Time,
    /// A file that is locked without waiting: whether somebody else has locked it.
    Locked,
}

impl DependencyKind {
    /// Whether its place is a name of its own, and not a path.
    pub fn is_no_path(self) -> bool {
        matches!(self, DependencyKind::Input | DependencyKind::Mentioned | DependencyKind::Fact)
    }
}

/// The latest execution of a test, with the values of all that it used: what the build at hand is
/// compared with when people ask why a test runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The test's identity. Two of the same command differ in their invocation context.
    pub test: Hash,
    /// The invocation context: for each entry a name for people, and the hash of the value.
    pub context_entries: Vec<(String, Hash)>,
    pub used: Vec<RecordedDependency>,
    /// The dependency set that says what was executed, where that is left out here.
    pub narrowed: Option<Hash>,
    /// Why the execution cannot be reused, if so.
    pub refusals: Vec<String>,
    pub exit_code: i32,
    pub origin: Origin,
}

/// One thing that was used, and what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDependency {
    pub dependency: Dependency,
    pub value: Hash,
    /// For a program with a fingerprint: the names of the manifests that went into it, in the
    /// store. Its own is the first.
    pub manifests: Vec<Hash>,
    /// Why it was not narrowed down, where it could have been: a program without a manifest, or
    /// with one that does not fit.
    pub note: String,
}

/// The latest test that used a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUse {
    /// The command, for people.
    pub argv: Vec<String>,
    /// The name of its trace in the store.
    pub trace: Hash,
}

impl LastUse {
    /// The use as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((used, [])) => Ok(used),
            _ => Err(FormatError::Malformed),
        }
    }
}

impl Trace {
    /// What was used, without the values.
    pub fn dependency_set(&self) -> DependencySet {
        DependencySet {
            dependencies: self.used.iter().map(|used| used.dependency.clone()).collect(),
        }
    }

    /// The trace as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((trace, [])) => Ok(trace),
            _ => Err(FormatError::Malformed),
        }
    }
}

impl DependencySet {
    /// Whether it leaves out what was not executed of some program.
    pub fn is_narrowed(&self) -> bool {
        self.dependencies.iter().any(|dependency| !dependency.executed.is_empty())
    }

    /// What two equal dependency sets have in common.
    pub fn hash(&self) -> Result<Hash, FormatError> {
        Ok(Hash::of(&self.to_bytes()?))
    }

    /// The dependency set as bytes, without an envelope: the store puts one around what it has
    /// packed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((dependency_set, [])) => Ok(dependency_set),
            _ => Err(FormatError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Base;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kind_base_order_and_libraries_count() {
        let place = |base| PortablePath { base, path: b"a".to_vec() };
        let one = |kind, base, libraries: &[Base]| {
            let libraries = libraries.iter().map(|base| place(*base)).collect();
            Dependency { libraries, ..Dependency::on(kind, place(base)) }
        };
        let file = one(DependencyKind::File, Base::Root, &[]);
        let all = [
            vec![file.clone()],
            vec![one(DependencyKind::Absent, Base::Root, &[])],
            vec![one(DependencyKind::File, Base::Build, &[])],
            vec![one(DependencyKind::File, Base::Root, &[Base::Build])],
            vec![file.clone(), one(DependencyKind::Absent, Base::Root, &[])],
            vec![one(DependencyKind::Absent, Base::Root, &[]), file],
        ];
        let hashes: std::collections::HashSet<_> = all
            .into_iter()
            .map(|dependencies| DependencySet { dependencies }.hash().unwrap())
            .collect();
        assert_eq!(hashes.len(), 6);
    }

    proptest! {
        #[test]
        fn a_dependency_set_comes_back_as_it_was(paths: Vec<Vec<u8>>) {
            let dependency = |path| Dependency::on(DependencyKind::Folder, PortablePath { base: Base::Build, path });
            let dependency_set = DependencySet { dependencies: paths.into_iter().map(dependency).collect() };
            prop_assert_eq!(DependencySet::from_bytes(&dependency_set.to_bytes().unwrap()), Ok(dependency_set));
        }

        #[test]
        fn arbitrary_bytes_never_panic_as_dependency_sets(bytes: Vec<u8>) {
            let _ = DependencySet::from_bytes(&bytes);
        }
    }
}
