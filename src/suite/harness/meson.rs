//! Meson: `meson-info/intro-tests.json` says which tests there are, `meson test --list` which of
//! them are selected, and their names run some of them. Their dependencies are built first, as
//! `meson test` does.
//!
//! In: the words of a `meson test` command. Out: its tests; runs of some of them, with
//! `tasting run` as their wrapper.

use crate::suite::memory::{Definition, Memory};
use crate::suite::options::{positional, value_of, without};
use crate::suite::start::{self, HarnessOptions};
use crate::suite::{Contexts, End, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

/// With this Meson says that a test failed.
const FAILED: i32 = 1;

/// Options of `meson test`, with the number of words behind them.
const OPTIONS: &[(&str, usize)] = &[
    ("-C", 1),
    ("-j", 1),
    ("-q", 0),
    ("-t", 1),
    ("-v", 0),
    ("--logbase", 1),
    ("--max-lines", 1),
    ("--maxfail", 1),
    ("--no-rebuild", 0),
    ("--no-stdsplit", 0),
    ("--no-suite", 1),
    ("--num-processes", 1),
    ("--print-errorlogs", 0),
    ("--quiet", 0),
    ("--setup", 1),
    ("--suite", 1),
    ("--timeout-multiplier", 1),
    ("--verbose", 0),
    (WRAPPER, 1),
];
const WRAPPER: &str = "--wrapper";

/// What Meson sets, and what follows from the tests' definition.
const VARIABLES: &[&str] = &[
    "ASAN_OPTIONS",
    "LIBC_FATAL_STDERR_",
    "MESON_*",
    "MSAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
];

/// In a name, newer versions take these for patterns.
const PATTERNS: &[char] = &['*', '?', '['];

/// More words than this are not given: all tests run instead.
const LONGEST: usize = 100_000;

/// A call of `meson test`.
pub struct Meson {
    program: OsString,
    /// Behind `test`.
    words: Vec<OsString>,
    /// The build folder.
    folder: PathBuf,
}

#[derive(Deserialize)]
struct IntroTest {
    name: String,
    cmd: Vec<String>,
    /// Old versions have a list where it is empty.
    #[serde(default)]
    env: BTreeMap<String, String>,
    workdir: Option<PathBuf>,
    #[serde(default)]
    suite: Vec<String>,
    #[serde(default)]
    depends: Vec<String>,
}

#[derive(Deserialize)]
struct IntroTarget {
    id: String,
    #[serde(default)]
    filename: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct LogLine {
    name: String,
    result: String,
}

impl Meson {
    pub fn new(words: &[OsString]) -> Result<Meson, SuiteError> {
        let (program, words) = (words[0].clone(), words[2..].to_vec());
        let joined = |word: &OsString| {
            word.to_str().and_then(|word| word.strip_prefix("-C")).map(OsString::from)
        };
        let given = value_of(&words, "-C").or_else(|| words.iter().find_map(joined));
        let folder = std::path::absolute(given.unwrap_or_else(|| ".".into()))
            .map_err(SuiteError::NoFolder)?;
        Ok(Meson { program, words, folder })
    }

    fn no_list(&self, reason: impl ToString) -> SuiteError {
        start::no_list(&self.program, reason)
    }

    fn info<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<T, SuiteError> {
        let path = self.folder.join("meson-info").join(name);
        let text = std::fs::read(&path)
            .map_err(|error| self.no_list(format_args!("{}: {error}", path.display())))?;
        serde_json::from_slice(&text)
            .map_err(|error| self.no_list(format_args!("{}: {error}", path.display())))
    }

    /// Has Ninja make something in the build folder. What it prints is for people.
    fn build(&self, targets: &[OsString]) -> Result<(), SuiteError> {
        let named = std::env::var_os("NINJA");
        let found =
            || ["ninja", "ninja-build", "samu"].into_iter().find(|name| which::which(name).is_ok());
        let ninja = named
            .or_else(|| found().map(OsString::from))
            .ok_or_else(|| self.no_list("there is no Ninja"))?;
        let words: Vec<OsString> = ["--quiet".into(), "-C".into(), self.folder.clone().into()]
            .into_iter()
            .chain(targets.iter().cloned())
            .collect();
        let options = HarnessOptions { output: Output::ToMessages, notes: None };
        match start::run(&ninja, &words, options)?.success() {
            true => Ok(()),
            false => Err(self.no_list("Ninja cannot build its tests")),
        }
    }

    /// What has to be built for these tests; nothing names everything.
    fn targets(&self, tests: &[&IntroTest]) -> Result<Vec<OsString>, SuiteError> {
        let known: Vec<IntroTarget> = self.info("intro-targets.json")?;
        let real = std::fs::canonicalize(&self.folder).unwrap_or_default();
        let inside = |path: &PathBuf| {
            [&self.folder, &real]
                .into_iter()
                .find_map(|folder| path.strip_prefix(folder).ok())
                .map(OsString::from)
        };
        let mut targets: Vec<OsString> = Vec::new();
        for target in
            known.iter().filter(|target| tests.iter().any(|test| test.depends.contains(&target.id)))
        {
            targets.extend(target.filename.iter().filter_map(inside));
        }
        let rules = std::fs::read(self.folder.join("build.ninja")).unwrap_or_default();
        if memchr::memmem::find(&rules, b"build meson-test-prereq:").is_some() {
            targets.push("meson-test-prereq".into());
        }
        targets.sort();
        targets.dedup();
        Ok(targets)
    }

    /// The places of the tests that are meant.
    fn meant(&self, tests: &[IntroTest]) -> Result<Vec<usize>, SuiteError> {
        let mut words = without(&self.words, &[(WRAPPER, 1)]);
        words.splice(0..0, ["test".into()]);
        words.extend(["--list".into(), "--no-rebuild".into()]);
        let text = String::from_utf8_lossy(&start::ask(&self.program, &words)?).into_owned();
        let mut names = Names::new(tests);
        let place = |line: &str| {
            names.take(line).ok_or_else(|| self.no_list(format_args!("it lists {line:?}")))
        };
        text.lines().filter(|line| !line.is_empty()).map(place).collect()
    }

    /// The words with `tasting run` as the wrapper; a test setup is taken to have it.
    fn hooked(&self, words: &[OsString]) -> Result<Vec<OsString>, SuiteError> {
        let own = std::env::current_exe()
            .map_err(|error| start::not_started("tasting".as_ref(), error))?;
        let own = own.to_str().ok_or_else(|| self.no_list("this program has no name in UTF-8"))?;
        let own = format!("'{}' run --", own.replace('\'', r#"'"'"'"#));
        let has_setup = value_of(words, "--setup").is_some();
        let given = value_of(words, WRAPPER).map(|wrapper| wrapper.to_string_lossy().into_owned());
        let wrapper = match given {
            Some(given) if given.contains("tasting") => {
                return Ok([&["test".into()], words].concat());
            }
            Some(given) => format!("{own} {given}"),
            None if has_setup => return Ok([&["test".into()], words].concat()),
            None => own,
        };
        let words = without(words, &[(WRAPPER, 1)]);
        Ok([&["test".into()], words.as_slice(), &[WRAPPER.into(), wrapper.into()]].concat())
    }

    fn case(&self, test: &IntroTest, number: usize) -> TestCase {
        TestCase {
            name: test.name.clone(),
            words: test.cmd.iter().map(OsString::from).collect(),
            working: test.workdir.clone().unwrap_or_else(|| self.folder.clone()),
            changes: test
                .env
                .iter()
                .map(|(name, value)| (name.into(), Some(value.into())))
                .collect(),
            number,
            ..TestCase::default()
        }
    }

    /// The words that name these tests alone; nothing if that cannot be said.
    fn naming(&self, tests: &[TestCase], chosen: &[usize]) -> Option<Vec<OsString>> {
        let intro: Vec<IntroTest> = self.info("intro-tests.json").ok()?;
        let named = positional(&self.words, OPTIONS).ok()?;
        let is_named = |word: &&OsString| !named.iter().any(|name| std::ptr::eq(*name, *word));
        let mut words: Vec<OsString> = self.words.iter().filter(is_named).cloned().collect();
        for index in chosen {
            let test = intro.get(tests[*index].number)?;
            let project = test.suite.first()?.split(':').next()?;
            let name = format!("{project}:{}", test.name);
            if name.contains(PATTERNS) {
                return None;
            }
            words.push(name.into());
        }
        let length: usize = words.iter().map(|word| word.len() + 1).sum();
        (length < LONGEST).then_some(words)
    }

    /// How tests ended, by the log that was written since.
    fn ends(&self, tests: &[TestCase], since: SystemTime) -> Vec<(usize, End)> {
        let base = value_of(&self.words, "--logbase").unwrap_or_else(|| "testlog".into());
        let Some(log) = newest(&self.folder.join("meson-logs"), &base, since) else {
            return Vec::new();
        };
        let text = std::fs::read(log)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default();
        let Ok(intro) = self.info::<Vec<IntroTest>>("intro-tests.json") else { return Vec::new() };
        let numbers: HashMap<usize, usize> =
            tests.iter().enumerate().map(|(at, test)| (test.number, at)).collect();
        let mut names = Names::new(&intro);
        let mut end = |line: &str| {
            let line: LogLine = serde_json::from_str(line).ok()?;
            Some((*numbers.get(&names.take(&line.name)?)?, end(&line.result)))
        };
        text.lines().filter_map(&mut end).collect()
    }
}

impl Harness for Meson {
    fn list(&self, output: Output) -> Result<Listing, SuiteError> {
        if let Err(word) = positional(&self.words, OPTIONS) {
            return Err(SuiteError::Unknown(format!(
                "with {} tests are not decided about beforehand",
                word.display()
            )));
        }
        let builds = !self.words.iter().any(|word| word == "--no-rebuild");
        if builds {
            self.build(&["build.ninja".into()])?;
        }
        let intro: Vec<IntroTest> = self.info("intro-tests.json")?;
        let meant = self.meant(&intro)?;
        if builds {
            let tests: Vec<&IntroTest> = meant.iter().map(|place| &intro[*place]).collect();
            self.build(&self.targets(&tests)?)?;
        }
        let tests = meant.iter().map(|place| self.case(&intro[*place], *place)).collect();
        let private = self.folder.join("meson-private");
        let is_verbose = self.words.iter().any(|word| word == "-v" || word == "--verbose");
        let definition = Definition {
            words: [std::slice::from_ref(&self.program), self.words.as_slice()].concat(),
            files: ["meson_test_setup.dat", "build.dat"].map(|name| private.join(name)).to_vec(),
            texts: Vec::new(),
            passes_output: is_verbose.then_some(output),
            variables: VARIABLES,
        };
        Ok(Listing::new(tests, Contexts::Remembered(Box::new(Memory::new(&definition)?))))
    }

    fn run(
        &self,
        tests: &[TestCase],
        chosen: &[usize],
        options: HarnessOptions,
    ) -> Result<HarnessRun, SuiteError> {
        let all = || self.words.clone();
        let words = if chosen.len() == tests.len() {
            all()
        } else {
            self.naming(tests, chosen).unwrap_or_else(all)
        };
        let since = SystemTime::now();
        let status = start::run(&self.program, &self.hooked(&words)?, options)?;
        Ok(HarnessRun { status, ends: self.ends(tests, since) })
    }

    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError> {
        let is_plain = positional(&self.words, OPTIONS).is_err();
        let words = if is_plain {
            [&["test".into()], self.words.as_slice()].concat()
        } else {
            self.hooked(&self.words)?
        };
        start::run(&self.program, &words, options)
    }

    fn failure_code(&self) -> i32 {
        FAILED
    }
}

/// The tests by the names that Meson shows: with their suites where there are several, or without.
struct Names([HashMap<String, VecDeque<usize>>; 2]);

impl Names {
    fn new(tests: &[IntroTest]) -> Names {
        let mut names = Names(Default::default());
        for (place, test) in tests.iter().enumerate() {
            names.0[0].entry(with_suites(test)).or_default().push_back(place);
            names.0[1].entry(test.name.clone()).or_default().push_back(place);
        }
        names
    }

    /// The next test with this name.
    fn take(&mut self, name: &str) -> Option<usize> {
        let Names([long, short]) = self;
        long.get_mut(name)
            .and_then(VecDeque::pop_front)
            .or_else(|| short.get_mut(name)?.pop_front())
    }
}

fn with_suites(test: &IntroTest) -> String {
    let parts = test.suite.iter().map(|suite| suite.split_once(':').unwrap_or((suite, "")));
    let project = parts.clone().next().map_or("", |(project, _)| project);
    let suites: Vec<&str> = parts.map(|(_, suite)| suite).collect();
    let suites = suites.join("+");
    let colon = if suites.is_empty() { "" } else { ":" };
    format!("{project}{colon}{suites} / {}", test.name)
}

/// How a test ended that Meson says this of.
fn end(result: &str) -> End {
    match result {
        "OK" | "EXPECTEDFAIL" => End::Passed,
        "SKIP" | "IGNORED" => End::Skipped,
        "INTERRUPT" | "PENDING" | "RUNNING" => End::NotRun,
        _ => End::Failed,
    }
}

/// The log with this beginning that was written last, and not before a time.
fn newest(folder: &Path, base: &OsStr, since: SystemTime) -> Option<PathBuf> {
    let written = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    // The clock of files is a little behind.
    let is_new =
        |path: &PathBuf| written(path).is_some_and(|time| time + Duration::from_secs(1) >= since);
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&*base.to_string_lossy()) && name.ends_with(".json")
    };
    let logs = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    logs.filter(|path| is_log(path) && is_new(path)).max_by_key(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_both_of_their_names() {
        let test = |name: &str, suites: &[&str]| IntroTest {
            name: name.into(),
            cmd: Vec::new(),
            env: BTreeMap::new(),
            workdir: None,
            suite: suites.iter().map(|suite| (*suite).to_owned()).collect(),
            depends: Vec::new(),
        };
        let tests =
            [test("a", &["p"]), test("a", &["p:x", "p:y"]), test("b", &["sub"]), test("a", &["p"])];
        let mut names = Names::new(&tests);
        let taken = ["p:x+y / a", "p / a", "b", "p / a", "p / a"].map(|name| names.take(name));
        assert_eq!(taken, [Some(1), Some(0), Some(2), Some(3), None]);
    }
}
