//! Finds the real linker: the one that the compiler's driver would have run without us. Only the
//! driver knows (a cross compiler never takes the native `ld`), so it is asked once, and the answer
//! is cached.
//!
//! In: what the compiler's shim has passed on, and the name under which the linker was called. Out:
//! the linker's path, and what kind of linker it is.

use super::handover::{self, Handover};
use super::spawn::Change;
use super::{Settings, answers, guard, names, search};
use crate::model::keys::KeyOf;
use crate::model::{FileIdentity, Hash, Hasher};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The linkers whose maps we can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkerKind {
    GnuLd,
    Gold,
    Lld,
    Mold,
}

/// The linker that would run without us: the one that the user gave to the driver, or that the
/// driver finds under `name` (`ld`, `ld.gold`).
pub fn real(settings: &Settings, handover: &Handover, name: &OsStr) -> Option<PathBuf> {
    match &handover.linker {
        Some(linker) if linker.as_bytes().contains(&b'/') => {
            Some(PathBuf::from(linker)).filter(|path| is_program(path) && !search::is_shim(path))
        }
        Some(linker) => of_driver(settings, handover, linker),
        None => of_driver(settings, handover, name),
    }
}

/// The linker that the handed-over driver runs for `name` (`ld`, `ld.gold`).
fn of_driver(settings: &Settings, handover: &Handover, name: &OsStr) -> Option<PathBuf> {
    let driver = search::by_word(handover.driver.first()?)?.path;
    let key = question(&driver, handover, name);
    let known =
        answers::recall(settings, key).map(|answer| PathBuf::from(OsString::from_vec(answer)));
    if let Some(path) = known.filter(|path| is_program(path)) {
        return Some(path);
    }
    let path = found_by(&driver, handover, name)?;
    answers::remember(settings, key, path.as_os_str().as_bytes());
    Some(path)
}

