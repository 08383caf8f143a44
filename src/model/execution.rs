//! What one execution used: its shape, which says *what* was used and leaves the values out. The values of a shape in the
//! build at hand, hashed in order, are the key of the outcome.

use super::Hash;
use super::envelope::FormatError;
use super::outcome::bytes;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Everything that an execution used, in the order of first use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub dependencies: Vec<Dependency>,
}

/// One thing that an execution used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dependency {
    pub kind: DependencyKind,
    pub place: Place,
    /// What of it was used, where that is less than all of it: for a program or library, the atoms that were executed,
    /// written by the stage that compares them. Empty for the whole.
    #[serde(with = "bytes")]
    pub part: Vec<u8>,
}

/// What something was used as, which decides what its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DependencyKind {
    /// A file that was read: its content.
    File,
    /// A name that was looked for in vain: that there is still nothing.
    Absent,
    /// A folder that was listed: the names in it.
    Folder,
    /// A symbolic link that was followed: where it leads.
    Link,
    /// Something whose attributes were asked for: kind, size, permissions.
    Attributes,
    /// A program that was executed: its fingerprint, or its content.
    Program,
    /// A library that was mapped: its fingerprint, or its content.
    Library,
    /// An environment variable, by its name: its value, or that it is not set.
    Environment,
    /// The standard input: its content.
    Input,
}

/// A path that means the same thing in another checkout, where it can.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    pub base: Base,
    #[serde(with = "bytes")]
    pub path: Vec<u8>,
}

/// What the path of a place is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Base {
    /// Nothing: an absolute path, or a name that is no path.
    None,
    /// The project's root.
    Root,
    /// The build folder.
    Build,
    /// The working folder of the test.
    Working,
}

impl Place {
    /// A path as it is.
    pub fn absolute(path: impl AsRef<Path>) -> Self {
        Place { base: Base::None, path: path.as_ref().as_os_str().as_bytes().to_vec() }
    }
}

impl Shape {
    /// What two equal shapes have in common.
    pub fn hash(&self) -> Result<Hash, FormatError> {
        Ok(Hash::of(&self.to_bytes()?))
    }

    /// The shape as bytes, without an envelope: the store puts one around what it has packed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((shape, [])) => Ok(shape),
            _ => Err(FormatError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kind_base_order_and_part_count() {
        let place = |base| Place { base, path: b"a".to_vec() };
        let one = |kind, base, part: &[u8]| Dependency { kind, place: place(base), part: part.to_vec() };
        let file = one(DependencyKind::File, Base::Root, b"");
        let all = [
            vec![file.clone()],
            vec![one(DependencyKind::Absent, Base::Root, b"")],
            vec![one(DependencyKind::File, Base::Build, b"")],
            vec![one(DependencyKind::File, Base::Root, b"p")],
            vec![file.clone(), one(DependencyKind::Absent, Base::Root, b"")],
            vec![one(DependencyKind::Absent, Base::Root, b""), file],
        ];
        let hashes: std::collections::HashSet<_> =
            all.into_iter().map(|dependencies| Shape { dependencies }.hash().unwrap()).collect();
        assert_eq!(hashes.len(), 6);
    }

    proptest! {
        #[test]
        fn a_shape_comes_back_as_it_was(paths: Vec<Vec<u8>>) {
            let dependency = |path| Dependency { kind: DependencyKind::Folder, place: Place { base: Base::Build, path }, part: Vec::new() };
            let shape = Shape { dependencies: paths.into_iter().map(dependency).collect() };
            prop_assert_eq!(Shape::from_bytes(&shape.to_bytes().unwrap()), Ok(shape));
        }

        #[test]
        fn any_bytes_are_a_shape_or_an_error(bytes: Vec<u8>) {
            let _ = Shape::from_bytes(&bytes);
        }
    }
}
