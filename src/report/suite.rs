//! The result of a suite: as JSON all tests and the sums, as text the sums, which tests ran and
//! why, and which failed.

use super::style::Style;
use super::units::{counted, duration, visible};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// More names of failed tests are not shown.
const MOST_NAMES: usize = 20;

/// One test.
#[derive(Clone, Debug, Serialize)]
pub struct ShownTest {
    pub name: String,
    pub argv: Vec<String>,
    /// `reused`, `executed` or `disabled`.
    pub decision: &'static str,
    /// `static` or `executed`.
    pub step: Option<&'static str>,
    pub reason: String,
    /// The sort of reason, which many tests share.
    pub sort: &'static str,
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    pub saved_ms: u64,
    /// `passed`, `failed`, `skipped` or `not run`; nothing before it has run.
    pub end: Option<&'static str>,
    /// What it printed, if that was kept.
    #[serde(skip)]
    pub output: Vec<u8>,
}

impl ShownTest {
    fn has_failed(&self) -> bool {
        matches!(self.end, Some("failed" | "not run"))
    }
}

/// The sums.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub total: u64,
    pub reused: u64,
    pub executed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub saved_ms: u64,
}

/// A suite.
#[derive(Clone, Debug, Serialize)]
pub struct ShownSuite {
    pub tests: Vec<ShownTest>,
    pub summary: Summary,
    /// Nothing was run: this is what would be done.
    pub dry_run: bool,
    /// Why nothing could be decided beforehand, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ShownSuite {
    pub fn new(tests: Vec<ShownTest>, dry_run: bool) -> ShownSuite {
        let count = |fits: &dyn Fn(&ShownTest) -> bool| {
            tests.iter().filter(|test| fits(test)).count() as u64
        };
        let summary = Summary {
            total: tests.len() as u64,
            reused: count(&|test| test.decision == "reused"),
            executed: count(&|test| test.decision == "executed"),
            failed: count(&ShownTest::has_failed),
            skipped: count(&|test| test.end == Some("skipped")),
            saved_ms: tests.iter().map(|test| test.saved_ms).sum(),
        };
        ShownSuite { tests, summary, dry_run, problem: None }
    }

    /// A suite that the harness ran without us.
    pub fn closed(problem: String) -> ShownSuite {
        ShownSuite { problem: Some(problem), ..ShownSuite::new(Vec::new(), false) }
    }
}

/// Writes the sums, what ran and why, and what failed.
pub fn write(out: &mut impl Write, suite: &ShownSuite, colour: bool) -> io::Result<()> {
    let Style { bold, dim, red, green, plain, .. } = Style::new(colour);
    if let Some(problem) = &suite.problem {
        return writeln!(out, "Nothing was decided beforehand: {}.", visible(problem));
    }
    let Summary { total, reused, executed, failed, skipped, saved_ms } = suite.summary;
    let runs = if suite.dry_run { "would run" } else { "ran" };
    let saved =
        if saved_ms == 0 { String::new() } else { format!(", {} saved", duration(saved_ms)) };
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    writeln!(
        out,
        "{bold}{}{plain}: {green}{reused} reused{plain}, {executed} {runs}, {}{failed} failed{plain}{skipped}{saved}",
        counted(total, "test"),
        if failed == 0 { "" } else { red }
    )?;
    let mut reasons: BTreeMap<&str, Vec<&ShownTest>> = BTreeMap::new();
    for test in suite.tests.iter().filter(|test| test.decision == "executed") {
        reasons.entry(test.sort).or_default().push(test);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    for (sort, tests) in reasons {
        let example =
            tests.first().map(|test| format!("{}: {}", visible(&test.name), visible(&test.reason)));
        writeln!(
            out,
            "  {:>5} {runs}  {sort}  {dim}({}){plain}",
            tests.len(),
            example.unwrap_or_default()
        )?;
    }
    for test in suite.tests.iter().filter(|test| test.has_failed()).take(MOST_NAMES) {
        writeln!(out, "  {red}{}{plain}  {}", test.end.unwrap_or_default(), visible(&test.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, decision: &'static str, end: &'static str) -> ShownTest {
        let (argv, step, exit_code) = (vec![name.to_owned()], None, Some(0));
        let (reason, sort) = ("it has not run before".to_owned(), "new");
        let saved_ms = if decision == "reused" { 1500 } else { 0 };
        let end = Some(end);
        ShownTest {
            name: name.into(),
            argv,
            decision,
            step,
            reason,
            sort,
            exit_code,
            duration_ms: 5,
            saved_ms,
            end,
            output: Vec::new(),
        }
    }

    #[test]
    fn sums_reasons_and_failures_are_shown() {
        let tests = vec![
            test("a", "reused", "passed"),
            test("b\n", "executed", "failed"),
            test("c", "executed", "passed"),
        ];
        let suite = ShownSuite::new(tests, false);
        let mut text = Vec::new();
        write(&mut text, &suite, false).unwrap();
        let expected = "3 tests: 1 reused, 2 ran, 1 failed, 1.5 s saved\n      2 ran  new  (b\\n: it has not run before)\n  failed  b\\n\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
