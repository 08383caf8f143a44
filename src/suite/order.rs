//! The order of a suite: which tests the harness has to start so that none of them sees other files
//! than it would in a full run.
//!
//! In: the tests, and which of them have to run. Out: those that the harness is asked for.

use super::TestCase;
use rustc_hash::{FxHashMap, FxHashSet};

/// For each test its place in an order in which it comes behind all that it is to come after;
/// otherwise as listed.
pub fn places(tests: &[TestCase]) -> Vec<usize> {
    let mut places = vec![usize::MAX; tests.len()];
    let mut next = 0;
    for first in 0..tests.len() {
        // Tests under way, each with how many of those before it are done. A circle is no order: it
        // is left where it is met.
        let mut under_way = vec![(first, 0)];
        let mut seen = FxHashSet::from_iter([first]);
        while let Some((test, done)) = under_way.pop() {
            if places[test] != usize::MAX {
                continue;
            }
            match tests[test].after.get(done) {
                Some(&before) => {
                    under_way.push((test, done + 1));
                    if before < tests.len() && places[before] == usize::MAX && seen.insert(before) {
                        under_way.push((before, 0));
                    }
                }
                None => {
                    places[test] = next;
                    next += 1;
                }
            }
        }
    }
    places
}

/// Those that the harness starts with these: what makes and removes the fixtures that they need,
/// and all whose fixtures are made anew, for they do not run where that fails.
pub fn with_fixtures(tests: &[TestCase], has_to_run: &[bool]) -> Vec<bool> {
    let makers = by_fixture(tests, |test| test.sets_up.iter().chain(&test.cleans_up));
    let users = by_fixture(tests, |test| test.requires.iter());
    let mut started = has_to_run.to_vec();
    let mut waiting: Vec<usize> = (0..tests.len()).filter(|index| has_to_run[*index]).collect();
    let (mut made, mut anew) = (FxHashSet::default(), FxHashSet::default());
    while let Some(index) = waiting.pop() {
        let test = &tests[index];
        let needed = test
            .requires
            .iter()
            .filter(|name| made.insert(*name))
            .flat_map(|name| makers.get(name.as_str()).into_iter().flatten());
        let set_up = test.sets_up.iter().filter(|name| has_to_run[index] && anew.insert(*name));
        let mut with_it: Vec<usize> = needed.copied().collect();
        with_it.extend(set_up.flat_map(|name| users.get(name.as_str()).into_iter().flatten()));
        for other in with_it.into_iter().filter(|other| !tests[*other].is_disabled) {
            if !std::mem::replace(&mut started[other], true) {
                waiting.push(other);
            }
        }
    }
    started
}

/// The tests that have something to do with each fixture.
fn by_fixture<'t, I: Iterator<Item = &'t String>>(
    tests: &'t [TestCase],
    fixtures: impl Fn(&'t TestCase) -> I,
) -> FxHashMap<&'t str, Vec<usize>> {
    let mut found: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (index, test) in tests.iter().enumerate() {
        fixtures(test).for_each(|name| found.entry(name).or_default().push(index));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(after: &[usize], sets_up: &str, requires: &str, cleans_up: &str) -> TestCase {
        let names = |text: &str| {
            text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let (sets_up, requires, cleans_up) = (names(sets_up), names(requires), names(cleans_up));
        TestCase { after: after.to_vec(), sets_up, requires, cleans_up, ..TestCase::default() }
    }

    #[test]
    fn uploads_keep_their_order() {
        let tests = [
            test(&[2], "", "", ""),
            test(&[], "", "", ""),
            test(&[3], "", "", ""),
            test(&[], "", "", ""),
        ];
        assert_eq!(places(&tests), [2, 3, 1, 0]);
    }

    #[test]
    fn a_circle_ends() {
        let tests = [test(&[1], "", "", ""), test(&[0], "", "", "")];
        assert_eq!(places(&tests), [1, 0]);
    }

    #[test]
    fn fixtures_run_with_what_needs_them() {
        let tests = [
            test(&[], "db", "", ""),
            test(&[], "", "db", ""),
            test(&[], "", "db", ""),
            test(&[], "", "", "db"),
        ];
        let run = |index: usize| {
            with_fixtures(&tests, &std::array::from_fn::<bool, 4, _>(|at| at == index))
        };
        assert_eq!(run(1), [true, true, false, true]);
        assert_eq!(run(0), [true, true, true, true], "a fixture that is made anew may fail");
        assert_eq!(run(3), [false, false, false, true]);
    }
}
