//! The course of a suite: decides about all tests, restores what reused ones leave behind, has the
//! harness run the others, and decides again about tests that come behind one that ran.
//!
//! In: a harness. Out: for each test what was decided and how it ended; the harness's exit status.

use super::memory::Memory;
use super::start::HarnessOptions;
use super::{Contexts, End, Harness, HarnessRun, Listing, Output, SuiteError, TestCase};
use super::{order, progress};
use crate::model::{Decision, Exit, Step, Verdict, codes};
use crate::process::{Settings, sys};
use crate::run::batch::{self, Decided, Reason, Reusable, Start};
use crate::run::context::{Environment, InvocationContext};
use crate::store::{FileStore, Journal, Options as StoreOptions};
use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a suite is to be run.
#[derive(Clone)]
pub struct Course {
    pub output: Output,
    /// Keep what reused tests printed.
    pub keeps_output: bool,
    /// The names of the tests that are wanted; all if there are none.
    pub only: Option<Vec<String>>,
}

/// What came of a test.
#[derive(Clone, Debug)]
pub struct TestResult {
    pub name: String,
    pub argv: Vec<String>,
    /// `None` for one that never runs.
    pub verdict: Option<Verdict>,
    pub step: Option<Step>,
    pub reason: Reason,
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    pub saved_ms: u64,
    /// `None` before it has run.
    pub end: Option<End>,
    /// What it printed, if it was kept.
    pub output: Vec<u8>,
}

/// What came of a suite.
pub struct SuiteRun {
    pub tests: Vec<TestResult>,
    /// How the harness ended; `None` if it had nothing to run.
    pub status: Option<ExitStatus>,
    /// The exit code where the harness had nothing to run.
    pub code: i32,
}

/// A suite about which all is decided that can be.
pub struct Plan {
    pub tests: Vec<TestCase>,
    starts: Vec<Option<Start>>,
    places: Vec<usize>,
    fates: Vec<Fate>,
    memory: Option<Box<Memory>>,
}

/// What is to become of a test.
enum Fate {
    /// Nobody has asked for it.
    NotChosen,
    Disabled,
    Reused(Box<Reusable>, End),
    /// The harness starts it. It has to run, or it is for `tasting run` to decide when its turn
    /// comes.
    Started {
        reason: Reason,
        has_to_run: bool,
    },
}

impl Plan {
    /// Decides about the tests that a harness lists.
    pub fn new(listing: Listing, keeps_output: bool) -> Plan {
        Plan::among(listing, keeps_output, None, true)
    }

    /// The same for some tests, by their names; without decisions, if the harness decides when it
    /// starts them.
    fn among(listing: Listing, keeps_output: bool, only: Option<&[String]>, decides: bool) -> Plan {
        let Listing { tests, contexts, .. } = listing;
        let starts = match &contexts {
            _ if !decides => tests.iter().map(|_| None).collect(),
            Contexts::OfAll(context) => starts(&tests, context),
            Contexts::Remembered(memory) => memory.starts(&tests),
        };
        let some: Vec<usize> = (0..tests.len()).filter(|index| starts[*index].is_some()).collect();
        let decided = batch::decide(
            &some.iter().filter_map(|index| starts[*index].clone()).collect::<Vec<_>>(),
        );
        let mut decided: FxHashMap<usize, Decided> = some.into_iter().zip(decided).collect();
        let (memory, unknown) = match contexts {
            Contexts::OfAll(context) => {
                (None, context.err().unwrap_or_else(|| "its folder is not there".to_owned()))
            }
            Contexts::Remembered(memory) => {
                (Some(memory), "what its harness gives it is not known beforehand".to_owned())
            }
        };
        let only: Option<FxHashSet<&String>> = only.map(|names| names.iter().collect());
        let fates = tests.iter().enumerate().map(|(index, test)| {
            match (decided.remove(&index), &test.left_to_harness) {
                _ if only.as_ref().is_some_and(|names| !names.contains(&test.name)) => {
                    Fate::NotChosen
                }
                _ if test.is_disabled => Fate::Disabled,
                (Some(Decided::Reuse(reusable)), _) => {
                    judged(test, reusable, memory.as_deref(), keeps_output)
                }
                (Some(Decided::Run(reason)), _) => Fate::Started { reason, has_to_run: true },
                (None, Some(why)) => Fate::started("left-to-harness", why.clone()),
                (None, None) => Fate::started("left-to-harness", unknown.clone()),
            }
        });
        let mut plan =
            Plan { fates: fates.collect(), places: order::places(&tests), starts, tests, memory };
        while plan.settle() {}
        plan
    }

