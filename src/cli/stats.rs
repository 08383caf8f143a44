//! `tasting stats`: the sums over all decisions.

use super::{OpenStore, exit, open_store, print};
use crate::process::Settings;
use crate::report::stats::{self, ShownStats, ShownStore};
use crate::store::Store;

/// Show how many results were reused, the time saved, and why tests ran.
///
/// The miss rate is measured, not guessed: of the tests that ran although their results could have been reused
/// (`tasting run --audit 5%`), the share that ended differently without being an unstable test. Without audits no rate is
/// known, and none is shown. Tests in quarantine run until they have passed often enough again.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: reused, executed, share, saved_ms, executed_ms, reasons, audits, miss_rate, quarantine, store
    #[arg(long)]
    json: bool,
    /// Start counting anew; the log, the results and the quarantine stay
    #[arg(long, conflicts_with = "json")]
    zero: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let opened = open_store(&Settings::from_environment())?;
    if arguments.zero {
        opened.store.zero_stats()?;
        println!("The sums are zero again.");
        return Ok(exit::OK);
    }
    print(arguments.json, &shown(&opened)?, stats::write)?;
    Ok(exit::OK)
}

fn shown(opened: &OpenStore) -> anyhow::Result<ShownStats> {
    let OpenStore { store, folder, limit } = opened;
    let volume = store.volume()?;
    let shown =
        ShownStore { path: folder.display().to_string(), results: volume.outcomes, bytes: volume.bytes, limit: *limit };
    Ok(ShownStats::new(store.stats()?, store.marks()?, shown))
}
