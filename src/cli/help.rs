//! `tasting help`: of a command, a file, a shim, or a code of `tasting log`.

use super::{exit, topics};
use anyhow::bail;
use std::io::{self, Write};

/// Explain a command, a file, a shim, or the code of a reason.
///
/// TOPIC is a subcommand (`run`), `tasting.toml` (the settings of a project), `tasting-cc` (the
/// shims and the environment), `codes` (all reasons for which tests run or results are not kept),
/// or one of these codes, as `tasting log` and `tasting stats` show them (`network`).
#[derive(clap::Args)]
pub struct Arguments {
    /// What to explain
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    match &arguments.topic[..] {
        [word] if super::command().find_subcommand(word).is_none() => match topics::find(word) {
            Some(text) => io::stdout().write_all(text.as_bytes())?,
            None => bail!(
                "there is no topic {word:?}: try a subcommand, tasting.toml, tasting-cc, codes, or a code"
            ),
        },
        words => print_long_help(words)?,
    }
    Ok(exit::OK)
}

/// Prints what `tasting WORDS… --help` prints.
fn print_long_help(words: &[String]) -> anyhow::Result<()> {
    let line = ["tasting"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match super::command().try_get_matches_from(line) {
        Err(help) if !help.use_stderr() => Ok(help.print()?),
        _ => bail!("there is no subcommand {:?}", words.join(" ")),
    }
}
