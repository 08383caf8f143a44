//! `cargo nextest run`: `cargo nextest list --message-format json` says which tests there are, and
//! a filterset runs some of them. The user's other options are kept.
//!
//! In: the words of a `cargo nextest run` command. Out: its tests; runs of some of them.

use super::cargo;
use crate::suite::memory::{Definition, Memory};
use crate::suite::options::{value_of, without};
use crate::suite::select::escaped;
use crate::suite::start::{self, HarnessOptions};
use crate::suite::{Contexts, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

/// With this nextest says that tests failed.
const FAILED: i32 = 100;

/// What nextest and cargo set, by the files below and the tests' names.
const VARIABLES: &[&str] = &[
    "CARGO*",
    "LD_LIBRARY_PATH",
    "NEXTEST*",
    "OUT_DIR",
    "PATH",
    "RUSTUP_*",
    "RUST_RECURSION_COUNT",
    "SSL_CERT_*",
    "__NEXTEST*",
];

/// Options with which nextest does something else than to run tests once.
const OTHER_USES: &[&str] = &[
    "-h",
    "-R",
    "--archive-file",
    "--binaries-metadata",
    "--cargo-metadata",
    "--debugger",
    "--help",
    "--no-run",
    "--partition",
    "--rerun",
    "--stress-count",
    "--stress-duration",
    "--tracer",
];

/// Options about running that `list` has not, with the number of words behind them.
const ABOUT_RUNNING: &[(&str, usize)] = &[
    ("-j", 1),
    ("--test-threads", 1),
    ("--retries", 1),
    ("--flaky-result", 1),
    ("--fail-fast", 0),
    ("--ff", 0),
    ("--no-fail-fast", 0),
    ("--nff", 0),
    ("--max-fail", 1),
    ("--no-tests", 1),
    ("--no-capture", 0),
    ("--nocapture", 0),
    ("--failure-output", 1),
    ("--success-output", 1),
    ("--status-level", 1),
    ("--final-status-level", 1),
    ("--show-progress", 1),
    ("--hide-progress-bar", 0),
    ("--max-progress-running", 1),
    ("--no-output-indent", 0),
    ("--no-input-handler", 0),
];
const FILTERS: &[(&str, usize)] = &[("-E", 1), ("--filterset", 1), ("--filter-expr", 1)];

/// What a configuration of nextest says of single tests, or has scripts say: what a test is given
/// follows from more than it.
const UNCERTAIN: &[&str] = &["overrides", "script", "wrapper"];

/// More words than this are not given: all tests run instead.
const LONGEST: usize = 100_000;

/// A call of `cargo nextest run`.
pub struct Nextest {
    program: OsString,
    /// Behind `nextest run`.
    words: Vec<OsString>,
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "rust-build-meta")]
    meta: serde_json::Value,
    #[serde(rename = "rust-suites")]
    suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Suite {
    binary_id: String,
    binary_path: PathBuf,
    cwd: PathBuf,
    #[serde(default)]
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    #[serde(default)]
    ignored: bool,
    filter_match: Match,
}

#[derive(Deserialize)]
struct Match {
    status: String,
}

impl Nextest {
    pub fn new(words: &[OsString]) -> Nextest {
        Nextest { program: words[0].clone(), words: words[3..].to_vec() }
    }

    /// Asks nextest for its tests; they are built.
    fn ask(&self) -> Result<List, SuiteError> {
        let mut command = start::command(&self.program);
        let words = without(&self.words, ABOUT_RUNNING);
        let is_jobs = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with("-j"));
        command.args(["nextest", "list", "--message-format", "json"]);
        command
            .args(words.iter().filter(|word| !is_jobs(word)))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        // As for the run: cargo builds anew what other variables were there for.
        cargo::hook(&mut command, &self.words);
        let output = command.output().map_err(|error| start::not_started(&self.program, error))?;
        if !output.status.success() {
            return Err(start::no_list(
                &self.program,
                format_args!("it ends with {}", output.status),
            ));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| start::no_list(&self.program, error))
    }

    fn definition(&self, list: &List, output: Output) -> Definition {
        let folders = list.suites.values().map(|suite| suite.cwd.as_path());
        let mut files = cargo::files(folders);
        files.extend(configurations(list));
        let program = which::which("cargo-nextest").map(|path| path.metadata().ok());
        let version =
            program.ok().flatten().map(|metadata| (metadata.len(), metadata.modified().ok()));
        let is_verbose =
            self.words.iter().any(|word| word == "--no-capture" || word == "--nocapture");
        Definition {
            words: [std::slice::from_ref(&self.program), self.words.as_slice()].concat(),
            files,
            // How many run at a time is told to each.
            texts: vec![
                format!("{version:?} {:?}", std::thread::available_parallelism()).into_bytes(),
                list.meta.to_string().into_bytes(),
            ],
            passes_output: is_verbose.then_some(output),
            variables: VARIABLES,
        }
    }

    /// The words that choose these tests among those that were meant.
    fn choosing(&self, tests: &[TestCase], chosen: &[usize]) -> Option<Vec<OsString>> {
        let mut by_binary: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for index in chosen {
            let (binary, name) = tests[*index].name.split_once(' ')?;
            by_binary.entry(binary).or_default().push(format!("test(={})", quoted(name)));
        }
        let set = |(binary, names): (&str, Vec<String>)| {
            format!("(binary_id(={}) & ({}))", quoted(binary), names.join(" | "))
        };
        let wanted: Vec<String> = by_binary.into_iter().map(set).collect();
        let given = filters(&self.words);
        let filter = match given.is_empty() {
            true => wanted.join(" | "),
            false => format!("({}) & ({})", given.join(" | "), wanted.join(" | ")),
        };
        let mut words = without(&self.words, FILTERS);
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(end..end, ["-E".into(), filter.clone().into()]);
        (filter.len() < LONGEST).then_some(words)
    }
}