    /// Has the harness start what cannot be reused beforehand without others noticing. Says whether
    /// that was anything.
    fn settle(&mut self) -> bool {
        let mut by_place: Vec<usize> = (0..self.tests.len()).collect();
        by_place.sort_by_key(|index| self.places[*index]);
        let (mut started_before, mut touched, mut changed) =
            (false, FxHashSet::<PathBuf>::default(), false);
        for index in by_place {
            let why = match &self.fates[index] {
                Fate::Disabled | Fate::NotChosen => continue,
                Fate::Started { .. } => {
                    started_before = true;
                    continue;
                }
                Fate::Reused(reusable, _) if reusable.leaves_files() && started_before => {
                    "it leaves files behind, and is started behind another one that runs"
                }
                Fate::Reused(reusable, _)
                    if !touched.is_empty() && reusable.depends_on(&touched) =>
                {
                    "it uses files that another test leaves behind"
                }
                Fate::Reused(reusable, _) => {
                    touched.extend(reusable.left_behind());
                    continue;
                }
            };
            self.fates[index] = Fate::started("left-to-harness", why.to_owned());
            (started_before, changed) = (true, true);
        }
        let has_to_run: Vec<bool> = self
            .fates
            .iter()
            .map(|fate| matches!(fate, Fate::Started { has_to_run: true, .. }))
            .collect();
        let with_fixtures = order::with_fixtures(&self.tests, &has_to_run);
        for index in (0..self.tests.len()).filter(|index| with_fixtures[*index]) {
            if matches!(self.fates[index], Fate::Reused(..) | Fate::NotChosen) {
                self.fates[index] = Fate::started(
                    "left-to-harness",
                    "a test that runs has a fixture in common with it".to_owned(),
                );
                changed = true;
            }
        }
        changed
    }

    /// The tests that the harness has to start, by their places in the list.
    pub fn started(&self) -> Vec<usize> {
        (0..self.tests.len())
            .filter(|index| matches!(self.fates[*index], Fate::Started { .. }))
            .collect()
    }

    /// What would become of the tests.
    pub fn foreseen(&self) -> Vec<TestResult> {
        self.chosen().map(|index| self.result(index)).collect()
    }

    /// The tests that were asked for.
    fn chosen(&self) -> impl Iterator<Item = usize> {
        (0..self.tests.len()).filter(|index| !matches!(self.fates[*index], Fate::NotChosen))
    }

    fn result(&self, index: usize) -> TestResult {
        let test = &self.tests[index];
        let result = TestResult {
            name: test.name.clone(),
            argv: test.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            verdict: Some(Verdict::Executed),
            step: None,
            reason: Reason::new("left-to-harness", "its harness has it disabled"),
            exit_code: None,
            duration_ms: 0,
            saved_ms: 0,
            end: None,
            output: Vec::new(),
        };
        match &self.fates[index] {
            Fate::Disabled | Fate::NotChosen => {
                TestResult { verdict: None, end: Some(End::Skipped), ..result }
            }
            Fate::Started { reason, .. } => TestResult { reason: reason.clone(), ..result },
            Fate::Reused(reusable, end) => TestResult {
                verdict: Some(Verdict::Reused),
                step: Some(reusable.step()),
                reason: Reason::new("unchanged", "nothing that it uses has changed"),
                exit_code: Some(reusable.exit_code()),
                saved_ms: reusable.duration().as_millis() as u64,
                end: Some(*end),
                output: reusable.output().concat(),
                ..result
            },
        }
    }

    /// Puts back what reused tests leave behind. What cannot be put back is for the harness to run.
    fn replay(&mut self) {
        let mut by_place: Vec<usize> = (0..self.tests.len()).collect();
        by_place.sort_by_key(|index| self.places[*index]);
        for index in by_place {
            let Fate::Reused(reusable, _) = &self.fates[index] else { continue };
            if let Err(error) = reusable.put_back() {
                let text = format!("what the test leaves behind cannot be put back: {error}");
                self.fates[index] =
                    Fate::Started { reason: Reason::new("left-behind", text), has_to_run: true };
            }
        }
    }

