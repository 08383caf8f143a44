//! The project's settings: `tasting.toml` in its root.
//!
//! In: the file. Out: [`Config`]. A file that cannot be parsed is reported as an error, and until
//! it is corrected nothing is reused: it may have listed tests that must not be.

use crate::model::keys::Code;
use crate::store::remote::keys;
use crate::store::remote::location::Location;
use glob::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Its name.
pub const FILE: &str = "tasting.toml";

/// What the project wants.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Patterns of files, relative to the root, that all tests depend on.
    pub inputs: Vec<String>,
    /// Patterns of commands that always run.
    pub never_reuse: Vec<String>,
    /// Patterns of folders, relative to the root, that the project is built in.
    pub build_folders: Vec<String>,
    /// Which function tests start in, by a pattern of their programs' paths, where that is not
    /// `main`.
    pub entry_points: BTreeMap<String, String>,
    /// Failures are reused as well.
    pub reuse_failures: bool,
    /// Which share of the would-be reuses is run all the same: `"5%"`.
    pub audit: Option<Share>,
    /// Every test runs, and what would have been done about it is noted (`TASTING_SHADOW`).
    pub shadow: bool,
    /// How often a test in quarantine has to pass before it is trusted again.
    pub quarantine_passes: Option<u32>,
    /// Programs of the project that have no manifest: whether they count by content, or make a run
    /// impossible to reuse.
    pub unknown_programs: UnknownPrograms,
    /// The store of the team: a URL and attributes. `TASTING_REMOTE` goes before it.
    pub remote: Option<RemoteStore>,
    pub environment: Environment,
    pub limits: Limits,
    pub sharing: Sharing,
    pub history: History,
}

/// How `tasting history` configures, builds and tests the project, as lines for a shell, where that
/// cannot be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    pub configure: Option<String>,
    pub build: Option<String>,
    pub test: Option<String>,
}

/// A remote store, as `tasting.toml` names it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct RemoteStore(pub Location);

impl TryFrom<String> for RemoteStore {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let location = Location::parse(&text)?;
        if location.attributes.objects.is_some() {
            // The compilers' shims read no files of the project; and whose code is linked is for
            // whoever builds to say.
            return Err("remote: the attribute objects is for TASTING_REMOTE only".to_owned());
        }
        Ok(RemoteStore(location))
    }
}

/// For people: without secrets.
impl From<RemoteStore> for String {
    fn from(remote: RemoteStore) -> String {
        remote.0.shown
    }
}

/// What is shared with other machines, and what of theirs is believed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sharing {
    /// Public keys (Ed25519, base64): if there are any, only what they have signed is believed.
    pub trusted_keys: Vec<String>,
    /// All checkouts lie in folders of the same name, so that outcomes that name it are shared as
    /// well.
    pub same_path: bool,
    /// Libraries of the system count by content, or by name only: for those who know that their
    /// machines' differ in nothing that matters.
    pub system_libraries: SystemLibraries,
    /// Machines share if their processors can do the same, or all do: for those who know that their
    /// tests do not go by it.
    pub processors: Processors,
}

/// Which machines share results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Processors {
    #[default]
    Same,
    Any,
}

/// What libraries of the system count by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemLibraries {
    #[default]
    Content,
    Name,
}

impl Code for SystemLibraries {
    fn code(self) -> u64 {
        match self {
            SystemLibraries::Content => 0,
            SystemLibraries::Name => 1,
        }
    }
}

/// Which variables of the environment count.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Environment {
    /// Patterns of names that do not.
    pub ignore: Vec<String>,
    /// Patterns of names that do, although Tasting would ignore them.
    pub count: Vec<String>,
}

/// How much of an outcome is kept.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of output.
    pub output: usize,
    /// Bytes of files that a test leaves behind.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { output: 16 << 20, files: 32 << 20 }
    }
}

/// What is done about programs that have no manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownPrograms {
    #[default]
    Content,
    Refuse,
}

/// A share of all cases, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share(pub f64);

impl From<Share> for String {
    fn from(share: Share) -> String {
        format!("{}%", share.0 * 100.0)
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_suffix('%').map(|number| (number, 100.0));
        let (number, whole) = percent.unwrap_or((text.trim(), 1.0));
        match number.trim().parse::<f64>() {
            Ok(number) if (0.0..=whole).contains(&number) => Ok(Share(number / whole)),
            _ => Err(format!("{text:?} is not a share such as 5% or 0.05")),
        }
    }
}

