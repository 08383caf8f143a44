//! Objects that need not be made: where a source means what it meant when it was compiled before, the object of then is taken.
//! In: a call that compiles one C source. Out: the object and the dependency file in their places; or the key under
//! which to keep the object that is going to be made; or the reason why neither can be done.
//!
//! The build must be the same with or without: exit status, messages, files. So only objects are kept that were made without any
//! message. The same meaning does not say that there is none now: a declaration that was added, and that the code does
//! not use, may be one to warn of, or be wrong. Of a text that it has not seen the compiler is asked whether it has
//! anything to say (`-fsyntax-only`), which takes a fraction of a compilation. Comments and moved lines are no other text.
//! Nor is it asked for each file about a plain prototype that was added to a header of all: what it says of one does not depend on
//! the rest of the unit (`ast::Spare`), so that its silence in one file is its silence in all.

use super::bearing::{Bearing, Word};
use super::dependencies::Dependencies;
use super::messages;
use super::preprocess::{DEPENDENCY_VARIABLES, Wish};
use super::syntax::{Plan, Understood};
use crate::ast::{self, Linkage, Spare};
use crate::model::{Hash, Hasher, Refusal};
use crate::objects::shared::{Reply, Shared};
use crate::objects::{Found, Look, Objects, Silence};
use crate::process::spawn::{self, unset};
use crate::process::sys::Memory;
use crate::process::{Settings, guard};
use rustc_hash::FxHashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Raised whenever the shim makes something else of the same compilation.
const VERSION: u64 = 1;

/// Options with which a compilation does more, or depends on more, than a source and an object. The first that fits gives the reason.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("--coverage", COVERAGE),
    ("-coverage", COVERAGE),
    ("-fcoverage", COVERAGE),
    ("-fprofile-arcs", COVERAGE),
    ("-ftest-coverage", COVERAGE),
    ("-fauto-profile", PROFILE),
    ("-fbranch-probabilities", PROFILE),
    ("-fcs-profile", PROFILE),
    ("-fprofile", PROFILE),
    ("-gsplit-dwarf", "it writes debug information into a file of its own"),
    ("-aux-info", MORE_FILES),
    ("-d", MORE_FILES),
    ("--dump", MORE_FILES),
    ("-fcallgraph-info", MORE_FILES),
    ("-fdump-", MORE_FILES),
    ("-fopt-info", MORE_FILES),
    ("-fsave-optimization-record", MORE_FILES),
    ("-fstack-usage", MORE_FILES),
    ("-ftime-trace", MORE_FILES),
    ("-save-temps", MORE_FILES),
    ("--save-temps", MORE_FILES),
    ("-serialize-diagnostics", MORE_FILES),
    ("--serialize-diagnostics", MORE_FILES),
    ("-Wa,-a", MORE_FILES),
    ("-Wa,--MD", MORE_FILES),
    ("-fmem-report", TALKS),
    ("-fstats", TALKS),
    ("-ftime-report", TALKS),
    ("-H", TALKS),
    ("-Q", TALKS),
    ("-v", TALKS),
    ("--verbose", TALKS),
    ("-frecord-command-line", "the command line is part of the object"),
    ("-frecord-gcc-switches", "the command line is part of the object"),
    ("-grecord-command-line", "the command line is part of the object"),
    ("-fdebug-macro", "macros are part of its debug information"),
    ("-fkeep-", UNUSED),
    ("-fno-eliminate-unused", UNUSED),
    ("-fsanitize-blacklist", LISTED),
    ("-fsanitize-coverage-", LISTED),
    ("-fsanitize-ignorelist", LISTED),
    ("-fxray", LISTED),
    ("-Wdocumentation", COMMENTS),
    ("-Weverything", COMMENTS),
    ("-Wimplicit-fallthrough=1", COMMENTS),
    ("-fparse-all-comments", COMMENTS),
];
const COMMENTS: &str = "the compiler reads all comments";
const COVERAGE: &str = "it measures coverage: the object names files of this build";
const PROFILE: &str = "a profile takes part in it";
const MORE_FILES: &str = "it writes further files";
const TALKS: &str = "it reports on itself";
const UNUSED: &str = "what nobody uses is part of the object";
const LISTED: &str = "a list in another file takes part in it";

/// Variables that have a compiler do more than it is told.
const VARIABLES: [&str; 5] =
    ["CCC_OVERRIDE_OPTIONS", "CC_LOG_DIAGNOSTICS", "CC_PRINT_HEADERS", "CC_PRINT_OPTIONS", "GCC_COMPARE_DEBUG"];

/// Options with which comments that say "falls through" keep GCC from warning.
const READS_COMMENTS: [&str; 5] =
    ["-W", "-Wextra", "-Wimplicit-fallthrough", "-Wimplicit-fallthrough=2", "-Wimplicit-fallthrough=3"];

