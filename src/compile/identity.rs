//! Which compiler it is. In: the driver, and the options that lead it to its parts. Out: a hash of its version, of what it tells its
//! parts by default, and of the contents of those: the driver, the compiler proper, the assembler, and the libraries of each. It is the
//! same on two machines if they would make the same objects: no name of a file or folder is in it that the driver does not print, no time.
//!
//! All libraries count, not only those that are a compiler's. The assembler is mostly in some, and LLVM computes constants (`sin(1.0)`)
//! by the mathematical library of the machine. What the driver tells its parts follows from how it was built, and from files that
//! it reads unasked (GCC's `specs`, Clang's configuration): a processor, say, or an option that the distribution wants.
//!
//! Asking the driver and reading the parts takes longer than a small compilation, so the answer is remembered, with the
//! identity (device, inode, size, times) of each part, and of the folder in which others may appear: it holds as long as all of
//! them are the same. A driver that is a script (`musl-gcc`) may run another compiler each time, by a variable that only it
//! knows: it is asked each time, and only the contents of what it names are remembered. The files that stand in the script
//! (specs) are parts as well.

use crate::model::{Hash, Hasher};
use crate::process::spawn::Program;
use crate::process::sys::Memory;
use crate::process::{Settings, answers, spawn, sys};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Variables that lead a driver to other parts.
const VARIABLES: [&str; 4] = ["COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_LIBRARY_PATH", "PATH"];

/// The files that a driver is asked for. Clang has no `cc1` of its own; what a driver does not have it names as it was asked.
const FILES: [&str; 3] = ["-print-prog-name=cc1", "-print-prog-name=as", "-print-file-name=specs"];

/// Before the name of each file of options that Clang has read, where it tells its version.
const CONFIGURATION: &str = "Configuration file: ";

/// Has a driver print what it would run to compile nothing, and run nothing. Through a pipe, so that no name is made up.
const ACCOUNT: [&str; 8] = ["-###", "-pipe", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"];

/// Where the current folder is in that.
const HERE: &[u8] = b"-compilation-dir=";

/// What is remembered.
#[derive(Serialize, Deserialize)]
struct Answer {
    parts: Vec<(Vec<u8>, [i64; 7])>,
    identity: Hash,
}

/// The identity of a compiler; `None` if it cannot be found out.
pub fn of(settings: &Settings, driver: &Program, search: &[OsString]) -> Option<Hash> {
    if let Some(script) = script(&driver.path) {
        let mut asked = Asked::of(driver, search)?;
        asked.paths.extend(files_in(&script));
        return remembered(settings, asked.key(), || asked.read());
    }
    remembered(settings, key(driver, search), || Asked::of(driver, search)?.read())
}

fn remembered(settings: &Settings, key: Hash, find_out: impl FnOnce() -> Option<Answer>) -> Option<Hash> {
    let known = answers::recall(settings, key).and_then(|bytes| postcard::from_bytes::<Answer>(&bytes).ok());
    if let Some(answer) = known.filter(still_holds) {
        return Some(answer.identity);
    }
    let answer = find_out()?;
    if let Ok(bytes) = postcard::to_stdvec(&answer) {
        answers::remember(settings, key, &bytes);
    }
    Some(answer.identity)
}

/// The text of a driver that is a script.
fn script(driver: &Path) -> Option<Vec<u8>> {
    let content = sys::map(driver).ok()?;
    content.starts_with(b"#!").then(|| content.to_vec())
}

/// The files that a script names by their paths.
fn files_in(script: &[u8]) -> Vec<PathBuf> {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'=,;:()".contains(byte);
    let paths = script.split(is_end).filter(|word| word.starts_with(b"/"));
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).filter(|path| path.is_file()).collect()
}

