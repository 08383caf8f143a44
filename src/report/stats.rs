//! The sums over all decisions, for `tasting stats`.

use super::style::Style;
use super::units::{command, counted, duration, share, size, time, visible};
use crate::model::{Disturbed, Granularities, Mark, Stats, Treatment};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// All that `tasting stats` shows. The names are those of its JSON.
#[derive(Serialize)]
pub struct ShownStats {
    #[serde(flatten)]
    pub(super) stats: Stats,
    /// Of all decisions, those that reused a result; none without decisions.
    pub(super) share: Option<f64>,
    /// Of all audits, those that found a missed dependency; none without audits.
    pub(super) miss_rate: Option<f64>,
    pub(super) quarantine: Vec<ShownMark>,
    pub(super) disturbed: Vec<ShownDisturbed>,
    pub(super) store: ShownStore,
    pub(super) objects: ShownObjects,
    /// The binaries of the project at hand that are described as a whole.
    pub(super) whole: Vec<TakenWhole>,
}

/// A binary that is described as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenWhole {
    /// Its path below the project's root.
    pub binary: String,
    pub reason: String,
}

/// What the cache of objects takes, and how often it was of use.
#[derive(Default, Serialize)]
pub struct ShownObjects {
    pub reused: u64,
    /// How many of the reused ones came from other machines.
    pub shared: u64,
    pub compiled: u64,
    pub objects: u64,
    pub bytes: u64,
    pub limit: u64,
}

/// A test in quarantine.
#[derive(Serialize)]
pub(super) struct ShownMark {
    argv: Vec<String>,
    /// Milliseconds since 1970.
    since: u64,
    reason: String,
    passes_left: u32,
}

/// A test that tracing or watching disturbs.
#[derive(Serialize)]
pub(super) struct ShownDisturbed {
    argv: Vec<String>,
    /// Milliseconds since 1970.
    since: u64,
    reason: String,
    treatment: Treatment,
}

/// What the store takes.
#[derive(Serialize)]
pub struct ShownStore {
    pub path: String,
    pub results: u64,
    pub bytes: u64,
    pub limit: u64,
}

impl ShownStats {
    pub fn new(
        stats: Stats,
        marks: Vec<Mark>,
        disturbed: Vec<Disturbed>,
        store: ShownStore,
        objects: ShownObjects,
    ) -> Self {
        let quarantine = marks.into_iter().map(|mark| ShownMark {
            argv: mark.argv,
            since: mark.since,
            reason: mark.reason,
            passes_left: mark.passes_left,
        });
        ShownStats {
            share: share(stats.reused, stats.reused + stats.executed),
            miss_rate: share(stats.audits_missed, stats.audits),
            quarantine: quarantine.collect(),
            disturbed: disturbed.into_iter().map(shown_disturbed).collect(),
            store,
            objects,
            whole: Vec::new(),
            stats,
        }
    }

    /// The same with the binaries that are described as a whole.
    pub fn with_whole(self, whole: Vec<TakenWhole>) -> Self {
        ShownStats { whole, ..self }
    }
}

fn shown_disturbed(disturbed: Disturbed) -> ShownDisturbed {
    let Disturbed { argv, since, reason, treatment, .. } = disturbed;
    ShownDisturbed { argv, since, reason, treatment }
}

/// Writes the sums for people.
pub fn write(out: &mut impl Write, shown: &ShownStats, colour: bool) -> io::Result<()> {
    let style = Style::new(colour);
    let Style { bold, green, yellow, plain, .. } = style;
    let stats = &shown.stats;
    let all = counted(stats.reused + stats.executed, "run");
    let of_all =
        shown.share.map_or(String::new(), |share| format!(" of {all} ({})", percent(share)));
    writeln!(out, "{bold}reused{plain}      {green}{}{plain}{of_all}", stats.reused)?;
    if stats.reused_shared > 0 {
        writeln!(out, "            {} of other machines", stats.reused_shared)?;
    }
    writeln!(
        out,
        "{bold}executed{plain}    {yellow}{}{plain}, in {}",
        stats.executed,
        duration(stats.executed_ms)
    )?;
    counts(out, &stats.reasons)?;
    if !stats.not_kept.is_empty() {
        let all = stats.not_kept.values().sum::<u64>();
        writeln!(out, "{bold}not kept{plain}    {all} (`tasting help CODE` says what to do)")?;
        counts(out, &stats.not_kept)?;
    }
    writeln!(out, "{bold}time saved{plain}  {}", duration(stats.saved_ms))?;
    shadow(out, stats, style)?;
    audits(out, shown, style)?;
    quarantine(out, shown, style)?;
    disturbed(out, shown, style)?;
    let ShownStore { path, results, bytes, limit } = &shown.store;
    let part =
        share(*bytes, *limit).map_or(String::new(), |share| format!(" ({})", percent(share)));
    writeln!(
        out,
        "{bold}store{plain}       {} of {}{part}, {}, in {}",
        size(*bytes),
        size(*limit),
        counted(*results, "result"),
        visible(path)
    )?;
    objects(out, &shown.objects, style)?;
    shown.whole.iter().try_for_each(|TakenWhole { binary, reason }| {
        writeln!(out, "{yellow}whole{plain}       {}: {} [whole]", visible(binary), visible(reason))
    })
}

