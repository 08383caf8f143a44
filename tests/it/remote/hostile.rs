//! Values that are not what they should be: a miss with a reason, and the next result takes their
//! place.

use super::machine::{Machine, files_below};
use std::path::{Path, PathBuf};
use tasting::model::{Base, Hash, Left, LeftFile, Outcome, PortablePath};
use tasting::store::remote::Name;
use tasting::store::remote::location::Attributes;
use tasting::store::remote::value::Keys;

/// The value with this ending.
fn value(place: &Path, ending: &str) -> PathBuf {
    let mut values = files_below(place);
    values.retain(|path| path.extension().is_some_and(|own| own == ending));
    assert_eq!(values.len(), 1, "{values:?}");
    values.remove(0)
}

/// The key of a value, by its place.
fn key(path: &Path) -> Hash {
    let start = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let rest = path.file_stem().unwrap().to_string_lossy().into_owned();
    Hash::from_text(&(start + &rest)).unwrap()
}

/// After this change to the only outcome, another machine runs the test, says why, and puts it
/// right.
#[track_caller]
fn is_refused(reason: &str, change: impl FnOnce(&Path)) {
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::new("alice", &format!("file:{}", place.path().display()));
    alice.runs_and_sends(&["./t", "one"]);
    change(&value(place.path(), "o1"));
    let bob = Machine::new("bob", &alice.remote);
    let ran = bob.runs(&["./t", "one"]);
    assert!(ran.decision.reason.contains(reason), "{reason:?} is not in {:?}", ran.decision.reason);
    assert_eq!(ran.outcome.stdout_text(), "one: the data\n");
    bob.does(&["push"]);
    assert!(Machine::new("carol", &alice.remote).reuses(&["./t", "one"]).decision.shared);
}

#[test]
fn damaged_values() {
    is_refused("magic", |path| {
        std::fs::write(path, "<html>Not found</html> and much more text").unwrap()
    });
    is_refused("truncated", |path| std::fs::write(path, "").unwrap());
    is_refused("truncated", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    is_refused("checksum", |path| {
        let mut bytes = std::fs::read(path).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        std::fs::write(path, bytes).unwrap();
    });
    is_refused("no plain file", |path| {
        std::fs::File::create(path).unwrap().set_len(1 << 30).unwrap()
    });
}

/// A value under the right name with another content.
fn forged(path: &Path, change: impl FnOnce(&mut Outcome)) {
    let keys = Keys::new(&Attributes::default(), &[]);
    let name = Name::outcome(key(path));
    let mut outcome = keys.read_outcome(name, &std::fs::read(path).unwrap()).unwrap();
    change(&mut outcome);
    std::fs::write(path, keys.outcome(name, &outcome).unwrap()).unwrap();
}

#[test]
fn values_that_do_harm() {
    for (base, path) in [
        (Base::Home, ".profile"),
        (Base::None, "/etc/cron.d/x"),
        (Base::Root, "../x"),
        (Base::Root, ".git/hooks/pre-push"),
    ] {
        is_refused("behind", |value| {
            forged(value, |outcome| {
                let left = Left::File {
                    mode: 0o755,
                    content: b"outcome_safety".to_vec(),
                    modified: (0, 0),
                };
                outcome.files =
                    vec![LeftFile { place: PortablePath { base, path: path.into() }, left }];
            });
        });
    }
}

#[test]
fn the_value_of_another_test() {
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::new("alice", &format!("file:{}", place.path().display()));
    alice.runs_and_sends(&["./t", "one"]);
    let first = value(place.path(), "o1");
    let bytes = std::fs::read(&first).unwrap();
    std::fs::remove_file(&first).unwrap();
    alice.runs_and_sends(&["./t", "two"]);
    let second = value(place.path(), "o1");
    std::fs::write(second, bytes).unwrap();
    let bob = Machine::new("bob", &alice.remote);
    assert!(bob.runs(&["./t", "two"]).decision.reason.contains("malformed"));
}

#[test]
fn damaged_dependency_sets_are_rewritten() {
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::new("alice", &format!("file:{}", place.path().display()));
    alice.runs_and_sends(&["./t", "one"]);
    std::fs::write(value(place.path(), "s1"), "nonsense that is long enough to be read").unwrap();
    let bob = Machine::new("bob", &alice.remote);
    assert!(bob.runs(&["./t", "one"]).decision.reason.contains("of no use"));
    bob.does(&["push"]);
    Machine::new("carol", &alice.remote).reuses(&["./t", "one"]);
}

#[test]
fn hostile_dependency_sets_are_not_followed() {
    use tasting::model::{Dependency, DependencyKind, DependencySet};
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::new("alice", &format!("file:{}", place.path().display()));
    alice.runs_and_sends(&["./t", "one"]);
    let list = value(place.path(), "s1");
    let astray = DependencySet {
        dependencies: vec![Dependency::on(
            DependencyKind::Declared,
            PortablePath::absolute("/**/*"),
        )],
    };
    let keys = Keys::new(&Attributes::default(), &[]);
    std::fs::write(
        &list,
        keys.dependency_sets(Name::dependency_sets(key(&list)), &[astray]).unwrap(),
    )
    .unwrap();
    let start = std::time::Instant::now();
    Machine::new("bob", &alice.remote).runs(&["./t", "one"]);
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
}
