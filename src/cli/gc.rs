//! `tasting gc`: the store within its limit.

use super::{OpenStore, exit, open_store};
use crate::process::Settings;
use crate::report::units::size;
use crate::store::Store;

/// Remove what was used longest ago, until the store is within its limit.
///
/// The store does so by itself, a little at a time, while results are added; this is for those who have just lowered the
/// limit, or want the space now. The limit is TASTING_MAXSIZE (`500M`, `5G`; 5G if it is not set).
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: Arguments) -> anyhow::Result<u8> {
    let OpenStore { store, limit, .. } = open_store(&Settings::from_environment())?;
    let freed = store.clean(limit)?;
    let left = store.volume()?.bytes;
    println!("Freed {}; {} of {} are in use.", size(freed), size(left), size(limit));
    Ok(exit::OK)
}
