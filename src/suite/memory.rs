//! The context in which a harness starts its tests, remembered from earlier starts. `tasting run`
//! records each start (`run/started.rs`). The starts are stored under everything that they can
//! depend on: the harness's command line, its program, the files that define the tests, and the
//! context of the suite itself. How the harness judged each outcome is stored with them.
//!
//! In: the tests that a harness lists, recorded starts, results. Out: for each test its start, and
//! the harness's verdict on an outcome, if known.

use super::probe::Folder;
use super::{End, Output, SuiteError, TestCase};
use crate::model::keys::KeyOf;
use crate::model::{Exit, Hash, Hasher};
use crate::process::Settings;
use crate::run::batch::{self, Decided, Reusable, Start};
use crate::run::config::Config;
use crate::run::connection::Connection;
use crate::run::context::{Environment, InvocationContext};
use crate::run::project::logical_folder;
use crate::run::started::{self, Started};
use crate::run::{environment, local_store};
use crate::store::{FileStore, Memo};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many judgements of one test are remembered.
const MOST_JUDGEMENTS: usize = 8;

/// What starts follow from.
pub struct Definition {
    /// The harness, as it was called.
    pub words: Vec<OsString>,
    /// Files that say what tests there are, and what else belongs to them.
    pub files: Vec<PathBuf>,
    /// What else they follow from.
    pub texts: Vec<Vec<u8>>,
    /// The output of tests goes where ours goes, and is decided about here.
    pub passes_output: Option<Output>,
    /// Variables that the harness sets to what follows from all that: exact names, or beginnings
    /// of names that end with `*`.
    pub variables: &'static [&'static str],
}

/// What is remembered of a suite.
pub struct Memory {
    name: Hash,
    store: Option<FileStore>,
    own: InvocationContext,
    variables: &'static [&'static str],
    notes: Folder,
    known: Known,
    /// Where surroundings are among those that are known.
    places: FxHashMap<Surroundings, u32>,
}

/// In the store.
#[derive(Default, Serialize, Deserialize)]
struct Known {
    surroundings: Vec<Surroundings>,
    tests: FxHashMap<Hash, KnownTest>,
}

/// A context without what differs from one run of the harness to the next.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Surroundings {
    /// An encoded [`InvocationContext`].
    context: Vec<u8>,
    /// Variables that do not count as a rule, and that are the suite's own.
    ours: Vec<OsString>,
    /// Others of this sort: what they will be is not known.
    unknown: Vec<OsString>,
}

#[derive(Clone, Serialize, Deserialize)]
struct KnownTest {
    words: Vec<OsString>,
    working: PathBuf,
    surroundings: u32,
    /// All of it follows from the definition, or was the same twice.
    is_certain: bool,
    /// Outcomes, and whether the test was skipped (or else has passed) in the eyes of the harness.
    judgements: Vec<(Hash, bool)>,
}

