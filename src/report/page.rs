//! The page of `tasting report` and `tasting history -o`: one file, with nothing loaded from
//! elsewhere.
//!
//! In: commits and tests, with what became of each ([`PageContent`]). Out: HTML. What does not fit on a
//! screen (the matrix) is drawn by a script from data in the page; everything else is there without
//! it. All escaping is maud's and serde's.

mod costs;
mod data;

use super::history::{Commit, History, Row, Test, short};
use super::units::{counted, duration, share};
use crate::model::{Audit, Granularities, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// How many rows the tables of tests and changes have.
const MOST_ROWS: usize = 25;

/// What a page shows.
pub struct PageContent<'c> {
    pub title: &'c str,
    pub history: &'c History,
    /// Whether the tests ran in shadow mode, so that granularities can be compared.
    pub compares: bool,
}

impl<'c> PageContent<'c> {
    /// The replay of a range of commits.
    pub fn of_history(history: &'c History) -> Self {
        PageContent { title: "Tasting: history", history, compares: true }
    }

    /// What was decided about tests, as commits with one test each time that it was decided.
    pub fn of_decisions(history: &'c History) -> Self {
        PageContent { title: "Tasting: tests", history, compares: false }
    }
}

/// Writes the page.
pub fn write(out: &mut impl Write, content: &PageContent) -> io::Result<()> {
    out.write_all(page(content)?.into_string().as_bytes())
}

fn page(content: &PageContent) -> io::Result<Markup> {
    let data = data::encode(content.history)?;
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                title { (content.title) " – " (content.history.project) }
                style { (PreEscaped(include_str!("page/page.css"))) }
            }
            body {
                header {
                    h1 { (content.title) }
                    p.project { (content.history.project) }
                }
                main {
                    (figures(content))
                    (misses(content.history))
                    (matrix(content))
                    @if content.compares { (granularities(content.history)) (over_commits(content.history)) }
                    @if !content.compares { (sources(content.history)) }
                    (by_cost(content))
                    (changes(content.history))
                    (troubles(content.history))
                }
                script type="application/json" id="data" { (PreEscaped(data)) }
                script { (PreEscaped(include_str!("page/page.js"))) }
            }
        }
    })
}

fn figures(content: &PageContent) -> Markup {
    let sums = &content.history.summary;
    let reused = share(sums.reused.executed, sums.executions).map_or("–".to_owned(), percent);
    let missed = if sums.missed > 0 { "figure bad" } else { "figure good" };
    html! {
        section aria-label="Summary" class="figures" {
            div.figure { b { (reused) } span { (if content.compares { "would have been reused" } else { "reused" }) } }
            div.figure {
                b { (duration(sums.saved_ms.executed)) }
                span { "saved of " (duration(sums.total_ms)) }
            }
            @if content.compares {
                div class=(missed) { b { (sums.missed) } span { "failures would have been missed" } }
                div.figure { b { (sums.commits) } span { "commits, " (sums.not_built) " not built" } }
            }
            div.figure { b { (sums.executions) } span { "executions, " (counted(sums.failures, "failure")) } }
            @if let Some(overhead) = sums.overhead {
                @if let Some(ratio) = super::history::ratio(overhead.build_ms, overhead.plain_build_ms) {
                    div.figure {
                        b { "× " (ratio) }
                        span { "build time (" (duration(overhead.build_ms)) " / " (duration(overhead.plain_build_ms)) ")" }
                    }
                }
                @if let Some(ratio) = super::history::ratio(overhead.test_ms, overhead.plain_test_ms) {
                    div.figure {
                        b { "× " (ratio) }
                        span { "all tests watched (" (duration(overhead.test_ms)) " / " (duration(overhead.plain_test_ms)) ")" }
                    }
                }
            }
            @if let Some(times) = sums.times {
                @if let Some(ratio) = super::history::ratio(times.reusing_ms, times.plain_ms) {
                    div.figure {
                        b { "× " (ratio) }
                        span { "test time with reuse (" (duration(times.reusing_ms)) " / " (duration(times.plain_ms)) ")" }
                    }
                }
            }
        }
    }
}

fn misses(history: &History) -> Markup {
    let misses = &history.summary.misses;
    html! {
        @if !misses.is_empty() {
            section.alarm aria-label="Missed failures" {
                h2 { "Missed failures" }
                p { "The result that would have been reused was another one. Something that these tests depend on is not seen: "
                    "look for it in " code { "tasting explain" } ", declare it in " code { "tasting.toml" } " (" code { "inputs" }
                    ", " code { "never-reuse" } "), and please report it." }
                ul { @for miss in misses.iter().take(MOST_ROWS) {
                    li { code { (short(&miss.sha)) } " " (miss.name) " (exit " (miss.exit_code) ")" }
                } }
            }
        }
    }
}