/// How many new declarations are looked up, or noted, one by one.
const MOST_NEW: usize = 32;

/// A compilation that may not be needed.
pub struct Request<'r, 'a> {
    settings: &'r Settings,
    plan: &'r Plan<'a>,
    objects: Objects,
    /// The objects of other machines, where they are wanted.
    shared: Option<Shared<'r>>,
    output: &'r Path,
    dependencies: Option<Dependencies>,
    /// What of the key does not come from the source.
    circumstances: Hash,
    /// When the call began.
    start: Duration,
}

/// What came of looking for an object.
pub enum Answer {
    /// The object is in its place; whether it came from another machine.
    Reused { is_shared: bool },
    /// There is none; the one that is going to be made can be kept.
    Missing(Missing),
    /// The source is not understood, or not only its meaning counts.
    Refused(Refusal<'static>, Option<Understood>),
    /// Something failed, perhaps because it was done for this.
    Failed(String),
}

/// An object that was looked for in vain.
pub struct Missing {
    pub key: Hash,
    pub text: Silence,
    pub understood: Understood,
    /// The compiler has something to say of this text, so that it cannot be kept.
    pub talks: bool,
    /// What came of asking other machines for it.
    pub reply: Reply,
}

impl<'r, 'a> Request<'r, 'a> {
    /// A request for the object of a call, if it can be reused at all. `added` are our own options.
    pub fn new(
        settings: &'r Settings,
        plan: &'r Plan<'a>,
        output: &'r Path,
        added: &[OsString],
        start: Duration,
    ) -> Result<Self, &'static str> {
        let objects = Objects::new(settings).ok_or("there is no folder for the cache")?;
        if let Some(reason) = plan.words.iter().find_map(refused) {
            return Err(reason);
        }
        if VARIABLES.iter().chain(&DEPENDENCY_VARIABLES).any(|name| std::env::var_os(name).is_some()) {
            return Err("a variable has the compiler do more than it is told");
        }
        let mut dependencies = Dependencies::of(&plan.words, output)?;
        if dependencies.as_ref().is_some_and(|it| it.file == Path::new("/dev/null")) {
            dependencies = None;
        }
        if dependencies.as_ref().is_some_and(|it| fs::metadata(&it.file).is_ok_and(|file| !file.is_file())) {
            return Err("its dependencies do not go to a file");
        }
        let circumstances = circumstances(settings, plan, added);
        let shared = Shared::new(settings, &objects);
        Ok(Request { settings, plan, objects, shared, output, dependencies, circumstances, start })
    }

    /// Looks for the object, and puts it into its place if it is there.
    pub fn look_up(&self) -> Answer {
        let place = self.dependencies.as_ref().map(|it| aside(&it.file));
        let answer = self.look_up_with(place.as_deref());
        if let Some(place) = place {
            // Unless it was moved to where it belongs.
            let _ = fs::remove_file(place);
        }
        answer.unwrap_or_else(Answer::Failed)
    }

    fn look_up_with(&self, dependencies: Option<&Path>) -> Result<Answer, String> {
        let reads_comments = self.plan.words.iter().any(|word| READS_COMMENTS.iter().any(|it| word.word == *it));
        let mut options: Vec<OsString> = reads_comments.then(|| "-C".into()).into_iter().collect();
        if let (Some(file), Some(wanted)) = (dependencies, &self.dependencies) {
            options.extend(wanted.options(file));
        }
        let made = self.plan.preprocess(&Wish { options, messages: true })?;
        let (text, comments) = messages::without_comments(&made.text);
        let understood = match self.plan.understand(&text, ast::read_with_spare) {
            Ok(understood) => understood,
            Err(refusal) => return Ok(Answer::Refused(refusal, None)),
        };
        if made.has_messages {
            let reason = "the preprocessor has something to say of it, or it asks for the time";
            return Ok(Answer::Refused(Refusal::new(self.plan.source.display().to_string(), reason), Some(understood)));
        }
        let key = self.key(&understood, comments);
        let silence = silence(&text, &understood.unit.spare);
        let (found, reply) = self.find(key);
        let Some(found) = found else {
            return Ok(Answer::Missing(Missing { key, text: silence, understood, talks: false, reply }));
        };
        if !self.is_silent(key, &found, &silence, &text, &understood) {
            return Ok(Answer::Missing(Missing { key, text: silence, understood, talks: true, reply }));
        }
        let taken = self.objects.take(&found, self.output).and_then(|()| match (dependencies, &self.dependencies) {
            (Some(place), Some(wanted)) => fs::rename(place, &wanted.file),
            _ => Ok(()),
        });
        taken.map_err(|error| format!("the object cannot be put into its place: {error}"))?;
        let is_shared = reply == Reply::There;
        self.objects.count(if is_shared { Look::Shared } else { Look::Reused });
        Ok(Answer::Reused { is_shared })
    }

