//! `tasting clear`: the store without results.

use super::{OpenStore, exit, open_store};
use crate::objects::Objects;
use crate::process::{Settings, side_caches};
use crate::report::units::{counted, size};
use crate::store::Store;
use std::time::Duration;

/// Forget all results and objects: every test runs again, every source is compiled again.
///
/// Nothing is asked. The log, the sums of `tasting stats` and the quarantine stay. To run a single
/// test anew, set TASTING_RECACHE for it instead.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let OpenStore { store, folder, .. } = open_store(&settings)?;
    let before = store.volume()?;
    let bytes = before.bytes + side_caches::volume(&settings);
    store.clear()?;
    side_caches::clean(&settings, Duration::ZERO)?;
    let removed = counted(before.outcomes.saturating_sub(store.volume()?.outcomes), "result");
    println!("Removed {removed} ({}) from {}; log and sums stay.", size(bytes), folder.display());
    if let Some(objects) = Objects::new(&settings).filter(|objects| objects.root().exists()) {
        let (count, bytes) = objects.volume()?;
        objects.clear()?;
        println!(
            "Removed {} ({}) from {}.",
            counted(count, "object"),
            size(bytes),
            objects.root().display()
        );
    }
    Ok(exit::OK)
}
