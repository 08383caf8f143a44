//! The syntax of a unit. In: a call that compiles one C source. Out: what the source means, and the
//! hash of what else decides the code (the compiler and its options); or the reason why the object
//! is hashed by its code.

use super::arguments::CompileJob;
use super::identity;
use super::inlining;
use super::languages::Language;
use super::option::Affects;
use super::positions;
use super::preprocess::{self, PreprocessOptions, Preprocessed};
use super::words::{self, Word};
use crate::ast::{Problem, Unit};
use crate::model::{Hash, Hasher, Refusal};
use crate::process::Settings;
use crate::process::find::Compiler;
use crate::process::spawn::Program;
use rustix::time::ClockId;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A call whose source can be read.
pub struct Plan<'a> {
    pub source: &'a Path,
    pub words: Vec<Word<'a>>,
    pub driver: Program,
    /// The compiler, and the options that matter for code.
    pub environment: Hash,
    /// What is inlined where may decide over results.
    is_contextual: bool,
    /// Lines and columns are part of the code.
    has_positions: bool,
}

/// What a source means.
pub struct Understood {
    pub unit: Unit,
    /// What else decides the code of its definitions.
    pub environment: Hash,
    /// It may have functions that run before `main`. LLVM executes some of them itself: then they
    /// are gone, and what they did is in the variables.
    pub has_constructors: bool,
    /// It may have functions that choose, when the program starts, what a symbol means.
    pub has_resolvers: bool,
    /// What it was read from.
    files: Vec<PathBuf>,
    pub refusals: Vec<Refusal<'static>>,
    /// Why its definitions are hashed by their code all the same.
    pub by_code: Option<Refusal<'static>>,
}

/// Words in the text by which other files come into the object, unseen by the preprocessor.
const OTHER_FILES: [(&[u8], &str); 4] = [
    (b"incbin", "its assembler may take in another file (.incbin)"),
    (b".include", "its assembler may take in another file (.include)"),
    (b"#embed", "it takes in another file (#embed)"),
    (b"#pragma GCC pch_preprocess", "it uses a precompiled header"),
];

/// Variables with which a compiler does something else than it is told, or more.
const VARIABLES: [&str; 9] = [
    "CCC_ADD_ARGS",
    "CCC_OVERRIDE_OPTIONS",
    "CC_LOG_DIAGNOSTICS",
    "CC_PRINT_HEADERS",
    "CC_PRINT_OPTIONS",
    "CC_PRINT_PROC_STAT",
    "CLANG_NO_DEFAULT_CONFIG",
    "GCC_COMPARE_DEBUG",
    "QA_OVERRIDE_GCC3_OPTIONS",
];

impl<'a> Plan<'a> {
    /// Whether, and how, the source of a call can be read. `None`: it is not C. The error is a
    /// reason.
    pub fn new(
        settings: &Settings,
        compiler: &Compiler,
        job: &'a CompileJob,
        expanded: &'a [OsString],
    ) -> Option<Result<Self, String>> {
        let refuse = |reason: &str| Some(Err(reason.to_owned()));
        let Some((source, language)) = &job.source else {
            return if job.is_c {
                refuse("several sources are compiled in one call")
            } else {
                None
            };
        };
        if *language != Language::C {
            return None;
        }
        let Some(driver) = preprocess::driver(&compiler.program) else {
            return refuse("the compiler behind the launcher is not found");
        };
        if !preprocess::is_for_c(&driver) {
            return None;
        }
        if !compiler.known {
            return refuse("the compiler is none that is known");
        }
        let words = words::words(expanded);
        if let Some(reason) = opaque(&words) {
            return refuse(reason);
        }
        if let Some(variable) =
            VARIABLES.iter().find(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty()))
        {
            return refuse(&format!(
                "the variable {variable} has the compiler do something else than it is told"
            ));
        }
        let Some(identity) = identity::of(settings, &driver, &job.search) else {
            return refuse("the compiler does not tell its version");
        };
        let is_contextual = inlining::decides(&driver, &words);
        let has_positions = positions::are_in_code(&words);
        let environment = environment(identity, &words);
        Some(Ok(Plan { source, words, driver, environment, is_contextual, has_positions }))
    }

    /// Preprocesses the source.
    pub fn preprocess(&self, wanted: &PreprocessOptions) -> Result<Preprocessed, String> {
        preprocess::run(&self.driver, &self.words, wanted).map_err(|error| error.to_string())
    }

    /// Reads the preprocessed text. The error is a reason.
    pub fn understand(
        &self,
        text: &[u8],
        read: fn(&[u8]) -> Result<Unit, Problem>,
    ) -> Result<Understood, Refusal<'static>> {
        let name = || self.source.display().to_string();
        if let Some((_, reason)) =
            OTHER_FILES.iter().find(|(word, _)| memchr::memmem::find(text, word).is_some())
        {
            return Err(Refusal::new(name(), *reason));
        }
        let unit = read(text).map_err(|problem| problem.refusal())?;
        let (mut environment, mut refusals) = (self.environment, Vec::new());
        let construct = self
            .is_contextual
            .then(|| "these options".to_owned())
            .or(unit.depends_on_inlining.clone());
        if let Some(construct) = construct {
            environment = Hasher::new("in context").hash(environment).hash(unit.meaning).finish();
            let reason = format!(
                "with {construct} results may depend on what is inlined: each definition counts with the whole unit"
            );
            refusals.push(Refusal::new(name(), reason));
        }
        let by_code = self
            .has_positions
            .then(|| Refusal::new(name(), "its code holds lines and columns of the source"));
        let has = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
        let (has_constructors, has_resolvers) = (has("constructor"), has("ifunc"));
        let files = preprocess::files(text);
        Ok(Understood {
            unit,
            environment,
            has_constructors,
            has_resolvers,
            files,
            refusals,
            by_code,
        })
    }
}

