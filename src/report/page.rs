//! The page of `tasting report` and `tasting history -o`: one file, with nothing loaded from
//! elsewhere.
//!
//! In: commits and tests, with what became of each ([`PageContent`]). Out: HTML. What does not fit on a
//! screen (the matrix) is drawn by a script from data in the page; everything else is there without
//! it. All escaping is maud's and serde's.

mod data;

use super::history::costs::{Caused, Costs};
use super::history::troubles::{self, Trouble};
use super::history::{Commit, History, Row, Test, short};
use super::units::{counted, duration, share};
use crate::model::{Granularities, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};
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
    let costs = Costs::of(content.history);
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
                    @if !content.compares { (sources(&costs)) }
                    (by_cost(content, &costs))
                    (changes(&costs))
                    (troubles(content.history))
                }
                script type="application/json" id="data" { (PreEscaped(data)) }
                script { (PreEscaped(concat!(include_str!("page/matrix.js"), include_str!("page/page.js")))) }
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
            div.figure { b { (reused) } span { (if content.compares || content.history.is_shadow() { "would have been reused" } else { "reused" }) } }
            div.figure {
                b { (duration(sums.saved_ms.executed)) }
                span { "saved of " (duration(sums.total_ms)) }
            }
            @if content.compares || content.history.is_shadow() {
                div class=(missed) { b { (sums.missed) } span { "failures would have been missed" } }
            }
            @if content.compares { div.figure { b { (sums.commits) } span { "commits, " (sums.not_built) " not built" } } }
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
                label { "Show " select id="state" {
                    option value="" { "all tests" }
                    @for (state, _) in &states[1..] { option value=(state) { "tests that " (that(state)) } }
                } }
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

/// Said of tests with a cell in that state.
fn that(state: &str) -> &'static str {
    match state {
        "ran" => "ran",
        "new" => "were new",
        "failed" => "failed",
        "unstable" => "were unstable",
        _ => "were missed",
    }
}

fn granularities(history: &History) -> Markup {
    let sums = &history.summary;
    html! {
        section aria-label="Granularities" {
            h2 { "Granularities" }
            table aria-label="Granularities" {
                thead { tr {
                    th scope="col" { "changes are seen by" } th.number scope="col" { "would run" } td {}
                    th.number scope="col" { "time saved" } th.number scope="col" { "time left" }
                } }
                tbody { @for Row { name, ran, saved, left, percent: width } in sums.rows() {
                    tr {
                        th scope="row" { (name) }
                        td.number { (ran) }
                        td.bar { (bar(width, "would run")) }
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

fn by_cost(content: &PageContent, costs: &Costs) -> Markup {
    let (title, hint) = match content.compares {
        true => (
            "Tests by cost",
            "What the runs cost that would still have been made, and how often they would have been. \
             Tests at the top with a long bar are worth splitting.",
        ),
        false => ("Slowest tests", "Those that ran, then those whose result was reused."),
    };
    html! {
        section aria-label=(title) {
            h2 { (title) }
            p.hint { (hint) }
            table aria-label=(title) {
                thead { tr {
                    th scope="col" { "test" } th.number scope="col" { "still spent" } th.number scope="col" { "ran" }
                    th.number scope="col" { "of" } th scope="col" { "how often" } th.number scope="col" { "one run" }
                } }
                tbody { @for cost in costs.tests.iter().take(MOST_ROWS) {
                    tr { th scope="row" class="name" { div { (cost.name) } } td.number { (duration(cost.spent_ms)) } td.number { (cost.ran) }
                        td.number { (cost.all) } td.often { (bar(100.0 * cost.ran as f64 / cost.all.max(1) as f64, "of its runs")) }
                        td.number { (duration(cost.total_ms / cost.all.max(1))) } }
                } }
            }
        }
    }
}

/// A bar as long as a share of 100.
fn bar(width: f64, of: &str) -> Markup {
    html! {
        svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(format!("{width:.1}% {of}")) {
            rect class="ran" x="0" y="0" height="8" width=(format!("{width:.2}")) {}
        }
    }
}

/// Whose results were reused.
fn sources(costs: &Costs) -> Markup {
    html! {
        @if !costs.sources.is_empty() {
            section aria-label="Reused results" {
                h2 { "Reused results" }
                table aria-label="Reused results" {
                    thead { tr { th scope="col" { "why, and from which run" } th.number scope="col" { "tests" } th.number scope="col" { "took there" } } }
                    tbody { @for source in costs.sources.iter().take(MOST_ROWS) {
                        tr { th scope="row" class="name" { div { (source.reason) } } td.number { (source.tests) } td.number { (duration(source.saved_ms)) } }
                    } }
                }
            }
        }
    }
}

fn changes(Costs { functions, files, .. }: &Costs) -> Markup {
    let table = |what: &str, rows: &[Caused]| {
        html! {
            table aria-label=(format!("Changes of a {what}")) {
                thead { tr {
                    th scope="col" { (what) } th.number scope="col" { "test time" } th.number scope="col" { "runs" }
                    th.number scope="col" { "of all tests" }
                } }
                tbody { @for caused in rows.iter().take(MOST_ROWS) {
                    tr { th scope="row" class="name" { div { (caused.name) } } td.number { (duration(caused.spent_ms)) } td.number { (caused.runs) }
                        td.number { (format!("{:.0}%", caused.share * 100.0)) } }
                } }
            }
        }
    };
    html! {
        @if !functions.is_empty() || !files.is_empty() {
            section aria-label="Changes by cost" {
                h2 { "Changes by cost" }
                p.hint { "Functions and files whose changes made tests run, and the share of all tests that one of these changes ran. "
                    "A function that differs although its file is the same as before counts for the headers that have changed." }
                div.columns {
                    @if !functions.is_empty() { (table("function", functions)) }
                    @if !files.is_empty() { (table("file", files)) }
                }
            }
        }
    }
}

/// Tests that need somebody, and commits without tests.
fn troubles(history: &History) -> Markup {
    let troubles = troubles::of(history);
    let broken = history.commits.iter().filter(|commit| commit.error.is_some());
    html! {
        section aria-label="Troubles" {
            h2 { "What stands in the way" }
            @if troubles.is_empty() { p { "No unstable, disturbed or refused tests." } }
            @else { table aria-label="Troubles" {
                thead { tr {
                    th scope="col" { "test" } th scope="col" { "what" } th scope="col" { "why" } th scope="col" { "what to do" }
                    th.number scope="col" { "times" }
                } }
                tbody { @for Trouble { test, what, why, advice, times } in &troubles {
                    tr { th scope="row" class="name" { div { (test) } } td { (what) } td { (why) } td { (advice) } td.number { (times) } }
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

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