impl Memory {
    /// What is remembered under a definition.
    pub fn new(definition: &Definition) -> Result<Memory, SuiteError> {
        let own = InvocationContext::own();
        let settings = Settings::from_environment();
        let store = (!settings.disable).then(|| local_store(&settings)).flatten();
        let name = name(definition, &own);
        let bytes = store.as_ref().and_then(|store| store.blob(name).ok().flatten());
        let known = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok()).unwrap_or_default();
        Ok(Memory {
            name,
            store,
            own,
            variables: definition.variables,
            notes: Folder::new()?,
            known,
            places: FxHashMap::default(),
        })
    }

    /// Where starts are to be noted.
    pub fn notes(&self) -> &Path {
        self.notes.path()
    }

    /// The tests of which a start was noted.
    pub fn noted(&self, tests: &[TestCase]) -> FxHashSet<usize> {
        by_test(tests, started::read(self.notes.path())).into_keys().collect()
    }

    /// The starts of these tests, as far as they are known.
    pub fn starts(&self, tests: &[TestCase]) -> Vec<Option<Start>> {
        let contexts: Vec<_> =
            self.known.surroundings.iter().map(|one| self.context(one)).collect();
        let start = |test: &TestCase| {
            let known = self.known.tests.get(&identity(test)).filter(|known| known.is_certain)?;
            if test.left_to_harness.is_some() {
                return None;
            }
            let context = contexts.get(known.surroundings as usize)?.clone()?;
            Some(Start {
                words: known.words.clone(),
                working: known.working.clone(),
                context,
                options: test.options,
            })
        };
        tests.iter().map(start).collect()
    }

    /// What the harness made of this outcome of a test.
    pub fn judgement(&self, test: &TestCase, reusable: &Reusable) -> Option<End> {
        let known = self.known.tests.get(&identity(test))?;
        let digest = digest(reusable);
        let (_, is_skipped) = known.judgements.iter().find(|(judged, _)| *judged == digest)?;
        Some(if *is_skipped { End::Skipped } else { End::Passed })
    }

    /// The context as it will be this time.
    fn context(&self, surroundings: &Surroundings) -> Option<Arc<InvocationContext>> {
        let context = InvocationContext::from_bytes(&surroundings.context).ok()?;
        let mut environment = Environment::clone(&context.environment);
        for name in &surroundings.ours {
            match self.own.environment.get(name) {
                Some(value) => environment.set(name, value),
                None => environment.unset(name),
            }
        }
        for name in &surroundings.unknown {
            // No execution has seen this value: one that depends on the variable does not fit.
            environment.set(name, self.notes.path().as_os_str());
        }
        Some(Arc::new(context.with_environment(Arc::new(environment))))
    }

    /// Takes in what was noted of these tests, and how they ended. What cannot be written is not
    /// known the next time.
    pub fn learn(&mut self, tests: &[TestCase], ends: &FxHashMap<usize, End>) {
        let notes = started::read(self.notes.path());
        let mut learned = Vec::new();
        for (index, note) in assigned(tests, notes) {
            let is_good = matches!(ends.get(&index), Some(End::Passed | End::Skipped));
            if is_good && self.learn_start(&tests[index], note) {
                learned.push(index);
            }
        }
        self.learn_judgements(tests, &learned, ends);
        self.write();
    }

    fn learn_start(&mut self, test: &TestCase, note: Started) -> bool {
        let name = identity(test);
        let surroundings = self.surroundings(&note);
        let follows = self.follows(test, &note);
        let Some(number) = self.number(surroundings) else { return false };
        let Started { words, working, .. } = note;
        let before = self.known.tests.remove(&name);
        let is_same = |known: &KnownTest| {
            known.surroundings == number && known.words == words && known.working == working
        };
        let is_certain = follows || before.as_ref().is_some_and(is_same);
        let judgements = before.map(|known| known.judgements).unwrap_or_default();
        self.known.tests.insert(
            name,
            KnownTest { words, working, surroundings: number, is_certain, judgements },
        );
        true
    }

    /// The place of these surroundings among those that are known, where they now are.
    fn number(&mut self, surroundings: Option<Surroundings>) -> Option<u32> {
        let surroundings = surroundings?;
        let Memory { known: Known { surroundings: known, .. }, places, .. } = self;
        if places.len() < known.len() {
            *places = known.iter().cloned().zip(0..).collect();
        }
        let next = u32::try_from(known.len()).ok()?;
        Some(*places.entry(surroundings).or_insert_with_key(|surroundings| {
            known.push(surroundings.clone());
            next
        }))
    }

    /// Without what does not count.
    fn surroundings(&self, note: &Started) -> Option<Surroundings> {
        let (mut ours, mut unknown) = (Vec::new(), Vec::new());
        let mut environment = Environment::clone(&note.context.environment);
        for (name, value) in &note.context.environment.0 {
            if counts(name, &note.context) || is_settled(name, value, note) {
                continue;
            }
            environment.unset(name);
            let is_ours = self.own.environment.get(name) == Some(value);
            if is_ours { &mut ours } else { &mut unknown }.push(name.clone());
        }
        environment.0.sort();
        ours.sort();
        unknown.sort();
        let context = note.context.with_environment(Arc::new(environment)).to_bytes().ok()?;
        Some(Surroundings { context, ours, unknown })
    }

    /// Whether all that the test was given follows from the definition.
    fn follows(&self, test: &TestCase, note: &Started) -> bool {
        let InvocationContext { environment, inherited, known, .. } = &note.context;
        let is_expected = |name: &OsStr| {
            let fits = |pattern: &&str| match pattern.strip_suffix('*') {
                Some(beginning) => name.as_bytes().starts_with(beginning.as_bytes()),
                None => name == *pattern,
            };
            self.variables.iter().any(fits)
                || test.changes.iter().any(|(changed, _)| changed == name)
        };
        let variables = environment.0.iter().all(|(name, value)| {
            self.own.environment.get(name) == Some(value)
                || is_expected(name)
                || !counts(name, &note.context)
        });
        let is_null = |path: &Path| path == Path::new("/dev/null");
        variables
            && inherited.iter().all(|number| self.own.inherited.contains(number))
            && known.iter().all(|one| self.own.known.contains(one) || is_null(&one.1))
    }

    /// Notes how the harness judged the outcomes that these tests will be found with.
    fn learn_judgements(
        &mut self,
        tests: &[TestCase],
        learned: &[usize],
        ends: &FxHashMap<usize, End>,
    ) {
        let cases: Vec<TestCase> = learned.iter().map(|index| tests[*index].clone()).collect();
        let starts = self.starts(&cases);
        let places: Vec<usize> =
            (0..cases.len()).filter(|place| starts[*place].is_some()).collect();
        let decided = batch::decide(&starts.into_iter().flatten().collect::<Vec<_>>());
        for (place, decided) in places.into_iter().zip(decided) {
            let Decided::Reuse(reusable) = decided else { continue };
            let Some(known) = self.known.tests.get_mut(&identity(&cases[place])) else { continue };
            let judgement = (digest(&reusable), ends.get(&learned[place]) == Some(&End::Skipped));
            known.judgements.retain(|(outcome, _)| *outcome != judgement.0);
            known.judgements.push(judgement);
            let surplus = known.judgements.len().saturating_sub(MOST_JUDGEMENTS);
            known.judgements.drain(..surplus);
        }
    }

    fn write(&mut self) {
        let Some(store) = &self.store else { return };
        self.known.forget_unused();
        if let Ok(bytes) = postcard::to_stdvec(&self.known) {
            let _ = store.put_blob(self.name, &bytes);
        }
    }
}