impl Understood {
    /// The contents of all files that it was read from.
    pub fn contents(&self) -> Hash {
        positions::contents(&self.files)
    }

    /// A file that somebody has written to since then: the compiler may have read another text than
    /// we have.
    pub fn changed_since(&self, start: Duration) -> Option<Refusal<'static>> {
        let is_changed =
            |file: &&PathBuf| fs::metadata(file).is_ok_and(|file| time_of_change(&file) >= start);
        let changed = self.files.iter().find(is_changed)?;
        Some(Refusal::new(changed.display().to_string(), "it was changed while it was compiled"))
    }
}

/// A moment after which every change of a file shows in its time. The clock that file systems take
/// it from goes in ticks of some milliseconds, and of 60 and more on virtual machines under load;
/// some kernels give a file a time between two ticks, ahead of it. So where the source has just
/// been written, and others perhaps with it, it is waited for until that clock has passed the time
/// of now.
pub fn moment(source: Option<&Path>) -> Duration {
    const FRESH: Duration = Duration::from_secs(10);
    const MOST_ROUNDS: u32 = 200;
    let time = |clock: ClockId| {
        let now = rustix::time::clock_gettime(clock);
        Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.clamp(0, 999_999_999) as u32)
    };
    let (start, exactly) = (time(ClockId::RealtimeCoarse), time(ClockId::Realtime));
    let is_fresh = |source: &Path| {
        fs::metadata(source).is_ok_and(|file| time_of_change(&file) + FRESH > start)
    };
    if !source.is_some_and(is_fresh) {
        return start;
    }
    let later = (0..MOST_ROUNDS).map(|_| {
        thread::sleep(Duration::from_millis(1));
        time(ClockId::RealtimeCoarse)
    });
    later.into_iter().find(|now| *now > exactly).unwrap_or(start)
}

/// When a file was changed, at the latest: some file systems know whole seconds only.
fn time_of_change(file: &Metadata) -> Duration {
    let part = if file.ctime_nsec() == 0 { 999_999_999 } else { file.ctime_nsec().max(0) as u32 };
    Duration::new(file.ctime().max(0) as u64, part)
}

/// Why the text does not tell all.
fn opaque(words: &[Word]) -> Option<&'static str> {
    words.iter().find_map(|word| match word.affects() {
        Affects::Opaque(reason) => Some(reason),
        Affects::Input if word.word.as_bytes().starts_with(b"-") => {
            Some("the name of its source starts with a dash")
        }
        Affects::Text if word.word.as_bytes().starts_with(b"-include") && is_precompiled(word) => {
            Some("it uses a precompiled header")
        }
        _ => None,
    })
}

/// Beside the file that `-include` names lies a precompiled one.
fn is_precompiled(word: &Word) -> bool {
    let joined =
        OsStr::from_bytes(word.word.as_bytes().strip_prefix(b"-include").unwrap_or_default());
    let file = word.value.unwrap_or(joined);
    ["gch", "pch"].iter().any(|ending| {
        let mut name = file.to_owned();
        name.push(format!(".{ending}"));
        Path::new(&name).exists()
    })
}

/// The options that matter for code, in order.
fn environment(identity: Hash, words: &[Word]) -> Hash {
    let mut hasher = Hasher::new("environment");
    hasher.hash(identity);
    for part in
        words.iter().filter(|word| word.affects() == Affects::Code).flat_map(|word| word.parts())
    {
        hasher.bytes(part.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(line: &str) -> Hash {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        environment(Hash::default(), &words::words(&arguments))
    }

    #[test]
    fn only_what_matters_for_code_counts() {
        let plain = hash("-c -O2 x.c -o x.o");
        for line in [
            "-c -O2 y.c -Wall -o y.o",
            "-O2 -I. -DX -MD -MF d -g -c x.c",
            "-c -O2 x.c -isystem /x -Werror -pipe",
        ] {
            assert_eq!(hash(line), plain, "{line}");
        }
        for line in
            ["-c x.c", "-O3 -c x.c", "-O2 -fPIC -c x.c", "-O2 -std=c99 -c x.c", "-O2 -Wa,-L -c x.c"]
        {
            assert_ne!(hash(line), plain, "{line}");
        }
    }

    #[test]
    fn a_change_shows_however_soon_it_comes() {
        for _ in 0..20 {
            let file = tempfile::NamedTempFile::new().unwrap();
            let changed = || time_of_change(&file.as_file().metadata().unwrap());
            let start = moment(Some(file.path()));
            assert!(changed() < start);
            file.as_file().set_len(1).unwrap();
            assert!(changed() >= start);
        }
    }
}
