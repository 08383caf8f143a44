//! `tasting doctor`: what works here, by trying it.

pub mod build;
mod place;
mod remote;
mod system;
mod tools;

use super::{exit, print};
use crate::process::Settings;
use crate::report::findings::{self, Finding, Findings};

/// Try out what Tasting needs, and say what will work here and what will not.
///
/// Kernel and container: can tests be watched? Compilers and linkers: a small program is built with
/// each through the shims, and its fingerprint is taken. The whole of it: that program is run twice
/// by `tasting run`, and has to be reused. The store: its place, rights and space. The project: its
/// tasting.toml, whether what lies there was built with the shims, and whether launchers get into
/// each other's way. The remote store, if there is one: whether it answers. All of it happens in a
/// temporary folder; the store is left alone.
///
/// Ends with 1 if something essential is broken. A note is something that is good to know, or that
/// fewer people need.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: works, findings (a list of {subject, state, text}; state is works, note or
    /// broken)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let found = Findings::new(examine(&Settings::from_environment()));
    print(arguments.json, &found, findings::write)?;
    Ok(if found.works { exit::OK } else { exit::FAILED })
}

fn examine(settings: &Settings) -> Vec<Finding> {
    let mut found = system::examine();
    found.extend(tools::examine());
    found.extend(place::store(settings));
    found.extend(place::project(settings));
    found.extend(build::examine(settings));
    found.extend(remote::examine(settings));
    if settings.disable {
        found.push(Finding::note(
            "TASTING_DISABLE",
            "is set: shims and tasting run pass everything through",
        ));
    }
    found
}
