//! What harnesses ask of us besides running a test: calls that only list the cases of a test
//! program, and what CTest or a TAP driver makes of a test that cannot be told from its end.
//!
//! In: the command's words, the lists that `cmake/ctest.cmake.in` leaves in the environment,
//! output. Out: what to do otherwise.

use memchr::memmem;
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

/// Whether a command asks a test program for its cases. Such a call is no test, and whoever makes
/// it has little time.
pub fn is_discovery(words: &[OsString]) -> bool {
    let has = |option: &&str| words.iter().skip(1).any(|word| word == option);
    LISTING.iter().any(|options| options.iter().all(has))
}

/// Whether output in the Test Anything Protocol tells of a failure. Such tests end well all the
/// same.
pub fn tells_of_failure(output: &[u8]) -> bool {
    let suspect = |word: &str| memmem::find(output, word.as_bytes()).is_some();
    if !suspect("1..") || !(suspect("not ok") || suspect("Bail out!")) {
        return false;
    }
    let text = String::from_utf8_lossy(output);
    let is_plan = |line: &str| {
        line.strip_prefix("1..").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_excused = |line: &str| {
        let directive = line.split_once('#').map_or("", |(_, directive)| directive.trim_start());
        ["todo", "skip"].iter().any(|word| directive.to_ascii_lowercase().starts_with(word))
    };
    let fails = |line: &str| {
        line.starts_with("Bail out!") || (line.starts_with("not ok") && !is_excused(line))
    };
    text.lines().any(is_plan) && text.lines().any(fails)
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
