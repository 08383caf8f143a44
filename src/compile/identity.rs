//! The identity of a compiler. In: the driver, and the options by which it finds its parts. Out: a
//! hash of its version, of the options that it passes to its parts by default, and of the contents
//! of those: the driver, the compiler proper, the assembler, and the libraries of each. It is the
//! same on two machines if they would make the same objects: it contains no time, and no name of a
//! file or folder that the driver does not print.
//!
//! All libraries count, not only the compiler's own. The assembler is mostly in libraries, and LLVM
//! computes constants (`sin(1.0)`) with the mathematical library of the machine. The options that
//! the driver passes on follow from how it was built, and from files that it reads by itself (GCC's
//! `specs`, Clang's configuration): a processor, say, or an option that the distribution has added.
//!
//! Asking the driver and reading the parts takes longer than a small compilation. So the answer is
//! cached with the identity (device, inode, size, times) of each part, and of the folder in which
//! others may appear: it holds as long as all of them are the same.
//!
//! A driver may be a wrapper: a script (`musl-gcc`), a link to a compiler cache
//! (`/usr/lib/ccache/gcc`), another program. Which compiler it runs may depend on anything: a
//! variable, a configuration file, the search path. So a wrapper is asked each time what it would
//! run, and only the contents of what it names are cached. Files and programs that a script names
//! (specs, another wrapper) are parts as well.

use crate::model::keys::KeyOf;
use crate::model::{FileIdentity, Hash, Hasher};
use crate::process::spawn::Program;
use crate::process::sys::Memory;
use crate::process::{Settings, answers, search, spawn, sys};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Variables that lead a driver to other parts.
const VARIABLES: [&str; 6] =
    ["COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH"];

/// The files that a driver is asked for. Clang has no `cc1` of its own; what a driver does not have
/// it names as it was asked.
const FILES: [&str; 3] = ["-print-prog-name=cc1", "-print-prog-name=as", "-print-file-name=specs"];

/// Before the name of each file of options that Clang has read, where it tells its version.
const CONFIGURATION: &str = "Configuration file: ";

