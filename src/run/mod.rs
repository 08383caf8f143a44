//! The runner hook: decide, replay, execute, record.
//!
//! command → `project` and `test` (its identity) → `choice` (compares earlier executions with the
//! current `values`) → `replay`, or `repeat` (until the result is not disturbed; `execute` under
//! watch, with `capture`; `disturbed`) → `record` (uses, `leftovers`) → the same exit status.
//!
//! What the harness asks for (`crate::harness`) comes in between. For explanations: `difference`
//! (from the latest execution), `inspect` (the decision without acting on it).
//!
//! If anything goes wrong with any of it, the test runs, and ends as it ends.

mod audit;
pub mod batch;
mod beneath;
pub mod capture;
mod choice;
pub mod config;
pub mod connection;
pub mod context;
pub mod cover;
mod difference;
mod disturbed;
pub mod environment;
mod execute;
mod granularity;
pub mod inspect;
mod latest;
mod leftovers;
mod mentions;
mod nearest;
mod output_file;
mod processor;
pub mod project;
mod random_names;
mod reason;
mod record;
mod repeat;
mod replay;
mod shadow;
pub mod sharing;
pub mod started;
pub mod test;
mod tracing;
pub mod untrusted;
pub mod values;

pub use self::audit::QUARANTINE_PASSES;
use self::audit::{AUDIT, SHADOW};
use self::choice::Choice;
use self::config::{Config, Share};
use self::context::InvocationContext;
use self::project::Project;
use self::reason::Reason;
use self::test::Test;
use crate::fingerprint::ModuleCache;
use crate::harness;
use crate::model::keys::KeyOf;
use crate::model::{Decision, Exit, Hash, Refusal, Shadow, Treatment, Verdict, codes};
use crate::observe::{self, Contents, Identity, Memory};
use crate::process::spawn;
use crate::process::{Settings, quiet, sys};
use crate::store::{FileStore, Journal, Layered, Options as StoreOptions, Store};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The option that keeps a run out of the log: it is no test of the user's.
pub const UNLOGGED: &str = "--unlogged";

/// What the command line says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub reuse_failures: bool,
    pub audit: Option<Share>,
    pub harness: harness::HarnessHints,
    pub is_unlogged: bool,
}

impl Options {
    /// What the command line leaves open is for the project to say.
    fn with(self, config: &Config) -> Options {
        let reuse_failures =
            self.reuse_failures || self.harness.reuse_failures || config.reuse_failures;
        Options { reuse_failures, audit: self.audit.or(config.audit), ..self }
    }
}

/// One run of one test.
pub(crate) struct Session {
    pub settings: Settings,
    pub store: Arc<Layered>,
    pub project: Arc<Project>,
    pub test: Test,
    pub context: InvocationContext,
    pub started: Instant,
    /// Binaries that are read while the test runs.
    pub modules: Arc<ModuleCache>,
    /// What would have been done about the test, once that is known in shadow mode.
    pub shadow: OnceLock<Shadow>,
    /// Its decision does not go to the log.
    pub is_unlogged: bool,
}

/// Runs a test, or does as if. Gives how it ended.
pub fn run(words: &[OsString], options: Options) -> Exit {
    let settings = Settings::from_environment();
    if settings.disable || harness::is_discovery(words) {
        become_test(words);
    }
    started::note(words, options);
    if sys::lacks_memory() || observe::is_watched() {
        become_test(words);
    }
    sys::keep_memory();
    sys::survive_file_size_limit();
    let Some(session) = Session::open(words, settings) else { become_test(words) };
    let session = match session {
        Ok(session) => Session { is_unlogged: options.is_unlogged, ..session },
        Err(unable) => return unable.run(words),
    };
    let exit = session.run(options.with(&session.project.config));
    sharing::send_behind(&session);
    exit
}

/// Becomes the test, with nothing of us left.
fn become_test(words: &[OsString]) -> ! {
    let error = execute::command(words).exec();
    spawn::fail_to_run(Path::new(split(words).0), &error)
}

fn split(words: &[OsString]) -> (&OsStr, &[OsString]) {
    words.split_first().map_or((OsStr::new(""), &[]), |(program, arguments)| (program, arguments))
}

