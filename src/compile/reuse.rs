//! Skipped compilations: if a source means what it meant when it was compiled before, its object is
//! taken from the cache. In: a call that compiles one C source. Out: the object and the dependency
//! file, written to their paths; or the cache key for the object that is going to be made; or the
//! reason why neither is possible.
//!
//! The build must be the same with or without it: exit status, diagnostics, files. So only objects
//! are cached that were made without any diagnostics. That the meaning is the same does not imply
//! that there are none now: an added declaration that the code does not use may cause a warning or
//! be an error. So the compiler is asked whether it has diagnostics for a text that is new
//! (`-fsyntax-only`), which takes a fraction of a compilation. Comments and moved lines do not make
//! a text new. Nor is the compiler asked for each file about a plain prototype that was added to a
//! common header: diagnostics about one do not depend on the rest of the unit
//! (`ast::RemovablePrototype`), so a prototype without diagnostics in one file has none in any.

use super::dependencies::Dependencies;
use super::messages;
use super::option::Affects;
use super::positions;
use super::preprocess::{DEPENDENCY_VARIABLES, PreprocessOptions};
use super::syntax::{Plan, Understood};
use super::words::Word;
use crate::ast::{self, Linkage, RemovablePrototype};
use crate::model::keys::KeyOf;
use crate::model::{Hash, Refusal};
use crate::objects::shared::{Reply, Shared};
use crate::objects::{CachedObject, ObjectLookup, Objects, TextDigest};
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
    context: Hash,
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
    pub text: TextDigest,
    pub understood: Understood,
    /// The compiler has something to say of this text, so that it cannot be kept.
    pub has_diagnostics: bool,
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
        if let Some(reason) = plan.words.iter().find_map(|word| word.option.uncacheable) {
            return Err(reason);
        }
        if DEPENDENCY_VARIABLES.iter().any(|name| std::env::var_os(name).is_some()) {
            return Err("a variable has the compiler write dependencies");
        }
        let mut dependencies = Dependencies::of(&plan.words, output)?;
        if dependencies.as_ref().is_some_and(|it| it.file == Path::new("/dev/null")) {
            dependencies = None;
        }
        if dependencies
            .as_ref()
            .is_some_and(|it| fs::metadata(&it.file).is_ok_and(|file| !file.is_file()))
        {
            return Err("its dependencies do not go to a file");
        }
        let context = context(settings, plan, added);
        let shared = Shared::new(settings, &objects);
        Ok(Request { settings, plan, objects, shared, output, dependencies, context, start })
    }

    /// Looks for the object, and puts it into its place if it is there.
    pub fn look_up(&self) -> Answer {
        let place = self.dependencies.as_ref().map(|it| temporary(&it.file));
        let answer = self.look_up_with(place.as_deref());
        if let Some(place) = place {
            // Unless it was moved to where it belongs.
            let _ = fs::remove_file(place);
        }
        answer.unwrap_or_else(Answer::Failed)
    }

    fn look_up_with(&self, dependencies: Option<&Path>) -> Result<Answer, String> {
        let reads_comments = self.plan.words.iter().any(reads_comments);
        let mut options: Vec<OsString> = reads_comments.then(|| "-C".into()).into_iter().collect();
        if let (Some(file), Some(wanted)) = (dependencies, &self.dependencies) {
            options.extend(wanted.options(file));
        }
        let made = self.plan.preprocess(&PreprocessOptions { options, messages: true })?;
        let (text, comments) = messages::without_comments(&made.text);
        let understood = match self.plan.understand(&text, ast::read_with_prototypes) {
            Ok(understood) => understood,
            Err(refusal) => return Ok(Answer::Refused(refusal, None)),
        };
        if made.has_messages {
            let reason = "the preprocessor has something to say of it, or it asks for the time";
            return Ok(Answer::Refused(
                Refusal::new(self.plan.source.display().to_string(), reason),
                Some(understood),
            ));
        }
        let key = self.key(&understood, comments);
        let digest = digest(&text, &understood.unit.removable_prototypes);
        let (found, reply) = self.find(key);
        let Some(found) = found else {
            return Ok(Answer::Missing(Missing {
                key,
                text: digest,
                understood,
                has_diagnostics: false,
                reply,
            }));
        };
        if !self.has_no_diagnostics(key, &found, &digest, &text, &understood) {
            return Ok(Answer::Missing(Missing {
                key,
                text: digest,
                understood,
                has_diagnostics: true,
                reply,
            }));
        }
        let taken = self.objects.take(&found, self.output).and_then(|()| {
            match (dependencies, &self.dependencies) {
                (Some(place), Some(wanted)) => fs::rename(place, &wanted.file),
                _ => Ok(()),
            }
        });
        taken.map_err(|error| format!("the object cannot be put into its place: {error}"))?;
        let is_shared = reply == Reply::There;
        self.objects.count(if is_shared { ObjectLookup::Shared } else { ObjectLookup::Reused });
        Ok(Answer::Reused { is_shared })
    }

    /// The object of a key, from this machine or from another one; and what came of asking for the
    /// latter.
    fn find(&self, key: Hash) -> (Option<CachedObject>, Reply) {
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
        self.objects.count(ObjectLookup::Compiled);
    }

    fn key(&self, understood: &Understood, comments: Hash) -> Hash {
        let unit = &understood.unit;
        let mut hasher = KeyOf::Object.hasher();
        hasher.hash(self.context).hash(comments);
        let counts_positions =
            positions::are_in_object(&self.plan.words) && !self.settings.sloppiness.lines;
        match counts_positions {
            true => hasher.hash(unit.with_lines).hash(understood.contents()),
            false => hasher.hash(unit.meaning),
        };
        // Compilers warn of those that nobody uses.
        for definition in
            unit.definitions.iter().filter(|definition| definition.linkage == Linkage::Static)
        {
            hasher.bytes(definition.name.as_bytes());
        }
        hasher.finish()
    }

    /// Whether the compiler has nothing to say of the text.
    fn has_no_diagnostics(
        &self,
        key: Hash,
        found: &CachedObject,
        digest: &TextDigest,
        text: &[u8],
        understood: &Understood,
    ) -> bool {
        if found.notes.clean_texts.contains(&digest.text) || self.settings.sloppiness.messages {
            return true;
        }
        let new = new_declarations(&found.notes.last, digest, understood);
        let are_known = |new: &Vec<&RemovablePrototype>| {
            new.iter()
                .all(|prototype| self.objects.is_clean_declaration(self.declaration(prototype)))
        };
        if !new.as_ref().is_some_and(are_known) {
            self.settings.log(format_args!(
                "{}: the compiler is asked about its text",
                self.output.display()
            ));
            if !self.check().unwrap_or(false) || understood.changed_since(self.start).is_some() {
                return false;
            }
            let mut new =
                new.into_iter().flatten().filter(|prototype| is_literal_in_file(prototype, text));
            self.log_failure(new.try_for_each(|prototype| {
                self.objects.note_clean_declaration(self.declaration(prototype))
            }));
        }
        self.log_failure(self.objects.note_clean_text(key, found.notes.clone(), digest));
        true
    }

    fn log_failure(&self, done: Result<(), impl Display>) {
        if let Err(error) = done {
            self.settings.log(error);
        }
    }

    /// A declaration, and all else on which it depends what the compiler says of it.
    fn declaration(&self, prototype: &RemovablePrototype) -> Hash {
        let mut hasher = KeyOf::CleanDeclaration.hasher();
        hasher.hash(self.plan.environment).hash(prototype.hash);
        for word in self.plan.words.iter().filter(|word| word.affects() == Affects::Diagnostics) {
            word.parts().for_each(|part| _ = hasher.bytes(part.as_bytes()));
        }
        hasher.finish()
    }

    /// Has the compiler read the source and stop there. `None` if that cannot be done.
    fn check(&self) -> Option<bool> {
        let is_wanted = |word: &&Word| {
            !matches!(
                word.affects(),
                Affects::Files | Affects::Dependencies | Affects::DebugInfo | Affects::Link
            )
        };
        let mut arguments: Vec<&OsStr> = vec![OsStr::new("-fsyntax-only")];
        arguments.extend(self.plan.words.iter().filter(is_wanted).flat_map(|word| word.parts()));
        let said = Memory::new(c"messages").ok()?;
        let changes = [
            guard::mark(guard::COMPILER),
            unset(DEPENDENCY_VARIABLES[0]),
            unset(DEPENDENCY_VARIABLES[1]),
        ];
        let messages = said.descriptor().try_clone_to_owned().ok()?;
        let child =
            spawn::start_reading(&self.plan.driver, &arguments, &changes, messages.into()).ok()?;
        let output = child.wait_with_output().ok()?;
        Some(output.status.success() && output.stdout.is_empty() && said.length().ok()? == 0)
    }
}