/// Everything that the driver's answer depends on: the driver, the name, its options, the folders
/// that it searches, and when something was last added to or removed from those.
fn question(driver: &Path, handover: &Handover, name: &OsStr) -> Hash {
    let mut hasher = KeyOf::LinkerOfDriver.hasher();
    stamp(&mut hasher, driver);
    if let [_, .., compiler] = &handover.driver[..] {
        // Behind a launcher it is the compiler that answers.
        stamp(&mut hasher, &search::by_word(compiler).map(|hit| hit.path).unwrap_or_default());
    }
    hasher.bytes(name.as_bytes()).number(handover.options.len() as u64);
    for word in handover.options.iter().chain(&handover.driver) {
        hasher.bytes(word.as_bytes());
    }
    if !handover.options.is_empty() {
        // `-B../tools` means something else in every folder.
        hasher.bytes(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let compiler_path = handover.compiler_path.clone().unwrap_or_default();
    let prefixes =
        handover.options.iter().filter_map(|option| option.as_bytes().strip_prefix(b"-B"));
    let prefixes = prefixes.map(|prefix| PathBuf::from(OsStr::from_bytes(prefix)));
    for folder in
        std::env::split_paths(&path).chain(std::env::split_paths(&compiler_path)).chain(prefixes)
    {
        stamp(&mut hasher, &folder);
    }
    hasher.finish()
}

/// A path, and the state of what is there.
fn stamp(hasher: &mut Hasher, path: &Path) {
    hasher.bytes(path.as_os_str().as_bytes());
    if let Ok(file) = fs::metadata(path) {
        hasher.hash(FileIdentity::of(&file).hash());
    }
}

/// Asks the driver. A bare name in the answer means that it is left to `PATH`.
fn found_by(driver: &Path, handover: &Handover, name: &OsStr) -> Option<PathBuf> {
    let mut question = OsString::from("-print-prog-name=");
    question.push(name);
    let mut command = Command::new(driver);
    command.args(&handover.driver[1..]).args(&handover.options).arg(question);
    let answer =
        PathBuf::from(OsStr::from_bytes(answer_of(command, &handover.asking())?.trim_ascii()));
    let is_path = answer.as_os_str().as_bytes().contains(&b'/');
    if is_path && is_program(&answer) && !search::is_shim(&answer) {
        return Some(answer);
    }
    let called = handover.driver.last().and_then(|word| Path::new(word).file_name())?;
    on_path_for(called, name)
}

/// Runs a question. A shim on its way passes it through.
fn answer_of(mut command: Command, changes: &[Change]) -> Option<Vec<u8>> {
    for (name, value) in
        changes.iter().chain(&[guard::mark(guard::COMPILER), guard::mark(guard::LINKER)])
    {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// What GCC does where its own folders hold no linker: a native one takes the first of the name on
/// `PATH`, a cross compiler takes `TARGET-ld` and nothing else.
fn on_path_for(driver: &OsStr, name: &OsStr) -> Option<PathBuf> {
    let hit = match names::target(driver).filter(|target| target.contains('-')) {
        Some(target) => {
            let mut prefixed = OsString::from(target);
            prefixed.push("-");
            prefixed.push(name);
            let native = target.split('-').next() == Some(std::env::consts::ARCH);
            search::on_path(&prefixed).or_else(|| if native { search::on_path(name) } else { None })
        }
        None => search::on_path(name),
    };
    hit.map(|hit| hit.path)
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
}

/// What the linker at `path` says that it is.
pub fn kind(settings: &Settings, path: &Path) -> Option<LinkerKind> {
    let mut hasher = KeyOf::LinkerKind.hasher();
    stamp(&mut hasher, path);
    let key = hasher.finish();
    let text = answers::recall(settings, key).or_else(|| {
        let mut command = Command::new(path);
        command.arg("--version");
        let text = answer_of(command, &handover::restored())?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default().to_vec();
        answers::remember(settings, key, &line);
        Some(line)
    });
    text.and_then(|text| kind_by_version(&text))
}

/// The kind by the first line of `--version`. Others say "compatible with GNU ld", so GNU's comes
/// last and only at the front.
fn kind_by_version(line: &[u8]) -> Option<LinkerKind> {
    let has = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
    if line.starts_with(b"mold ") {
        Some(LinkerKind::Mold)
    } else if line.starts_with(b"LLD ") || has(" LLD ") {
        Some(LinkerKind::Lld)
    } else if line.starts_with(b"GNU gold ") {
        Some(LinkerKind::Gold)
    } else if line.starts_with(b"GNU ld ") {
        Some(LinkerKind::GnuLd)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_version() {
        for (line, kind) in [
            ("GNU ld (GNU Binutils for Debian) 2.40", Some(LinkerKind::GnuLd)),
            ("GNU gold (GNU Binutils for Debian 2.40) 1.16", Some(LinkerKind::Gold)),
            ("Debian LLD 14.0.6 (compatible with GNU linkers)", Some(LinkerKind::Lld)),
            ("LLD 17.0.1 (compatible with GNU linkers)", Some(LinkerKind::Lld)),
            ("mold 1.10.1 (compatible with GNU ld)", Some(LinkerKind::Mold)),
            ("Wild version 0.4.0 (compatible with GNU linkers)", None),
            ("", None),
        ] {
            assert_eq!(kind_by_version(line.as_bytes()), kind, "{line}");
        }
    }

    #[test]
    fn a_driver_is_asked_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { dir: Some(folder.path().into()), ..Settings::default() };
        let Some(gcc) = search::on_path(OsStr::new("gcc")) else { return };
        let handover = Handover { driver: vec![gcc.path.into()], ..Handover::default() };
        let linker = of_driver(&settings, &handover, OsStr::new("ld")).unwrap();
        assert!(linker.ends_with("ld"));
        assert_eq!(fs::read_dir(folder.path().join("answers")).unwrap().count(), 1);
        assert_eq!(of_driver(&settings, &handover, OsStr::new("ld")), Some(linker));
        assert_eq!(of_driver(&settings, &handover, OsStr::new("ld.no-such-linker")), None);
    }
}
