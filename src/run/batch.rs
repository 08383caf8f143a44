//! Decisions about many tests in one process, by the same code as for one test. Work that the tests
//! have in common is done once.
//!
//! In: tests as their harness would start them. Out: for each, the outcome that it can reuse, or
//! the reason why it runs.

pub use super::reason::Reason;

use super::choice::{self, Choice, Hit};
use super::context::{Environment, InvocationContext};
use super::project::Project;
use super::values::{OpenedPrograms, Values};
use super::{Options, Session, leftovers, local_store, program_file, replay, sharing};
use crate::harness;
use crate::model::{Decision, DependencyKind, Exit, Hash, Step};
use crate::observe::Input;
use crate::process::{Settings, quiet};
use crate::store::{Journal, Layered, Results};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A test, as it is about to be started.
#[derive(Clone)]
pub struct Start {
    pub words: Vec<OsString>,
    /// Absolute, and free of links.
    pub working: PathBuf,
    /// What the process that the harness starts for it can see. Tests with the same one share it.
    pub context: Arc<InvocationContext>,
    pub options: Options,
}

/// What is to be done about a test.
pub enum Decided {
    Reuse(Box<Reusable>),
    Run(Reason),
}

/// An outcome that can be reused.
pub struct Reusable {
    session: Session,
    hit: Hit,
}

/// What many tests have in common.
struct Common {
    project: Result<Arc<Project>, String>,
    settings: Arc<Settings>,
    store: Arc<Layered>,
}

/// Decides about tests. Nothing is put back and nothing is logged.
pub fn decide(starts: &[Start]) -> Vec<Decided> {
    let mut commons: Vec<Common> = Vec::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<(usize, PathBuf, Option<PathBuf>), usize> = FxHashMap::default();
    let mut stores = Stores::default();
    let mut decided: Vec<Option<Decided>> =
        starts.iter().map(|start| obstacle(start).map(Decided::Run)).collect();
    for (index, start) in
        starts.iter().enumerate().filter(|(index, _)| decided[*index].is_none()).collect::<Vec<_>>()
    {
        let environment = &start.context.environment;
        let search_path = environment.get("PATH");
        let program = program_file(
            &start.words,
            &start.working,
            Some(search_path.map_or("".as_ref(), |path| path)),
        );
        let folder = program.as_deref().and_then(Path::parent).map(Path::to_owned);
        let name = (Arc::as_ptr(environment) as usize, start.working.clone(), folder);
        let group = match known.get(&name) {
            Some(group) => *group,
            None => {
                let Some(common) = stores.common(environment, &start.working, program.as_deref())
                else {
                    let reason =
                        Reason::new("store", "there is no folder for it, or it is switched off");
                    decided[index] = Some(Decided::Run(reason));
                    continue;
                };
                commons.push(common);
                groups.push(Vec::new());
                known.insert(name, commons.len() - 1);
                commons.len() - 1
            }
        };
        groups[group].push(index);
    }
    let largest = starts.len().div_ceil(rayon::current_num_threads()).max(1);
    let chunks: Vec<(&Common, &[usize])> = commons
        .iter()
        .zip(&groups)
        .flat_map(|(common, group)| group.chunks(largest).map(move |c| (common, c)))
        .collect();
    let opened = OpenedPrograms::default();
    let decide = |(common, chunk): &(&Common, &[usize])| {
        common.decide(chunk.iter().map(|index| &starts[*index]), opened.clone())
    };
    let found: Vec<Vec<Decided>> = chunks.par_iter().map(decide).collect();
    for ((_, chunk), found) in chunks.iter().zip(found) {
        chunk.iter().zip(found).for_each(|(index, found)| decided[*index] = Some(found));
    }
    decided
        .into_iter()
        .map(|decided| decided.unwrap_or_else(|| Decided::Run(Reason::failure())))
        .collect()
}

/// Why nothing can be decided about a test from here.
fn obstacle(start: &Start) -> Option<Reason> {
    match () {
        () if start.context.is_plain => {
            Some(Reason::new("settings", "something else watches tests here"))
        }
        () if !start.context.has_empty_input => {
            Some(Reason::new("input-changed", "its standard input is known to it alone"))
        }
        () if harness::is_discovery(&start.words) => {
            Some(Reason::new("settings", "it lists the cases of a program"))
        }
        () => None,
    }
}

/// Stores and settings that were opened, by the environments that name them.
#[derive(Default)]
struct Stores {
    by_environment: FxHashMap<usize, Arc<Settings>>,
    opened: Vec<(Arc<Settings>, Option<crate::store::remote::location::Location>, Arc<Layered>)>,
}

impl Stores {
    /// `None` where there is no store, or nothing is to be decided.
    fn common(
        &mut self,
        environment: &Arc<Environment>,
        working: &Path,
        program: Option<&Path>,
    ) -> Option<Common> {
        let settings = self
            .by_environment
            .entry(Arc::as_ptr(environment) as usize)
            .or_insert_with(|| Arc::new(Settings::read(|name| environment.get(name).cloned())))
            .clone();
        if settings.disable {
            return None;
        }
        let project = Project::find_in(environment, working, program, &settings).map(Arc::new);
        let config = project.as_ref().map(|project| project.config.clone()).unwrap_or_default();
        let location = sharing::location(&settings, &config).ok().flatten();
        let same =
            self.opened.iter().find(|(known, place, _)| *known == settings && *place == location);
        let store = match same {
            Some((_, _, store)) => store.clone(),
            None => {
                let near = local_store(&settings)?;
                let far = sharing::remote(&settings, &config, &near);
                let store = Arc::new(Layered::new(near, far));
                self.opened.push((settings.clone(), location, store.clone()));
                store
            }
        };
        Some(Common { project, settings, store })
    }
}