/// All by which one knows a text again that the compiler has nothing to say of.
fn digest(text: &[u8], prototypes: &[RemovablePrototype]) -> TextDigest {
    TextDigest {
        text: messages::hash(text),
        rest: messages::hash_without(text, prototypes.iter().map(|prototype| &prototype.place)),
        prototypes: prototypes.iter().map(|prototype| prototype.hash).collect(),
    }
}

/// The declarations by which a text differs from one that is known to have no diagnostics; `None`
/// if it differs by anything else.
fn new_declarations<'u>(
    known: &TextDigest,
    text: &TextDigest,
    understood: &'u Understood,
) -> Option<Vec<&'u RemovablePrototype>> {
    // A unit with nothing else in it would be one to warn of without them.
    if known.rest != text.rest || understood.unit.definitions.is_empty() {
        return None;
    }
    let known: FxHashSet<Hash> = known.prototypes.iter().copied().collect();
    let new: Vec<&RemovablePrototype> = understood
        .unit
        .removable_prototypes
        .iter()
        .filter(|prototype| !known.contains(&prototype.hash))
        .collect();
    (new.len() <= MOST_NEW).then_some(new)
}

/// Whether a declaration stands in its file as it stands in the text. One that comes from a macro
/// of a system header would be met without diagnostics for that.
fn is_literal_in_file(prototype: &RemovablePrototype, text: &[u8]) -> bool {
    let Ok(content) = fs::read(&prototype.file) else { return false };
    let lines =
        content.split(|&byte| byte == b'\n').skip((prototype.line as usize).saturating_sub(1));
    let mut written = lines.flatten().filter(|byte| !byte.is_ascii_whitespace());
    text[prototype.place.clone()]
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .all(|byte| written.next() == Some(byte))
}

