//! `tasting completions`: what a shell needs to complete command lines.

use super::exit;
use clap_complete::Shell;
use std::io::{self, Write};

/// Print the completions for a shell.
///
/// `make install`, the packages and `tasting setup` put them where shells look for them.
#[derive(clap::Args)]
#[command(after_help = "  source <(tasting completions bash)      # for this shell only")]
pub struct Arguments {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    io::stdout().write_all(&script(arguments.shell))?;
    Ok(exit::OK)
}

/// The script that completes command lines of `tasting`.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "tasting", &mut script);
    script
}
