//! What harnesses ask of us besides running a test: calls that only list the cases of a test
//! program, and verdicts of CTest or a TAP driver that do not follow from the exit status.
//!
//! In: the command's words, the lists that `cmake/ctest.cmake.in` puts into the environment,
//! output. Out: what to do differently.

pub mod ignored_variables;

use memchr::memmem;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// What CTest takes out of a test's output and shows as a measurement.
pub const MEASUREMENT: &str =
    "<CTestMeasurement type=\"text/string\" name=\"Tasting\">reused</CTestMeasurement>";

/// Tests that CTest judges by their output, those that are meant to fail, and those that it judged
/// to have failed.
const MATCHED: &str = "TASTING_CTEST_MATCHED";
const EXPECTED: &str = "TASTING_CTEST_EXPECTED";
const FAILED: &str = "TASTING_CTEST_FAILED";

/// What a harness wants for one test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarnessHints {
    /// Say behind its output that it was reused.
    pub measurement: bool,
    /// Reuse it though it failed: it is meant to.
    pub reuse_failures: bool,
    /// Run it, though a result is stored: CTest took it for a failure.
    pub again: bool,
}

impl HarnessHints {
    /// For the test that CTest's lists have under this name.
    pub fn of_ctest(name: &str) -> HarnessHints {
        HarnessHints::among(name, |list| std::env::var(list).unwrap_or_default())
    }

    fn among(name: &str, list: impl Fn(&str) -> String) -> HarnessHints {
        let has =
            |variable| list(variable).split(' ').any(|listed| listed == name || listed == "all");
        HarnessHints {
            measurement: !has(MATCHED),
            reuse_failures: has(EXPECTED),
            again: has(FAILED),
        }
    }
}

/// The options by which test programs list their cases: GoogleTest, Catch2, doctest; and those of
/// Rust, for nextest.
const LISTING: [&[&str]; 7] = [
    &["--gtest_list_tests"],
    &["--list-tests"],
    &["--list-test-names-only"],
    &["--list-test-cases"],
    &["-ltc"],
    &["--list-reporters"],
    &["--list", "--format"],
];

/// Whether a command asks a test program for its cases. Such a call is no test, and its caller
/// has little time.
pub fn is_discovery(words: &[OsString]) -> bool {
    let has = |option: &&str| words.iter().skip(1).any(|word| word == option);
    LISTING.iter().any(|options| options.iter().all(has))
}

/// Whether output in the Test Anything Protocol tells of a failure. Such tests end well all the
/// same.
pub fn tells_of_failure(output: &[u8]) -> bool {
    !reported_failures(output).is_empty()
}

/// A failure that output in the Test Anything Protocol tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportedFailure {
    BailOut,
    /// The number of a test point.
    NotOk(u64),
}

/// The failures that output in the Test Anything Protocol reports. What it says about them (times,
/// addresses) does not count.
pub fn reported_failures(output: &[u8]) -> BTreeSet<ReportedFailure> {
    let suspect = |word: &str| memmem::find(output, word.as_bytes()).is_some();
    if !suspect("1..") || !(suspect("not ok") || suspect("Bail out!")) {
        return BTreeSet::new();
    }
    let text = String::from_utf8_lossy(output);
    let is_plan = |line: &str| {
        line.strip_prefix("1..").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !text.lines().any(is_plan) {
        return BTreeSet::new();
    }
    let mut point = 0;
    text.lines().filter_map(|line| failure_of_line(line, &mut point)).collect()
}

/// `point`: the number of the latest test point. One without a number is the next.
fn failure_of_line(line: &str, point: &mut u64) -> Option<ReportedFailure> {
    if line.starts_with("Bail out!") {
        return Some(ReportedFailure::BailOut);
    }
    let (fails, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix("ok")?),
    };
    let given = rest.split_whitespace().next().and_then(|word| word.parse().ok());
    *point = given.unwrap_or(point.saturating_add(1));
    let directive = line
        .split_once('#')
        .map_or("", |(_, directive)| directive.trim_start())
        .to_ascii_lowercase();
    let is_excused = ["todo", "skip"].iter().any(|word| directive.starts_with(word));
    (fails && !is_excused).then_some(ReportedFailure::NotOk(*point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_tap() {
        let tells = |text: &str| tells_of_failure(text.as_bytes());
        assert!(
            tells("1..2\nok 1\nnot ok 2 - x\n")
                && tells("not ok 1\n1..1\n")
                && tells("1..3\nBail out! no disk\n")
        );
        assert!(
            !tells("1..1\nnot ok 1 # TODO later\n")
                && !tells("1..1\nnot ok 1 # skip\n")
                && !tells("not ok\n")
        );
        assert!(!tells("lines 1..3 are not ok\n") && !tells("1..1\nok 1 - not ok\n"));
    }

    #[test]
    fn failures_in_tap_have_numbers() {
        let told = |text: &str| reported_failures(text.as_bytes()).into_iter().collect::<Vec<_>>();
        let (bail_out, not_ok) = (ReportedFailure::BailOut, ReportedFailure::NotOk);
        assert_eq!(
            told("1..4\nok\nnot ok - 7 ms\nnot ok 3 # TODO\nnot ok\nBail out!"),
            [bail_out, not_ok(2), not_ok(4)]
        );
        assert_eq!(told("not ok 9 - x\nnot ok\n1..2\n"), [not_ok(9), not_ok(10)]);
    }

    #[test]
    fn a_list_of_cases_is_no_test() {
        let is =
            |line: &str| is_discovery(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(
            is("./t --gtest_list_tests")
                && is("./t --list-test-names-only")
                && is("t --list --format terse")
        );
        assert!(is("qemu-aarch64 ./t --list-test-cases --no-version=true"));
        assert!(!is("./t --gtest_filter=a.b") && !is("./t --list") && !is("--gtest_list_tests"));
    }

    #[test]
    fn lists_have_whole_names() {
        let hints = |lists: [(&'static str, &'static str); 2]| {
            let list = |name: &str| {
                lists.iter().find(|(list, _)| *list == name).map_or("", |(_, names)| names)
            };
            let HarnessHints { measurement, reuse_failures, again } =
                HarnessHints::among("ab", |name| list(name).to_owned());
            (measurement, reuse_failures, again)
        };
        assert_eq!(hints([("", ""), ("", "")]), (true, false, false));
        assert_eq!(hints([(MATCHED, "abc x"), (FAILED, "x ab")]), (true, false, true));
        assert_eq!(hints([(MATCHED, "all"), (EXPECTED, " ab")]), (false, true, false));
    }
}
