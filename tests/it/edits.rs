//! Every fixture of `fixtures/edits/`, built before and after its edit with every compiler,
//! optimisation and linker: the fingerprint must change, or stay, as the fixture says, and so must
//! the program's output.
//!
//! `TASTING_FIXTURE=name` takes only fixtures with that in their name,
//! `TASTING_FIXTURE_WITH="gcc -O2 mold"` only those builds, `TASTING_FIXTURE_FULL=1` every linker
//! for every way to compile, `TASTING_FIXTURE_PLAIN=1` builds with the real tools and checks the
//! programs' outputs alone, `TASTING_KEEP=1` keeps the folders.

mod build;
mod fixture;
pub mod matrix;
mod recipe;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use build::{Site, Tools};
use fixture::{Expect, Fixture};
use matrix::{Compilation, Compiler, Filter, Linker, Pattern, compilers, linkers};

use crate::workshop::{Outcome, Workshop};

/// The fixtures of the code level, and those of the AST level.
const EDITS: &str = "fixtures/edits";
const SYNTAX: &str = "fixtures/syntax";

#[test]
fn every_fixture_holds() {
    let fixtures = chosen_fixtures(EDITS);
    let tools = if set("TASTING_FIXTURE_PLAIN") { Tools::Plain } else { Tools::Shims };
    check_all(fixtures.iter().flat_map(|fixture| trials_of(fixture, "code", tools)).collect());
}

#[test]
fn every_fixture_holds_at_the_ast_level() {
    let fixtures = chosen_fixtures(SYNTAX);
    let tools = if set("TASTING_FIXTURE_PLAIN") { Tools::Plain } else { Tools::Shims };
    check_all(fixtures.iter().flat_map(|fixture| trials_of(fixture, "ast", tools)).collect());
}

/// What changes a program must show at the AST level as well. One build of each fixture does, with
/// other tools for the next one: `TASTING_FIXTURE_FULL=1` has them all.
#[test]
fn no_edit_is_missed_at_the_ast_level() {
    let mut fixtures = chosen_fixtures(EDITS);
    fixtures.retain(|fixture| fixture.expect == Expect::Change);
    let few = |(number, fixture)| {
        let mut trials = trials_of(fixture, "ast", Tools::Shims);
        if !build_filter().full && !trials.is_empty() {
            let mut trial = trials.swap_remove(number % trials.len());
            trial.linkers = vec![trial.linkers[number % trial.linkers.len()]];
            trials = vec![trial];
        }
        trials.iter_mut().for_each(|trial| trial.is_of_split_sections = true);
        trials
    };
    check_all(fixtures.iter().enumerate().flat_map(few).collect());
}

fn check_all(trials: Vec<Trial>) {
    let failures = in_parallel(&trials, Trial::failures);
    let links: usize = trials.iter().map(|trial| trial.linkers.len()).sum();
    let report = failures.concat();
    assert!(report.is_empty(), "{} of {links} builds fail:\n{}", report.len(), report.join("\n"));
    assert!(links > 0, "no fixture was chosen");
}

fn trials_of<'a>(fixture: &'a Fixture, level: &'static str, tools: Tools) -> Vec<Trial<'a>> {
    let filter = build_filter();
    let (compilers, available): (Vec<Compiler>, Vec<Linker>) =
        (compilers().collect(), linkers().collect());
    let mut trials = Vec::new();
    for compilation in Compilation::all_for(fixture)
        .into_iter()
        .filter(|compilation| compilers.contains(&compilation.compiler))
    {
        let mut linkers = compilation.linkers(fixture, &filter);
        linkers.retain(|linker| available.contains(linker));
        let is_of_split_sections = false;
        trials.push(Trial {
            fixture,
            compilation,
            linkers,
            level,
            tools,
            repeats: false,
            is_of_split_sections,
        });
    }
    trials.retain(|trial| !trial.linkers.is_empty());
    let repeated = fixture.name.len() % trials.len().max(1);
    let needed = fixture.expect == Expect::Change && tools == Tools::Shims;
    if let Some(trial) = trials.get_mut(repeated) {
        trial.repeats = needed;
    }
    trials
}

fn set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

fn chosen_fixtures(folder: &str) -> Vec<Fixture> {
    let wanted = std::env::var("TASTING_FIXTURE").unwrap_or_default();
    let mut fixtures = all_fixtures(folder);
    fixtures.retain(|fixture| fixture.name.contains(&wanted));
    assert!(!fixtures.is_empty(), "no fixture's name contains {wanted:?}");
    fixtures
}

fn all_fixtures(folder: &str) -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of fixtures is readable");
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("a folder entry is readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        Fixture::read(path).unwrap_or_else(|error| {
            panic!("{}: {error}", path.file_name().expect("named").display())
        })
    };
    paths.iter().map(read).collect()
}

fn build_filter() -> Filter {
    let words = std::env::var("TASTING_FIXTURE_WITH").unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    Filter {
        full: set("TASTING_FIXTURE_FULL") || !words.is_empty(),
        pattern: Pattern::all_of(&words),
    }
}

