//! The order of a suite, and what follows from it: which tests have to be started by the harness so
//! that none sees other files than it would see there.
//!
//! In: the tests, and which of them have to run. Out: those that the harness is asked for.

use super::TestCase;

/// For each test its place in an order in which it comes behind all that it is to come after;
/// otherwise as listed.
pub fn places(tests: &[TestCase]) -> Vec<usize> {
    let mut places = vec![usize::MAX; tests.len()];
    let mut next = 0;
    for first in 0..tests.len() {
        // Tests under way, each with how many of those before it are done. A circle is no order: it
        // is left where it is met.
        let mut under_way = vec![(first, 0)];
        let mut seen = vec![first];
        while let Some((test, done)) = under_way.pop() {
            if places[test] != usize::MAX {
                continue;
            }
            match tests[test].after.get(done) {
                Some(&before) => {
                    under_way.push((test, done + 1));
                    if before < tests.len()
                        && places[before] == usize::MAX
                        && !seen.contains(&before)
                    {
                        seen.push(before);
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
    let shares =
        |one: &[String], other: &[String]| one.iter().any(|fixture| other.contains(fixture));
    let mut started = has_to_run.to_vec();
    loop {
        let mut is_complete = true;
        for index in (0..tests.len()).filter(|index| !tests[*index].is_disabled) {
            let test = &tests[index];
            let belongs = |other: usize| {
                let other_test = &tests[other];
                let makes_for_it = shares(&test.sets_up, &other_test.requires)
                    || shares(&test.cleans_up, &other_test.requires);
                let is_made_anew = has_to_run[other] && shares(&other_test.sets_up, &test.requires);
                (started[other] && makes_for_it) || is_made_anew
            };
            let has_fixtures =
                !(test.sets_up.is_empty() && test.requires.is_empty() && test.cleans_up.is_empty());
            if !started[index] && has_fixtures && (0..tests.len()).any(belongs) {
                started[index] = true;
                is_complete = false;
            }
        }
        if is_complete {
            return started;
        }
    }
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
    fn what_comes_first_is_first() {
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