fn matrix(content: &PageContent) -> Markup {
    let states = [
        ("reused", "reused"),
        ("ran", "ran"),
        ("new", "new"),
        ("failed", "failed"),
        ("unstable", "unstable"),
        ("missed", "missed"),
    ];
    html! {
        section aria-label="Matrix" id="matrix-section" {
            h2 { (if content.compares { "Commits and tests" } else { "Tests" }) }
            div.controls {
                label { "Search " input type="search" id="search" placeholder="test name" autocomplete="off"; }
                @if content.compares {
                    label { "Granularity " select id="granularity" {
                        @for (number, name) in Granularities::<u64>::NAMES.iter().enumerate() {
                            option value=(number) selected[number == 3] { (name) }
                        }
                    } }
                }
                button type="button" id="smaller" aria-label="Smaller cells" { "−" }
                button type="button" id="larger" aria-label="Larger cells" { "+" }
                span.legend aria-hidden="true" { @for (class, name) in states { span { i class=(class) {} (name) } } }
                span id="shown" role="status" {}
            }
            div id="viewport" tabindex="0" role="application" aria-describedby="help"
                aria-label="Matrix of commits and tests; arrow keys move, Home and End jump" {
                canvas id="matrix" {}
                div id="spacer" {}
            }
            p id="help" class="hint" { "Arrow keys or a click choose a cell; its address can be copied as a link." }
            div id="details" role="region" aria-live="polite" aria-label="Chosen cell" {}
            noscript { p { "The matrix needs JavaScript; all sums below do not." } }
        }
    }
}

fn granularities(history: &History) -> Markup {
    let sums = &history.summary;
    html! {
        section aria-label="Granularities" {
            h2 { "Granularities" }
            table {
                thead { tr { th { "changes are seen by" } th.number { "would run" } th { } th.number { "time saved" } th.number { "time left" } } }
                tbody { @for Row { name, ran, saved, left, percent: width } in sums.rows() {
                    tr {
                        th scope="row" { (name) }
                        td.number { (ran) }
                        td.bar { svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(format!("{ran} would run")) {
                            rect class="ran" x="0" y="0" height="8" width=(format!("{width:.2}")) {}
                        } }
                        td.number { (saved) } td.number { (left) }
                    }
                } }
            }
        }
    }
}

/// The time that each commit's tests take, and what would have been left of it.
fn over_commits(history: &History) -> Markup {
    let spent = |commit: &Commit, counts: fn(&Test) -> bool| {
        commit.tests.iter().filter(|test| counts(test)).map(|test| test.duration_ms).sum::<u64>()
    };
    let is_run = |test: &Test| test.decision.executed == Verdict::Executed;
    let bars: Vec<(u64, u64)> = history
        .commits
        .iter()
        .map(|commit| (spent(commit, |_| true), spent(commit, is_run)))
        .collect();
    let most = bars.iter().map(|(all, _)| *all).max().unwrap_or(0).max(1) as f64;
    let height = |milliseconds: u64| format!("{:.2}", milliseconds as f64 * 100.0 / most);
    let top = |milliseconds: u64| format!("{:.2}", 100.0 - milliseconds as f64 * 100.0 / most);
    html! {
        section aria-label="Time over commits" {
            h2 { "Time over commits" }
            svg.time viewBox=(format!("0 0 {} 100", bars.len().max(1))) preserveAspectRatio="none" role="img"
                aria-label="Test time of each commit, oldest first; the filled part would still have been spent" {
                @for (number, (all, left)) in bars.iter().enumerate() {
                    g {
                        rect.saved x=(number) width="0.85" y=(top(*all)) height=(height(*all)) {}
                        rect.ran x=(number) width="0.85" y=(top(*left)) height=(height(*left)) {}
                        title { (short(&history.commits[number].sha)) ": " (duration(*left)) " of " (duration(*all)) }
                    }
                }
            }
            p.hint { "Oldest first; tallest: " (duration(most as u64)) ". " span.key.saved {} " saved " span.key.ran {} " still spent" }
        }
    }
}

fn by_cost(content: &PageContent) -> Markup {
    let tests = costs::of_tests(content.history);
    let (title, hint) = match content.compares {
        true => (
            "Tests by cost",
            "What the runs cost that would still have been made. Tests at the top that run often are \
             worth splitting.",
        ),
        false => ("Slowest tests", "Those that ran, then those whose result was reused."),
    };
    html! {
        section aria-label=(title) {
            h2 { (title) }
            p.hint { (hint) }
            table {
                thead { tr { th { "test" } th.number { "still spent" } th.number { "ran" } th.number { "of" } th.number { "one run" } } }
                tbody { @for (name, cost) in tests.iter().take(MOST_ROWS) {
                    tr { th scope="row" class="name" { div { (name) } } td.number { (duration(cost.spent_ms)) } td.number { (cost.ran) }
                        td.number { (cost.all) } td.number { (duration(cost.total_ms / cost.all.max(1))) } }
                } }
            }
        }
    }
}

