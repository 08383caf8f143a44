//! `tasting report`: results of tests, as an HTML page.

use super::history::decided::{self, Comparisons};
use super::history::names;
use super::{exit, open_store};
use crate::model::{Decision, Granularities, Verdict};
use crate::process::Settings;
use crate::report::history::{self, Commit, History, Test, Text};
use crate::report::{json, page, trace};
use crate::store::{FileStore, Journal, Options};
use anyhow::Context;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Write a page that shows what became of tests, and why.
///
/// One file that loads nothing from elsewhere. With --history: the commits that
/// `tasting history --json` has replayed, as a matrix with the reason behind each cell, the
/// granularities side by side, the dearest tests and changes. Without: the latest decision about
/// each test, from the log of this machine; with --suite, of the latest run of tests only.
#[derive(clap::Args)]
#[command(after_help = "  tasting report -o report.html\n  \
    ctest --test-dir build; tasting report --suite -o report.html --trace trace.json\n  \
    tasting history -n 30 --json > history.json && tasting report --history history.json -o report.html")]
pub struct Arguments {
    /// What `tasting history --json` has printed
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Only the latest run of tests: what was decided without a pause of more than a minute
    #[arg(long, conflicts_with = "history")]
    suite: bool,
    /// Write a trace of the latest run of tests, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE.json", conflicts_with = "history")]
    trace: Option<PathBuf>,
    /// Where to write the page
    #[arg(short = 'o', value_name = "FILE.html", required_unless_present_any = ["json", "markdown", "trace"])]
    output: Option<PathBuf>,
    /// Print the same figures as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a summary in Markdown
    #[arg(long)]
    markdown: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let shown = match &arguments.history {
        Some(path) => read(path)?,
        None => of_log(&arguments)?,
    };
    if let Some(path) = &arguments.output {
        let content = match arguments.history {
            Some(_) => page::PageContent::of_history(&shown),
            None => page::PageContent::of_decisions(&shown),
        };
        write_file(path, |file| page::write(file, &content))?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match () {
        () if arguments.json => history::write_json(&mut out, &shown)?,
        () if arguments.markdown && arguments.history.is_some() => {
            history::write_markdown(&mut out, &shown)?
        }
        () if arguments.markdown => history::write_decisions_markdown(&mut out, &shown)?,
        () => {}
    }
    out.flush()?;
    Ok(exit::OK)
}

/// What the log says; of its latest run a trace is written, if that is wanted.
fn of_log(arguments: &Arguments) -> anyhow::Result<History> {
    let opened = open_store(&Settings::from_environment())?;
    let all = opened.store.decisions(usize::MAX)?;
    let mut comparisons = Comparisons::new(FileStore::new(&opened.folder, Options::default()));
    let run = if arguments.suite || arguments.trace.is_some() {
        trace::latest_run(all.clone())
    } else {
        Vec::new()
    };
    if let Some(path) = &arguments.trace {
        let root = std::env::current_dir().unwrap_or_default();
        let events =
            trace::events(&run, |decision| names::of(&decision.argv, &decision.cwd, &root));
        write_file(path, |file| json::write_line(file, &events))?;
    }
    Ok(match arguments.suite {
        true => latest(run, "the latest run of tests", &mut comparisons),
        false => latest(all, "the latest decision about each test", &mut comparisons),
    })
}

pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(cannot)?);
    write(&mut file).and_then(|()| file.flush()).with_context(cannot)
}

fn read(path: &Path) -> anyhow::Result<History> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown: History = serde_json::from_reader(BufReader::with_capacity(1 << 16, file))
        .with_context(|| format!("{} is not what tasting history --json prints", path.display()))?;
    // The sums are not taken on trust.
    Ok(History::new(shown.project, shown.commits))
}

/// The latest decision about each test.
fn latest(decisions: Vec<Decision>, subject: &str, comparisons: &mut Comparisons) -> History {
    let mut tests: HashMap<(Vec<String>, String), Decision> = HashMap::new();
    let mut time = 0;
    for decision in decisions {
        time = time.max(decision.time / 1000);
        tests.insert((decision.argv.clone(), decision.cwd.clone()), decision);
    }
    let root = std::env::current_dir().unwrap_or_default();
    let mut tests: Vec<Test> =
        tests.values().map(|decision| test(decision, &root, comparisons)).collect();
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    let (sha, subject) = ("latest".to_owned(), subject.to_owned());
    let commit = Commit { sha, subject, time, built: true, tests, ..Commit::default() };
    History::new(root.display().to_string(), vec![commit])
}

fn test(decision: &Decision, root: &Path, comparisons: &mut Comparisons) -> Test {
    let verdict = decision.decision;
    let granularities = match &decision.shadow {
        Some(shadow) => shadow.granularities,
        None => Granularities { executed: verdict, ..Granularities::default() },
    };
    // What was reused took as long as the run that it comes from.
    let duration_ms = match verdict {
        Verdict::Reused => decision.duration_ms + decision.saved_ms,
        Verdict::Executed => decision.duration_ms,
    };
    Test {
        name: Text::from(&*names::of(&decision.argv, &decision.cwd, root)),
        decision: granularities,
        exit_code: decision.exit_code,
        failed: decision.told_failure.then_some(true),
        reason: Text::from(&*decided::reason(decision)),
        sort: Text::from(&*decision.sort),
        duration_ms,
        audit: decision.audit,
        disturbed: decision.disturbed.as_deref().map(Text::from),
        ast: None,
        changed: decision
            .shadow
            .as_ref()
            .map(|shadow| comparisons.changed(shadow))
            .unwrap_or_default(),
    }
}
