//! `tasting cover`: what of its binaries the latest execution of a test covers. For the laboratory.

use super::exit;
use crate::report::json;
use crate::run::cover;
use anyhow::Context;
use serde::Serialize;
use std::ffi::OsString;
use std::io;

/// Print what of its binaries the latest execution of a test covers, as JSON.
///
/// All that is covered has to be the same for the result to be reused; the rest does not count.
#[derive(clap::Args)]
pub struct Arguments {
    /// A test and its arguments, as for `tasting run`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Serialize)]
struct Module {
    path: String,
    narrowed: bool,
    /// Address, size, whether it counts, name.
    atoms: Vec<(u64, u64, bool, String)>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let covers = cover::of(&arguments.command)
        .context("no execution of this test is remembered that could be reused")?;
    let modules = covers.into_iter().map(|cover| Module {
        path: cover.path.to_string_lossy().into_owned(),
        narrowed: cover.is_narrowed,
        atoms: cover
            .atoms
            .into_iter()
            .map(|atom| (atom.address, atom.size, atom.counts, atom.name))
            .collect(),
    });
    json::write(&mut io::stdout().lock(), &modules.collect::<Vec<_>>())?;
    Ok(exit::OK)
}