/// A session that cannot decide anything, because the project's settings are not understood.
struct Unable {
    store: FileStore,
    working: PathBuf,
    reason: String,
}

impl Unable {
    fn run(&self, words: &[OsString]) -> Exit {
        let started = Instant::now();
        let exit = execute::plainly(words);
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let reason = Reason::new("settings", self.reason.clone());
        let _ = self.store.log(&executed(words, &self.working, &reason, exit, started.elapsed()));
        exit
    }
}

/// A decision to run.
fn executed(
    argv: Vec<String>,
    working: &Path,
    reason: &Reason,
    exit: Exit,
    duration: Duration,
) -> Decision {
    Decision {
        time: now(),
        argv,
        cwd: working.to_string_lossy().into_owned(),
        decision: Verdict::Executed,
        step: None,
        reason: reason.text.clone(),
        sort: reason.sort.to_owned(),
        exit_code: exit_code(exit),
        told_failure: false,
        duration_ms: duration.as_millis() as u64,
        saved_ms: 0,
        audit: None,
        shared: false,
        not_kept: None,
        disturbed: None,
        shadow: None,
    }
}

impl Session {
    /// Finds out which test it is. `None` where there is no folder for a store, or no folder to be
    /// in.
    fn open(words: &[OsString], settings: Settings) -> Option<Result<Session, Unable>> {
        let working = std::env::current_dir().ok()?;
        let store = local_store(&settings)?;
        let context = InvocationContext::own();
        let program = program_file(words, &working, None);
        let project =
            match Project::find_in(&context.environment, &working, program.as_deref(), &settings) {
                Ok(project) => project,
                Err(reason) => return Some(Err(Unable { store, working, reason })),
            };
        let far = sharing::remote(&settings, &project.config, &store);
        let store = Arc::new(Layered::new(store, far));
        Some(Ok(Session::of(words, Arc::new(project), context, store, settings)))
    }

    /// A test that belongs to a project.
    fn of(
        words: &[OsString],
        project: Arc<Project>,
        context: InvocationContext,
        store: Arc<Layered>,
        settings: Settings,
    ) -> Session {
        let test = Test::of(words, &project, &context);
        let (modules, shadow) = (Arc::new(modules(store.clone())), OnceLock::new());
        let (started, is_unlogged) = (Instant::now(), false);
        Session { settings, store, project, test, context, started, modules, shadow, is_unlogged }
    }

    fn run(&self, options: Options) -> Exit {
        let choice = quiet::attempt(&self.settings, "deciding", || choice::choose(self, options));
        let choice = choice.unwrap_or_else(|| Choice::Run(choice::Run::because(Reason::failure())));
        let foreseen = self.is_shadow().then(|| shadow::foresee(self, &choice)).flatten();
        let run = match choice {
            Choice::Plain(reason) => return self.run_plainly(&reason),
            Choice::Reuse(_) if self.is_shadow() && self.settings.readonly => {
                become_test(&self.test.words)
            }
            Choice::Reuse(hit) if self.is_shadow() => return self.audit(*hit, SHADOW, foreseen),
            Choice::Reuse(hit) if self.is_audited(options) => return self.audit(*hit, AUDIT, None),
            Choice::Reuse(hit) => match replay::replay(self, &hit, options.harness) {
                Ok(exit) => return exit,
                Err(error) => choice::Run::because(Reason::new(
                    "left-behind",
                    format!("what the test leaves behind cannot be put back: {error}"),
                )),
            },
            Choice::Run(run) => run,
        };
        if self.settings.readonly || sys::lacks_processes() {
            become_test(&self.test.words);
        }
        self.execute(run)
    }

    /// Runs the test without looking at it.
    fn run_plainly(&self, reason: &Reason) -> Exit {
        if self.settings.readonly {
            become_test(&self.test.words);
        }
        let exit = execute::plainly(&self.test.words);
        self.log(&executed(
            self.test.argv(),
            &self.project.working,
            reason,
            exit,
            self.started.elapsed(),
        ));
        exit
    }