/// The cache of objects, where it was ever used.
fn objects(out: &mut impl Write, shown: &ShownObjects, style: Style) -> io::Result<()> {
    let Style { bold, green, plain, .. } = style;
    let ShownObjects { reused, shared, compiled, objects, bytes, limit } = shown;
    let all = reused + compiled;
    if all == 0 && *objects == 0 {
        return Ok(());
    }
    let of_all = share(*reused, all)
        .map_or(String::new(), |share| format!(" of {all} ({})", percent(share)));
    let kept = format!("{} of {}, {}", size(*bytes), size(*limit), counted(*objects, "object"));
    let of_others =
        if *shared > 0 { format!(", {shared} of other machines") } else { String::new() };
    writeln!(
        out,
        "{bold}objects{plain}     {green}{reused}{plain} reused{of_all}{of_others}; {kept}"
    )
}

/// How often each code was met, the most frequent first.
fn counts(out: &mut impl Write, counts: &BTreeMap<String, u64>) -> io::Result<()> {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let width = counts.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    for (code, count) in counts {
        writeln!(out, "            {count:>width$} {}", visible(code))?;
    }
    Ok(())
}

fn audits(out: &mut impl Write, shown: &ShownStats, style: Style) -> io::Result<()> {
    let Style { bold, red, plain, .. } = style;
    let stats = &shown.stats;
    let Some(miss_rate) = shown.miss_rate else {
        return writeln!(
            out,
            "{bold}audits{plain}      none, so no miss rate is known (tasting run --audit 5%)"
        );
    };
    let same =
        stats.audits - stats.audits_missed.saturating_add(stats.audits_unstable).min(stats.audits);
    let found = if stats.audits_missed > 0 { red } else { "" };
    let end = if found.is_empty() { "" } else { plain };
    writeln!(
        out,
        "{bold}audits{plain}      {}: {same} same, {} unstable, {found}{} missed{end}; measured miss rate {} ({} of {})",
        stats.audits,
        stats.audits_unstable,
        stats.audits_missed,
        percent(miss_rate),
        stats.audits_missed,
        stats.audits,
    )
}

/// What shadow mode would have saved, and whether it would have been right; nothing where no test
/// ran so.
fn shadow(out: &mut impl Write, stats: &Stats, style: Style) -> io::Result<()> {
    let Style { bold, red, plain, .. } = style;
    let Some(reused) = share(stats.shadow_reused.executed, stats.shadow_runs) else {
        return Ok(());
    };
    let (colour, end) = if stats.shadow_missed > 0 { (red, plain) } else { ("", "") };
    writeln!(
        out,
        "{bold}shadow{plain}      {} of {} would have been reused ({}), which would have saved {}; \
         {colour}{} would have been wrong{end}",
        stats.shadow_reused.executed,
        counted(stats.shadow_runs, "run"),
        percent(reused),
        duration(stats.shadow_saved_ms),
        stats.shadow_missed,
    )?;
    for (name, reused) in Granularities::<u64>::NAMES.iter().zip(stats.shadow_reused.values()) {
        writeln!(
            out,
            "            {name:<8} {}",
            share(*reused, stats.shadow_runs).map_or(String::new(), percent)
        )?;
    }
    Ok(())
}

