//! What tests cost, and which changes made them run.
//!
//! In: a history. Out: tests, functions, files and reused results, the dearest first.

use super::{Changed, Commit, History, Test};
use crate::model::{Audit, Verdict};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// More of each are not kept: nobody reads on.
const MOST: usize = 100;

/// The figures of a page's tables.
#[derive(Debug, PartialEq, Serialize)]
pub struct Costs<'h> {
    pub tests: Vec<TestCost<'h>>,
    pub functions: Vec<Caused>,
    pub files: Vec<Caused>,
    pub sources: Vec<Source<'h>>,
}

/// What one test costs over all commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TestCost<'h> {
    pub name: &'h str,
    pub all: u64,
    pub ran: u64,
    pub total_ms: u64,
    /// Of the runs that would still have been made.
    pub spent_ms: u64,
}

/// What the changes of one function or file have caused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caused {
    pub name: String,
    pub spent_ms: u64,
    pub runs: u64,
    /// Of the tests, those that it made run at one commit, at the most.
    pub share: f64,
}

/// Whose results were reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source<'h> {
    pub reason: &'h str,
    pub tests: u64,
    pub saved_ms: u64,
}

impl Costs<'_> {
    /// Sums up.
    pub fn of(history: &History) -> Costs<'_> {
        Costs {
            tests: tests(history),
            functions: caused(history, functions_behind),
            files: caused(history, files_behind),
            sources: sources(history),
        }
    }
}

fn tests(history: &History) -> Vec<TestCost<'_>> {
    let mut costs: HashMap<&str, TestCost> = HashMap::new();
    for test in history.commits.iter().flat_map(|commit| &commit.tests) {
        let new = TestCost { name: &test.name, all: 0, ran: 0, total_ms: 0, spent_ms: 0 };
        let cost = costs.entry(&test.name).or_insert(new);
        cost.all += 1;
        cost.total_ms += test.duration_ms;
        if has_run(test) {
            cost.ran += 1;
            cost.spent_ms += test.duration_ms;
        }
    }
    let mut costs: Vec<TestCost> = costs.into_values().collect();
    let cost = |cost: &TestCost| (cost.spent_ms, cost.total_ms);
    costs.sort_by(|one, other| (cost(other), one.name).cmp(&(cost(one), other.name)));
    costs.truncate(MOST);
    costs
}

fn sources(history: &History) -> Vec<Source<'_>> {
    let mut found: BTreeMap<&str, Source> = BTreeMap::new();
    let tests = history.commits.iter().flat_map(|commit| &commit.tests);
    let is_true = |test: &&Test| matches!(test.audit, None | Some(Audit::Same));
    for test in tests.filter(|test| !has_run(test)).filter(is_true) {
        let new = Source { reason: &test.reason, tests: 0, saved_ms: 0 };
        let source = found.entry(&test.reason).or_insert(new);
        (source.tests, source.saved_ms) = (source.tests + 1, source.saved_ms + test.duration_ms);
    }
    let mut found: Vec<Source> = found.into_values().collect();
    found.sort_by_key(|source| std::cmp::Reverse(source.tests));
    found.truncate(MOST);
    found
}

/// A function or a datum, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place<'h> {
    name: &'h str,
    source: Option<&'h str>,
}

impl From<Place<'_>> for String {
    fn from(place: Place) -> String {
        match place.source {
            Some(source) => {
                format!("{} ({})", place.name, source.rsplit('/').next().unwrap_or(source))
            }
            None => place.name.to_owned(),
        }
    }
}

fn functions_behind<'h>(changed: &'h Changed, _: &'h Commit) -> Vec<Place<'h>> {
    let place = Place { name: &changed.name, source: changed.source.as_deref() };
    if changed.is_file() { Vec::new() } else { vec![place] }
}

/// The files whose change a test has noticed. A function that differs although its own file is as
/// it was before has been changed by a header.
fn files_behind<'h>(changed: &'h Changed, commit: &'h Commit) -> Vec<&'h str> {
    if changed.is_file() {
        return vec![&changed.name];
    }
    let those = |wanted: &dyn Fn(&str) -> bool| -> Vec<&str> {
        commit.files.iter().map(|file| &**file).filter(|file| wanted(file)).collect()
    };
    let own = those(&|file| changed.is_of(file));
    let headers = if own.is_empty() { those(&is_header) } else { Vec::new() };
    match (own.is_empty(), headers.is_empty()) {
        (false, _) => own,
        (true, false) => headers,
        (true, true) => changed.file_name().into_iter().collect(),
    }
}