impl Config {
    /// The settings of the project with this root; the default where there is no file.
    pub fn read(root: &Path) -> Result<Self, String> {
        let path = root.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        Config::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Config = toml::from_str(text).map_err(|error| without_secrets(&error, text))?;
        let lists = [&config.inputs, &config.never_reuse, &config.build_folders];
        let names = [&config.environment.ignore, &config.environment.count];
        let patterns = lists.into_iter().chain(names).flatten().chain(config.entry_points.keys());
        for pattern in patterns {
            Pattern::new(pattern)
                .map_err(|error| format!("the pattern {pattern:?} is wrong: {error}"))?;
        }
        config.sharing.trusted_keys.iter().try_for_each(|key| keys::public_key(key).map(|_| ()))?;
        Ok(config)
    }

    /// The pattern in `never-reuse` that a command fits: as a whole line, or by its program alone.
    pub fn never_reuses(&self, words: &[String]) -> Option<&str> {
        let line = words.join(" ");
        let program = words.first().map(String::as_str).unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let fits = |pattern: &&String| {
            [line.as_str(), program, name].iter().any(|text| matches(pattern, text))
        };
        self.never_reuse.iter().find(fits).map(String::as_str)
    }
}

/// What is wrong, and where. The line itself is not repeated: the URL of a store can contain a
/// password, and errors are logged.
fn without_secrets(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().replace('\n', " ");
    let message =
        if message.contains("://") { "a value of the wrong type" } else { message.trim_end() };
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return message.to_owned();
    };
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    format!("line {}, column {column}: {message}", before.matches('\n').count() + 1)
}

/// Whether a text fits a pattern with `*`, `?` and `[…]`.
pub fn matches(pattern: &str, text: &str) -> bool {
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_the_default() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
    }

    #[test]
    fn everything_can_be_set() {
        let config = Config::parse(
            "inputs = ['data/**']\nnever-reuse = ['*stress*']\nbuild-folders = ['out-*']\nreuse-failures = true\n\
             audit = '5%'\nshadow = true\nquarantine-passes = 2\nunknown-programs = 'refuse'\n[entry-points]\n'tests/*' = 'test_main'\n\
             [environment]\nignore = ['X_*']\ncount = ['TERM']\n[limits]\noutput = 10\nfiles = 20\n\
             [history]\nconfigure = './configure'\nbuild = 'make'\ntest = 'make check'",
        )
        .unwrap();
        assert_eq!((config.audit, config.shadow), (Some(Share(0.05)), true));
        assert_eq!(config.history.test.as_deref(), Some("make check"));
        assert_eq!((config.limits.output, config.limits.files), (10, 20));
        assert_eq!(config.entry_points["tests/*"], "test_main");
        assert_eq!(config.unknown_programs, UnknownPrograms::Refuse);
    }

    #[test]
    fn unknown_input_is_an_error() {
        for text in [
            "nonsense = 1",
            "remote = 'file:/x objects'",
            "audit = '200%'",
            "never-reuse = ['[']",
            "never-reuse = 'a'",
            "= =",
        ] {
            assert!(Config::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_repeat_no_secrets() {
        for (text, place) in [
            ("# A comment\nremote = 'redis://user:secret@host pass'", "line 2"),
            ("remote = 'redis://user:secret@host objects'", "line 1"),
            ("remote = 'redis://user:secret@host", "line 1"),
            ("inputs = 'redis://user:secret@host'", "line 1"),
            ("\n  remote = ['redis://user:secret@host']", "line 2"),
            ("[sharing]\nremote = 'redis://host password=secret'", "line 2"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(!error.contains("secret") && error.contains(place), "{error}");
        }
    }

    #[test]
    fn commands_fit_by_line_program_or_name() {
        let config =
            Config { never_reuse: vec!["stress_*".into(), "* --slow".into()], ..Config::default() };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(config.never_reuses(&words("./tests/stress_io 3")), Some("stress_*"));
        assert_eq!(config.never_reuses(&words("./t --slow")), Some("* --slow"));
        assert_eq!(config.never_reuses(&words("./t --fast")), None);
    }
}
