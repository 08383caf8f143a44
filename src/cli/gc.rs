//! `tasting gc`: the store within its limit.

use super::{OpenStore, exit, open_store, push};
use crate::objects::Objects;
use crate::observe::originals;
use crate::process::{Settings, side_caches};
use crate::report::units::{counted, size};
use crate::store::Store;
use anyhow::bail;

/// Remove what was used longest ago, until the store is within its limit.
///
/// The store does so by itself, a little at a time, while results are added; this is for those who
/// have just lowered the limit, or want the space now. The limit is TASTING_MAXSIZE (`500M`, `5G`;
/// 5G if it is not set). The cache of objects (TASTING_REUSE_OBJECTS) has a limit of its own,
/// TASTING_OBJECTS_MAXSIZE, and is cleaned as well.
#[derive(clap::Args)]
pub struct Arguments {
    /// Clean the shared folder (a remote store `file:…` with the attribute expire) instead: remove
    /// what nobody has used for that long
    #[arg(long)]
    remote: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let OpenStore { store, limit, .. } = open_store(&settings)?;
    if arguments.remote {
        let remote = push::remote(&[], &settings, &store)?;
        if let Some(reason) = remote.usage.read_only {
            bail!("nothing is removed from {}: {reason}", remote.location.shown);
        }
        println!("Removed {} from {}.", counted(remote.clean()?, "value"), remote.location.shown);
        return Ok(exit::OK);
    }
    if let Some(folder) = &settings.dir {
        originals::remove_stale(&folder.join(originals::ORIGINALS));
    }
    let freed = store.clean(limit)? + side_caches::clean(&settings, side_caches::KEPT)?;
    let left = store.volume()?.bytes + side_caches::volume(&settings);
    println!("Freed {}; {} of {} are in use.", size(freed), size(left), size(limit));
    if let Some(objects) = Objects::new(&settings).filter(|objects| objects.root().exists()) {
        let freed = objects.clean()?;
        let (_, left) = objects.volume()?;
        println!(
            "Freed {} of objects; {} of {} are in use.",
            size(freed),
            size(left),
            size(objects.limit())
        );
    }
    Ok(exit::OK)
}
