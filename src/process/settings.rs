//! The `TASTING_*` variables, read once, and the log file that one of them names.
//!
//! In: the environment. Out: plain settings. What is set to something that we do not understand
//! counts as not set: a build must not fail over it.

use crate::model::Level;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// How this call is to behave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `TASTING_DISABLE`: pass everything through.
    pub disable: bool,
    /// `TASTING_NOSPLIT`: add no section flags.
    pub nosplit: bool,
    /// `TASTING_READONLY`: write nothing to the store.
    pub readonly: bool,
    /// `TASTING_LEVEL`.
    pub level: Level,
    /// `TASTING_LOGFILE`.
    pub logfile: Option<PathBuf>,
    /// `TASTING_DIR`, or its default; `None` where there is no home either.
    pub dir: Option<PathBuf>,
    /// `TASTING_RECACHE`: run, and store anew.
    pub recache: bool,
    /// `TASTING_NOTRACE`: do not note which functions a test executes.
    pub notrace: bool,
    /// `TASTING_SHADOW`: run every test, and note what would have been done.
    pub shadow: bool,
    /// `TASTING_ROOT`.
    pub root: Option<PathBuf>,
    /// `TASTING_MANIFEST_DIR`.
    pub manifest_dir: Option<PathBuf>,
    /// `TASTING_MAXSIZE`: how many bytes the store may take; `None` for its default.
    pub max_size: Option<u64>,
    /// `TASTING_REMOTE`: the store of the team.
    pub remote: Option<Hidden>,
    /// `TASTING_REUSE_OBJECTS`: take objects from the cache where the source means what it meant.
    pub reuse_objects: bool,
    /// `TASTING_OBJECTS_MAXSIZE`: how many bytes the cache of objects may take; `None` for its
    /// default.
    pub max_objects: Option<u64>,
    /// `TASTING_SLOPPINESS`: what may be wrong in an object or in the messages of a build that
    /// reuses objects.
    pub sloppiness: Sloppiness,
}

/// What those who want more reuse do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sloppiness {
    /// `lines`: the lines in debug information.
    pub lines: bool,
    /// `messages`: what the compiler has to say of declarations that the code does not use.
    pub messages: bool,
}

impl Sloppiness {
    /// The words that are understood, with commas or spaces between them.
    fn read(text: &OsStr) -> Self {
        let has =
            |wanted: &str| text.to_string_lossy().split([',', ' ']).any(|word| word == wanted);
        Sloppiness { lines: has("lines"), messages: has("messages") }
    }
}

/// A text that may have a secret in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("***")
    }
}

impl Settings {
    /// The settings of this process.
    pub fn from_environment() -> Self {
        Self::read(|name| std::env::var_os(name))
    }

    /// The settings from any source of variables. An empty variable counts as not set.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let switch = |name: &str| variable(name).is_some_and(|value| !is_no(&value));
        let path = |name: &str| variable(name).map(PathBuf::from);
        let cache = || path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
        Settings {
            disable: switch("TASTING_DISABLE"),
            nosplit: switch("TASTING_NOSPLIT"),
            readonly: switch("TASTING_READONLY"),
            level: variable("TASTING_LEVEL").map(|value| level(&value)).unwrap_or_default(),
            logfile: path("TASTING_LOGFILE"),
            dir: path("TASTING_DIR").or_else(|| Some(cache()?.join("tasting"))),
            recache: switch("TASTING_RECACHE"),
            notrace: switch("TASTING_NOTRACE"),
            shadow: switch("TASTING_SHADOW"),
            root: path("TASTING_ROOT"),
            manifest_dir: path("TASTING_MANIFEST_DIR"),
            max_size: variable("TASTING_MAXSIZE").and_then(|value| size(value.to_str()?)),
            remote: variable("TASTING_REMOTE")
                .map(|value| Hidden(value.to_string_lossy().into_owned())),
            reuse_objects: switch("TASTING_REUSE_OBJECTS"),
            max_objects: variable("TASTING_OBJECTS_MAXSIZE")
                .and_then(|value| size(value.to_str()?)),
            sloppiness: variable("TASTING_SLOPPINESS")
                .map(|value| Sloppiness::read(&value))
                .unwrap_or_default(),
        }
    }

    /// Whether the compiler is to be asked for one section per function and per variable.
    pub fn split(&self) -> bool {
        !self.nosplit && self.level == Level::Code
    }

    /// Adds one line to the log file, if there is one. Never fails: the log is for those who look
    /// for a problem, and must not be one.
    pub fn log(&self, message: impl Display) {
        let Some(path) = &self.logfile else { return };
        let line = format!("{} {}\n", std::process::id(), message.to_string().replace('\n', " "));
        // One write of the whole line in append mode, so that lines of parallel calls do not mix.
        let _ = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut log| log.write_all(line.as_bytes()));
    }
}