impl Known {
    /// Surroundings that no test has any more.
    fn forget_unused(&mut self) {
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        let mut kept = Vec::new();
        for test in self.tests.values_mut() {
            let Some(surroundings) = self.surroundings.get(test.surroundings as usize) else {
                continue;
            };
            test.surroundings = *places.entry(test.surroundings).or_insert_with(|| {
                kept.push(surroundings.clone());
                kept.len() as u32 - 1
            });
        }
        self.surroundings = kept;
    }
}

/// Whether a variable counts as a rule. (A project can have it otherwise: then no execution fits.)
fn counts(name: &OsStr, context: &InvocationContext) -> bool {
    environment::counts(
        &name.to_string_lossy(),
        &Config::default(),
        context.connection.on_terminal(),
    )
}

/// Whether a variable follows from the definition though it does not count: our settings where the
/// harness has its own, and the working folder.
fn is_settled(name: &OsStr, value: &OsStr, note: &Started) -> bool {
    let is_folder = || {
        value == note.working.as_os_str()
            || logical_folder(&note.working, &note.context.environment).is_some()
    };
    name.as_bytes().starts_with(b"TASTING_") || (name == "PWD" && is_folder())
}

/// The name under which a suite is remembered.
fn name(definition: &Definition, own: &InvocationContext) -> Hash {
    let mut hasher = KeyOf::SuiteStarts.hasher();
    hasher.number(definition.words.len() as u64);
    definition.words.iter().for_each(|word| _ = hasher.bytes(word.as_bytes()));
    hasher.number(definition.files.len() as u64);
    for file in &definition.files {
        let content = std::fs::read(file);
        hasher.bytes(file.as_os_str().as_bytes()).number(content.is_ok().into());
        hasher.bytes(&content.unwrap_or_default());
    }
    hasher.number(definition.texts.len() as u64);
    definition.texts.iter().for_each(|text| _ = hasher.bytes(text));
    let here = std::env::current_dir().unwrap_or_default();
    let program =
        definition.words.first().and_then(|program| which::which(program).ok()).unwrap_or_default();
    for path in [here, std::env::current_exe().unwrap_or_default(), program] {
        hasher.bytes(path.as_os_str().as_bytes());
        let metadata = std::fs::metadata(&path).ok().filter(|metadata| metadata.is_file());
        let changed =
            metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
        let since = |time: std::time::SystemTime| {
            time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
        };
        let (length, time) =
            changed.map_or((0, 0), |(length, time)| (length, since(time).as_nanos() as u64));
        hasher.number(length).number(time);
    }
    let mut environment = Environment::clone(&own.environment);
    environment.0.retain(|(name, _)| {
        counts(name, own) || name == "PWD" || name.as_bytes().starts_with(b"TASTING_")
    });
    environment.0.sort();
    let mut own = own.with_environment(Arc::new(environment));
    match definition.passes_output {
        Some(output) => _ = hasher.number(1 + u64::from(output == Output::ToMessages)),
        None => {
            own.connection = Connection { terminals: [false; 2], is_one: false, files: [false; 2] };
            own.size = None;
        }
    }
    hasher.bytes(&own.to_bytes().unwrap_or_default()).finish()
}