fn key(driver: &Program, search: &[OsString]) -> Hash {
    let mut hasher = Hasher::new("which compiler, and its libraries");
    hasher.bytes(driver.path.as_os_str().as_bytes()).bytes(driver.name.as_bytes());
    for option in search {
        hasher.bytes(option.as_bytes());
    }
    for variable in VARIABLES {
        hasher.bytes(std::env::var_os(variable).unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

fn still_holds(answer: &Answer) -> bool {
    let is_same = |(path, known): &(Vec<u8>, [i64; 7])| state(Path::new(OsStr::from_bytes(path))) == Some(*known);
    answer.parts.iter().all(is_same)
}

fn state(path: &Path) -> Option<[i64; 7]> {
    let file = fs::metadata(path).ok()?;
    let [dev, ino, size] = [file.dev(), file.ino(), file.size()].map(|number| number as i64);
    Some([dev, ino, size, file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()])
}

/// What a driver says of itself.
struct Asked {
    version: Vec<u8>,
    /// What it tells its parts.
    account: Hash,
    /// It, and the programs and files that it would use.
    paths: Vec<PathBuf>,
}

impl Asked {
    fn of(driver: &Program, search: &[OsString]) -> Option<Self> {
        let version = spawn::answer(driver, &["--version".into()], &[])?;
        let mut paths = vec![driver.path.clone()];
        let lines = String::from_utf8_lossy(&version);
        paths.extend(lines.lines().filter_map(|line| line.strip_prefix(CONFIGURATION)).map(PathBuf::from));
        for file in FILES {
            let mut arguments = search.to_vec();
            arguments.push(file.into());
            let answer = spawn::answer(driver, &arguments, &[])?;
            let path = PathBuf::from(OsString::from_vec(answer.trim_ascii_end().to_vec()));
            paths.extend(Some(path).filter(|path| path.is_absolute() && path.is_file()));
        }
        Some(Asked { account: account(driver, search)?, version, paths })
    }

    /// The folder in which a file may appear that it reads unasked: GCC's `specs` beside the compiler proper, Clang's
    /// configuration beside the driver. What lies in it does not count; that something was added or removed has it asked again.
    fn home(&self) -> Option<PathBuf> {
        let proper = self.paths.iter().find(|path| path.file_name().is_some_and(|name| name == "cc1"));
        let program = fs::canonicalize(proper.or(self.paths.first())?).ok()?;
        program.parent().map(Path::to_owned)
    }

    fn key(&self) -> Hash {
        let mut hasher = Hasher::new("which compiler a script runs");
        hasher.bytes(&self.version).hash(self.account);
        self.paths.iter().for_each(|path| _ = hasher.bytes(path.as_os_str().as_bytes()));
        hasher.finish()
    }

    fn read(&self) -> Option<Answer> {
        let mut hasher = Hasher::new("compiler");
        hasher.bytes(&self.version).hash(self.account);
        let libraries: Vec<PathBuf> = self.paths.iter().flat_map(|path| libraries(path)).collect();
        let mut parts = Vec::new();
        for path in self.paths.iter().chain(&libraries).filter_map(|path| fs::canonicalize(path).ok()) {
            let part = path.as_os_str().as_bytes().to_vec();
            if !parts.iter().any(|(known, _)| *known == part) {
                let state = state(&path)?;
                hasher.hash(Hash::of(&sys::map(&path).ok()?));
                parts.push((part, state));
            }
        }
        let home = self.home()?;
        parts.push((home.as_os_str().as_bytes().to_vec(), state(&home)?));
        Some(Answer { parts, identity: hasher.finish() })
    }
}

/// What a driver tells its parts.
fn account(driver: &Program, search: &[OsString]) -> Option<Hash> {
    let told = Memory::new(c"account").ok()?;
    let arguments: Vec<OsString> = search.iter().cloned().chain(ACCOUNT.map(OsString::from)).collect();
    let messages = told.descriptor().try_clone_to_owned().ok()?;
    let output = spawn::start_reading(driver, &arguments, &[], messages.into()).ok()?.wait_with_output().ok()?;
    let text = told.content().ok().filter(|_| output.status.success())?;
    Some(commands(&text))
}

/// The commands in it, which are the lines that start with a blank.
fn commands(text: &[u8]) -> Hash {
    let mut hasher = Hasher::new("account");
    let lines = text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b" "));
    for word in lines.flat_map(|line| line.split(u8::is_ascii_whitespace)) {
        if memchr::memmem::find(word, HERE).is_none() {
            hasher.bytes(word);
        }
    }
    hasher.finish()
}

/// The libraries of a program: the dynamic loader lists them when it is told to.
fn libraries(program: &Path) -> Vec<PathBuf> {
    if !asks_for_loader(program) {
        return Vec::new();
    }
    let listing = spawn::set("LD_TRACE_LOADED_OBJECTS", "1");
    let Some(text) = spawn::answer(&Program::at(program), &[], &[listing]) else { return Vec::new() };
    let words = text.split(|byte| byte.is_ascii_whitespace());
    words.filter(|word| word.starts_with(b"/")).map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// One that does not would run as it is. The loader's name stands near the front.
fn asks_for_loader(program: &Path) -> bool {
    const FRONT: usize = 4096;
    let Ok(content) = sys::map(program) else { return false };
    let front = &content[..content.len().min(FRONT)];
    front.starts_with(b"\x7fELF") && memchr::memmem::find(front, b"/ld-").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_commands_count_and_the_folder_does_not() {
        let hash = commands(b"gcc version 12\n cc1 -quiet -march=x86-64 -o - |\n as --64\nLIBRARY_PATH=/x\n");
        assert_eq!(hash, commands(b"gcc version 13\n cc1 -quiet -march=x86-64 -o - |\n as --64\nLIBRARY_PATH=/y\n"));
        assert_ne!(hash, commands(b"gcc version 12\n cc1 -quiet -march=znver4 -o - |\n as --64\nLIBRARY_PATH=/x\n"));
        let at = |folder: &str| commands(format!(" clang -cc1 \"-fdebug-compilation-dir={folder}\" -x c\n").as_bytes());
        assert_eq!(at("/one"), at("/two"));
    }

    #[test]
    fn the_libraries_of_all_parts_count() {
        let settings = Settings::default();
        let found = libraries(Path::new("/bin/sh"));
        assert!(found.iter().any(|path| path.to_string_lossy().contains("libc.")), "{found:?}");
        let gcc = Program::at("gcc");
        let answer = Asked::of(&gcc, &[]).and_then(|asked| asked.read());
        assert!(answer.is_some_and(|answer| answer.parts.len() > 3 && still_holds(&answer)));
        assert_eq!(of(&settings, &gcc, &[]), of(&settings, &gcc, &[]));
        assert_ne!(of(&settings, &gcc, &[]), of(&settings, &gcc, &["-m32".into()]));
    }

    /// Neither a `specs` nor a configuration file has to be there from the beginning.
    #[test]
    fn what_is_remembered_ends_when_a_file_appears_that_is_read_unasked() {
        for driver in ["gcc", "clang"].into_iter().filter_map(|name| which::which(name).ok()) {
            let answer = Asked::of(&Program::at(driver), &[]).and_then(|asked| asked.read()).unwrap();
            let is_folder = |part: &&(Vec<u8>, [i64; 7])| Path::new(OsStr::from_bytes(&part.0)).is_dir();
            assert_eq!(answer.parts.iter().filter(is_folder).count(), 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let part = (folder.path().as_os_str().as_bytes().to_vec(), state(folder.path()).unwrap());
        let answer = Answer { parts: vec![part], identity: Hash::default() };
        assert!(still_holds(&answer));
        // The clock of file systems goes in ticks.
        std::thread::sleep(std::time::Duration::from_millis(100));
        fs::write(folder.path().join("specs"), "").unwrap();
        assert!(!still_holds(&answer));
    }

    #[test]
    fn a_script_is_another_compiler_where_it_runs_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let settings = Settings { dir: Some(path("store")), ..Settings::default() };
        // As musl's does it, with the compiler's name in a file in place of a variable.
        let script =
            format!("#!/bin/sh\nexec $(cat {0}/name) \"$@\" \"-I{0}\" # \"{0}/specs\"\n", folder.path().display());
        fs::write(path("wrapped-gcc"), script).unwrap();
        fs::set_permissions(path("wrapped-gcc"), fs::Permissions::from_mode(0o755)).unwrap();
        let identity = |name: &str, specs: &str| {
            fs::write(path("name"), name).unwrap();
            fs::write(path("specs"), specs).unwrap();
            of(&settings, &Program::at(path("wrapped-gcc")), &[]).unwrap()
        };
        let gcc = identity("gcc", "a");
        assert_eq!(gcc, identity("gcc", "a"));
        let clang = identity("clang", "a");
        assert_ne!(gcc, clang);
        assert_ne!(clang, identity("clang", "other"));
    }
}
