//! Outcomes of others that would write outside of the project, by way of symbolic links.

use super::machine::{Machine, files_below};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tasting::model::{Base, Hash, Left, LeftFile, Outcome, PortablePath};
use tasting::store::remote::Name;
use tasting::store::remote::location::Attributes;
use tasting::store::remote::value::Keys;
use tempfile::TempDir;

/// A folder that machines share, and the machine that has written to it.
struct Shared {
    folder: TempDir,
    alice: Machine,
}

impl Shared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let alice = Machine::new("alice", &format!("file:{}", folder.path().display()));
        Shared { folder, alice }
    }

    /// Shares the outcome of `./t WORD`, which leaves this behind in the project instead of what it
    /// really left.
    fn forge(&self, word: &str, path: &str, left: Left) {
        let before = self.outcomes();
        self.alice.runs_and_sends(&["./t", word]);
        let value =
            self.outcomes().into_iter().find(|value| !before.contains(value)).expect("it was sent");
        rewrite(&value, |outcome| {
            outcome.files = vec![LeftFile {
                place: PortablePath { base: Base::Root, path: path.into() },
                left,
            }];
        });
    }

    fn outcomes(&self) -> Vec<PathBuf> {
        let mut values = files_below(self.folder.path());
        values.retain(|path| {
            path.extension().is_some_and(|ending| ending.to_string_lossy().starts_with('o'))
        });
        values
    }

    fn bob(&self) -> Machine {
        Machine::new("bob", &self.alice.remote)
    }
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Outcome)) {
    let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let key = Hash::from_text(&(folder + &path.file_stem().unwrap().to_string_lossy())).unwrap();
    let (keys, name) = (Keys::new(&Attributes::default(), &[]), Name::outcome(key));
    let mut outcome = keys.read_outcome(name, &std::fs::read(path).unwrap()).unwrap();
    change(&mut outcome);
    std::fs::write(path, keys.outcome(name, &outcome).unwrap()).unwrap();
}

fn link(target: &Path) -> Left {
    Left::Link { target: target.as_os_str().as_encoded_bytes().to_vec() }
}

fn outcome_safety() -> Left {
    Left::File { mode: 0o644, content: b"outcome_safety".to_vec(), modified: (0, 0) }
}

#[test]
fn link_and_file_of_two_outcomes_stay_inside() {
    let shared = Shared::new();
    let bob = shared.bob();
    shared.forge("one", "a", link(&bob.home()));
    shared.forge("two", "a/.bashrc", outcome_safety());
    bob.runs(&["./t", "one"]);
    bob.run(&["./t", "two"]);
    assert!(!bob.home().join(".bashrc").exists());
}

#[test]
fn links_that_lead_out_are_refused() {
    for target in ["..", "../..", "b/../../..", "/etc", "/"] {
        let shared = Shared::new();
        shared.forge("one", "a", link(Path::new(target)));
        let bob = shared.bob();
        let ran = bob.runs(&["./t", "one"]);
        assert!(ran.decision.reason.contains("leads out"), "{target}: {}", ran.decision.reason);
        assert!(bob.checkout().join("a").symlink_metadata().is_err());
    }
}

#[test]
fn links_that_stay_inside_are_reused() {
    let shared = Shared::new();
    shared.forge("one", "a", link(Path::new("data")));
    let bob = shared.bob();
    bob.reuses(&["./t", "one"]);
    assert_eq!(bob.read("a"), "the data");
}

#[test]
fn file_below_an_existing_link_is_not_written() {
    for left in [outcome_safety(), Left::Folder { mode: 0o777 }, Left::Gone] {
        let shared = Shared::new();
        let bob = shared.bob();
        let precious = bob.home().join("precious");
        std::fs::write(&precious, "precious").unwrap();
        symlink(bob.home(), bob.checkout().join("a")).unwrap();
        shared.forge("one", "a/precious", left);
        bob.runs(&["./t", "one"]);
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}

#[test]
fn replay_replaces_a_link_by_a_file() {
    let shared = Shared::new();
    let bob = shared.bob();
    let precious = bob.home().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    symlink(&precious, bob.checkout().join("a")).unwrap();
    shared.forge("one", "a", outcome_safety());
    bob.reuses(&["./t", "one"]);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(bob.read("a"), "outcome_safety");
}
