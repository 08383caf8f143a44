//! `tasting push`: copies results of this machine to the remote store, or into a file.

use super::{OpenStore, exit, objects, open_store, print};
use crate::process::Settings;
use crate::report::transfer::{self, ShownTransfer};
use crate::run::config::Config;
use crate::run::project::Project;
use crate::run::sharing;
use crate::store::FileStore;
use crate::store::remote::Remote;
use crate::store::remote::location::{self, Location};
use crate::store::remote::transfer::Moved;
use anyhow::{Context, bail};
use std::path::Path;
use std::time::Duration;

/// Send results to the store of the team, or write them to a file.
///
/// Without a destination: sends what waits to be sent to the store that TASTING_REMOTE or
/// tasting.toml names, and ends when it is there. `tasting run` leaves that to a process that
/// nobody waits for; where such processes are ended with the job, as on build servers, let this be
/// the last step. Compiled objects that wait (the attribute objects) are sent as well. --all sends
/// every result that this machine has.
///
/// With a destination, a URL or the name of a file: sends everything there. A file is for places
/// that take one archive rather than a request for each test; `tasting pull` reads it.
#[derive(clap::Args)]
#[command(after_help = "  tasting push                          # nothing waits any more\n  \
    tasting push --all redis://cache:6379 # fill a store\n  \
    tasting push --used-within 1d results.tasting")]
pub struct Arguments {
    /// Print JSON: remote, outcomes, tests, objects, bytes, left, reasons
    #[arg(long)]
    json: bool,
    /// Send all that this machine has, not only what waits
    #[arg(long)]
    all: bool,
    /// Send only what was used within this time (`12h`, `7d`)
    #[arg(long, value_name = "TIME", value_parser = location::time)]
    used_within: Option<Duration>,
    /// A URL with its attributes, or a file
    #[arg(value_name = "DESTINATION")]
    destination: Vec<String>,
    /// Send what waits, and for a second what comes to wait; say nothing
    #[arg(long, hide = true)]
    behind: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let OpenStore { store, .. } = open_store(&settings)?;
    let remote = remote(&arguments.destination, &settings, &store)?;
    if let Some(reason) = remote.usage.read_only {
        bail!("nothing is written to {}: {reason}", remote.location.shown);
    }
    if arguments.behind {
        if let Err(failure) = remote.serve(&store) {
            settings.log(format_args!("results still wait to be sent: {failure}"));
        }
        return Ok(exit::OK);
    }
    let is_given = !arguments.destination.is_empty();
    let mut moved = match is_given {
        true => Default::default(),
        false => remote.upload_waiting(&store)?.and(objects::send_waiting(&settings, &store)?),
    };
    if is_given || arguments.all || arguments.used_within.is_some() {
        let pushed = remote.push(&store, arguments.used_within)?;
        moved = pushed.and(moved);
    }
    print(arguments.json, &shown(&remote, moved), transfer::write_pushed)?;
    Ok(exit::OK)
}

/// What was moved, as it is shown.
pub fn shown(remote: &Remote, moved: Moved) -> ShownTransfer {
    let Moved { outcomes, tests, objects, bytes, left, reasons } = moved;
    ShownTransfer {
        remote: remote.location.shown.clone(),
        outcomes,
        tests,
        objects,
        bytes,
        left,
        reasons,
    }
}

/// The remote store that words name, or the one of the project.
pub fn remote(words: &[String], settings: &Settings, near: &FileStore) -> anyhow::Result<Remote> {
    let working = std::env::current_dir().context("there is no current folder")?;
    let config = Config::read(&Project::root(&working, settings)).map_err(anyhow::Error::msg)?;
    let location = match words {
        [] => sharing::location(settings, &config).map_err(anyhow::Error::msg)?,
        words => Some(named(words, &working)?),
    };
    let location = location.context(
        "there is no remote store: set TASTING_REMOTE, or remote in tasting.toml, or name one",
    )?;
    let is_meant = !words.is_empty() && location.attributes.read_only != Some(true);
    let mut remote = sharing::open(location, settings, &config, near);
    if is_meant {
        // Whoever names a destination means it.
        remote.usage.read_only = None;
    }
    Ok(remote.for_background_work())
}

fn named(words: &[String], working: &Path) -> anyhow::Result<Location> {
    let is_url = words[0].split(['/', '.']).next().is_some_and(|start| start.contains(':'));
    let text = match is_url {
        true => words.join(" "),
        false => format!(
            "archive:{} {}",
            location::encoded(&working.join(&words[0]).to_string_lossy()),
            words[1..].join(" ")
        ),
    };
    Location::parse(&text).map_err(anyhow::Error::msg)
}