/// Has a driver print what it would run to compile nothing, and run nothing. Through a pipe, so
/// that no name is made up.
const ACCOUNT: [&str; 8] = ["-###", "-pipe", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"];

/// Before the name by which GCC's driver was called, in what it prints.
const CALLED: &str = "COLLECT_GCC=";

/// Texts in the driver of GCC, and in that of Clang, by which they are told from wrappers.
const OF_DRIVERS: [&[u8]; 2] = [b"Using built-in specs.", b"FORCE_CLANG_DIAGNOSTICS_CRASH"];

/// How far scripts that call scripts are followed, and how many files may come of it.
const MOST_SCRIPTS: usize = 16;

/// Where the current folder is in that.
const HERE: &[u8] = b"-compilation-dir=";

/// What is remembered.
#[derive(Serialize, Deserialize)]
struct Answer {
    parts: Vec<(Vec<u8>, FileIdentity)>,
    /// None of a wrapper, which is asked each time.
    identity: Option<Hash>,
}

/// The identity of a compiler; `None` if it cannot be found out.
pub fn of(settings: &Settings, driver: &Program, search: &[OsString]) -> Option<Hash> {
    let key = key(driver, search);
    let find_out = || match is_wrapper(&driver.path) {
        true => Some(Answer { parts: vec![part(&driver.path)?], identity: None }),
        false => DriverAnswer::of(driver, search, &account(driver, search)?)?.read(),
    };
    let known = remembered(settings, key, find_out)?;
    if known.identity.is_some() {
        return known.identity;
    }
    let told = account(driver, search)?;
    let key = KeyOf::CompilerOfWrapper.hasher().hash(key).hash(words(&told, |_| true)).finish();
    remembered(settings, key, || DriverAnswer::of(driver, search, &told)?.read())?.identity
}

fn remembered(
    settings: &Settings,
    key: Hash,
    find_out: impl FnOnce() -> Option<Answer>,
) -> Option<Answer> {
    let known = answers::recall(settings, key)
        .and_then(|bytes| postcard::from_bytes::<Answer>(&bytes).ok());
    if let Some(answer) = known.filter(is_current) {
        return Some(answer);
    }
    let answer = find_out()?;
    if let Ok(bytes) = postcard::to_stdvec(&answer) {
        answers::remember(settings, key, &bytes);
    }
    Some(answer)
}

/// A file with its state.
fn part(path: &Path) -> Option<(Vec<u8>, FileIdentity)> {
    let path = fs::canonicalize(path).ok()?;
    let identity = identity_of(&path)?;
    Some((path.into_os_string().into_vec(), identity))
}

/// Whether a program is neither GCC's driver nor Clang's.
fn is_wrapper(driver: &Path) -> bool {
    let has = |content: &[u8]| {
        OF_DRIVERS.iter().any(|text| memchr::memmem::find(content, text).is_some())
    };
    !sys::map(driver).is_ok_and(|content| content.starts_with(b"\x7fELF") && has(&content))
}

/// The files that a script names: by their paths, beside itself, or on the search path; and those
/// that they name.
fn files_in_scripts(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut scripts = vec![path.to_owned()];
    let mut read = 0;
    while let Some(script) = scripts.pop().filter(|_| read < MOST_SCRIPTS) {
        let Some(content) = sys::map(&script).ok().filter(|content| content.starts_with(b"#!"))
        else {
            continue;
        };
        read += 1;
        for file in files_in(&script, &content) {
            if !found.contains(&file) {
                scripts.push(file.clone());
                found.push(file);
            }
        }
    }
    found
}

fn files_in(script: &Path, content: &[u8]) -> Vec<PathBuf> {
    let folder = script.parent().unwrap_or(Path::new("."));
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`=,;:(){}<>|&$".contains(byte);
    let words = content.split(is_end).filter(|word| !word.is_empty() && !word.starts_with(b"-"));
    let mut files = Vec::new();
    for word in words.map(OsStr::from_bytes) {
        let name = Path::new(word).file_name().unwrap_or_default();
        let is_path = word.as_bytes().contains(&b'/');
        files.extend(Some(PathBuf::from(word)).filter(|path| path.is_absolute()));
        files.extend(Some(folder.join(name)).filter(|_| !name.is_empty()));
        files.extend(
            search::on_path(name).filter(|_| !is_path && !name.is_empty()).map(|hit| hit.path),
        );
    }
    files.retain(|file| file.is_file());
    files
}

fn key(driver: &Program, search: &[OsString]) -> Hash {
    let mut hasher = KeyOf::Compiler.hasher();
    hasher.bytes(driver.path.as_os_str().as_bytes()).bytes(driver.name.as_bytes());
    for option in search {
        hasher.bytes(option.as_bytes());
    }
    for variable in VARIABLES {
        hasher.bytes(std::env::var_os(variable).unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

fn is_current(answer: &Answer) -> bool {
    let is_same = |(path, known): &(Vec<u8>, FileIdentity)| {
        identity_of(Path::new(OsStr::from_bytes(path))) == Some(*known)
    };
    answer.parts.iter().all(is_same)
}

fn identity_of(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|file| FileIdentity::of(&file))
}

/// What a driver says of itself.
struct DriverAnswer {
    version: Vec<u8>,
    /// What it tells its parts.
    account: Hash,
    /// It, and the programs and files that it would use.
    paths: Vec<PathBuf>,
}

impl DriverAnswer {
    /// `told` is what it would run.
    fn of(driver: &Program, search: &[OsString], told: &[u8]) -> Option<Self> {
        let version = spawn::answer(driver, &["--version".into()], &[])?;
        let mut paths = vec![driver.path.clone()];
        paths.extend(files_in_scripts(&driver.path));
        let lines = String::from_utf8_lossy(&version);
        paths.extend(
            lines.lines().filter_map(|line| line.strip_prefix(CONFIGURATION)).map(PathBuf::from),
        );
        paths.extend(programs(told));
        for file in FILES {
            let mut arguments = search.to_vec();
            arguments.push(file.into());
            let answer = spawn::answer(driver, &arguments, &[])?;
            let path = PathBuf::from(OsString::from_vec(answer.trim_ascii_end().to_vec()));
            paths.extend(Some(path).filter(|path| path.is_absolute() && path.is_file()));
        }
        Some(DriverAnswer { account: commands(told), version, paths })
    }

    /// The folder in which a file may appear that it reads unasked: GCC's `specs` beside the
    /// compiler proper, Clang's configuration beside the driver. What lies in it does not count;
    /// that something was added or removed has it asked again.
    fn home(&self) -> Option<PathBuf> {
        let proper =
            self.paths.iter().find(|path| path.file_name().is_some_and(|name| name == "cc1"));
        let program = fs::canonicalize(proper.or(self.paths.first())?).ok()?;
        program.parent().map(Path::to_owned)
    }

    fn read(&self) -> Option<Answer> {
        let mut hasher = Hasher::new("compiler");
        hasher.bytes(&self.version).hash(self.account);
        let libraries: Vec<PathBuf> = self.paths.iter().flat_map(|path| libraries(path)).collect();
        let mut parts = Vec::new();
        for path in self.paths.iter().chain(&libraries).filter(|path| path.exists()) {
            let part = part(path)?;
            if !parts.contains(&part) {
                hasher.hash(Hash::of(&sys::map(path).ok()?));
                parts.push(part);
            }
        }
        parts.push(part(&self.home()?)?);
        Some(Answer { parts, identity: Some(hasher.finish()) })
    }
}

/// What a driver would run, with what it says of itself.
fn account(driver: &Program, search: &[OsString]) -> Option<Vec<u8>> {
    let told = Memory::new(c"account").ok()?;
    let arguments: Vec<OsString> =
        search.iter().cloned().chain(ACCOUNT.map(OsString::from)).collect();
    let messages = told.descriptor().try_clone_to_owned().ok()?;
    let output = spawn::start_reading(driver, &arguments, &[], messages.into())
        .ok()?
        .wait_with_output()
        .ok()?;
    told.content().ok().filter(|_| output.status.success()).map(|text| text.to_vec())
}

/// The commands in it, which are the lines that start with a blank.
fn commands(told: &[u8]) -> Hash {
    words(told, |line| line.starts_with(b" "))
}

/// The words of some of its lines, without the current folder.
fn words(told: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Hash {
    let mut hasher = Hasher::new("account");
    let lines = told.split(|&byte| byte == b'\n').filter(|line| is_wanted(line));
    for word in lines.flat_map(|line| line.split(u8::is_ascii_whitespace)) {
        if memchr::memmem::find(word, HERE).is_none() {
            hasher.bytes(word);
        }
    }
    hasher.finish()
}

/// The programs that it names: those of the commands, and the driver behind a wrapper. Where that
/// was called by its name alone, all of that name on the search path.
fn programs(told: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(told);
    let mut programs = Vec::new();
    for line in text.lines() {
        let command = line.strip_prefix(' ').and_then(|line| line.split_whitespace().next());
        let called = line.strip_prefix(CALLED).map(str::trim);
        for word in
            [command, called].into_iter().flatten().map(|word| Path::new(word.trim_matches('"')))
        {
            match word.is_absolute() {
                true => programs.push(word.to_owned()),
                false => {
                    programs.extend(all_on_path(word).into_iter().filter(|_| called.is_some()))
                }
            }
        }
    }
    programs.retain(|program| program.is_file());
    programs
}

fn all_on_path(name: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
}

/// The libraries of a program: the dynamic loader lists them when it is told to.
fn libraries(program: &Path) -> Vec<PathBuf> {
    if !asks_for_loader(program) {
        return Vec::new();
    }
    let listing = spawn::set("LD_TRACE_LOADED_OBJECTS", "1");
    let Some(text) = spawn::answer(&Program::at(program), &[], &[listing]) else {
        return Vec::new();
    };
    let words = text.split(|byte| byte.is_ascii_whitespace());
    words
        .filter(|word| word.starts_with(b"/"))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect()
}

/// One that does not would run as it is. The loader's name stands near the front.
fn asks_for_loader(program: &Path) -> bool {
    const FRONT: usize = 4096;
    let Ok(content) = sys::map(program) else { return false };
    let front = &content[..content.len().min(FRONT)];
    front.starts_with(b"\x7fELF") && memchr::memmem::find(front, b"/ld-").is_some()
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