    fn execute(&self, run: choice::Run) -> Exit {
        if let Some(disturbed) =
            disturbed::of(self).filter(|disturbed| disturbed.treatment == Treatment::Unwatched)
        {
            let exit = self.run_plainly(&Reason::new(
                "disturbed",
                format!("not watched: {}", disturbed.reason),
            ));
            if !is_good(exit) {
                disturbed::forget(self);
            }
            return exit;
        }
        let declared = record::declared(self);
        let ran = repeat::watched(self);
        let mut decision =
            executed(self.test.argv(), &self.project.working, &run.reason, ran.exit, ran.duration);
        decision.disturbed.clone_from(&ran.disturbed);
        decision.told_failure = harness::tells_of_failure(&ran.captured.texts[0]);
        let recorded = quiet::attempt(&self.settings, "remembering", || {
            record::record(self, &ran, &run, declared)
        });
        let failure = || {
            Refusal::of_run(
                "Tasting",
                (codes::STORE, "failed; TASTING_LOGFILE tells more, please report it"),
            )
        };
        if let Some(refusal) = recorded.unwrap_or_else(|| Some(failure())) {
            decision.reason = format!("{}; not kept: {}", decision.reason, refusal.with_code());
            decision.not_kept = Some(refusal.code.to_owned());
        }
        self.log(&decision);
        ran.exit
    }

    /// Whether every test runs, whatever could be reused.
    fn is_shadow(&self) -> bool {
        self.settings.shadow || self.project.config.shadow
    }

    fn log(&self, decision: &Decision) {
        if self.is_unlogged {
            return;
        }
        let decision = Decision { shadow: self.shadow.get().cloned(), ..decision.clone() };
        if let Err(error) = self.store.log(&decision) {
            self.settings.log(format_args!("the decision is not in the log: {error}"));
        }
    }

    /// The contents of files, with what is remembered of them.
    pub fn contents(&self) -> Contents {
        Contents::new(self.memory())
    }

    pub fn memory(&self) -> Arc<dyn Memory> {
        Arc::new(StoreMemory(self.store.clone()))
    }
}

/// Binaries that are read, with digests that the store knows.
fn modules(store: Arc<Layered>) -> ModuleCache {
    ModuleCache::new(move |identity, make| {
        values::digest(&*store, KeyOf::LoadedDigest, identity, make)
    })
}

/// The store as the memory of the watcher.
struct StoreMemory<S>(Arc<S>);

impl<S: Store> Memory for StoreMemory<S> {
    fn recall(&self, identity: &Identity) -> Option<Hash> {
        self.0.recall(identity.hash())
    }

    fn remember(&self, learned: &[(Identity, Hash)]) {
        learned.iter().for_each(|(identity, content)| self.0.remember(identity.hash(), *content));
    }
}

/// The store of this machine. `None` where there is no folder for one.
pub fn local_store(settings: &Settings) -> Option<FileStore> {
    let limit = settings.max_size.unwrap_or(crate::store::DEFAULT_LIMIT);
    Some(FileStore::new(
        settings.dir.as_ref()?,
        StoreOptions { limit, read_only: settings.readonly },
    ))
}

/// The file of a command's program, for the sake of the folder that it is in. It is looked for in
/// this search path, or in that of this process.
fn program_file(
    words: &[OsString],
    working: &Path,
    search_path: Option<&OsStr>,
) -> Option<PathBuf> {
    let program = words.first()?;
    let path = match (program.as_encoded_bytes().contains(&b'/'), search_path) {
        (true, _) => working.join(program),
        (false, None) => which::which(program).ok()?,
        (false, Some(folders)) => which::which_in(program, Some(folders), working).ok()?,
    };
    std::fs::canonicalize(path).ok()
}

/// As a shell shows it.
fn exit_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    }
}

/// Whether somebody who counts tests would count it as good.
fn is_good(exit: Exit) -> bool {
    exit.is_good()
}

/// The same, of a test that may tell of failures in its output.
fn is_success(exit: Exit, output: &[u8]) -> bool {
    is_good(exit) && !harness::tells_of_failure(output)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}

/// Ends this process as the test ended.
pub fn end(exit: Exit) -> ! {
    match exit {
        Exit::Code(code) => std::process::exit(code),
        Exit::Signal(signal) => {
            sys::die_by(signal);
            std::process::exit(128 + signal)
        }
    }
}
