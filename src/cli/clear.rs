//! `tasting clear`: the store without results.

use super::{OpenStore, exit, open_store};
use crate::process::Settings;
use crate::report::units::{counted, size};
use crate::store::Store;

/// Forget all results: every test runs again.
///
/// Nothing is asked. The log, the sums of `tasting stats` and the quarantine stay. To run a single test anew, set
/// TASTING_RECACHE for it instead.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: Arguments) -> anyhow::Result<u8> {
    let OpenStore { store, folder, .. } = open_store(&Settings::from_environment())?;
    let before = store.volume()?;
    store.clear()?;
    let removed = counted(before.outcomes.saturating_sub(store.volume()?.outcomes), "result");
    println!("Removed {removed} ({}) from {}; log and sums stay.", size(before.bytes), folder.display());
    Ok(exit::OK)
}