/// Works through the items on every core and gives the results back in the items' order.
fn in_parallel<Item: Sync, Answer: Send>(
    items: &[Item],
    work: impl Fn(&Item) -> Answer + Sync,
) -> Vec<Answer> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((at, item)) = take(&next, items) {
                    let answer = work(item);
                    answers.lock().expect("no worker has panicked").push((at, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no worker has panicked");
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn take<'a, Item>(next: &AtomicUsize, items: &'a [Item]) -> Option<(usize, &'a Item)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

/// One fixture compiled in one way, and linked by several linkers.
struct Trial<'a> {
    fixture: &'a Fixture,
    compilation: Compilation,
    linkers: Vec<Linker>,
    level: &'static str,
    tools: Tools,
    /// Whether the first version is built twice, see `repeat`.
    repeats: bool,
    /// The fixture may show nothing without the section flags, which are not given at this level.
    is_of_split_sections: bool,
}

impl Trial<'_> {
    fn failures(&self) -> Vec<String> {
        let workshop = Workshop::new();
        let before = self.site(&workshop, "before");
        let after = self.site(&workshop, "after");
        let again = self.site(&workshop, "again");
        if let Err(error) = self.compile(&before, &after, &again) {
            return vec![self.failure(&self.linkers[0], &format!("does not compile: {error}"))];
        }
        let mut failures = Vec::new();
        for linker in &self.linkers {
            let verdict = self
                .compare(&before, &after, linker)
                .and_then(|()| self.repeat(&before, &again, linker));
            failures.extend(verdict.err().map(|error| self.failure(linker, &error)));
        }
        failures
    }

    fn site<'b>(&'b self, workshop: &'b Workshop, folder: &'static str) -> Site<'b> {
        let Trial { fixture, compilation, level, tools, .. } = *self;
        Site { workshop, fixture, compilation, level, tools, folder }
    }

    fn failure(&self, linker: &Linker, error: &str) -> String {
        format!("{} [{}]: {error}", self.fixture.name, self.compilation.title(linker))
    }

    fn compile(&self, before: &Site, after: &Site, again: &Site) -> Result<(), String> {
        before.compile(&self.fixture.before)?;
        if self.fixture.keeps_program {
            // The program that is kept must be there first.
            after.compile(&self.fixture.before)?;
            self.linkers
                .iter()
                .try_for_each(|linker| after.link(&self.fixture.before, linker, false))?;
        }
        after.compile_edited(&self.fixture.before, &self.fixture.after, before)?;
        if self.repeats {
            again.compile(&self.fixture.before)?;
        }
        Ok(())
    }

    fn compare(&self, before: &Site, after: &Site, linker: &Linker) -> Result<(), String> {
        before.link(&self.fixture.before, linker, false)?;
        after.link(&self.fixture.after, linker, self.fixture.keeps_program)?;
        let (first, second) = (before.run(linker), after.run(linker));
        if self.is_of_split_sections && first == second {
            return Ok(());
        }
        check_runs(self.fixture.expect_run, &first, &second)?;
        if self.tools == Tools::Plain {
            return Ok(());
        }
        let (old, new) = (before.fingerprint(linker)?, after.fingerprint(linker)?);
        match (self.fixture.expect, self.is_excused(linker), old == new) {
            (Expect::Change, _, true) => {
                Err("MISSED CHANGE: expected another fingerprint, got the same".to_owned())
            }
            (Expect::Same, false, false) => {
                Err("expected the same fingerprint, got another".to_owned())
            }
            (Expect::Same, true, true) => {
                Err("`unless` is out of date: the fingerprint is the same".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn is_excused(&self, linker: &Linker) -> bool {
        self.fixture.unless.iter().any(|pattern| pattern.matches(&self.compilation, linker))
    }

    /// A changing fingerprint proves nothing where it changes by itself: the same sources, built in
    /// a third folder, must give the first fingerprint. Once for each fixture is enough, with other
    /// tools for the next one.
    fn repeat(&self, before: &Site, again: &Site, linker: &Linker) -> Result<(), String> {
        if !self.repeats {
            return Ok(());
        }
        again.link(&self.fixture.before, linker, false)?;
        if before.fingerprint(linker)? != again.fingerprint(linker)? {
            return Err("the same sources in another folder give another fingerprint".to_owned());
        }
        Ok(())
    }
}

fn check_runs(expect: Expect, before: &Outcome, after: &Outcome) -> Result<(), String> {
    if before.stdout.is_empty() {
        return Err(format!("the fixture is broken, the first program prints nothing: {before:?}"));
    }
    match (expect, before == after) {
        (Expect::Change, true) => {
            Err(format!("the fixture is broken, both programs do the same: {before:?}"))
        }
        (Expect::Same, false) => {
            Err(format!("the fixture is broken, the programs differ: {before:?} and {after:?}"))
        }
        _ => Ok(()),
    }
}

/// A misspelt exception would excuse nothing, a misspelt restriction everything.
#[test]
fn fixtures_name_only_tools_that_exist() {
    for fixture in [all_fixtures(EDITS), all_fixtures(SYNTAX)].into_iter().flatten() {
        for pattern in fixture.only.iter().chain(&fixture.unless) {
            assert_eq!(pattern.unknown_word(), None, "{}: an unknown word", fixture.name);
        }
        let filter = Filter { pattern: Pattern::all_of(&[]), full: false };
        let trials: usize = Compilation::all_for(&fixture)
            .iter()
            .map(|compilation| compilation.linkers(&fixture, &filter).len())
            .sum();
        assert!(trials > 0, "{}: its restrictions leave nothing to build", fixture.name);
    }
}

#[test]
fn malformed_fixtures_are_refused() {
    let parse = |lines: &str| {
        Fixture::parse("x", &format!("# About.\nexpect: same\n{lines}link: x.o\n-- x.c --\n"))
    };
    assert!(parse("").is_ok());
    assert!(parse("unless: clang\n").is_err_and(|error| error.contains("reason")));
    assert!(parse("unless: clang # it differs\n").is_ok());
    assert!(parse("linker: mold\n").is_err_and(|error| error.contains("linker")));
    assert!(parse("remove: y.c\n").is_err_and(|error| error.contains("y.c")));
}