/// Whose results were reused.
fn sources(history: &History) -> Markup {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let tests = history.commits.iter().flat_map(|commit| &commit.tests);
    for test in tests.filter(|test| test.decision.executed == Verdict::Reused) {
        let (count, saved) = found.entry(&test.reason).or_default();
        (*count, *saved) = (*count + 1, *saved + test.duration_ms);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    html! {
        @if !found.is_empty() {
            section aria-label="Reused results" {
                h2 { "Reused results" }
                table {
                    thead { tr { th { "why, and from which run" } th.number { "tests" } th.number { "took there" } } }
                    tbody { @for (reason, (count, saved)) in found.iter().take(MOST_ROWS) {
                        tr { th scope="row" class="name" { div { (reason) } } td.number { (count) } td.number { (duration(*saved)) } }
                    } }
                }
            }
        }
    }
}

fn changes(history: &History) -> Markup {
    let (functions, files) = (costs::of_functions(history), costs::of_files(history));
    let table = |what: &str, rows: &[(String, costs::Caused)]| {
        html! {
            table {
                thead { tr { th { (what) } th.number { "test time" } th.number { "runs" } th.number { "tests" } } }
                tbody { @for (name, caused) in rows.iter().take(MOST_ROWS) {
                    tr { th scope="row" class="name" { div { (name) } } td.number { (duration(caused.spent_ms)) } td.number { (caused.runs) }
                        td.number { (caused.share) } }
                } }
            }
        }
    };
    html! {
        @if !functions.is_empty() || !files.is_empty() {
            section aria-label="Changes by cost" {
                h2 { "Changes by cost" }
                p.hint { "Functions and files whose changes made tests run, and the share of all tests that they made run at once." }
                div.columns {
                    @if !functions.is_empty() { (table("function", &functions)) }
                    @if !files.is_empty() { (table("file", &files)) }
                }
            }
        }
    }
}

/// Tests that need somebody: why, and what can be done.
fn troubles(history: &History) -> Markup {
    let mut troubles: BTreeMap<(&str, &str), (String, u64)> = BTreeMap::new();
    for commit in &history.commits {
        for test in &commit.tests {
            for (kind, why) in trouble(test) {
                troubles.entry((kind, &test.name)).or_insert((why, 0)).1 += 1;
            }
        }
    }
    let broken = history.commits.iter().filter(|commit| commit.error.is_some());
    html! {
        section aria-label="Troubles" {
            h2 { "What stands in the way" }
            @if troubles.is_empty() { p { "No unstable, disturbed or refused tests." } }
            @else { table {
                thead { tr { th { "test" } th { "what" } th { "why" } th { "what to do" } th.number { "times" } } }
                tbody { @for ((kind, name), (why, times)) in troubles.iter().take(4 * MOST_ROWS) {
                    tr { th scope="row" class="name" { div { (name) } } td { (kind) } td { (why) } td { (advice(kind)) } td.number { (times) } }
                } }
            } }
            @for commit in broken.take(4 * MOST_ROWS) {
                details {
                    summary { code { (short(&commit.sha)) } " " (commit.subject) ": "
                        (commit.error.as_deref().and_then(|error| error.lines().next()).unwrap_or_default()) }
                    pre { (commit.error.as_deref().unwrap_or_default()) }
                }
            }
        }
    }
}

fn trouble(test: &Test) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if test.audit == Some(Audit::Unstable) {
        found.push(("unstable", test.reason.to_string()));
    }
    if &*test.sort == "quarantine" {
        found.push(("quarantine", test.reason.to_string()));
    }
    found.extend(test.disturbed.as_ref().map(|how| ("disturbed", how.to_string())));
    if let Some((_, refusal)) = test.reason.split_once("not kept: ") {
        found.push(("refused", refusal.to_owned()));
    } else if &*test.sort == "refused" {
        found.push(("refused", test.reason.to_string()));
    }
    found
}

fn advice(kind: &str) -> &'static str {
    match kind {
        "unstable" => "make it end the same way each time: it depends on time, chance or order",
        "quarantine" => "it is trusted again when it has passed often enough",
        "disturbed" => "nothing: it runs without tracing; TASTING_NOTRACE=1 shows the same",
        _ => "`tasting help CODE`, with the code in brackets, says what to do",
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
