//! `tasting pull`: copies results from the remote store into the local one.

use super::push::{remote, shown};
use super::{OpenStore, exit, open_store, print};
use crate::process::Settings;
use crate::report::transfer;

/// Fetch results from the store of the team, or from a file.
///
/// `tasting run` fetches what it needs by itself; this is for filling a machine in advance, for
/// instance before it goes without a network, and for files that `tasting push` has written. What
/// cannot be believed is left out. Servers behind http:// do not tell what they hold, so nothing
/// can be pulled from them.
#[derive(clap::Args)]
#[command(
    after_help = "  tasting pull                  # everything of the project's remote store\n  \
    tasting pull results.tasting  # an archive of another machine"
)]
pub struct Arguments {
    /// Print JSON: remote, outcomes, tests, objects, bytes, left, reasons
    #[arg(long)]
    json: bool,
    /// A URL with its attributes, or a file
    #[arg(value_name = "SOURCE")]
    source: Vec<String>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let OpenStore { store, .. } = open_store(&settings)?;
    let remote = remote(&arguments.source, &settings, &store)?;
    let moved = remote.pull(&store)?;
    print(arguments.json, &shown(&remote, moved), transfer::write_pulled)?;
    Ok(exit::OK)
}