/// A switch that is set to one of these is off.
fn is_no(value: &OsStr) -> bool {
    ["0", "no", "false", "off"].iter().any(|no| value.eq_ignore_ascii_case(no))
}

/// A number of bytes such as `500M`, `5 GiB` or `2.5G`, by powers of 1024. Without a unit it means
/// GiB, as in ccache.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let exponent =
        match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
            "k" => 1,
            "m" => 2,
            "" | "g" => 3,
            "t" => 4,
            _ => return None,
        };
    let bytes = number.parse::<f64>().ok()? * 1024f64.powi(exponent);
    (bytes.is_finite() && bytes >= 1.0).then_some(bytes as u64)
}

fn level(value: &OsStr) -> Level {
    match value.to_str() {
        Some("ast") => Level::Ast,
        Some("file") => Level::File,
        _ => Level::Code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::read(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(settings(&[]), Settings::default());
        assert!(settings(&[]).split());
    }

    #[test]
    fn switches() {
        assert!(settings(&[("TASTING_DISABLE", "1")]).disable);
        assert!(!settings(&[("TASTING_DISABLE", "")]).disable);
        assert!(!settings(&[("TASTING_DISABLE", "No")]).disable);
        assert!(!settings(&[("TASTING_NOSPLIT", "yes")]).split());
        assert!(!settings(&[("TASTING_LEVEL", "file")]).split());
        assert_eq!(settings(&[("TASTING_LEVEL", "ast")]).level, Level::Ast);
    }

    #[test]
    fn the_store_has_three_places_in_order() {
        let home = ("HOME", "/home/u");
        assert_eq!(settings(&[home]).dir, Some("/home/u/.cache/tasting".into()));
        let cache = ("XDG_CACHE_HOME", "/cache");
        assert_eq!(settings(&[home, cache]).dir, Some("/cache/tasting".into()));
        assert_eq!(settings(&[home, cache, ("TASTING_DIR", "/t")]).dir, Some("/t".into()));
    }

    #[test]
    fn sizes() {
        let size = |text| settings(&[("TASTING_MAXSIZE", text)]).max_size;
        assert_eq!(
            (size("5"), size("500M"), size("2.5 GiB")),
            (Some(5 << 30), Some(500 << 20), Some(5 << 29))
        );
        assert_eq!((size("10kB"), size("1T"), size("0")), (Some(10 << 10), Some(1 << 40), None));
        assert_eq!((size("much"), size("-1"), size("1x"), size(".")), (None, None, None, None));
    }

    #[test]
    fn sloppiness_is_a_list() {
        let sloppiness = |text| settings(&[("TASTING_SLOPPINESS", text)]).sloppiness;
        assert_eq!(sloppiness("lines"), Sloppiness { lines: true, messages: false });
        assert_eq!(sloppiness("messages, lines"), Sloppiness { lines: true, messages: true });
        assert_eq!(sloppiness("headlines"), Sloppiness::default());
    }

    #[test]
    fn an_unwritable_log_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = settings(&[("TASTING_LOGFILE", path.to_str().unwrap())]);
        log.log("one\ntwo");
        log.log("three");
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        settings(&[("TASTING_LOGFILE", "/nowhere/log")]).log("lost");
    }
}