    /// The object of a key, from this machine or from another one; and what came of asking for the latter.
    fn find(&self, key: Hash) -> (Option<Found>, Reply) {
        let near = if self.settings.recache { None } else { self.objects.find(key) };
        match &self.shared {
            Some(shared) if near.is_none() => {
                let reply = shared.ask(key);
                (self.objects.find(key).filter(|_| reply == Reply::There), reply)
            }
            _ => (near, Reply::Private),
        }
    }

    /// Keeps the object that was made without any message, and has it sent to where others find it.
    pub fn keep(&self, missing: &Missing) {
        match (self.objects.keep(missing.key, self.output, &missing.text), &self.shared) {
            (Err(error), _) => self.settings.log(error),
            (Ok(()), Some(shared)) => shared.give(missing.key, missing.reply),
            (Ok(()), None) => {}
        }
    }

    /// Counts an object that was made.
    pub fn count_made(&self) {
        self.objects.count(Look::Compiled);
    }

    fn key(&self, understood: &Understood, comments: Hash) -> Hash {
        let unit = &understood.unit;
        let mut hasher = Hasher::new("object");
        hasher.hash(self.circumstances).hash(comments);
        let counts_lines = self.plan.words.iter().any(names_lines) && !self.settings.sloppiness.lines;
        hasher.hash(if counts_lines { unit.with_lines } else { unit.meaning });
        // Compilers warn of those that nobody uses.
        for definition in unit.definitions.iter().filter(|definition| definition.linkage == Linkage::Static) {
            hasher.bytes(definition.name.as_bytes());
        }
        hasher.finish()
    }

    /// Whether the compiler has nothing to say of the text.
    fn is_silent(&self, key: Hash, found: &Found, silence: &Silence, text: &[u8], understood: &Understood) -> bool {
        if found.notes.silent.contains(&silence.text) || self.settings.sloppiness.messages {
            return true;
        }
        let new = new_declarations(&found.notes.last, silence, understood);
        let are_known = |new: &Vec<&Spare>| new.iter().all(|spare| self.objects.is_silent(self.declaration(spare)));
        if !new.as_ref().is_some_and(are_known) {
            self.settings.log(format_args!("{}: the compiler is asked about its text", self.output.display()));
            if !self.check().unwrap_or(false) || understood.changed_since(self.start).is_some() {
                return false;
            }
            let mut new = new.into_iter().flatten().filter(|spare| is_written_so(spare, text));
            self.log_trouble(new.try_for_each(|spare| self.objects.note_declaration(self.declaration(spare))));
        }
        self.log_trouble(self.objects.note_silent(key, found.notes.clone(), silence));
        true
    }

    fn log_trouble(&self, done: Result<(), impl Display>) {
        if let Err(error) = done {
            self.settings.log(error);
        }
    }

    /// A declaration, and all else on which it depends what the compiler says of it.
    fn declaration(&self, spare: &Spare) -> Hash {
        let mut hasher = Hasher::new("silent declaration");
        hasher.number(VERSION).hash(self.plan.environment).hash(spare.hash);
        for word in self.plan.words.iter().filter(|word| word.bearing == Bearing::Messages) {
            word.parts().for_each(|part| _ = hasher.bytes(part.as_bytes()));
        }
        hasher.finish()
    }

    /// Has the compiler read the source and stop there. `None` if that cannot be done.
    fn check(&self) -> Option<bool> {
        let is_wanted = |word: &&Word| {
            !matches!(word.bearing, Bearing::Files | Bearing::Dependencies | Bearing::DebugInfo | Bearing::Link)
        };
        let mut arguments: Vec<&OsStr> = vec![OsStr::new("-fsyntax-only")];
        arguments.extend(self.plan.words.iter().filter(is_wanted).flat_map(|word| word.parts()));
        let said = Memory::new(c"messages").ok()?;
        let changes = [guard::mark(guard::COMPILER), unset(DEPENDENCY_VARIABLES[0]), unset(DEPENDENCY_VARIABLES[1])];
        let messages = said.descriptor().try_clone_to_owned().ok()?;
        let child = spawn::start_reading(&self.plan.driver, &arguments, &changes, messages.into()).ok()?;
        let output = child.wait_with_output().ok()?;
        Some(output.status.success() && output.stdout.is_empty() && said.length().ok()? == 0)
    }
}

