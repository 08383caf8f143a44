//! Decides whether a test has to run, by comparing its earlier executions with the current state.
//!
//! In: the test. Out: an outcome to reuse, or a reason to run.

use super::difference::Difference;
use super::reason::Reason;
use super::values::Values;
use super::{Options, Session, difference, is_success, latest};
use crate::model::keys::KeyOf;
use crate::model::{
    Base, DependencyKind, DependencySet, Hash, Mark, Outcome, PortablePath, Step, Trace,
};
use crate::observe::inherited;
use crate::store::{Memo, Quarantine, Results};
use std::sync::Arc;

/// What is to be done.
pub enum Choice {
    Reuse(Box<Hit>),
    Run(Run),
    /// Run without being looked at.
    Plain(Reason),
}

/// An outcome that can be reused.
pub struct Hit {
    pub dependency_set: Arc<DependencySet>,
    pub key: Hash,
    pub outcome: Outcome,
    pub step: Step,
}

/// What is to be kept in mind when a test runs.
pub struct Run {
    pub reason: Reason,
    /// The same failed before: a pass now is one on a retry.
    pub failed_before: bool,
    pub mark: Option<Mark>,
}

impl Run {
    pub fn because(reason: Reason) -> Run {
        Run { reason, failed_before: false, mark: None }
    }
}

/// Decides about a test.
pub fn choose(session: &Session, options: Options) -> Choice {
    decide(session, options, &mut values(session).with_stamps())
}

/// What things are now; standard input is our own.
pub fn values(session: &Session) -> Values<'_> {
    let mut contents = session.contents();
    let (input, _) = inherited::standard_input(&mut contents);
    Values::new(
        &session.project,
        &session.settings,
        &*session.store,
        contents,
        input,
        &session.modules,
    )
}

/// Decides about a test, with these values of things.
pub fn decide(session: &Session, options: Options, values: &mut Values) -> Choice {
    if let Some(pattern) = session.project.config.never_reuses(&session.test.argv()) {
        return Choice::Plain(Reason::new(
            "never-reuse",
            format!("tasting.toml has it under never-reuse ({pattern})"),
        ));
    }
    if let Some(obstacle) = &session.context.obstacle {
        return Choice::Plain(Reason::new("output", obstacle));
    }
    let mark = match session.store.mark_of(session.test.identity) {
        Ok(mark) => mark,
        Err(error) => return Choice::Run(Run::because(Reason::new("store", error.to_string()))),
    };
    if session.settings.recache {
        let reason = Reason::new("recache", "TASTING_RECACHE asks for it");
        return Choice::Run(Run { mark, ..Run::because(reason) });
    }
    if options.harness.again {
        let reason = Reason::new(
            "failed-before",
            "CTest says that it failed, or may repeat it until it passes",
        );
        return Choice::Run(Run { mark, ..Run::because(reason) });
    }
    let dependency_sets: Vec<_> = match session.store.dependency_sets(session.test.identity) {
        Ok(dependency_sets) => dependency_sets.into_iter().map(Arc::new).collect(),
        Err(error) => {
            return Choice::Run(Run {
                mark,
                ..Run::because(Reason::new("store", error.to_string()))
            });
        }
    };
    let mut look = OutcomeSearch::new(session, options);
    let mut hit = dependency_sets.iter().find_map(|dependency_set| look.at(dependency_set, values));
    if hit.is_none() && mark.is_none() && !look.failed_before {
        hit = look.ask_remote(&dependency_sets, values);
    }
    values.remember();
    let OutcomeSearch { failed_before, problem, far, .. } = look;
    if let Some(mark) = mark {
        let text =
            format!("in quarantine: {}; {} more passes needed", mark.reason, mark.passes_left);
        return Choice::Run(Run {
            reason: Reason::new("quarantine", text),
            failed_before,
            mark: Some(mark),
        });
    }
    match (hit, problem) {
        (Some(hit), _) => Choice::Reuse(Box::new(hit)),
        (None, _) if failed_before => {
            let reason =
                Reason::new("failed-before", "the same failed before, and failures run again");
            Choice::Run(Run { reason, failed_before, mark: None })
        }
        (None, Some(problem)) => Choice::Run(Run::because(Reason::new("store", problem))),
        (None, None) => Choice::Run(Run::because(far.added_to(why(session, values)))),
    }
}

