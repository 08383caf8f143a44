//! A call that compiles and links at once, at the AST level: each C source is compiled by a call of
//! its own, so that its object gets a record, and the driver is then given the objects instead. In:
//! the words of the call. Out: the same call with objects in place of sources; or nothing, if that
//! would not be equivalent.
//!
//! A driver does the same itself, and deletes the objects when it has linked. It names other files
//! that it writes on the way after the binary: calls that write such files are not split.

use super::languages::{self, Language};
use super::option::Affects;
use super::words::{self, Word};
use crate::process::find::Compiler;
use crate::process::spawn::{self, Program};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};

/// The objects of a call, for as long as it runs.
pub struct Separately {
    folder: PathBuf,
    sources: Vec<PathBuf>,
    options: Vec<OsString>,
    /// The user's words, with objects for sources.
    pub words: Vec<OsString>,
}

impl Separately {
    /// Whether the sources of a call are to be compiled by calls of their own.
    pub fn plan(expanded: &[OsString]) -> Option<Self> {
        let words = words::words(expanded);
        if words.iter().any(needs_one_call) {
            return None;
        }
        let is_source =
            |word: &Word| word.is_input() && languages::by_name(word.word) == Some(Language::C);
        let sources: Vec<PathBuf> =
            words.iter().filter(|word| is_source(word)).map(|word| word.word.into()).collect();
        let is_c_only = |word: &Word| {
            languages::by_name(word.word).is_none_or(|language| language == Language::C)
        };
        if sources.is_empty() || !words.iter().filter(|word| word.is_input()).all(is_c_only) {
            return None;
        }
        let folder = folder()?;
        let mut number = 0;
        let mut replaced = Vec::with_capacity(expanded.len());
        for word in &words {
            if is_source(word) {
                replaced.push(object(&folder, number).into_os_string());
                number += 1;
            } else {
                replaced.extend(word.parts().map(OsStr::to_owned));
            }
        }
        let is_for_compiling = |word: &&Word| {
            !matches!(word.affects(), Affects::Input | Affects::Files | Affects::Link)
        };
        let options = words
            .iter()
            .filter(is_for_compiling)
            .flat_map(|word| word.parts())
            .map(OsStr::to_owned)
            .collect();
        Some(Separately { folder, sources, options, words: replaced })
    }

    /// Compiles all sources, by this very program. The error is how the first one ended that
    /// failed.
    pub fn compile(&self, compiler: &Compiler) -> Result<(), ExitStatus> {
        let own = Program::at("/proc/self/exe");
        let mut first = Ok(());
        for (number, source) in self.sources.iter().enumerate() {
            let mut arguments = vec![compiler.program.path.clone().into_os_string()];
            arguments.extend(compiler.program.words.iter().cloned());
            arguments.extend(self.options.iter().cloned());
            arguments.extend([
                "-c".into(),
                source.clone().into(),
                "-o".into(),
                object(&self.folder, number).into(),
            ]);
            match spawn::run(&own, &arguments, &[]) {
                Ok(status) if status.success() => {}
                Ok(status) => first = first.and(Err(status)),
                Err(error) => spawn::fail_to_run(&own.path, &error),
            }
        }
        first
    }
}

impl Drop for Separately {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn object(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{number}.o"))
}

/// A new folder among the temporary files.
fn folder() -> Option<PathBuf> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tasting-{}-{call}", std::process::id()));
    fs::create_dir(&folder).ok().map(|()| folder)
}

fn needs_one_call(word: &Word) -> bool {
    let bytes = word.word.as_bytes();
    let is_output =
        bytes.starts_with(b"-o") || bytes.starts_with(b"--output") || word.word == "-pipe";
    match word.affects() {
        Affects::Files => !is_output,
        Affects::Dependencies | Affects::Opaque(_) => true,
        Affects::Input => bytes.starts_with(b"-"),
        _ => word.option.one_call || word.option.uncacheable.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Option<(Vec<PathBuf>, String, String)> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let plan = Separately::plan(&arguments)?;
        let text = |words: &[OsString]| {
            let words: Vec<_> =
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ").replace(&*plan.folder.to_string_lossy(), "T")
        };
        Some((plan.sources.clone(), text(&plan.options), text(&plan.words)))
    }

    #[test]
    fn sources_become_objects_in_their_places() {
        let (sources, options, words) =
            planned("-O2 a.c -o prog -lx b.c c.o -Wl,-z,now -DX").expect("a plan");
        assert_eq!(sources, [Path::new("a.c"), Path::new("b.c")]);
        assert_eq!(options, "-O2 -DX");
        assert_eq!(words, "-O2 T/0.o -o prog -lx T/1.o c.o -Wl,-z,now -DX");
    }

    #[test]
    fn different_sections_are_left_alone() {
        for line in [
            "a.o -o prog",
            "a.cc -o prog",
            "-MD a.c -o prog",
            "--coverage a.c",
            "-x c a.c",
            "-save-temps a.c",
            "a.c b.s",
            "-fstack-usage a.c",
            "-fcallgraph-info=su a.c",
            "-fopt-info=x a.c",
            "-fdump-tree-optimized a.c",
            "-ftime-trace a.c",
            "-fsave-optimization-record a.c",
            "-dp a.c",
            "-Wa,-al=x a.c",
        ] {
            assert!(planned(line).is_none(), "{line}");
        }
    }
}