/// Where the preprocessor writes the dependency file until it is known that it is wanted.
fn temporary(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}

/// Whether comments decide over warnings. `-W` by itself is the old name of `-Wextra`.
fn reads_comments(word: &Word) -> bool {
    word.option.reads_comments || word.word == "-W"
}

/// All that decides the object besides the source's meaning, and all that decides whether there are
/// messages.
fn context(settings: &Settings, plan: &Plan, added: &[OsString]) -> Hash {
    let mut hasher = KeyOf::ObjectContext.hasher();
    hasher.bytes(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.hash(plan.environment).code(settings.level);
    hasher.bytes(plan.source.as_os_str().as_bytes());
    if positions::are_in_object(&plan.words) {
        let folder = std::env::current_dir().unwrap_or_default();
        hasher.bytes(folder.as_os_str().as_bytes());
        // Where it names the same folder, compilers write it as it stands there.
        hasher.bytes(std::env::var_os("PWD").unwrap_or_default().as_bytes());
    }
    let counts = |word: &&Word| {
        matches!(
            word.affects(),
            Affects::Diagnostics | Affects::DebugInfo | Affects::TextAndDebugInfo
        )
    };
    let words = plan.words.iter().filter(counts).flat_map(|word| word.parts());
    for word in words.chain(added.iter().map(OsString::as_os_str)) {
        hasher.bytes(word.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