impl Harness for Nextest {
    fn list(&self, output: Output) -> Result<Listing, SuiteError> {
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
        let list = self.ask()?;
        let more = self
            .words
            .iter()
            .position(|word| word == "--")
            .map_or(&[][..], |place| &self.words[place + 1..]);
        let uncertain = uncertain(&list).or_else(|| {
            let is_option = |word: &&OsString| word.to_string_lossy().starts_with('-');
            more.iter().find(is_option).map(|_| "the programs are given options".to_owned())
        });
        let mut tests = Vec::new();
        for suite in list.suites.values() {
            for (name, case) in
                suite.testcases.iter().filter(|(_, case)| case.filter_match.status == "matches")
            {
                let mut words: Vec<OsString> =
                    vec![suite.binary_path.clone().into(), "--exact".into(), name.into()];
                words.push("--nocapture".into());
                words.extend(case.ignored.then(|| OsString::from("--ignored")));
                tests.push(TestCase {
                    name: format!("{} {name}", suite.binary_id),
                    words,
                    working: suite.cwd.clone(),
                    left_to_harness: uncertain.clone(),
                    number: tests.len(),
                    ..TestCase::default()
                });
            }
        }
        let memory = Memory::new(&self.definition(&list, output))?;
        Ok(Listing::new(tests, Contexts::Remembered(Box::new(memory))))
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
            self.choosing(tests, chosen).unwrap_or_else(all)
        };
        let mut command = start::command(&self.program);
        command.args(["nextest", "run"]).args(words);
        cargo::hook(&mut command, &self.words);
        let status = start::run_command(command, &self.program, options)?;
        Ok(HarnessRun { status, ends: Vec::new() })
    }

    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError> {
        let mut command = start::command(&self.program);
        command.args(["nextest", "run"]).args(&self.words);
        cargo::hook(&mut command, &self.words);
        start::run_command(command, &self.program, options)
    }

    fn failure_code(&self) -> i32 {
        FAILED
    }
}

/// The filtersets that were given, each in brackets.
fn filters(words: &[OsString]) -> Vec<String> {
    let mut filters = Vec::new();
    let mut rest = words.iter().take_while(|word| *word != "--");
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let is_whole = FILTERS.iter().any(|(name, _)| text == *name);
        let joined = || {
            FILTERS
                .iter()
                .find_map(|(name, _)| text.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
        };
        let filter = if is_whole {
            rest.next().map(|next| next.to_string_lossy().into_owned())
        } else {
            joined()
        };
        filters.extend(filter.map(|filter| format!("({filter})")));
    }
    filters
}

fn quoted(name: &str) -> String {
    escaped(name, r"\()/,", '\\')
}

/// The configuration of nextest that can hold here.
fn configurations(list: &List) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let user = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or(home);
    let ancestors = list.suites.values().flat_map(|suite| suite.cwd.ancestors());
    let mut files: Vec<PathBuf> =
        ancestors.map(|folder| folder.join(".config/nextest.toml")).collect();
    files.extend(user.map(|folder| folder.join("nextest/config.toml")));
    files.sort();
    files.dedup();
    files
}

/// Why nobody knows beforehand what tests are given.
fn uncertain(list: &List) -> Option<String> {
    let says = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        UNCERTAIN.iter().any(|word| text.contains(word))
    };
    let file = configurations(list).into_iter().find(says)?;
    Some(format!("{} says what single tests are given", file.display()))
}

/// Whether a command is a run of nextest that is understood.
pub fn is_called(words: &[OsString]) -> bool {
    let has_own_configuration = ["--config-file", "--tool-config-file", "--user-config-file"]
        .iter()
        .any(|option| value_of(words, option).is_some());
    cargo::is_called(words, &["nextest", "run"]) && !has_own_configuration
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_chosen_among_those_that_were_meant() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let case = |name: &str| TestCase { name: name.to_owned(), ..TestCase::default() };
        let tests = [case("a::b x::y"), case("a::b z"), case("c w(1)")];
        let nextest =
            Nextest::new(&words("cargo nextest run -E test(x) --filterset=all() name -- more"));
        let expected = r"((test(x)) | (all())) & ((binary_id(=a::b) & (test(=x::y))) | (binary_id(=c) & (test(=w\(1\)))))";
        let chosen = nextest.choosing(&tests, &[0, 2]).unwrap();
        assert_eq!(chosen, [words("name -E"), vec![expected.into()], words("-- more")].concat());
    }
}
