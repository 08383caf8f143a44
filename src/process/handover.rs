//! What the compiler's shim passes to the linker's shim. The real driver runs between them and
//! knows nothing of it, so it travels in the environment: which driver that is, and what decides
//! which linker it would have run without us.
//!
//! In: the facts. Out: changes to the environment, and the facts read from it.

use super::search;
use super::spawn::{Change, Program, set, unset};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const DRIVER: &str = "TASTING_LINK_DRIVER";
const OPTIONS: &str = "TASTING_LINK_OPTIONS";
const LINKER: &str = "TASTING_LINK_LINKER";
const SEARCHED: &str = "TASTING_LINK_COMPILER_PATH";

/// The folders in which drivers look for their parts, before `PATH`.
pub const COMPILER_PATH: &str = "COMPILER_PATH";

/// Between the words of a list. The environment cannot hold NUL, and nobody writes this in an
/// option.
const SEPARATOR: u8 = 0x1f;

/// What decides which linker a driver runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    /// The driver, and what stands between it and its arguments (`ccache gcc`).
    pub driver: Vec<OsString>,
    /// The options that bear on where the driver looks for programs.
    pub options: Vec<OsString>,
    /// The linker itself, where the user gave its name or path (`--ld-path=`).
    pub linker: Option<OsString>,
    /// `COMPILER_PATH` as it was before us. (GCC adds its own folders to what its children see.)
    pub compiler_path: Option<OsString>,
}

impl Handover {
    /// About the driver that is going to run.
    pub fn new(driver: &Program, options: Vec<OsString>, linker: Option<OsString>) -> Self {
        let path = driver.path.clone().into_os_string();
        let driver = [path].into_iter().chain(driver.words.iter().cloned()).collect();
        Handover { driver, options, linker, compiler_path: original_compiler_path() }
    }

    /// The changes that hand this over.
    pub fn changes(&self) -> Vec<Change> {
        let optional = |name: &str, value: &Option<OsString>| (name.into(), value.clone());
        vec![
            set(DRIVER, join(&self.driver)),
            set(OPTIONS, join(&self.options)),
            optional(LINKER, &self.linker),
            optional(SEARCHED, &self.compiler_path),
        ]
    }

    /// What was handed over to this process. Below a GCC that was not started by our shim (somebody
    /// set `COMPILER_PATH` by hand), GCC's own variable names the driver.
    pub fn receive() -> Self {
        let list = |name| std::env::var_os(name).map(split).unwrap_or_default();
        let driver: Vec<OsString> = list(DRIVER);
        if driver.is_empty() {
            let driver = std::env::var_os("COLLECT_GCC").into_iter().collect();
            return Handover {
                driver,
                compiler_path: original_compiler_path(),
                ..Handover::default()
            };
        }
        let (linker, compiler_path) = (std::env::var_os(LINKER), std::env::var_os(SEARCHED));
        Handover { driver, options: list(OPTIONS), linker, compiler_path }
    }

    /// The changes under which the driver can be asked as if we were not there.
    pub fn asking(&self) -> Vec<Change> {
        let mut changes = restored();
        changes.push((COMPILER_PATH.into(), self.compiler_path.clone()));
        changes
    }
}

/// The changes that take the handover, and our folder of links, out of the environment again: what
/// the real linker gets, and what it may start in turn.
pub fn restored() -> Vec<Change> {
    let mut changes = vec![unset(DRIVER), unset(OPTIONS), unset(LINKER), unset(SEARCHED)];
    changes.extend(restored_compiler_path());
    changes
}

/// `COMPILER_PATH` as it would be without folders of our links; nothing if it is so already.
fn restored_compiler_path() -> Option<Change> {
    let given = std::env::var_os(COMPILER_PATH)?;
    let ours = |folder: &&[u8]| search::is_shim(&Path::new(OsStr::from_bytes(folder)).join("ld"));
    let parts: Vec<&[u8]> = given.as_bytes().split(|&byte| byte == b':').collect();
    let left: Vec<&[u8]> = parts.iter().copied().filter(|folder| !ours(folder)).collect();
    if left.len() == parts.len() {
        None
    } else if left.is_empty() {
        Some(unset(COMPILER_PATH))
    } else {
        Some(set(COMPILER_PATH, OsString::from_vec(left.join(&b':'))))
    }
}

/// `COMPILER_PATH` with a folder in front.
pub fn compiler_path_with(folder: &Path) -> Change {
    let mut value = folder.as_os_str().to_owned();
    if let Some(given) = std::env::var_os(COMPILER_PATH).filter(|given| !given.is_empty()) {
        value.push(":");
        value.push(given);
    }
    set(COMPILER_PATH, value)
}

/// `COMPILER_PATH` without our folders.
fn original_compiler_path() -> Option<OsString> {
    restored_compiler_path().map_or_else(|| std::env::var_os(COMPILER_PATH), |(_, value)| value)
}

fn join(words: &[OsString]) -> OsString {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    OsString::from_vec(words.join(&SEPARATOR))
}

fn split(words: OsString) -> Vec<OsString> {
    if words.is_empty() {
        return Vec::new();
    }
    words
        .as_bytes()
        .split(|&byte| byte == SEPARATOR)
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_survive_the_environment() {
        for list in [&[][..], &["gcc"], &["ccache", "gcc"], &["-B", "a b", "-Bc:d"]] {
            let list: Vec<OsString> = list.iter().map(OsString::from).collect();
            assert_eq!(split(join(&list)), list);
        }
    }

    #[test]
    fn handover_variables_are_removed() {
        let handover = Handover::new(&Program::at("/usr/bin/gcc"), vec!["-Bx".into()], None);
        let names =
            |changes: &[Change]| changes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert!(names(&handover.changes()).iter().all(|name| names(&restored()).contains(name)));
    }
}
