//! The sums as Markdown, for the pages of CI jobs.
//!
//! In: a history. Out: tables.

use super::costs::{Caused, Costs, Source, TestCost};
use super::troubles::{self, Trouble};
use super::{History, Miss, Row, Test, short};
use crate::model::Verdict;
use crate::report::units::{counted, duration, visible};
use std::cmp::Reverse;
use std::io::{self, Write};

/// How many tests are listed.
const MOST_TESTS: usize = 25;

/// How many rows the other tables have.
const MOST_ROWS: usize = 10;

/// Writes the sums over commits.
pub fn write_markdown(out: &mut impl Write, shown: &History) -> io::Result<()> {
    let sums = &shown.summary;
    writeln!(out, "### Tasting: {}\n", counted(sums.commits, "commit"))?;
    writeln!(out, "| granularity | would run | time saved | time left |\n|---|---:|---:|---:|")?;
    for Row { name, ran, saved, left, .. } in sums.rows() {
        writeln!(out, "| {name} | {ran} | {saved} | {left} |")?;
    }
    writeln!(
        out,
        "\n{} in {}; **{} would have been missed**; {} not built.",
        counted(sums.executions, "execution"),
        duration(sums.total_ms),
        counted(sums.missed, "failure"),
        counted(sums.not_built, "commit"),
    )?;
    let sentences = [
        sums.overhead.map(|overhead| overhead.sentence()),
        sums.times.map(|times| times.sentence()),
    ];
    sentences.iter().flatten().try_for_each(|sentence| writeln!(out, "\n{sentence}."))?;
    write_misses(out, &sums.misses)?;
    let costs = Costs::of(shown);
    write_tests(out, &costs)?;
    write_changes(out, "function", &costs.functions)?;
    write_changes(out, "file", &costs.files)?;
    write_troubles(out, shown)
}

fn write_misses(out: &mut impl Write, misses: &[Miss]) -> io::Result<()> {
    misses.iter().try_for_each(|Miss { sha, name, exit_code, .. }| {
        writeln!(out, "- missed at {}: {} (exit {exit_code})", short(sha), code(name))
    })
}

fn write_tests(out: &mut impl Write, costs: &Costs) -> io::Result<()> {
    if costs.tests.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| tests by cost | still spent | ran | of |\n|---|---:|---:|---:|")?;
    costs.tests.iter().take(MOST_ROWS).try_for_each(|cost| {
        let TestCost { name, ran, all, spent_ms, .. } = cost;
        writeln!(out, "| {} | {} | {ran} | {all} |", code(name), duration(*spent_ms))
    })
}

fn write_changes(out: &mut impl Write, what: &str, changes: &[Caused]) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| changed {what} | test time | runs | of all tests |\n|---|---:|---:|---:|")?;
    changes.iter().take(MOST_ROWS).try_for_each(|Caused { name, spent_ms, runs, share }| {
        let (name, time, share) = (code(name), duration(*spent_ms), share * 100.0);
        writeln!(out, "| {name} | {time} | {runs} | {share:.0}% |")
    })
}

fn write_troubles(out: &mut impl Write, shown: &History) -> io::Result<()> {
    let troubles = troubles::of(shown);
    if troubles.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| in the way | what | why | what to do |\n|---|---|---|---|")?;
    troubles.iter().take(MOST_TESTS).try_for_each(|Trouble { test, what, why, advice, .. }| {
        writeln!(out, "| {} | {what} | {} | {advice} |", code(test), prose(why))
    })
}

/// Writes what was decided about tests, each of which is there once: the sums, and the tests that
/// ran, the slowest first.
pub fn write_decisions_markdown(out: &mut impl Write, shown: &History) -> io::Result<()> {
    let sums = &shown.summary;
    let tests = counted(sums.executions, "test");
    let reused = if shown.is_shadow() { "would have been reused" } else { "reused" };
    writeln!(out, "### Tasting: {} of {tests} {reused}\n", sums.reused.executed)?;
    let (saved, total) = (duration(sums.saved_ms.executed), duration(sums.total_ms));
    writeln!(out, "{saved} saved of {total}; {}.", counted(sums.failures, "failure"))?;
    if sums.missed > 0 {
        writeln!(out, "**{} would have been missed**:\n", counted(sums.missed, "failure"))?;
        write_misses(out, &sums.misses)?;
    }
    let all = shown.commits.iter().flat_map(|commit| &commit.tests);
    let mut ran: Vec<&Test> =
        all.filter(|test| test.decision.executed == Verdict::Executed).collect();
    ran.sort_by_key(|test| Reverse(test.duration_ms));
    write_runs(out, &ran)?;
    write_sources(out, &Costs::of(shown))?;
    write_troubles(out, shown)
}

fn write_runs(out: &mut impl Write, ran: &[&Test]) -> io::Result<()> {
    if ran.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| ran | took | why |\n|---|---:|---|")?;
    for test in ran.iter().take(MOST_TESTS) {
        let end = if test.has_failed() { " **failed**" } else { "" };
        let reason = prose(&test.reason);
        writeln!(out, "| {}{end} | {} | {reason} |", code(&test.name), duration(test.duration_ms))?;
    }
    match ran.len().saturating_sub(MOST_TESTS) {
        0 => Ok(()),
        others => writeln!(out, "\n… and {others} more."),
    }
}

fn write_sources(out: &mut impl Write, costs: &Costs) -> io::Result<()> {
    if costs.sources.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| reused: why, and from which run | tests | took there |\n|---|---:|---:|")?;
    costs.sources.iter().take(MOST_ROWS).try_for_each(|Source { reason, tests, saved_ms }| {
        writeln!(out, "| {} | {tests} | {} |", prose(reason), duration(*saved_ms))
    })
}

/// A text in a table.
fn prose(text: &str) -> String {
    visible(text).replace('|', "\\|").replace('<', "&lt;")
}

/// A name that is shown as it is, in a table as well.
fn code(name: &str) -> String {
    format!("`{}`", visible(name).replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::super::Commit;
    use super::*;
    use crate::model::Granularities;

    #[test]
    fn tests_that_ran_are_listed_by_cost() {
        let test = |name: &str, executed, duration_ms| Test {
            name: name.into(),
            decision: Granularities { executed, ..Granularities::default() },
            exit_code: i32::from(name == "slow"),
            failed: None,
            reason: "because | <b>".into(),
            sort: "s".into(),
            duration_ms,
            audit: None,
            disturbed: (name == "quick|`").then(|| "|<i>".into()),
            ast: None,
            changed: Vec::new(),
        };
        let tests = vec![
            test("reused", Verdict::Reused, 30),
            test("quick|`", Verdict::Executed, 10),
            test("slow", Verdict::Executed, 60),
        ];
        let shown =
            History::new("p".into(), vec![Commit { built: true, tests, ..Commit::default() }]);
        let mut text = Vec::new();
        write_decisions_markdown(&mut text, &shown).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "### Tasting: 1 of 3 tests reused\n\n30 ms saved of 100 ms; 1 failure.\n\n\
             | ran | took | why |\n|---|---:|---|\n\
             | `slow` **failed** | 60 ms | because \\| &lt;b> |\n| `quick\\|'` | 10 ms | because \\| &lt;b> |\n\n\
             | reused: why, and from which run | tests | took there |\n|---|---:|---:|\n\
             | because \\| &lt;b> | 1 | 30 ms |\n\n\
             | in the way | what | why | what to do |\n|---|---|---|---|\n\
             | `quick\\|'` | disturbed | \\|&lt;i> | nothing: it runs without tracing; TASTING_NOTRACE=1 shows the same |\n"
        );
    }
}