    /// Reused tests that come behind one that was started, and cannot be reused any more.
    fn overtaken(&self, started: &[usize]) -> Vec<(usize, Reason)> {
        let Some(first) = started.iter().map(|index| self.places[*index]).min() else {
            return Vec::new();
        };
        let is_behind = |index: &usize| {
            self.places[*index] > first && matches!(self.fates[*index], Fate::Reused(..))
        };
        let behind: Vec<usize> = (0..self.tests.len()).filter(is_behind).collect();
        let decided = batch::decide(
            &behind.iter().filter_map(|index| self.starts[*index].clone()).collect::<Vec<_>>(),
        );
        let runs = |(index, decided): (usize, Decided)| match decided {
            Decided::Run(reason) => Some((index, reason)),
            Decided::Reuse(_) => None,
        };
        behind.into_iter().zip(decided).filter_map(runs).collect()
    }

    /// Writes to the log what was reused.
    fn log(&self) {
        let reused = self.fates.iter().filter_map(|fate| match fate {
            Fate::Reused(reusable, _) => Some((&**reusable, reusable.used())),
            _ => None,
        });
        batch::log(&reused.collect::<Vec<_>>());
    }
}

impl Fate {
    fn started(sort: &'static str, why: String) -> Fate {
        Fate::Started { reason: Reason::new(sort, why), has_to_run: false }
    }
}

/// The tests as the harness would start them; `None` for those that only it can decide about.
fn starts(tests: &[TestCase], context: &Result<InvocationContext, String>) -> Vec<Option<Start>> {
    let Ok(context) = context else { return tests.iter().map(|_| None).collect() };
    let mut contexts: FxHashMap<&[(OsString, Option<OsString>)], Arc<InvocationContext>> =
        FxHashMap::default();
    let mut folders: FxHashMap<&PathBuf, Option<PathBuf>> = FxHashMap::default();
    let mut start = |test| -> Option<Start> {
        let TestCase { words, working, changes, options, .. }: &TestCase = test;
        if test.left_to_harness.is_some() || test.is_disabled {
            return None;
        }
        let working = folders
            .entry(working)
            .or_insert_with(|| std::fs::canonicalize(working).ok())
            .clone()?;
        let context =
            contexts.entry(changes).or_insert_with(|| Arc::new(changed(context, changes))).clone();
        Some(Start { words: words.clone(), working, context, options: *options })
    };
    tests.iter().map(&mut start).collect()
}

fn changed(
    context: &InvocationContext,
    changes: &[(OsString, Option<OsString>)],
) -> InvocationContext {
    let mut environment = Environment::clone(&context.environment);
    for (name, value) in changes {
        match value {
            Some(value) => environment.set(name, value),
            None => environment.unset(name),
        }
    }
    context.with_environment(Arc::new(environment))
}

/// A failure is for the harness to tell, with what was printed.
fn judged(
    test: &TestCase,
    mut reusable: Box<Reusable>,
    memory: Option<&Memory>,
    keeps_output: bool,
) -> Fate {
    let end = match memory {
        Some(memory) => memory.judgement(test, &reusable),
        None => judged_by_properties(test, &reusable),
    };
    if !keeps_output {
        reusable.drop_output();
    }
    match end {
        Some(end) => Fate::Reused(reusable, end),
        None => Fate::started(
            "failed-before",
            "it fails, or its harness has not judged this result yet".to_owned(),
        ),
    }
}

/// What the harness makes of an outcome, by what it says of the test.
fn judged_by_properties(test: &TestCase, reusable: &Reusable) -> Option<End> {
    let prints = |text: &str| {
        reusable.output().iter().any(|output| memmem::find(output, text.as_bytes()).is_some())
    };
    match reusable.exit() {
        Exit::Code(code) if test.skip_code == Some(code) => Some(End::Skipped),
        Exit::Code(_) if test.skip_text.is_some_and(prints) => Some(End::Skipped),
        Exit::Code(code) if (code == 0) != test.is_meant_to_fail => Some(End::Passed),
        _ => None,
    }
}

