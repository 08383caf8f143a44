//! The options of `ctest`, by what they mean for a choice of tests.

/// Options with which CTest does something else than to run tests once, or is told what to run
/// elsewhere.
pub(super) const OTHER_USES: &[&str] = &[
    "-A",
    "-D",
    "-F",
    "-H",
    "-M",
    "-N",
    "-S",
    "-SP",
    "-T",
    "-h",
    "--add-notes",
    "--build-and-test",
    "--dashboard",
    "--help",
    "--list-presets",
    "--memcheck",
    "--preset",
    "--print-labels",
    "--repeat",
    "--repeat-until-fail",
    "--script",
    "--script-new-process",
    "--show-only",
    "--test-action",
    "--test-model",
    "--version",
    "-version",
    "/V",
];

/// Options that choose tests by something else than their names and labels, with the number of
/// words behind them. They are left out where tests are chosen by number.
pub(super) const CHOOSING: &[(&str, usize)] =
    &[("-I", 1), ("--tests-information", 1), ("-U", 0), ("--union", 0), ("--rerun-failed", 0)];

/// Options that choose tests by their names and labels. CTest counts only the tests that fit these
/// where it is given numbers.
pub(super) const FILTERS: &[(&str, usize)] = &[
    ("-R", 1),
    ("--tests-regex", 1),
    ("-E", 1),
    ("--exclude-regex", 1),
    ("-L", 1),
    ("--label-regex", 1),
    ("-LE", 1),
    ("--label-exclude", 1),
    ("--tests-from-file", 1),
    ("--exclude-from-file", 1),
];

pub(super) const INCLUDING: &[(&str, usize)] = &[("-R", 1), ("--tests-regex", 1)];

pub(super) const EXCLUDING: &[(&str, usize)] = &[("-E", 1), ("--exclude-regex", 1)];

/// Options that leave out what belongs to fixtures.
pub(super) const FIXTURES: &[(&str, usize)] = &[
    ("-FA", 1),
    ("--fixture-exclude-any", 1),
    ("-FS", 1),
    ("--fixture-exclude-setup", 1),
    ("-FC", 1),
    ("--fixture-exclude-cleanup", 1),
];

/// Options about places.
pub(super) const TEST_FOLDER: &str = "--test-dir";

pub(super) const JUNIT: &str = "--output-junit";

pub(super) const LOG: &[(&str, usize)] = &[("-O", 1), ("--output-log", 1)];