/// All by which one knows a text again that the compiler has nothing to say of.
fn silence(text: &[u8], spare: &[Spare]) -> Silence {
    Silence {
        text: messages::hash(text),
        rest: messages::hash_without(text, spare.iter().map(|spare| &spare.place)),
        spare: spare.iter().map(|spare| spare.hash).collect(),
    }
}

/// The declarations by which a text differs from one that is known to be silent; `None` if it differs by anything else.
fn new_declarations<'u>(known: &Silence, text: &Silence, understood: &'u Understood) -> Option<Vec<&'u Spare>> {
    // A unit with nothing else in it would be one to warn of without them.
    if known.rest != text.rest || understood.unit.definitions.is_empty() {
        return None;
    }
    let known: FxHashSet<Hash> = known.spare.iter().copied().collect();
    let new: Vec<&Spare> = understood.unit.spare.iter().filter(|spare| !known.contains(&spare.hash)).collect();
    (new.len() <= MOST_NEW).then_some(new)
}

/// Whether a declaration stands in its file as it stands in the text. One that comes from a macro of a system header would be met
/// with silence for that.
fn is_written_so(spare: &Spare, text: &[u8]) -> bool {
    let Ok(content) = fs::read(&spare.file) else { return false };
    let lines = content.split(|&byte| byte == b'\n').skip((spare.line as usize).saturating_sub(1));
    let mut written = lines.flatten().filter(|byte| !byte.is_ascii_whitespace());
    text[spare.place.clone()].iter().filter(|byte| !byte.is_ascii_whitespace()).all(|byte| written.next() == Some(byte))
}

/// Where the preprocessor writes the dependency file until it is known that it is wanted.
fn aside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}

/// Why the object of a call with this option cannot be reused.
fn refused(word: &Word) -> Option<&'static str> {
    let bytes = word.word.as_bytes();
    if bytes.starts_with(b"-m") && bytes.ends_with(b"=native") {
        return Some("its code is for the machine at hand");
    }
    if bytes.starts_with(b"-g") && bytes.len() > 2 && bytes.ends_with(b"3") {
        return Some("macros may be part of its debug information");
    }
    let is_exact = |name: &str| name.len() == 2 && name != "-d";
    let fits = |(name, _): &&(&str, &str)| match is_exact(name) {
        true => word.word == *name,
        false => bytes.starts_with(name.as_bytes()),
    };
    REFUSED.iter().find(fits).map(|(_, reason)| *reason)
}

/// The object says where in the source things are.
fn names_lines(word: &Word) -> bool {
    let is_debug = word.bearing == Bearing::DebugInfo && word.word.as_bytes().starts_with(b"-g") && word.word != "-g0";
    is_debug || word.word.as_bytes().starts_with(b"-fsanitize")
}

/// All that decides the object besides the source's meaning, and all that decides whether there are messages.
fn circumstances(settings: &Settings, plan: &Plan, added: &[OsString]) -> Hash {
    let mut hasher = Hasher::new("circumstances");
    hasher.number(VERSION).bytes(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.hash(plan.environment).number(settings.level as u64);
    hasher.bytes(plan.source.as_os_str().as_bytes());
    if plan.words.iter().any(names_lines) {
        let folder = std::env::current_dir().unwrap_or_default();
        hasher.bytes(folder.as_os_str().as_bytes());
        // Where it names the same folder, compilers write it as it stands there.
        hasher.bytes(std::env::var_os("PWD").unwrap_or_default().as_bytes());
    }
    let counts = |word: &&Word| word.bearing == Bearing::Messages || word.is_in_debug_info();
    let words = plan.words.iter().filter(counts).flat_map(|word| word.parts());
    for word in words.chain(added.iter().map(OsString::as_os_str)) {
        hasher.bytes(word.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::bearing::words;
    use super::*;

    fn refusal(line: &str) -> Option<&'static str> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        words(&arguments).iter().find_map(refused)
    }

    #[test]
    fn each_refusal_has_a_reason() {
        for line in [
            "--coverage",
            "-fprofile-arcs",
            "-fprofile-use=x",
            "-save-temps=obj",
            "-gsplit-dwarf",
            "-fdump-tree-all",
            "-dA",
            "-march=native",
            "-g3",
            "-ggdb3",
            "-frecord-gcc-switches",
            "-v",
            "-H",
            "-fstack-usage",
            "-Wa,-al=x",
            "-Wdocumentation",
            "-Weverything",
        ] {
            assert!(refusal(&format!("-c x.c {line}")).is_some(), "{line}");
        }
        for line in
            ["-O3", "-g", "-g2", "-Wall", "-fvisibility=hidden", "-D X", "-fsanitize=address", "-march=x86-64-v3"]
        {
            assert_eq!(refusal(&format!("-c x.c {line}")), None, "{line}");
        }
    }
}
