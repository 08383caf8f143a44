//! Names that a test invents anew each time (`mkdtemp`, `mktemp`) and leaves behind. The name did
//! not exist before the run and exists after it: as a dependency, the test's own leftover would
//! invalidate every result of such a test.
//!
//! A name is shown to be random by two executions of the same test that differ in nothing but such
//! names, all of which they have created themselves: since nothing else differs, the name does not
//! follow from anything that the test has seen. Nor did the second execution look at the first
//! one's name, so a name that is taken makes no difference.
//!
//! In: what an execution used, and the one before it. Out: the same without the names that are
//! random.

use super::Session;
use super::choice::trace;
use crate::model::{Base, DependencyKind, Hash, PortablePath, RecordedDependency};
use crate::observe::Use;
use std::collections::BTreeSet;
use std::path::Path;

type Known<'a> = (DependencyKind, &'a PortablePath, Hash);

/// Removes the absence of names that are random from what an execution used.
pub fn forget(used: &mut Vec<RecordedDependency>, seen: &[Use], session: &Session) {
    let created_names = created_names(seen, session);
    if created_names.is_empty() {
        return;
    }
    let Some(before) = trace(session).filter(|trace| trace.test == session.test.identity) else {
        return;
    };
    let random = random(used, &before.used, &created_names);
    used.retain(|traced| {
        traced.dependency.kind != DependencyKind::Absent
            || !random.contains(&traced.dependency.place)
    });
}

/// Names that were looked for in vain, made, and left behind.
fn created_names(seen: &[Use], session: &Session) -> BTreeSet<PortablePath> {
    let written: BTreeSet<&Path> =
        seen.iter().filter(|used| matches!(used, Use::Written { .. })).map(Use::path).collect();
    let absent = seen.iter().filter(|used| matches!(used, Use::Absent { .. })).map(Use::path);
    absent.filter(|path| written.contains(path)).map(|path| session.project.place(path)).collect()
}

/// The names among those that were made which are all that is different from the execution before.
fn random(
    now: &[RecordedDependency],
    before: &[RecordedDependency],
    created_names: &BTreeSet<PortablePath>,
) -> BTreeSet<PortablePath> {
    let (new, old) = (known(now), known(before));
    let (appeared, vanished): (Vec<_>, Vec<_>) =
        (new.difference(&old).collect(), old.difference(&new).collect());
    let is_absence = |known: &&Known| known.0 == DependencyKind::Absent;
    let are_names =
        appeared.iter().all(|known| is_absence(known) && created_names.contains(known.1))
            && vanished.iter().all(is_absence);
    let patterns = |known: &[&Known]| {
        let mut patterns: Vec<_> = known.iter().map(|known| pattern(known.1)).collect();
        patterns.sort_unstable();
        patterns
    };
    match are_names && patterns(&appeared) == patterns(&vanished) {
        true => appeared.into_iter().map(|known| known.1.clone()).collect(),
        false => BTreeSet::new(),
    }
}

fn known(used: &[RecordedDependency]) -> BTreeSet<Known<'_>> {
    used.iter()
        .map(|traced| (traced.dependency.kind, &traced.dependency.place, traced.value))
        .collect()
}

/// What two random names have in common: the folder, and the length.
fn pattern(place: &PortablePath) -> (Base, Vec<u8>, usize) {
    let end = place.path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    (place.base, place.path[..end].to_vec(), place.path.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dependency;

    fn traced(kind: DependencyKind, path: &str, value: u8) -> RecordedDependency {
        let dependency = Dependency::on(kind, PortablePath::absolute(path));
        RecordedDependency {
            dependency,
            value: Hash([value; 16]),
            manifests: Vec::new(),
            note: String::new(),
        }
    }

    fn found(
        now: &[RecordedDependency],
        before: &[RecordedDependency],
        created_names: &[&str],
    ) -> usize {
        random(now, before, &created_names.iter().map(PortablePath::absolute).collect()).len()
    }

    #[test]
    fn only_a_name_that_differs_alone_is_random() {
        use DependencyKind::{Absent, Exists, File};
        let one = [traced(File, "/data", 1), traced(Absent, "/tmp/tmp.abc", 0)];
        let two = [traced(File, "/data", 1), traced(Absent, "/tmp/tmp.xyz", 0)];
        assert_eq!(found(&two, &one, &["/tmp/tmp.xyz"]), 1);
        assert_eq!(found(&two, &one, &[]), 0, "it was not made");
        assert_eq!(found(&one, &one, &["/tmp/tmp.abc"]), 0, "it is the same each time");
        let other_input = [traced(File, "/data", 2), traced(Absent, "/tmp/tmp.xyz", 0)];
        assert_eq!(found(&other_input, &one, &["/tmp/tmp.xyz"]), 0, "it may follow from the input");
        let next = [
            traced(File, "/data", 1),
            traced(Exists, "/tmp/tmp.abc", 5),
            traced(Absent, "/tmp/tmp.xyz", 0),
        ];
        assert_eq!(found(&next, &one, &["/tmp/tmp.xyz"]), 0, "it may be the first that is free");
    }
}