/// The search for an outcome.
struct OutcomeSearch<'a> {
    session: &'a Session,
    options: Options,
    failed_before: bool,
    problem: Option<String>,
    /// Keys that this machine has no outcome for.
    missing: Vec<Hash>,
    far: Far,
}

/// What came of asking further away.
#[derive(Default)]
struct Far {
    executions: usize,
    problem: Option<String>,
}

impl Far {
    fn added_to(self, reason: Reason) -> Reason {
        let text = match self.executions {
            0 => reason.text,
            _ if reason.sort != "new" => reason.text,
            1 => "it has not run here before, and the execution that is shared does not fit"
                .to_owned(),
            more => format!(
                "it has not run here before, and of {more} executions that are shared none fits"
            ),
        };
        let text = self.problem.map_or(text.clone(), |problem| format!("{text}; {problem}"));
        Reason { text, ..reason }
    }
}

impl<'a> OutcomeSearch<'a> {
    fn new(session: &'a Session, options: Options) -> Self {
        let (missing, far) = Default::default();
        OutcomeSearch { session, options, failed_before: false, problem: None, missing, far }
    }

    /// The same search in the store of the team. All keys that are known go there in one turn, with
    /// the question for more dependency sets; the keys of those in another.
    fn ask_remote(
        &mut self,
        dependency_sets: &[Arc<DependencySet>],
        values: &mut Values,
    ) -> Option<Hit> {
        let keys = std::mem::take(&mut self.missing);
        let mut asked = self.session.store.ask(Some(self.session.test.identity), &keys);
        self.far = Far { executions: asked.dependency_sets.len(), problem: asked.problem.take() };
        if asked.found
            && let Some(hit) =
                dependency_sets.iter().find_map(|dependency_set| self.at(dependency_set, values))
        {
            return Some(hit);
        }
        self.missing.clear();
        let found = asked.dependency_sets.into_iter().map(Arc::new);
        let others: Vec<_> = found
            .filter(|dependency_set| {
                !dependency_sets.contains(dependency_set) && self.is_sensible(dependency_set)
            })
            .collect();
        if let Some(hit) = others.iter().find_map(|dependency_set| self.at(dependency_set, values))
        {
            return Some(hit);
        }
        let keys = std::mem::take(&mut self.missing);
        if keys.is_empty() {
            return None;
        }
        let answer = self.session.store.ask(None, &keys);
        self.far.problem = answer.problem.or(self.far.problem.take());
        if answer.found {
            others.iter().find_map(|dependency_set| self.at(dependency_set, values))
        } else {
            None
        }
    }

    /// Whether a dependency set of somebody else's does not send us looking through the whole
    /// machine: patterns are the project's own.
    fn is_sensible(&self, dependency_set: &DependencySet) -> bool {
        let inputs = &self.session.project.config.inputs;
        let is_own = |place: &PortablePath| {
            place.base == Base::Root && inputs.iter().any(|own| own.as_bytes() == place.path)
        };
        let mut declared =
            dependency_set.dependencies.iter().filter(|used| used.kind == DependencyKind::Declared);
        declared.all(|used| is_own(&used.place))
    }

    fn at(&mut self, dependency_set: &Arc<DependencySet>, values: &mut Values) -> Option<Hit> {
        let (step, (key, outcome)) = match self.unchanged(dependency_set, values) {
            Some(found) => (Step::Static, found),
            None => (Step::Executed, self.unchanged_where_executed(dependency_set, values)?),
        };
        if !is_success(outcome.exit, &outcome.stdout) && !self.options.reuse_failures {
            self.failed_before = true;
            return None;
        }
        Some(Hit { dependency_set: dependency_set.clone(), key, outcome, step })
    }

    /// The outcome, if nothing that can be reached has changed.
    fn unchanged(
        &mut self,
        dependency_set: &DependencySet,
        values: &mut Values,
    ) -> Option<(Hash, Outcome)> {
        let test = self.session.test.identity;
        let stamp = values.stamp(test, dependency_set);
        if let Some(key) = stamp.and_then(|stamp| values.outcome_of(stamp))
            && let Some(found) = self.outcome(key)
        {
            return Some(found);
        }
        let found = self.unchanged_by_values(dependency_set, values);
        if let (Some((key, _)), Some(stamp)) = (&found, stamp) {
            values.remember_outcome(stamp, test, dependency_set, *key);
        }
        found
    }