/// Runs a suite.
pub fn run(harness: &dyn Harness, course: Course) -> Result<SuiteRun, SuiteError> {
    // Asked for before signals are caught.
    let _ = sys::given_signals();
    sys::survive_file_size_limit();
    let begin = now();
    progress::show("asking which tests there are …");
    let listing = harness.list(course.output);
    progress::clear();
    let listing = listing?;
    if listing.tests.is_empty() {
        let status = harness.run_all(HarnessOptions { output: course.output, notes: None })?;
        return Ok(SuiteRun { tests: Vec::new(), status: Some(status), code: 0 });
    }
    let decides = !listing.runs_all;
    progress::show(&format!("deciding about {} tests …", listing.tests.len()));
    let mut plan = Plan::among(listing, course.keeps_output, course.only.as_deref(), decides);
    let notes = plan.memory.as_ref().map(|memory| memory.notes().to_owned());
    let options = HarnessOptions { output: course.output, notes: notes.as_deref() };
    plan.replay();
    progress::clear();
    let mut ends: FxHashMap<usize, End> = FxHashMap::default();
    let mut status: Option<ExitStatus> = None;
    let mut started = plan.started();
    while !started.is_empty() {
        let HarnessRun { status: ended, ends: found } =
            harness.run(&plan.tests, &started, options)?;
        ends.extend(found);
        let is_first_failure = status.is_none_or(|status| status.success());
        status = if is_first_failure { Some(ended) } else { status };
        if ended.code().is_none() || sys::survived_signal().is_some() {
            break;
        }
        let overtaken = plan.overtaken(&started);
        started = overtaken.iter().map(|(index, _)| *index).collect();
        for (index, reason) in overtaken {
            plan.fates[index] = Fate::Started { reason, has_to_run: true };
        }
    }
    plan.log();
    let is_good = status.is_none_or(|status| status.success());
    let results = concluded(&plan, &ends, is_good, begin);
    if let Some(memory) = &mut plan.memory {
        let ends = results.iter().filter_map(|(index, result)| Some((*index, result.end?)));
        memory.learn(&plan.tests, &ends.collect());
    }
    let tests: Vec<TestResult> = results.into_iter().map(|(_, result)| result).collect();
    let has_failed = tests.iter().any(|test| matches!(test.end, Some(End::Failed | End::NotRun)));
    let code = if has_failed { harness.failure_code() } else { 0 };
    Ok(SuiteRun { tests, status, code })
}

/// What became of the tests, by what the harness and the log say; else by whether the harness is
/// content with all that it started.
fn concluded(
    plan: &Plan,
    ends: &FxHashMap<usize, End>,
    is_good: bool,
    begin: u64,
) -> Vec<(usize, TestResult)> {
    let started = plan.started();
    let noted = plan
        .memory
        .as_ref()
        .filter(|_| is_good)
        .map(|memory| memory.noted(&plan.tests))
        .unwrap_or_default();
    let decisions = if started.is_empty() {
        FxHashMap::default()
    } else {
        decisions_since(begin, started.len())
    };
    let conclude = |index: usize| {
        let mut result = plan.result(index);
        if !matches!(plan.fates[index], Fate::Started { .. }) {
            return result;
        }
        let folder = std::fs::canonicalize(&plan.tests[index].working).unwrap_or_default();
        let decision = decisions.get(&(result.argv.clone(), folder.to_string_lossy().into_owned()));
        if let Some(decision) = decision {
            result.take(decision);
        }
        let by_code =
            |decision: &Decision| if decision.exit_code == 0 { End::Passed } else { End::Failed };
        let end = ends.get(&index).copied().or(decision.map(by_code));
        let is_noted = || noted.contains(&index).then_some(End::Passed);
        result.end = Some(end.or_else(is_noted).unwrap_or(End::NotRun));
        result
    };
    plan.chosen().map(|index| (index, conclude(index))).collect()
}

impl TestResult {
    /// Takes over what `tasting run` says of the test.
    fn take(&mut self, decision: &Decision) {
        self.verdict = Some(decision.decision);
        self.step = decision.step;
        self.exit_code = Some(decision.exit_code);
        self.duration_ms = decision.duration_ms;
        self.saved_ms = decision.saved_ms;
        self.reason.text.clone_from(&decision.reason);
        let sort = codes::REASONS.iter().find(|sort| **sort == decision.sort);
        self.reason.sort = sort.copied().unwrap_or(self.reason.sort);
    }
}

/// The latest decision about each command since a time.
fn decisions_since(begin: u64, count: usize) -> FxHashMap<(Vec<String>, String), Decision> {
    let settings = Settings::from_environment();
    let Some(folder) = &settings.dir else { return FxHashMap::default() };
    let store = FileStore::new(folder, StoreOptions { read_only: true, ..StoreOptions::default() });
    // Others may log at the same time.
    let decisions = store.decisions(2 * count + 1000).unwrap_or_default();
    let since = decisions.into_iter().filter(|decision| decision.time >= begin);
    since.map(|decision| ((decision.argv.clone(), decision.cwd.clone()), decision)).collect()
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}