impl Common {
    fn decide<'s>(
        &self,
        starts: impl ExactSizeIterator<Item = &'s Start>,
        opened: OpenedPrograms,
    ) -> Vec<Decided> {
        let count = starts.len();
        let failed = || (0..count).map(|_| Decided::Run(Reason::failure())).collect();
        let project = match &self.project {
            Ok(project) => project,
            Err(reason) => {
                return starts
                    .map(|_| Decided::Run(Reason::new("settings", reason.clone())))
                    .collect();
            }
        };
        let work = || {
            let contents =
                crate::observe::Contents::new(Arc::new(super::StoreMemory(self.store.clone())));
            let modules = super::modules(self.store.clone());
            let values = Values::new(
                project,
                &self.settings,
                &*self.store,
                contents,
                Input::Empty,
                &modules,
            );
            let mut values = values.with_opened(opened.clone());
            starts.map(|start| self.decide_one(project, start, &mut values)).collect()
        };
        quiet::attempt(&self.settings, "deciding", work).unwrap_or_else(failed)
    }

    fn decide_one(&self, project: &Arc<Project>, start: &Start, values: &mut Values) -> Decided {
        let options = start.options.with(&project.config);
        if self.settings.shadow
            || project.config.shadow
            || options.audit.is_some_and(|share| share.0 > 0.0)
        {
            return Decided::Run(Reason::new(
                "audit",
                "audits or shadow mode are asked for, and the harness is where they are done",
            ));
        }
        let context = InvocationContext::clone(&start.context);
        let settings = Settings::clone(&self.settings);
        let mut session =
            Session::of(&start.words, project.clone(), context, self.store.clone(), settings);
        match choice::decide(&session, options, values) {
            Choice::Plain(reason) | Choice::Run(choice::Run { reason, .. }) => Decided::Run(reason),
            Choice::Reuse(hit) => {
                // Nobody asks for them again, and there are many.
                session.test.context_entries = Vec::new();
                Decided::Reuse(Box::new(Reusable { session, hit: *hit }))
            }
        }
    }
}

impl Reusable {
    pub fn exit(&self) -> Exit {
        self.hit.outcome.exit
    }

    pub fn exit_code(&self) -> i32 {
        super::exit_code(self.exit())
    }

    /// The key of the outcome: a name for all that it follows from, unless parts of programs have
    /// been left out because they were not executed.
    pub fn key(&self) -> Option<Hash> {
        (!self.hit.dependency_set.is_narrowed()).then_some(self.hit.key)
    }

    pub fn step(&self) -> Step {
        self.hit.step
    }

    /// How long the test took when it ran.
    pub fn duration(&self) -> Duration {
        self.hit.outcome.duration
    }

    /// What it printed to standard output, and to standard error.
    pub fn output(&self) -> [&[u8]; 2] {
        [&self.hit.outcome.stdout, &self.hit.outcome.stderr]
    }

    /// Forgets what it printed, for those who do not show it.
    pub fn drop_output(&mut self) {
        (self.hit.outcome.stdout, self.hit.outcome.stderr) = Default::default();
    }

    /// What it leaves behind or removes, and the folders that these are in.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        let files =
            self.hit.outcome.files.iter().filter_map(|file| self.session.project.path(&file.place));
        files.flat_map(|path| [path.parent().map(Path::to_owned), Some(path)]).flatten().collect()
    }

    pub fn leaves_files(&self) -> bool {
        !self.hit.outcome.files.is_empty()
    }

    /// Whether it depends on one of these paths.
    pub fn depends_on(&self, paths: &FxHashSet<PathBuf>) -> bool {
        let Session { project, .. } = &self.session;
        let by_existence =
            |kind| matches!(kind, DependencyKind::Exists | DependencyKind::Attributes);
        self.hit.dependency_set.dependencies.iter().any(|used| {
            used.kind == DependencyKind::Declared
                || project.path(&used.place).is_some_and(|path| {
                    // A folder is the same kind of thing, whatever is put into it.
                    paths.contains(&path) && !(by_existence(used.kind) && path.is_dir())
                })
        })
    }

    /// Puts back what it leaves behind. After an error the test has to run.
    pub fn put_back(&self) -> io::Result<()> {
        leftovers::put_back(&self.session.project, &self.hit.outcome, &self.hit.dependency_set)
    }

    /// Notes that the outcome was used. Gives the decision for the log.
    pub fn used(&self) -> Decision {
        let Reusable { session, hit } = self;
        session.store.used(session.test.identity, &hit.dependency_set, hit.key);
        replay::decision(session, hit, Duration::ZERO)
    }
}

/// Logs decisions, those of one store at once; has what is new sent to remote stores.
pub fn log(reused: &[(&Reusable, Decision)]) {
    let mut stores: Vec<(&Session, Vec<Decision>)> = Vec::new();
    for (reusable, decision) in reused {
        let session = &reusable.session;
        match stores.iter_mut().find(|(known, _)| Arc::ptr_eq(&known.store, &session.store)) {
            Some((_, decisions)) => decisions.push(decision.clone()),
            None => stores.push((session, vec![decision.clone()])),
        }
    }
    for (session, decisions) in stores {
        if let Err(error) = session.store.log_all(&decisions) {
            session.settings.log(format_args!("the decisions are not in the log: {error}"));
        }
        sharing::send_behind(session);
    }
}