    fn unchanged_by_values(
        &mut self,
        dependency_set: &DependencySet,
        values: &mut Values,
    ) -> Option<(Hash, Outcome)> {
        let test = self.session.test.identity;
        if dependency_set.is_narrowed() {
            let name = values.whole_key(test, dependency_set)?;
            let recall = |name| self.session.store.recall(name);
            let key = recall(name).or_else(|| recall(checkout_key(self.session, name)))?;
            return self.outcome(key);
        }
        let now = values.now(dependency_set);
        self.outcome_of(Values::key(&self.session.project, test, dependency_set, &now)?)
    }

    /// The outcome, if nothing has changed that was executed, or that what was executed can see.
    fn unchanged_where_executed(
        &mut self,
        dependency_set: &DependencySet,
        values: &mut Values,
    ) -> Option<(Hash, Outcome)> {
        if !dependency_set.is_narrowed() {
            return None;
        }
        let now = values.now(dependency_set);
        self.outcome_of(Values::key(
            &self.session.project,
            self.session.test.identity,
            dependency_set,
            &now,
        )?)
    }

    /// The outcome with a key, wherever it is of use.
    fn outcome_of(&mut self, key: Hash) -> Option<(Hash, Outcome)> {
        let found = self.outcome(key);
        if found.is_some() {
            return found;
        }
        let specific = checkout_key(self.session, key);
        let found = self.outcome(specific);
        if !self.session.project.config.sharing.same_path {
            // Nobody else has outcomes that name folders.
            self.missing.retain(|key| *key != specific);
        }
        found
    }

    fn outcome(&mut self, key: Hash) -> Option<(Hash, Outcome)> {
        match self.session.store.outcome(key) {
            Ok(Some(outcome)) => Some((key, outcome)),
            Ok(None) => {
                self.missing.push(key);
                None
            }
            Err(error) => {
                self.problem = Some(error.to_string());
                None
            }
        }
    }
}

/// The key of an outcome that names the folders of this checkout, and is of use here only.
pub fn checkout_key(session: &Session, key: Hash) -> Hash {
    let mut hasher = KeyOf::CheckoutOutcome.hasher();
    hasher.hash(key);
    session.project.hash_folders(&mut hasher);
    hasher.finish()
}

/// The latest execution of a test, under whatever invocation context.
pub fn trace(session: &Session) -> Option<Trace> {
    latest::of(&*session.store, latest::name(session.test.name))
}

/// What the latest execution itself left behind, or removed.
fn own_files(session: &Session, trace: &Trace) -> Vec<PortablePath> {
    let then: Vec<Hash> = trace.used.iter().map(|used| used.value).collect();
    let Some(key) = Values::key(&session.project, trace.test, &trace.dependency_set(), &then)
    else {
        return Vec::new();
    };
    let outcome = |key| session.store.outcome(key).ok().flatten();
    let found = outcome(key).or_else(|| outcome(checkout_key(session, key)));
    found.into_iter().flat_map(|outcome| outcome.files).map(|file| file.place).collect()
}

/// Whether a place is one of these, or a folder that one of them is in.
fn is_touched(place: &PortablePath, files: &[PortablePath]) -> bool {
    let folder = &place.path[..];
    let is_in = |file: &PortablePath| {
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| folder.is_empty() || matches!(rest, [] | [b'/', ..]))
    };
    files.iter().any(|file| file.base == place.base && is_in(file))
}

/// What is different from the latest execution, in a few words.
fn why(session: &Session, values: &mut Values) -> Reason {
    let Some(trace) = trace(session) else { return Reason::new("new", "it has not run before") };
    if let Some(refusal) = trace.refusals.first() {
        return Reason::new("refused", format!("the last run could not be kept: {refusal}"));
    }
    let different = match trace.test == session.test.identity {
        true => difference::of_dependencies(&session.project, &trace, values),
        false => difference::of_context(&session.test, &trace),
    };
    let own = own_files(session, &trace);
    let place = |difference: &Difference| Some(&trace.used.get(difference.used?)?.dependency.place);
    let is_own =
        |difference: &&Difference| place(difference).is_some_and(|place| is_touched(place, &own));
    match different.iter().find(|difference| !is_own(difference)).or(different.first()) {
        None => Reason::new("forgotten", "its result is not in the store any more"),
        Some(first) if is_own(&first) => Reason::new(
            "own-files",
            format!(
                "{} is as this test itself left it in its last run; the next run is reused, unless it leaves another name each time",
                first.subject
            ),
        ),
        Some(first) => first.reason.clone(),
    }
}