/// What tells a test of a suite from the others.
fn identity(test: &TestCase) -> Hash {
    let mut hasher = Hasher::new("test of a suite");
    hasher.bytes(test.name.as_bytes()).number(test.words.len() as u64);
    test.words.iter().for_each(|word| _ = hasher.bytes(word.as_bytes()));
    hasher.bytes(test.working.as_os_str().as_bytes()).number(test.changes.len() as u64);
    for (name, value) in &test.changes {
        hasher.bytes(name.as_bytes()).number(value.is_some().into());
        hasher.bytes(value.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

/// All by which a harness can judge an outcome.
fn digest(reusable: &Reusable) -> Hash {
    let mut hasher = Hasher::new("judged outcome");
    match reusable.exit() {
        Exit::Code(code) => hasher.pair(0, code as u64),
        Exit::Signal(signal) => hasher.pair(1, signal as u64),
    };
    reusable.output().iter().for_each(|output| _ = hasher.bytes(output));
    hasher.finish()
}

/// Which test each note is about. Tests with several notes are left out.
fn assigned(tests: &[TestCase], notes: Vec<Started>) -> Vec<(usize, Started)> {
    let single = |(index, mut notes): (usize, Vec<Started>)| {
        Some((index, notes.pop().filter(|_| notes.is_empty())?))
    };
    by_test(tests, notes).into_iter().filter_map(single).collect()
}

/// The notes of each test. Those that could be about several tests are left out.
fn by_test(tests: &[TestCase], notes: Vec<Started>) -> FxHashMap<usize, Vec<Started>> {
    let mut by_words: FxHashMap<(&[OsString], PathBuf), Vec<usize>> = FxHashMap::default();
    for (index, test) in tests.iter().enumerate() {
        let working = std::fs::canonicalize(&test.working).unwrap_or_default();
        by_words.entry((&test.words, working)).or_default().push(index);
    }
    let mut found: FxHashMap<usize, Vec<Started>> = FxHashMap::default();
    for note in notes {
        let Some(candidates) = by_words.get(&(note.words.as_slice(), note.working.clone())) else {
            continue;
        };
        let fits = |test: &TestCase| {
            test.changes
                .iter()
                .all(|(name, value)| note.context.environment.get(name) == value.as_ref())
        };
        let candidates: Vec<usize> = match candidates.as_slice() {
            [one] => vec![*one],
            several => several.iter().copied().filter(|index| fits(&tests[*index])).collect(),
        };
        let most = candidates.iter().map(|index| tests[*index].changes.len()).max();
        let mut best =
            candidates.into_iter().filter(|index| Some(tests[*index].changes.len()) == most);
        if let (Some(index), None) = (best.next(), best.next()) {
            found.entry(index).or_default().push(note);
        }
    }
    found
}
