//! What would be done about a test, without doing it: would it be reused, from which run; if not, what is different from the
//! latest one.
//!
//! In: a command, or a binary. Out: the decision, the differences, and of changed programs both builds' manifests.

pub use super::difference::Difference;
pub use super::reason::Reason;

use super::choice::{self, Choice, Run};
use super::connection::Connection;
use super::context::InvocationContext;
use super::project::Project;
use super::record::last_use_name;
use super::test::{self, Test};
use super::values::Values;
use super::{Options, Session, StoreMemory, StoreOptions, difference, exit_code, latest};
use crate::model::{Dependency, DependencyKind, Hash, LastUse, Origin, Outcome, Place, Trace, Traced};
use crate::observe::{Contents, Input};
use crate::process::Settings;
use crate::store::{FileStore, Store};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What would be done about a command.
pub struct Inspection {
    pub argv: Vec<String>,
    /// The run that would be reused.
    pub reused: Option<Reused>,
    /// Why it would run, or would not.
    pub reason: Reason,
    /// The latest execution, under whatever circumstances.
    pub latest: Option<Latest>,
    /// What is different from it.
    pub differences: Vec<Difference>,
    /// The changed programs among those.
    pub programs: Vec<Builds>,
    /// What was taken from the latest execution because it cannot be told from here.
    pub assumed: Vec<&'static str>,
}

/// A run that can be reused.
pub struct Reused {
    pub origin: Origin,
    pub duration: Duration,
    pub exit_code: i32,
}

/// A run.
pub struct Latest {
    pub origin: Origin,
    pub exit_code: i32,
    /// Why it cannot be reused, if so.
    pub refusals: Vec<String>,
}

/// Two builds of a program: the bytes of the manifests of the program and its libraries.
pub struct Builds {
    pub program: String,
    /// The libraries that have a manifest, in the order of these.
    pub libraries: Vec<String>,
    /// The function that the project's tests start in.
    pub entry: Option<String>,
    pub before: Vec<Vec<u8>>,
    pub now: Vec<Vec<u8>>,
    /// What was executed of the first one; nothing if that is not known.
    pub executed: Vec<u8>,
    /// Why there are none.
    pub note: String,
}

/// The latest test that used a binary.
pub struct BinaryInspection {
    pub argv: Vec<String>,
    pub latest: Latest,
    /// The builds of the program that it is, or is a library of; `None` if nothing has changed.
    pub changed: Option<Builds>,
}

/// What would be done about a command.
pub fn inspect(words: &[OsString], options: Options) -> Inspection {
    let settings = Settings::from_environment();
    if settings.disable {
        return Inspection::plain(words, Reason::new("disabled", "TASTING_DISABLE is set"));
    }
    let session = match Session::open(words, settings) {
        Some(Ok(session)) => session,
        Some(Err(unable)) => return Inspection::plain(words, Reason::new("settings", unable.reason)),
        None => {
            return Inspection::plain(
                words,
                Reason::new("store", "there is no folder for it: set TASTING_DIR or HOME"),
            );
        }
    };
    let trace = choice::trace(&session);
    let (mut session, elsewhere) = where_it_went(session, words, trace.as_ref());
    let has_less = trace.as_ref().is_some_and(|trace| assume_variables(trace, &mut session.test));
    let mut values = choice::values(&session);
    let given = trace.as_ref().is_some_and(|trace| assume_input(trace, &mut values));
    let choice = choice::decide(&session, options.with(&session.project.config), &mut values);
    let mut inspection = Inspection::of(words, choice);
    inspection.assumed.extend(elsewhere.then_some("its output goes where it went the last time"));
    inspection.assumed.extend(has_less.then_some("variables that are not set here are as its harness set them"));
    inspection.assumed.extend(given.then_some("its standard input is that of the last time"));
    inspection.assumed.extend((inspection.reused.is_none() && is_remote_away(&session)).then_some(REMOTE_AWAY));
    if let Some(trace) = &trace {
        inspection.latest = Some(Latest::of(trace));
        if inspection.reused.is_none() {
            inspection.compare(&session, trace, &mut values);
        }
    }
    inspection
}

/// Said where the store of the team was not asked.
const REMOTE_AWAY: &str =
    "the remote store, which has failed and is left alone, has no result (tasting stats --remote)";

fn is_remote_away(session: &Session) -> bool {
    session.store.far.as_ref().is_some_and(|far| far.reading.state().is_some())
}

/// Whoever asks sits at a terminal, or reads from a pipe; the test as a rule does not. So its output is taken to go where it
/// went the last time. Says whether that is somewhere else.
fn where_it_went(session: Session, words: &[OsString], trace: Option<&Trace>) -> (Session, bool) {
    let was = |connection: &Connection| {
        let (_, wanted) = test::output_circumstance(*connection);
        trace.is_some_and(|trace| trace.circumstances.iter().any(|(_, value)| *value == wanted))
    };
    if was(&session.context.connection) {
        return (session, false);
    }
    match Connection::all().find(was) {
        Some(connection) => {
            let context = InvocationContext { connection, size: connection.size(), ..session.context };
            let test = Test::of(words, &session.project, &context);
            (Session { context, test, ..session }, true)
        }
        None => (session, false),
    }
}

