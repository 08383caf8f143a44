//! CTest: `ctest --show-only=json-v1` says which tests there are, and `-I` runs some of them by
//! their numbers.
//!
//! In: the words of a `ctest` command. Out: its tests with their properties; runs of some of them.

mod cases;
mod context;
mod options;

use self::cases::{Info, InfoTest};
use self::options::{
    CHOOSING, EXCLUDING, FILTERS, FIXTURES, INCLUDING, JUNIT, LOG, OTHER_USES, TEST_FOLDER,
};
use super::junit;
use crate::suite::answers::{self, Answer};
use crate::suite::options::{value_of, without};
use crate::suite::probe::Folder;
use crate::suite::start::{self, HarnessOptions};
use crate::suite::{Contexts, End, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// With this CTest says that tests failed.
const FAILED: i32 = 8;
/// With this variable set, CTest shows how it starts the tests; editors are shown the tests' own
/// commands (cmake/ctest.cmake.in).
const ASKING: &str = "TASTING_SUITE";
const LISTING: &str = "--show-only=json-v1";

/// Files by which projects change what CTest does.
const CUSTOM: &[&str] = &["CTestCustom.cmake", "CTestCustom.ctest"];

/// A call of `ctest`.
pub struct CTest {
    program: OsString,
    words: Vec<OsString>,
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
        options: HarnessOptions,
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
        let status = start::run(&self.program, &words, options)?;
        let text = std::fs::read(&junit_file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        Ok(HarnessRun { status, ends: ends(tests, chosen, junit::read(&text)) })
    }

    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError> {
        start::run(&self.program, &self.words, options)
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
