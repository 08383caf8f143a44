//! `tasting log`: what was decided about each test.

use super::{exit, is_colourful, open_store};
use crate::process::Settings;
use crate::report::{decisions, json};
use crate::store::Journal;
use std::io::{self, BufWriter, IsTerminal, Write};

/// How many decisions fill a terminal.
const ON_TERMINAL: usize = 40;

/// Show what was decided about each test, and why, the newest last.
///
/// A line has the time (UTC), whether the result was reused or the test executed, how long it took
/// or what was saved, the command, and the reason. Exit codes other than 0 stand behind the
/// command. On a terminal the last 40 decisions are shown, otherwise all that are kept (about
/// 40,000).
#[derive(clap::Args)]
#[command(after_help = "Which tests ran today, and why?\n\n  \
    tasting log --json | jq -r 'select(.decision == \"executed\") | \"\\(.argv[0]): \\(.reason)\"'")]
pub struct Arguments {
    /// Print a JSON object a line: time (ms since 1970), argv, cwd, decision, step, reason, sort
    /// (its code), not_kept (the code of a refusal), exit_code, duration_ms, saved_ms, …
    #[arg(long)]
    json: bool,
    /// Show the last N decisions
    #[arg(short = 'n', value_name = "N")]
    last: Option<usize>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let for_people = !arguments.json && io::stdout().is_terminal();
    let last = arguments.last.unwrap_or(if for_people { ON_TERMINAL } else { usize::MAX });
    let found = open_store(&Settings::from_environment())?.store.decisions(last)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if arguments.json {
        found.iter().try_for_each(|decision| json::write_line(&mut out, decision))?;
    } else {
        decisions::write(&mut out, &found, is_colourful())?;
    }
    out.flush()?;
    Ok(exit::OK)
}
