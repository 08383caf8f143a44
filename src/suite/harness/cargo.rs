//! `cargo test`: the messages of `cargo test --no-run` say which programs it runs, each of which is
//! a test. It runs them all, each through `tasting run`, which decides when its turn comes. The
//! same holds for tests in documentation, which cannot be listed beforehand.
//!
//! In: the words of a `cargo test` command. Out: its programs; runs of all of them.

use crate::suite::memory::{Definition, Memory};
use crate::suite::options::value_of;
use crate::suite::start::{self, HarnessOptions};
use crate::suite::{Contexts, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// With this cargo says that tests failed.
const FAILED: i32 = 101;

/// What cargo and rustup set, by the files below.
pub const VARIABLES: &[&str] = &[
    "CARGO*",
    "LD_LIBRARY_PATH",
    "OUT_DIR",
    "PATH",
    "RUSTUP_*",
    "RUST_RECURSION_COUNT",
    "SSL_CERT_*",
];

/// A call of `cargo test`.
pub struct Cargo {
    program: OsString,
    /// From `test` on.
    words: Vec<OsString>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    package_id: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    #[serde(default)]
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    #[serde(default)]
    test: bool,
}

impl Cargo {
    pub fn new(words: &[OsString]) -> Cargo {
        Cargo { program: words[0].clone(), words: words[1..].to_vec() }
    }

    /// The words for cargo, and those for the programs.
    fn parts(&self) -> (&[OsString], &[OsString]) {
        let end = self.words.iter().position(|word| word == "--").unwrap_or(self.words.len());
        (&self.words[..end], self.words.get(end + 1..).unwrap_or_default())
    }

    /// The programs that it would run. They are built.
    fn programs(&self) -> Result<Vec<Message>, SuiteError> {
        let (words, _) = self.parts();
        let mut command = start::command(&self.program);
        command.args(words).args(["--no-run", "--message-format=json-render-diagnostics"]);
        command.stdin(Stdio::null());
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| start::not_started(&self.program, error))?;
        if !output.status.success() {
            return Err(start::no_list(&self.program, "it cannot build its tests"));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
        let is_test = |message: &Message| {
            message.executable.is_some()
                && message.profile.as_ref().is_some_and(|profile| profile.test)
        };
        Ok(messages.filter(is_test).collect())
    }

    /// Words of cargo that belong to the programs: the name that chooses cases.
    fn filter(&self) -> Vec<OsString> {
        let (words, more) = self.parts();
        let names = crate::suite::options::positional(&words[1..], OPTIONS).unwrap_or_default();
        names.into_iter().chain(more).cloned().collect()
    }

    fn case(&self, message: Message) -> Option<TestCase> {
        let (program, manifest, target) =
            (message.executable?, message.manifest_path?, message.target?);
        let working = manifest.parent()?.to_owned();
        let package = package(&message.package_id).to_owned();
        let kind = target.kind.first().map(String::as_str).unwrap_or_default();
        Some(TestCase {
            name: format!("{package} {kind} {}", target.name),
            words: [program.into_os_string()].into_iter().chain(self.filter()).collect(),
            working,
            ..TestCase::default()
        })
    }
}

/// The name in an identity such as `path+file:///a/name#0.1.0`, `registry+https://…#name@0.1.0`, or
/// `name 0.1.0 (path+…)`.
fn package(identity: &str) -> &str {
    match identity.split_once('#') {
        Some((_, named)) if named.contains('@') => named.split('@').next().unwrap_or_default(),
        Some((place, _)) => place.rsplit('/').next().unwrap_or_default(),
        None => identity.split(' ').next().unwrap_or_default(),
    }
}

/// Options of `cargo test`, with the number of words behind them.
const OPTIONS: &[(&str, usize)] = &[
    ("-F", 1),
    ("-Z", 1),
    ("-j", 1),
    ("-p", 1),
    ("-q", 0),
    ("-r", 0),
    ("-v", 0),
    ("-vv", 0),
    ("--all", 0),
    ("--all-features", 0),
    ("--all-targets", 0),
    ("--benches", 0),
    ("--bin", 1),
    ("--bins", 0),
    ("--color", 1),
    ("--config", 1),
    ("--doc", 0),
    ("--example", 1),
    ("--examples", 0),
    ("--exclude", 1),
    ("--features", 1),
    ("--frozen", 0),
    ("--jobs", 1),
    ("--lib", 0),
    ("--locked", 0),
    ("--manifest-path", 1),
    ("--no-default-features", 0),
    ("--no-fail-fast", 0),
    ("--offline", 0),
    ("--package", 1),
    ("--profile", 1),
    ("--quiet", 0),
    ("--release", 0),
    ("--target", 1),
    ("--target-dir", 1),
    ("--test", 1),
    ("--tests", 0),
    ("--verbose", 0),
    ("--workspace", 0),
];

impl Harness for Cargo {
    fn list(&self, _: Output) -> Result<Listing, SuiteError> {
        let (words, _) = self.parts();
        if let Err(word) = crate::suite::options::positional(&words[1..], OPTIONS) {
            return Err(SuiteError::Unknown(format!(
                "with {} tests are not decided about beforehand",
                word.display()
            )));
        }
        if words.iter().any(|word| word == "--doc") {
            return Err(SuiteError::Unknown(
                "nobody knows of tests in documentation beforehand".to_owned(),
            ));
        }
        let tests: Vec<TestCase> =
            self.programs()?.into_iter().filter_map(|message| self.case(message)).collect();
        let definition = Definition {
            words: [std::slice::from_ref(&self.program), self.words.as_slice()].concat(),
            files: files(tests.iter().map(|test| test.working.as_path())),
            texts: Vec::new(),
            passes_output: None,
            variables: VARIABLES,
        };
        let contexts = Contexts::Remembered(Box::new(Memory::new(&definition)?));
        Ok(Listing { runs_all: true, ..Listing::new(tests, contexts) })
    }

    fn run(
        &self,
        _: &[TestCase],
        _: &[usize],
        options: HarnessOptions,
    ) -> Result<HarnessRun, SuiteError> {
        Ok(HarnessRun { status: self.run_all(options)?, ends: Vec::new() })
    }

    fn run_all(&self, options: HarnessOptions) -> Result<ExitStatus, SuiteError> {
        let mut command = start::command(&self.program);
        command.args(&self.words);
        hook(&mut command, &self.words);
        start::run_command(command, &self.program, options)
    }

    fn failure_code(&self) -> i32 {
        FAILED
    }
}

/// Has cargo start programs through `tasting run`, unless somebody has said what it is to start
/// them through.
pub fn hook(command: &mut Command, words: &[OsString]) {
    let Some((name, own)) = runner(words).zip(std::env::current_exe().ok()) else { return };
    let is_set = std::env::var_os(&name).is_some();
    let is_configured = configurations().iter().any(|file| {
        std::fs::read_to_string(file)
            .is_ok_and(|text| text.lines().any(|line| line.trim_start().starts_with("runner")))
    });
    // Cargo takes it apart at spaces.
    let own = own.to_str().filter(|path| !path.contains(' '));
    if let (Some(own), false) = (own, is_set || is_configured) {
        command.env(name, format!("{own} run --"));
    }
}

/// The variable with what cargo starts the programs of its target through.
fn runner(words: &[OsString]) -> Option<OsString> {
    let given = value_of(words, "--target").or_else(|| std::env::var_os("CARGO_BUILD_TARGET"));
    let target = match given {
        Some(target) => target.to_str()?.to_owned(),
        None => {
            let output = Command::new("rustc").arg("-vV").stderr(Stdio::null()).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned()
        }
    };
    let name = target.to_uppercase().replace(['-', '.'], "_");
    Some(format!("CARGO_TARGET_{name}_RUNNER").into())
}

/// The configuration of cargo that can hold here.
fn configurations() -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    folders.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name))).collect()
}

/// What the surroundings of tests in these folders follow from.
pub fn files<'f>(folders: impl Iterator<Item = &'f Path>) -> Vec<PathBuf> {
    let mut files = configurations();
    for folder in folders {
        files.extend(folder.ancestors().map(|folder| folder.join("Cargo.toml")));
    }
    files.sort();
    files.dedup();
    files
}

/// Whether this is the subcommand of a call of cargo.
pub fn is_called(words: &[OsString], subcommands: &[&str]) -> bool {
    let given = words.iter().skip(1).map(OsString::as_os_str);
    given
        .zip(subcommands.iter().map(|name| OsStr::new(*name)))
        .filter(|(one, other)| one == other)
        .count()
        == subcommands.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_by_their_identities() {
        let identities =
            ["path+file:///a/b#0.1.0", "path+file:///a/b#c@0.1.0", "d 0.1.0 (path+file:///a/b)"];
        assert_eq!(identities.map(package), ["b", "c", "d"]);
    }
}
