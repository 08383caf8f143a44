//! CTest: `ctest --show-only=json-v1` says which tests there are, and `-I` runs some of them by
//! their numbers.
//!
//! In: the words of a `ctest` command. Out: its tests with their properties; runs of some of them.

use super::junit;
use crate::harness::HarnessHints;
use crate::model::Hash;
use crate::run::context::{Environment, InvocationContext};
use crate::suite::answers::{self, Answer};
use crate::suite::options::{value_of, without};
use crate::suite::probe::Folder;
use crate::suite::start::{self, Manner};
use crate::suite::{Contexts, End, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// With this CTest says that tests failed.
const FAILED: i32 = 8;

/// Options with which CTest does something else than to run tests once, or is told what to run
/// elsewhere.
const OTHER_USES: &[&str] = &[
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
const CHOOSING: &[(&str, usize)] =
    &[("-I", 1), ("--tests-information", 1), ("-U", 0), ("--union", 0), ("--rerun-failed", 0)];

/// Options that choose tests by their names and labels. CTest counts only the tests that fit these
/// where it is given numbers.
const FILTERS: &[(&str, usize)] = &[
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

const INCLUDING: &[(&str, usize)] = &[("-R", 1), ("--tests-regex", 1)];
const EXCLUDING: &[(&str, usize)] = &[("-E", 1), ("--exclude-regex", 1)];

/// Options that leave out what belongs to fixtures.
const FIXTURES: &[(&str, usize)] = &[
    ("-FA", 1),
    ("--fixture-exclude-any", 1),
    ("-FS", 1),
    ("--fixture-exclude-setup", 1),
    ("-FC", 1),
    ("--fixture-exclude-cleanup", 1),
];

/// Options about places.
const TEST_FOLDER: &str = "--test-dir";
const JUNIT: &str = "--output-junit";
const LOG: &[(&str, usize)] = &[("-O", 1), ("--output-log", 1)];

/// Properties that change nothing about what is decided, or that are looked at below.
const UNDERSTOOD: &[&str] = &[
    "ATTACHED_FILES",
    "ATTACHED_FILES_ON_FAIL",
    "COST",
    "DEPENDS",
    "DISABLED",
    "ENVIRONMENT",
    "FIXTURES_CLEANUP",
    "FIXTURES_REQUIRED",
    "FIXTURES_SETUP",
    "LABELS",
    "MEASUREMENT",
    "PROCESSORS",
    "RESOURCE_LOCK",
    "RUN_SERIAL",
    "SKIP_REGULAR_EXPRESSION",
    "SKIP_RETURN_CODE",
    "TIMEOUT",
    "TIMEOUT_SIGNAL_NAME",
    "TIMEOUT_SIGNAL_GRACE_PERIOD",
    "WILL_FAIL",
    "WORKING_DIRECTORY",
    "REQUIRED_FILES",
];

/// With this variable set, CTest shows how it starts the tests; editors are shown the tests' own
/// commands (cmake/ctest.cmake.in).
const ASKING: &str = "TASTING_SUITE";
const LISTING: &str = "--show-only=json-v1";

/// What CTest gives to all tests.
const EXPECTED: &str = "CTEST_INTERACTIVE_DEBUG_MODE";

/// Files by which projects change what CTest does.
const CUSTOM: &[&str] = &["CTestCustom.cmake", "CTestCustom.ctest"];

/// By this text in its output GoogleTest says that a test was skipped; it is the regular expression
/// of all its tests.
const GOOGLETEST_SKIPS: (&str, &str) = (r"\[  SKIPPED \]", "[  SKIPPED ]");

/// A call of `ctest`.
pub struct CTest {
    program: OsString,
    words: Vec<OsString>,
}

#[derive(Deserialize)]
struct Info {
    tests: Vec<InfoTest>,
}

#[derive(Deserialize)]
struct InfoTest {
    name: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    value: Value,
}

impl CTest {
    pub fn new(words: &[OsString]) -> CTest {
        let (program, words) = words
            .split_first()
            .map_or((OsString::new(), Vec::new()), |(p, w)| (p.clone(), w.to_vec()));
        CTest { program, words }
    }

    fn command(&self, words: &[OsString]) -> Command {
        let mut command = start::command(&self.program);
        command.args(words);
        command
    }

    /// The folder with the tests.
    fn folder(&self) -> PathBuf {
        let given = value_of(&self.words, TEST_FOLDER);
        given.map(PathBuf::from).unwrap_or_else(|| PathBuf::from("."))
    }

    fn no_list(&self, reason: impl ToString) -> SuiteError {
        start::no_list(&self.program, reason)
    }

    /// The words with which CTest is asked something.
    fn asking(&self, more: &str) -> Vec<OsString> {
        let mut words = without(&without(&self.words, &[(JUNIT, 1)]), LOG);
        words.push(more.into());
        words
    }

    /// The file with commands that CTest runs before or after tests, if there is one.
    fn commands_around_tests(&self) -> Option<PathBuf> {
        let has_commands = |file: &PathBuf| {
            let text = std::fs::read(file).unwrap_or_default();
            [&b"PRE_TEST"[..], b"POST_TEST"]
                .iter()
                .any(|name| memchr::memmem::find(&text, name).is_some())
        };
        CUSTOM.iter().map(|name| self.folder().join(name)).find(has_commands)
    }

    /// The numbers of the tests, in the order of the list.
    fn numbers(&self, count: usize) -> Result<Vec<usize>, SuiteError> {
        let chooses =
            |options: &[(&str, usize)]| without(&self.words, options).len() < self.words.len();
        if ![FILTERS, CHOOSING, FIXTURES].into_iter().any(chooses) {
            return Ok((1..=count).collect());
        }
        let answer = answers::ask(ASKING, &self.program, &self.asking("-N"))?;
        let text = String::from_utf8_lossy(&answer.text);
        let number = |line: &str| {
            line.trim_start()
                .strip_prefix("Test")?
                .trim_start()
                .strip_prefix('#')?
                .split(':')
                .next()?
                .trim()
                .parse()
                .ok()
        };
        let numbers: Vec<usize> = text.lines().filter_map(number).collect();
        match numbers.len() == count {
            true => Ok(numbers),
            false => Err(self.no_list("its two lists have different lengths")),
        }
    }

    /// The filters that go where tests are chosen by number: CTest takes the numbers among the tests
    /// that fit. But what `-E` leaves out by itself, without `-R`, has no number.
    fn filters_to_drop(&self) -> Vec<(&'static str, usize)> {
        let includes = without(&self.words, INCLUDING).len() < self.words.len();
        FILTERS.iter().filter(|option| includes || !EXCLUDING.contains(option)).copied().collect()
    }

    /// What a test can see: all files with tests are read, as for the tests themselves, since they
    /// can set variables.
    fn probe(&self) -> Result<InvocationContext, String> {
        let folder = Folder::new().map_err(|error| error.to_string())?;
        let real = std::fs::canonicalize(self.folder()).map_err(|error| error.to_string())?;
        let command = folder.command()?;
        let texts = command.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>();
        let quoted =
            texts.and_then(|words| words.into_iter().map(quote).collect::<Option<Vec<_>>>());
        let (words, real_text) =
            quoted.zip(real.to_str().and_then(quote)).ok_or("a path that CMake cannot read")?;
        // Before the others: they may redefine add_test.
        let tests =
            format!("add_test(tasting-context {})\nsubdirs({real_text})\n", words.join(" "));
        std::fs::write(folder.path().join("CTestTestfile.cmake"), tests)
            .map_err(|error| error.to_string())?;
        for name in CUSTOM.iter().chain(&["DartConfiguration.tcl"]) {
            if real.join(name).exists() {
                std::os::unix::fs::symlink(real.join(name), folder.path().join(name))
                    .map_err(|error| error.to_string())?;
            }
        }
        let mut words = [FILTERS, CHOOSING, FIXTURES, LOG, &[(TEST_FOLDER, 1), (JUNIT, 1)]]
            .iter()
            .fold(self.words.clone(), |words, options| without(&words, options));
        words.extend([
            TEST_FOLDER.into(),
            folder.path().into(),
            "-R".into(),
            "^tasting-context$".into(),
        ]);
        let mut command = self.command(&words);
        command.stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().map_err(|error| error.to_string())?;
        folder.context()
    }

    /// The same as it was found twice, while nothing has changed that CTest reads.
    fn known_context(&self, name: Hash) -> Option<InvocationContext> {
        let (bytes, is_certain) =
            postcard::from_bytes::<(Vec<u8>, bool)>(&answers::remembered(name)?).ok()?;
        InvocationContext::from_bytes(&bytes).ok().filter(|_| is_certain)
    }

    /// Remembers what a test can see, if nothing has changed since CTest was asked for its tests.
    fn learn_context(&self, context: &InvocationContext, answer: &Answer) {
        let recall = || answers::recall(ASKING, &self.program, &self.asking(LISTING))?.name;
        let (Some(name), Ok(bytes)) =
            (answer.name.filter(|name| recall() == Some(*name)), context.to_bytes())
        else {
            return;
        };
        let before = answers::remembered(name)
            .and_then(|bytes| postcard::from_bytes::<(Vec<u8>, bool)>(&bytes).ok());
        // Other variables may be made of what nobody sees, such as the time.
        let own = Environment::own();
        let is_expected =
            |(name, value): &(OsString, OsString)| EXPECTED == name || own.get(name) == Some(value);
        let is_certain = context.environment.0.iter().all(is_expected)
            || before.is_some_and(|(known, _)| known == bytes);
        if let Ok(bytes) = postcard::to_stdvec(&(bytes, is_certain)) {
            answers::remember(name, &bytes);
        }
    }

    fn tests(&self, answer: &Answer) -> Result<Vec<TestCase>, SuiteError> {
        let info: Info =
            serde_json::from_slice(&answer.text).map_err(|error| self.no_list(error))?;
        let numbers = self.numbers(info.tests.len())?;
        let failed = last_failed(&self.folder());
        let own = std::env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default();
        let places: HashMap<&str, usize> =
            info.tests.iter().enumerate().map(|(at, test)| (test.name.as_str(), at)).collect();
        let test = |(test, number): (&InfoTest, usize)| TestCase {
            number,
            ..test.case(&places, &failed, &own)
        };
        Ok(info.tests.iter().zip(numbers).map(test).collect())
    }
}

impl Harness for CTest {
    fn list(&self, _: Output) -> Result<Listing, SuiteError> {
        let is_other = |word: &&OsString| {
            let text = word.to_string_lossy();
            OTHER_USES.contains(&text.split('=').next().unwrap_or_default())
        };
        if let Some(word) = self.words.iter().find(is_other) {
            return Err(SuiteError::Unknown(format!(
                "with {} tests are not decided about beforehand",
                word.display()
            )));
        }
        if let Some(file) = self.commands_around_tests() {
            return Err(SuiteError::Unknown(format!(
                "{} names commands that run before or after tests",
                file.display()
            )));
        }
        let words = self.asking(LISTING);
        let known = answers::recall(ASKING, &self.program, &words);
        if let Some(answer) = &known
            && let Some(context) = answer.name.and_then(|name| self.known_context(name))
        {
            return Ok(Listing::new(self.tests(answer)?, Contexts::OfAll(Box::new(Ok(context)))));
        }
        let ask = || known.map_or_else(|| answers::ask(ASKING, &self.program, &words), Ok);
        let (context, answer) = rayon::join(|| self.probe(), ask);
        let answer = answer?;
        if let Ok(context) = &context {
            self.learn_context(context, &answer);
        }
        Ok(Listing::new(self.tests(&answer)?, Contexts::OfAll(Box::new(context))))
    }

    fn run(
        &self,
        tests: &[TestCase],
        chosen: &[usize],
        manner: Manner,
    ) -> Result<HarnessRun, SuiteError> {
        let folder = Folder::new()?;
        let mut numbers: Vec<usize> = chosen.iter().map(|index| tests[*index].number).collect();
        numbers.sort_unstable();
        let first = numbers.first().copied().unwrap_or(0);
        let rest: String = numbers.iter().skip(1).map(|number| format!(",{number}")).collect();
        let file = folder.path().join("numbers");
        std::fs::write(&file, format!("{first},{first},1{rest}\n"))
            .map_err(SuiteError::NoFolder)?;
        let mut words = without(&without(&self.words, CHOOSING), &self.filters_to_drop());
        words.extend(["-I".into(), file.into_os_string()]);
        let own_file = folder.path().join("junit.xml");
        let junit_file = match value_of(&words, JUNIT) {
            // CTest takes it to be relative to the folder with the tests.
            Some(given) => std::path::absolute(self.folder()).unwrap_or_default().join(given),
            None => {
                words.extend([JUNIT.into(), own_file.clone().into_os_string()]);
                own_file
            }
        };
        let status = start::run(&self.program, &words, manner)?;
        let text = std::fs::read(&junit_file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        Ok(HarnessRun { status, ends: ends(tests, chosen, junit::read(&text)) })
    }

    fn run_all(&self, manner: Manner) -> Result<ExitStatus, SuiteError> {
        start::run(&self.program, &self.words, manner)
    }

    fn failure_code(&self) -> i32 {
        FAILED
    }
}

/// The ends of the tests that were chosen; of several with the same name, in their order.
fn ends(tests: &[TestCase], chosen: &[usize], found: Vec<(String, End)>) -> Vec<(usize, End)> {
    let mut by_name: HashMap<String, Vec<End>> = HashMap::new();
    found.into_iter().rev().for_each(|(name, end)| by_name.entry(name).or_default().push(end));
    chosen
        .iter()
        .filter_map(|index| Some((*index, by_name.get_mut(&tests[*index].name)?.pop()?)))
        .collect()
}

/// The tests that CTest judged to have failed the last time.
fn last_failed(folder: &Path) -> HashSet<String> {
    let text = std::fs::read_to_string(folder.join("Testing/Temporary/LastTestsFailed.log"))
        .unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(':')).map(|(_, name)| name.to_owned()).collect()
}

impl InfoTest {
    fn property(&self, name: &str) -> Option<&Value> {
        self.properties
            .iter()
            .find(|property| property.name == name)
            .map(|property| &property.value)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        match self.property(name) {
            Some(Value::Array(values)) => {
                values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
            }
            Some(Value::String(value)) => vec![value.clone()],
            _ => Vec::new(),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| value.as_bool().unwrap_or(true))
    }

    fn case(
        &self,
        places: &HashMap<&str, usize>,
        failed: &HashSet<String>,
        own: &Path,
    ) -> TestCase {
        let (words, hook) = self.hooked(own);
        let working =
            self.property("WORKING_DIRECTORY").and_then(Value::as_str).unwrap_or_default();
        let is_meant_to_fail = self.is_set("WILL_FAIL");
        let harness = HarnessHints {
            measurement: false,
            reuse_failures: is_meant_to_fail,
            again: is_meant_to_fail && failed.contains(&self.name),
        };
        let change = |text: String| match text.split_once('=') {
            Some((name, value)) => (name.into(), Some(value.into())),
            None => (text.into(), None),
        };
        TestCase {
            name: self.name.clone(),
            working: working.into(),
            changes: self.texts("ENVIRONMENT").into_iter().map(change).collect(),
            options: crate::run::Options { harness, ..Default::default() },
            after: self
                .texts("DEPENDS")
                .iter()
                .filter_map(|name| places.get(name.as_str()).copied())
                .collect(),
            sets_up: self.texts("FIXTURES_SETUP"),
            requires: self.texts("FIXTURES_REQUIRED"),
            cleans_up: self.texts("FIXTURES_CLEANUP"),
            left_to_harness: hook.err().or_else(|| self.obstacle()),
            is_disabled: self.is_set("DISABLED"),
            skip_code: self
                .property("SKIP_RETURN_CODE")
                .and_then(Value::as_i64)
                .and_then(|code| code.try_into().ok()),
            skip_text: self.property("SKIP_REGULAR_EXPRESSION").map(|_| GOOGLETEST_SKIPS.1),
            is_meant_to_fail,
            words,
            number: 0,
            trace: None,
        }
    }

    /// The command behind `tasting run`; or why there is none.
    fn hooked(&self, own: &Path) -> (Vec<OsString>, Result<(), String>) {
        let plain = || self.command.iter().map(OsString::from).collect();
        let is_own = self
            .command
            .first()
            .is_some_and(|program| std::fs::canonicalize(program).is_ok_and(|path| path == own));
        match self.command.as_slice() {
            [_, run, option, _, end, words @ ..]
                if is_own && run == "run" && option == "--ctest" && end == "--" =>
            {
                (words.iter().map(OsString::from).collect(), Ok(()))
            }
            [_, run, end, words @ ..] if is_own && run == "run" && end == "--" => {
                (words.iter().map(OsString::from).collect(), Ok(()))
            }
            [_, run, ..] if run == "run" && is_own => {
                (plain(), Err("its `tasting run` has options".to_owned()))
            }
            [] => (plain(), Err("CTest finds no program for it".to_owned())),
            _ => (
                plain(),
                Err("CTest starts it without `tasting run`: configure with tasting.cmake"
                    .to_owned()),
            ),
        }
    }

    /// Why CTest has to judge it.
    fn obstacle(&self) -> Option<String> {
        let is_known = |property: &&Property| !UNDERSTOOD.contains(&property.name.as_str());
        if let Some(property) = self.properties.iter().find(is_known) {
            return Some(format!("CTest judges it by its property {}", property.name));
        }
        let skips = self.texts("SKIP_REGULAR_EXPRESSION");
        if skips.iter().any(|expression| expression != GOOGLETEST_SKIPS.0) {
            return Some("CTest judges it by its property SKIP_REGULAR_EXPRESSION".to_owned());
        }
        let missing =
            self.texts("REQUIRED_FILES").into_iter().find(|file| !Path::new(file).exists());
        missing.map(|file| format!("the file {file}, which it requires, is not there"))
    }
}

/// A text as CMake reads it.
fn quote(text: &str) -> Option<String> {
    // A bracket argument is taken as it is.
    (!text.contains("]==]")).then(|| format!("[==[{text}]==]"))
}
