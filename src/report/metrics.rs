//! The sums of `tasting stats` for other programs: metrics in the text format of Prometheus, a
//! summary in Markdown.

use super::stats::ShownStats;
use super::units::{duration, visible};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Metrics, each with its help and its type. Their names and labels stay.
pub fn write_prometheus(out: &mut impl Write, shown: &ShownStats) -> io::Result<()> {
    let stats = &shown.stats;
    let static_and_executed =
        [("static", stats.reused_static), ("executed", stats.reused_executed)];
    family(out, "tasting_reused_total", "counter", "Results that were reused, by step.")?;
    static_and_executed
        .iter()
        .try_for_each(|(step, n)| sample(out, "tasting_reused_total", &[("step", step)], *n))?;
    by_code(
        out,
        "tasting_executed_total",
        "Tests that ran, by the code of the reason.",
        &stats.reasons,
    )?;
    by_code(
        out,
        "tasting_not_kept_total",
        "Results that were not kept, by code.",
        &stats.not_kept,
    )?;
    let counters = [
        ("tasting_reused_shared_total", "Reused results of other machines.", stats.reused_shared),
        ("tasting_audits_total", "Reusable results that were computed again.", stats.audits),
        (
            "tasting_audits_missed_total",
            "Audits that found a missed dependency.",
            stats.audits_missed,
        ),
        (
            "tasting_audits_unstable_total",
            "Audits that found an unstable test.",
            stats.audits_unstable,
        ),
        (
            "tasting_disturbed_runs_total",
            "Runs that tracing or watching disturbed.",
            stats.disturbed_runs,
        ),
        ("tasting_objects_reused_total", "Objects that came from the cache.", shown.objects.reused),
        ("tasting_objects_compiled_total", "Objects that were compiled.", shown.objects.compiled),
    ];
    counters
        .iter()
        .try_for_each(|(name, help, value)| single(out, name, "counter", help, value))?;
    let seconds = |milliseconds: u64| format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    single(
        out,
        "tasting_saved_seconds_total",
        "counter",
        "Time that reuse has saved.",
        &seconds(stats.saved_ms),
    )?;
    let executed = seconds(stats.executed_ms);
    single(out, "tasting_executed_seconds_total", "counter", "Time that tests ran.", &executed)?;
    let gauges = [
        ("tasting_quarantine_tests", "Tests in quarantine.", shown.quarantine.len() as u64),
        (
            "tasting_disturbed_tests",
            "Tests that are not traced or not watched.",
            shown.disturbed.len() as u64,
        ),
        ("tasting_store_results", "Results in the store.", shown.store.results),
        ("tasting_store_bytes", "Bytes that the store takes.", shown.store.bytes),
        ("tasting_store_limit_bytes", "Bytes that the store may take.", shown.store.limit),
    ];
    gauges.iter().try_for_each(|(name, help, value)| single(out, name, "gauge", help, value))
}

fn by_code(
    out: &mut impl Write,
    name: &str,
    help: &str,
    counts: &BTreeMap<String, u64>,
) -> io::Result<()> {
    family(out, name, "counter", help)?;
    counts.iter().try_for_each(|(code, count)| sample(out, name, &[("code", code)], count))
}

fn single(
    out: &mut impl Write,
    name: &str,
    kind: &str,
    help: &str,
    value: &impl std::fmt::Display,
) -> io::Result<()> {
    family(out, name, kind, help)?;
    sample(out, name, &[], value)
}

fn family(out: &mut impl Write, name: &str, kind: &str, help: &str) -> io::Result<()> {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn sample(
    out: &mut impl Write,
    name: &str,
    labels: &[(&str, &str)],
    value: impl std::fmt::Display,
) -> io::Result<()> {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    writeln!(out, "{name}{labels} {value}")
}

/// What a build server shows of a job.
pub fn write_markdown(out: &mut impl Write, shown: &ShownStats) -> io::Result<()> {
    let stats = &shown.stats;
    let all = stats.reused + stats.executed;
    writeln!(out, "### Tasting: {} of {all} test results reused\n", stats.reused)?;
    writeln!(out, "| | |\n|---|---:|\n| time saved | {} |", duration(stats.saved_ms))?;
    writeln!(out, "| time of the tests that ran | {} |", duration(stats.executed_ms))?;
    if stats.reused_shared > 0 {
        writeln!(out, "| results of other machines | {} |", stats.reused_shared)?;
    }
    table(out, "why tests ran", &stats.reasons)?;
    table(out, "why results were not kept", &stats.not_kept)
}

fn table(out: &mut impl Write, title: &str, counts: &BTreeMap<String, u64>) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| {title} | runs |\n|---|---:|")?;
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    counts.iter().try_for_each(|(code, count)| {
        writeln!(out, "| {} | {count} |", visible(code).replace('|', "\\|"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stats;
    use crate::report::stats::{ShownObjects, ShownStore};

    fn shown() -> ShownStats {
        let stats = Stats {
            reused: 3,
            reused_static: 3,
            executed: 1,
            saved_ms: 1500,
            reasons: [("new".to_owned(), 1)].into(),
            not_kept: [("network".to_owned(), 1)].into(),
            ..Stats::default()
        };
        let store = ShownStore { path: "/s".into(), results: 1, bytes: 2, limit: 3 };
        ShownStats::new(stats, Vec::new(), Vec::new(), store, ShownObjects::default())
    }

    #[test]
    fn metrics_have_type_labels_and_value() {
        let mut text = Vec::new();
        write_prometheus(&mut text, &shown()).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "# TYPE tasting_reused_total counter\ntasting_reused_total{step=\"static\"} 3\n",
            "tasting_executed_total{code=\"new\"} 1\n",
            "tasting_not_kept_total{code=\"network\"} 1\n",
            "tasting_saved_seconds_total 1.500\n",
            "# TYPE tasting_store_bytes gauge\ntasting_store_bytes 2\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
    }

    #[test]
    fn a_summary_names_codes() {
        let mut text = Vec::new();
        write_markdown(&mut text, &shown()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("### Tasting: 3 of 4 test results reused\n"), "{text}");
        assert!(
            text.contains("| why results were not kept | runs |\n|---|---:|\n| network | 1 |\n"),
            "{text}"
        );
    }
}
