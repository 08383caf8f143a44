//! `tasting history`: what would have been saved over past commits, and whether a failure would
//! have been missed.

pub mod commands;
pub mod decided;
mod git;
mod levels;
pub mod names;
mod progress;
mod replay;
mod repository;
mod state;
mod tree;

use super::{exit, is_colourful, open_store};
use crate::model::Hasher;
use crate::process::Settings;
use crate::report::history::{self, History};
use crate::report::page;
use crate::run::config::Config;
use anyhow::{Context, bail};
use replay::{Plan, Reuse};
use repository::Repository;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// Replay past commits: what would have been reused, and would a failure have been missed?
///
/// Each commit is checked out in a folder of its own (below TASTING_DIR; this checkout and its
/// repository are only read), built through the shims and tested in shadow mode: every test runs,
/// and what would have been reused is noted for whole binaries, for object files, for functions
/// that can be reached and for functions that are executed. The commands are those that
/// `tasting init` shows, or those of [history] in tasting.toml: configure, build, test. A commit
/// that does not build is skipped. After Ctrl-C the same command goes on where it was. Exit code 1
/// if a failure would have been missed, or if no test ran at any commit.
#[derive(clap::Args)]
#[command(after_help = "  tasting history -n 30                    # the last 30 commits\n  \
    tasting history v1.0..v1.1 -o page.html  # a range, as a page\n  \
    tasting history -n 30 --json > h.json && tasting report --history h.json -o page.html")]
pub struct Arguments {
    /// The commits, as git writes ranges
    #[arg(value_name = "A..B", conflicts_with = "last")]
    range: Option<String>,
    /// The last so many commits
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    last: usize,
    /// Of merges, follow the first parent only
    #[arg(long)]
    first_parent: bool,
    /// Build each commit in an empty folder, not on top of the one before
    #[arg(long)]
    clean: bool,
    /// How many jobs build and test at the same time; default: as many as there are processors
    #[arg(short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// Do not measure what building and testing takes without Tasting (two more builds of one
    /// commit)
    #[arg(long)]
    no_overhead: bool,
    /// Replay everything once more at the AST level, for a column of its own
    #[arg(long)]
    ast: bool,
    /// Measure at each commit what testing takes without Tasting and with results reused
    #[arg(long)]
    times: bool,
    /// The same, and results are reused by `tasting suite`, in front of the command that tests
    #[arg(long)]
    suite: bool,
    /// Forget what an interrupted run has done
    #[arg(long)]
    fresh: bool,
    /// Print JSON: commits, each with sha, built and tests; summary
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a summary in Markdown
    #[arg(long)]
    markdown: bool,
    /// Write a page to look at
    #[arg(short = 'o', value_name = "FILE.html")]
    output: Option<PathBuf>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let repository = Repository::here()?;
    let config = Config::read(&repository.project()).map_err(anyhow::Error::msg)?;
    let commits =
        repository.commits(arguments.range.as_deref(), arguments.last, arguments.first_parent)?;
    if commits.is_empty() {
        bail!("there are no commits in this range");
    }
    let folder =
        open_store(&settings)?.folder.join("history").join(key(&repository, &arguments, &config));
    if arguments.fresh && folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let jobs = arguments
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let (clean, overhead) = (arguments.clean, !arguments.no_overhead);
    let times = match (arguments.suite, arguments.times) {
        (true, _) => Some(Reuse::BySuite),
        (false, true) => Some(Reuse::ByTest),
        (false, false) => None,
    };
    let (repository, config, level) = (&repository, &config, None);
    let plan = Plan { repository, config, folder: &folder, clean, overhead, times, level, jobs };
    let mut replayed = replay::replay(&plan, &commits)?;
    if arguments.ast {
        let folder = folder.join("ast");
        let plan =
            Plan { folder: &folder, level: Some("ast"), overhead: false, times: None, ..plan };
        levels::take_over(&mut replayed, &replay::replay(&plan, &commits)?);
    }
    let commits = replayed;
    let shown = History::new(repository.project().display().to_string(), commits);
    print(&arguments, &shown)?;
    // All that it holds is in the report.
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    if shown.summary.executions == 0 {
        bail!(
            "no test ran at any of these commits, so nothing is known. If the commands are not the right ones, \
             say them under [history] in tasting.toml (configure, build, test)"
        );
    }
    Ok(if shown.summary.missed == 0 { exit::OK } else { exit::FAILED })
}

fn print(arguments: &Arguments, shown: &History) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match () {
        () if arguments.json => history::write_json(&mut out, shown)?,
        () if arguments.markdown => history::write_markdown(&mut out, shown)?,
        () => history::write(&mut out, shown, is_colourful())?,
    }
    out.flush()?;
    if let Some(path) = &arguments.output {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        page::write(&mut BufWriter::new(file), &page::PageContent::of_history(shown))?;
    }
    Ok(())
}

/// What an interrupted run and the one that goes on with it have in common.
fn key(repository: &Repository, arguments: &Arguments, config: &Config) -> String {
    let mut hasher = Hasher::new("history");
    hasher.bytes(repository.project().as_os_str().as_encoded_bytes());
    for line in [&config.history.configure, &config.history.build, &config.history.test] {
        hasher.bytes(line.as_deref().unwrap_or_default().as_bytes());
    }
    let is_timed = arguments.times || arguments.suite;
    let flags = [arguments.clean, arguments.first_parent, is_timed, arguments.suite];
    flags.iter().for_each(|flag| _ = hasher.number((*flag).into()));
    hasher.finish().to_string()
}
