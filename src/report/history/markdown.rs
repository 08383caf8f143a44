//! The sums as Markdown, for the pages of CI jobs.
//!
//! In: a history. Out: tables.

use super::{History, Miss, Row, Test, short};
use crate::model::Verdict;
use crate::report::units::{counted, duration, visible};
use std::cmp::Reverse;
use std::io::{self, Write};

/// How many tests are listed.
const MOST_TESTS: usize = 25;

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
    for Miss { sha, name, exit_code, .. } in &sums.misses {
        writeln!(out, "- missed at {}: {} (exit {exit_code})", short(sha), code(name))?;
    }
    Ok(())
}

/// Writes what was decided about tests, each of which is there once: the sums, and the tests that
/// ran, the slowest first.
pub fn write_decisions_markdown(out: &mut impl Write, shown: &History) -> io::Result<()> {
    let sums = &shown.summary;
    let tests = counted(sums.executions, "test");
    writeln!(out, "### Tasting: {} of {tests} reused\n", sums.reused.executed)?;
    let (saved, total) = (duration(sums.saved_ms.executed), duration(sums.total_ms));
    writeln!(out, "{saved} saved of {total}; {}.", counted(sums.failures, "failure"))?;
    let all = shown.commits.iter().flat_map(|commit| &commit.tests);
    let mut ran: Vec<&Test> =
        all.filter(|test| test.decision.executed == Verdict::Executed).collect();
    if ran.is_empty() {
        return Ok(());
    }
    ran.sort_by_key(|test| Reverse(test.duration_ms));
    writeln!(out, "\n| ran | took | why |\n|---|---:|---|")?;
    for test in ran.iter().take(MOST_TESTS) {
        let end = if test.has_failed() { " **failed**" } else { "" };
        let reason = visible(&test.reason).replace('|', "\\|").replace('<', "&lt;");
        writeln!(out, "| {}{end} | {} | {reason} |", code(&test.name), duration(test.duration_ms))?;
    }
    match ran.len().saturating_sub(MOST_TESTS) {
        0 => Ok(()),
        others => writeln!(out, "\n… and {others} more."),
    }
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
            disturbed: None,
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
             | `slow` **failed** | 60 ms | because \\| &lt;b> |\n| `quick\\|'` | 10 ms | because \\| &lt;b> |\n"
        );
    }
}
