//! The decision about a test, without acting on it: would it be reused, and from which run; if not,
//! what differs from the nearest one.
//!
//! In: a command, or a binary. Out: the decision, the differences, and for changed programs the
//! manifests of both builds.

pub use super::difference::Difference;
pub use super::nearest::Builds;
pub use super::reason::Reason;

use super::choice::{self, Choice, Run};
use super::connection::Connection;
use super::context::InvocationContext;
use super::nearest::{self, Compared, builds};
use super::project::Project;
use super::record::last_use_name;
use super::test::{self, Test};
use super::values::Values;
use super::{Options, Session, StoreMemory, StoreOptions, exit_code, latest};
use crate::fingerprint::ModuleCache;
use crate::model::{
    Dependency, DependencyKind, Hash, LastUse, Origin, Outcome, PortablePath, Trace,
};
use crate::observe::{Contents, Input};
use crate::process::Settings;
use crate::store::{FileStore, Memo};
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
    /// The latest execution, under whatever invocation context.
    pub latest: Option<Latest>,
    /// An earlier execution from which less is different, if there is one.
    pub nearer: Option<Latest>,
    /// What is different from the nearest of these.
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
        Some(Err(unable)) => {
            return Inspection::plain(words, Reason::new("settings", unable.reason));
        }
        None => {
            return Inspection::plain(
                words,
                Reason::new("store", "there is no folder for it: set TASTING_DIR or HOME"),
            );
        }
    };
    let trace = choice::trace(&session);
    let (mut session, elsewhere) = where_it_went(session, words, trace.as_ref());
    let assumed = trace
        .as_ref()
        .map(|trace| assume_surroundings(trace, &mut session.test))
        .unwrap_or_default();
    let mut values = choice::values(&session);
    let given = trace.as_ref().is_some_and(|trace| assume_input(trace, &mut values));
    let choice = choice::decide(&session, options.with(&session.project.config), &mut values);
    let mut inspection = Inspection::of(words, choice);
    inspection.assumed.extend(elsewhere.then_some("its output goes where it went the last time"));
    inspection.assumed.extend(
        assumed.variables.then_some("variables that are not set here are as its harness set them"),
    );
    inspection.assumed.extend(
        assumed.signals.then_some("signals are ignored and blocked as they were the last time"),
    );
    inspection.assumed.extend(
        assumed.descriptors.then_some("the descriptors that are open are those of the last time"),
    );
    inspection.assumed.extend(given.then_some("its standard input is that of the last time"));
    inspection
        .assumed
        .extend((inspection.reused.is_none() && is_remote_away(&session)).then_some(REMOTE_AWAY));
    if let Some(trace) = &trace {
        inspection.latest = Some(Latest::of(trace));
        if inspection.reused.is_none() {
            inspection.compare(&session, trace.clone(), &mut values);
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

/// Whoever asks sits at a terminal, or reads from a pipe; the test as a rule does not. So its
/// output is taken to go where it went the last time. Says whether that is somewhere else.
fn where_it_went(session: Session, words: &[OsString], trace: Option<&Trace>) -> (Session, bool) {
    let was = |connection: &Connection| {
        let (_, wanted) = test::output_entry(*connection);
        trace.is_some_and(|trace| trace.context_entries.iter().any(|(_, value)| *value == wanted))
    };
    if was(&session.context.connection) {
        return (session, false);
    }
    match Connection::all().find(was) {
        Some(connection) => {
            let context =
                InvocationContext { connection, size: connection.size(), ..session.context };
            let test = Test::of(words, &session.project, &context);
            (Session { context, test, ..session }, true)
        }
        None => (session, false),
    }
}

/// What was taken from the last run, since `tasting explain` runs in another shell or harness.
#[derive(Clone, Copy, Default)]
struct Assumed {
    variables: bool,
    signals: bool,
    descriptors: bool,
}

/// A harness such as CTest sets variables for its tests, make ignores two signals that a shell does
/// not, and terminals in editors leave descriptors open. Where that is all that is different here,
/// it is taken from the last run. Says what was necessary.
fn assume_surroundings(trace: &Trace, test: &mut Test) -> Assumed {
    let had = |entry: &(String, Hash)| trace.context_entries.contains(entry);
    let differs = |is_about: fn(&(String, Hash)) -> bool| {
        let of = |entries: &[(String, Hash)]| {
            entries.iter().filter(|entry| is_about(entry)).cloned().collect::<Vec<_>>()
        };
        of(&test.context_entries) != of(&trace.context_entries)
    };
    let (signals, descriptors) =
        (differs(test::is_about_signals), differs(test::is_about_descriptors));
    let is_other = |entry: &&(String, Hash)| {
        !test::is_about_signals(entry) && !test::is_about_descriptors(entry)
    };
    let others = |entries: &[(String, Hash)]| entries.iter().filter(is_other).count();
    let variables = others(&test.context_entries) < others(&trace.context_entries);
    let is_all = test.context_entries.iter().filter(is_other).all(had);
    if !is_all || !(variables || signals || descriptors) {
        return Assumed::default();
    }
    test.identity = trace.test;
    test.context_entries.clone_from(&trace.context_entries);
    Assumed { variables, signals, descriptors }
}

/// The same for standard input, unless it is a file or nothing at all, which somebody may have
/// meant. Says whether it was necessary.
fn assume_input(trace: &Trace, values: &mut Values) -> bool {
    let mut inputs = trace.used.iter().filter(|used| used.dependency.kind == DependencyKind::Input);
    inputs.next().is_some_and(|before| !values.has_certain_input() && values.assume(before))
}

impl Inspection {
    fn of(words: &[OsString], choice: Choice) -> Inspection {
        match choice {
            Choice::Run(Run { reason, .. }) | Choice::Plain(reason) => {
                Inspection::plain(words, reason)
            }
            Choice::Reuse(hit) => {
                let Outcome { origin, duration, exit, .. } = hit.outcome;
                let reused = Some(Reused { origin, duration, exit_code: exit_code(exit) });
                Inspection {
                    reused,
                    ..Inspection::plain(
                        words,
                        Reason::new("unchanged", "nothing that it uses has changed"),
                    )
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
            nearer: None,
            differences: Vec::new(),
            programs: Vec::new(),
            assumed: Vec::new(),
        }
    }

    /// Finds what is different from the nearest execution.
    fn compare(&mut self, session: &Session, trace: Trace, values: &mut Values) {
        let latest = Compared::with(session, trace, values);
        let is_the_reason =
            latest.differences.iter().any(|difference| difference.reason == self.reason);
        let nearer = if is_the_reason { nearest::than(&latest, session, values) } else { None };
        if let Some(nearer) = &nearer {
            let first = nearer.differences.first().map(|difference| difference.reason.clone());
            self.reason = first.unwrap_or_else(|| {
                Reason::new("forgotten", "its result is not in the store any more")
            });
            self.nearer = Some(Latest::of(&nearer.trace));
        }
        let compared = nearer.unwrap_or(latest);
        (self.differences, self.programs) = (compared.differences, compared.programs);
    }
}

impl Latest {
    fn of(trace: &Trace) -> Latest {
        Latest {
            origin: trace.origin.clone(),
            exit_code: trace.exit_code,
            refusals: trace.refusals.clone(),
        }
    }
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

fn latest_use(
    project: &Project,
    path: &Path,
    store: &Arc<FileStore>,
    settings: &Settings,
) -> Option<BinaryInspection> {
    let place = project.place(path);
    let blob = |name: Hash| store.blob(name).ok().flatten();
    let LastUse { argv, trace } =
        LastUse::from_bytes(&blob(last_use_name(project, &place))?).ok()?;
    let trace = latest::of(&**store, trace)?;
    let dependency_set = trace.dependency_set();
    let contents = Contents::new(Arc::new(StoreMemory(store.clone())));
    let modules = ModuleCache::default();
    let mut values = Values::new(project, settings, &**store, contents, Input::Given, &modules);
    let now = values.now(&dependency_set);
    let is_meant = |Dependency { kind, place: program, libraries, .. }: &Dependency| {
        let is_file_of =
            |library: &PortablePath| project.library_path(library).as_deref() == Some(path);
        *kind == DependencyKind::Program && (*program == place || libraries.iter().any(is_file_of))
    };
    let mut programs =
        trace.used.iter().zip(now).filter(|(used, _)| is_meant(&used.dependency)).peekable();
    programs.peek()?;
    let changed = programs.find(|(used, now)| used.value != *now);
    let changed = changed.map(|(used, _)| builds(project, &**store, used, &mut values));
    Some(BinaryInspection { argv, latest: Latest::of(&trace), changed })
}