/// Whether other files include it, by its name.
fn is_header(file: &str) -> bool {
    const ENDINGS: [&str; 13] =
        ["h", "hh", "hpp", "hxx", "h++", "H", "inc", "inl", "ipp", "tcc", "tpp", "txx", "def"];
    file.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

impl Changed {
    /// The file of a function, as far as debug information tells.
    fn file_name(&self) -> Option<&str> {
        let source: &str = self.source.as_deref()?;
        Some(source.rsplit_once(':').map_or(source, |(file, _)| file))
    }

    /// Whether a function comes from that file of the project: by its debug information, else by
    /// the name of the object (`src/a.c.o`, `lib.a(a.o)`).
    fn is_of(&self, file: &str) -> bool {
        if let Some(source) = self.file_name() {
            let source = source.trim_start_matches("./").trim_start_matches("../");
            let is_below = |path: &str, end: &str| {
                path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            };
            return is_below(source, file) || is_below(file, source);
        }
        let Some(object) = &self.object else { return false };
        let object = object.rsplit(['/', '(']).next().unwrap_or_default().trim_end_matches(')');
        let Some((object, _)) = object.rsplit_once('.') else { return false };
        let file = file.rsplit('/').next().unwrap_or_default();
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        !is_header(file) && (object == file || object == stem)
    }
}

fn caused<'h, C: Copy + Ord + Hash + Into<String>>(
    history: &'h History,
    causes: impl Fn(&'h Changed, &'h Commit) -> Vec<C>,
) -> Vec<Caused> {
    let mut all: HashMap<C, (u64, u64, f64)> = HashMap::new();
    for commit in &history.commits {
        let mut here: HashMap<C, u64> = HashMap::new();
        for test in commit.tests.iter().filter(|test| has_run(test)) {
            let found: BTreeSet<C> =
                test.changed.iter().flat_map(|changed| causes(changed, commit)).collect();
            for cause in found {
                let (spent_ms, runs, _) = all.entry(cause).or_default();
                (*spent_ms, *runs) = (*spent_ms + test.duration_ms, *runs + 1);
                *here.entry(cause).or_default() += 1;
            }
        }
        for (cause, runs) in here {
            let share = runs as f64 / commit.tests.len() as f64;
            all.entry(cause).and_modify(|(_, _, most)| *most = most.max(share));
        }
    }
    let mut all: Vec<(C, (u64, u64, f64))> = all.into_iter().collect();
    all.sort_by(|(name, (one, ..)), (other_name, (other, ..))| {
        (other, name).cmp(&(one, other_name))
    });
    all.truncate(MOST);
    let shown = |(name, (spent_ms, runs, share)): (C, _)| Caused {
        name: name.into(),
        spent_ms,
        runs,
        share,
    };
    all.into_iter().map(shown).collect()
}

fn has_run(test: &Test) -> bool {
    test.decision.executed == Verdict::Executed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(source: Option<&str>, object: Option<&str>) -> Changed {
        let text = |text: Option<&str>| text.map(Into::into);
        Changed { object: text(object), source: text(source), ..Changed::file("f") }
    }

    #[test]
    fn functions_belong_to_files_by_source_or_object() {
        for (source, object, file, is_of) in [
            (Some("/tree/src/a.c:7"), None, "src/a.c", true),
            (Some("../src/a.c:7"), None, "src/a.c", true),
            (Some("a.c:7"), None, "src/a.c", true),
            (Some("a.c:7"), None, "src/aa.c", false),
            (Some("/tree/src/a.h:7"), Some("a.c.o"), "src/a.c", false),
            (None, Some("CMakeFiles/t.dir/src/a.c.o"), "src/a.c", true),
            (None, Some("libt.a(a.o)"), "src/a.c", true),
            (None, Some("a.o"), "src/a.h", false),
            (None, Some("b.o"), "src/a.c", false),
            (None, None, "src/a.c", false),
        ] {
            assert_eq!(changed(source, object).is_of(file), is_of, "{source:?} {object:?} {file}");
        }
    }

    fn test(name: &str, is_run: bool, changes: &[Changed]) -> Test {
        let executed = if is_run { Verdict::Executed } else { Verdict::Reused };
        Test {
            name: name.into(),
            decision: crate::model::Granularities { executed, ..Default::default() },
            exit_code: 0,
            failed: None,
            reason: if is_run { "changed" } else { "unchanged since a" }.into(),
            sort: "s".into(),
            duration_ms: 10,
            audit: None,
            disturbed: None,
            ast: None,
            changed: changes.to_vec(),
        }
    }

    #[test]
    fn a_header_is_named_for_the_tests_that_it_runs() {
        let function = |name: &str, source: Option<&str>| Changed {
            what: "changed".into(),
            name: name.into(),
            ..changed(source, Some("b.c.o"))
        };
        let (known, unknown) = (function("f", Some("src/a.c:3")), function("g", None));
        let tests = vec![
            test("one", true, std::slice::from_ref(&known)),
            test("two", true, &[known, unknown.clone()]),
            test("three", true, &[unknown]),
            test("four", false, &[]),
        ];
        let of = |files: &[&str]| {
            let files = files.iter().map(|file| (*file).into()).collect();
            let commit = Commit { tests: tests.clone(), files, ..Commit::default() };
            let history = History::new("p".into(), vec![commit]);
            let costs = Costs::of(&history);
            assert_eq!(costs.sources[0].tests, 1);
            let named = |caused: &Caused| (caused.name.clone(), caused.runs, caused.share);
            costs.files.iter().map(named).collect::<Vec<_>>()
        };
        assert_eq!(of(&["README", "src/limits.h"]), [("src/limits.h".to_owned(), 3, 0.75)]);
        assert_eq!(
            of(&["src/a.c", "b.c"]),
            [("b.c".to_owned(), 2, 0.5), ("src/a.c".to_owned(), 2, 0.5)]
        );
        assert_eq!(of(&[]), [("src/a.c".to_owned(), 2, 0.5)]);
    }
}