fn quarantine(out: &mut impl Write, shown: &ShownStats, style: Style) -> io::Result<()> {
    let Style { bold, dim, plain, .. } = style;
    if shown.quarantine.is_empty() {
        return writeln!(out, "{bold}quarantine{plain}  empty");
    }
    writeln!(out, "{bold}quarantine{plain}  {}", counted(shown.quarantine.len() as u64, "test"))?;
    for mark in &shown.quarantine {
        let passes = if mark.passes_left == 1 { "pass" } else { "passes" };
        let (command, reason, since) =
            (command(&mark.argv), visible(&mark.reason), time(mark.since));
        writeln!(
            out,
            "            {command}: {reason}; {} more {passes} needed {dim}(since {since}){plain}",
            mark.passes_left
        )?;
    }
    Ok(())
}

/// The tests that are run otherwise than watched and traced, where there are any.
fn disturbed(out: &mut impl Write, shown: &ShownStats, style: Style) -> io::Result<()> {
    let Style { bold, dim, plain, .. } = style;
    if shown.disturbed.is_empty() {
        return Ok(());
    }
    writeln!(out, "{bold}disturbed{plain}   {}", counted(shown.disturbed.len() as u64, "test"))?;
    for test in &shown.disturbed {
        let treatment = match test.treatment {
            Treatment::Untraced => "not traced",
            Treatment::Unwatched => "not watched, so never reused",
        };
        let (command, reason, since) =
            (command(&test.argv), visible(&test.reason), time(test.since));
        writeln!(out, "            {command}: {reason}; {treatment} {dim}(since {since}){plain}")?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hash;

    fn store() -> ShownStore {
        ShownStore { path: "/s".into(), results: 1, bytes: 1 << 20, limit: 4 << 20 }
    }

    fn text(shown: &ShownStats) -> String {
        let mut text = Vec::new();
        write(&mut text, shown, false).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn nothing_yet_makes_no_claims() {
        let shown = ShownStats::new(
            Stats::default(),
            Vec::new(),
            Vec::new(),
            store(),
            ShownObjects::default(),
        );
        assert_eq!(
            text(&shown),
            "reused      0\nexecuted    0, in 0 ms\ntime saved  0 ms\n\
             audits      none, so no miss rate is known (tasting run --audit 5%)\n\
             quarantine  empty\nstore       1.0 MiB of 4.0 MiB (25.0%), 1 result, in /s\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert!(json["share"].is_null() && json["miss_rate"].is_null());
    }

    #[test]
    fn everything_at_once() {
        let reasons = [("new".to_owned(), 2), ("program-changed".to_owned(), 10)].into();
        let not_kept = [("network".to_owned(), 3)].into();
        let stats = Stats {
            reused: 36,
            executed: 12,
            saved_ms: 61_000,
            audits: 8,
            audits_missed: 1,
            audits_unstable: 2,
            shadow_runs: 4,
            shadow_reused: Granularities { whole: 0, file: 1, reachable: 2, executed: 3 },
            shadow_saved_ms: 2000,
            reasons,
            not_kept,
            ..Stats::default()
        };
        let mark = Mark {
            test: Hash::default(),
            since: 0,
            reason: "r".into(),
            argv: vec!["./t".into()],
            passes_left: 1,
        };
        let disturbed = Disturbed {
            test: Hash::default(),
            since: 0,
            reason: "it fails while it is traced".into(),
            argv: vec!["./u".into()],
            treatment: Treatment::Untraced,
        };
        let shown =
            ShownStats::new(stats, vec![mark], vec![disturbed], store(), ShownObjects::default());
        let text = text(&shown);
        for line in [
            "reused      36 of 48 runs (75.0%)",
            "            10 program-changed\n             2 new\n",
            "not kept    3 (`tasting help CODE` says what to do)\n            3 network\n",
            "time saved  1 min 1 s",
            "shadow      3 of 4 runs would have been reused (75.0%), which would have saved 2.0 s; 0 would have been wrong",
            "            whole    0.0%\n            file     25.0%\n            static   50.0%\n            executed 75.0%\n",
            "audits      8: 5 same, 2 unstable, 1 missed; measured miss rate 12.5% (1 of 8)",
            "quarantine  1 test\n            ./t: r; 1 more pass needed (since 1970-01-01 00:00:00Z)",
            "disturbed   1 test\n            ./u: it fails while it is traced; not traced (since 1970-01-01 00:00:00Z)",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (&json["reused"], &json["share"], &json["miss_rate"]),
            (&36.into(), &0.75.into(), &0.125.into())
        );
        assert_eq!(json["disturbed"][0]["treatment"], "untraced");
    }
}
