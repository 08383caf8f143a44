//! Golden keys. One that fails means that every store loses what it knows: raise `SCHEMA` if that
//! is meant, and write the new keys here.

use super::super::{Dependency, DependencySet};
use super::*;
use std::collections::HashSet;

fn place() -> PortablePath {
    PortablePath { base: Base::Build, path: b"a/b".to_vec() }
}

#[test]
fn keys_of_every_kind_stay() {
    let all: Vec<String> =
        KeyOf::ALL.iter().map(|kind| format!("{kind:?} {}", kind.of(Hash([7; 16])))).collect();
    assert_eq!(all.join("\n"), include_str!("keys.golden").trim_end());
}

#[test]
fn no_two_kinds_share_a_tag() {
    let tags: HashSet<&str> = KeyOf::ALL.iter().map(|kind| kind.tag()).collect();
    assert_eq!(tags.len(), KeyOf::ALL.len());
}

#[test]
fn composed_keys_stay() {
    let [test, dependency_set, value] = [1, 2, 3].map(|byte| Hash([byte; 16]));
    let keys = [
        outcome(test, dependency_set, &[], &[value]),
        outcome(test, dependency_set, &[place()], &[value, value]),
        last_use(Path::new("/w"), &place()),
        earlier_trace(test, 3),
        Hasher::new("x").numbers(&[1, 2]).code(Level::Ast).finish(),
        PlainState::Absent.value(),
        PlainState::OfTheSystem.value(),
    ];
    let expected = [
        "d65c2284df5be7796c2dd7185a2a3a67",
        "24bc77de0b9974a5f6578f44b400abeb",
        "2986db5cbf09393526971fe404067fef",
        "7bf67c9c931039ac495831cd73b5b679",
        "8fda0f0d7ed1bb624fb7c212539be6b2",
        "e343e3ed167eb2c05592001ce6202aab",
        "2398f3c82d2ba70f4bfd3de10aacb01d",
    ];
    assert_eq!(keys.map(|key| key.to_string()), expected);
}

/// DependencySets are hashed as they are written. Their numbers are those of the declarations, so a
/// new kind goes to the end.
#[test]
fn kinds_and_bases_keep_their_numbers_on_disk() {
    use DependencyKind::*;
    let kinds = [
        Input,
        Program,
        Library,
        File,
        Absent,
        Denied,
        Exists,
        Attributes,
        Folder,
        Link,
        Declared,
        Mentioned,
        Fact,
        Overwritten,
        Permissions,
        Replaced,
        Writable,
        Extended,
        Time,
        Locked,
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        assert_eq!(kind.code(), number as u64);
        let dependency_set = DependencySet { dependencies: vec![Dependency::on(kind, place())] };
        assert_eq!(
            dependency_set.to_bytes().unwrap(),
            [1, number as u8, 2, 3, b'a', b'/', b'b', 0, 0]
        );
    }
    let bases = [
        Base::None,
        Base::Root,
        Base::Build,
        Base::Home,
        Base::Temporary,
        Base::Runtime,
        Base::Job,
    ];
    for (number, base) in bases.into_iter().enumerate() {
        assert_eq!(base.code(), number as u64);
        let place = PortablePath { base, path: Vec::new() };
        let dependency_set = DependencySet { dependencies: vec![Dependency::on(File, place)] };
        assert_eq!(dependency_set.to_bytes().unwrap(), [1, 3, number as u8, 0, 0, 0]);
    }
}