/// A harness such as CTest sets variables for its tests. Where that is all that is missing here, they are taken from the last
/// run. Says whether it was necessary.
fn assume_variables(trace: &Trace, test: &mut Test) -> bool {
    let is_less = test.circumstances.len() < trace.circumstances.len();
    let had = |circumstance| trace.circumstances.contains(circumstance);
    if !is_less || !test.circumstances.iter().all(had) {
        return false;
    }
    test.identity = trace.test;
    test.circumstances.clone_from(&trace.circumstances);
    true
}

/// The same for standard input, unless it is a file or nothing at all, which somebody may have meant. Says whether it was
/// necessary.
fn assume_input(trace: &Trace, values: &mut Values) -> bool {
    let mut inputs = trace.used.iter().filter(|used| used.dependency.kind == DependencyKind::Input);
    inputs.next().is_some_and(|before| !values.has_certain_input() && values.assume(before))
}

impl Inspection {
    fn of(words: &[OsString], choice: Choice) -> Inspection {
        match choice {
            Choice::Run(Run { reason, .. }) | Choice::Plain(reason) => Inspection::plain(words, reason),
            Choice::Reuse(hit) => {
                let Outcome { origin, duration, exit, .. } = hit.outcome;
                let reused = Some(Reused { origin, duration, exit_code: exit_code(exit) });
                Inspection {
                    reused,
                    ..Inspection::plain(words, Reason::new("unchanged", "nothing that it uses has changed"))
                }
            }
        }
    }

    fn plain(words: &[OsString], reason: Reason) -> Inspection {
        Inspection {
            argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            reused: None,
            reason,
            latest: None,
            differences: Vec::new(),
            programs: Vec::new(),
            assumed: Vec::new(),
        }
    }

    /// Finds what is different from the latest execution.
    fn compare(&mut self, session: &Session, trace: &Trace, values: &mut Values) {
        self.differences = difference::of_circumstances(&session.test, trace);
        self.differences.extend(difference::of_dependencies(&session.project, trace, values));
        let used = self.differences.iter().filter_map(|difference| trace.used.get(difference.used?));
        let is_there = |used: &&Traced| session.project.path(&used.dependency.place).is_some_and(|path| path.exists());
        let programs = used.filter(|used| used.dependency.kind == DependencyKind::Program).filter(is_there);
        self.programs = programs.map(|used| builds(&session.project, &*session.store, used, values)).collect();
    }
}

impl Latest {
    fn of(trace: &Trace) -> Latest {
        Latest { origin: trace.origin.clone(), exit_code: trace.exit_code, refusals: trace.refusals.clone() }
    }
}

/// A program as it was when it was used, and as it is.
fn builds(project: &Project, store: &dyn Store, used: &Traced, values: &mut Values) -> Builds {
    let kept = used.manifests.iter().map(|name| store.blob(*name).ok().flatten()).collect::<Option<Vec<_>>>();
    let now = values.manifests(&used.dependency).iter().map(fs::read).collect::<Result<Vec<_>, _>>();
    let (before, now) = (kept.unwrap_or_default(), now.unwrap_or_default());
    let note = match values.note(&used.dependency) {
        Some(note) => note,
        None if !used.note.is_empty() => format!("in the last run: {}", used.note),
        None if before.is_empty() => "the manifests of the last run are not in the store any more".to_owned(),
        None => String::new(),
    };
    let program = project.show(&used.dependency.place);
    let libraries = values.covered_libraries(&used.dependency).map(|library| project.show(library)).collect();
    let entry = project.entry(&used.dependency.place).map(str::to_owned);
    Builds { program, libraries, entry, before, now, executed: used.dependency.executed.clone(), note }
}

/// What is known of the latest test that used a binary. `None` if there was none in its project.
pub fn inspect_binary(path: &Path, settings: &Settings) -> Option<BinaryInspection> {
    let path = fs::canonicalize(path).ok()?;
    let working = std::env::current_dir().ok()?;
    let store = Arc::new(FileStore::new(settings.dir.as_ref()?, StoreOptions::default()));
    let folders = [Some(working.as_path()), path.parent()];
    folders.into_iter().flatten().find_map(|folder| {
        let project = Project::find(folder, Some(&path), settings).ok()?;
        latest_use(&project, &path, &store, settings)
    })
}

fn latest_use(project: &Project, path: &Path, store: &Arc<FileStore>, settings: &Settings) -> Option<BinaryInspection> {
    let place = project.place(path);
    let blob = |name: Hash| store.blob(name).ok().flatten();
    let LastUse { argv, trace } = LastUse::from_bytes(&blob(last_use_name(project, &place))?).ok()?;
    let trace = latest::of(&**store, trace)?;
    let shape = trace.shape();
    let contents = Contents::new(Arc::new(StoreMemory(store.clone())));
    let mut values = Values::new(project, settings, &**store, contents, Input::Given);
    let now = values.now(&shape);
    let is_meant = |Dependency { kind, place: program, libraries, .. }: &Dependency| {
        let is_file_of = |library: &Place| project.library_path(library).as_deref() == Some(path);
        *kind == DependencyKind::Program && (*program == place || libraries.iter().any(is_file_of))
    };
    let mut programs = trace.used.iter().zip(now).filter(|(used, _)| is_meant(&used.dependency)).peekable();
    programs.peek()?;
    let changed = programs.find(|(used, now)| used.value != *now);
    let changed = changed.map(|(used, _)| builds(project, &**store, used, &mut values));
    Some(BinaryInspection { argv, latest: Latest::of(&trace), changed })
}
