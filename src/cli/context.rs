//! `tasting context FILE`: writes the invocation context of this process. `tasting suite` has
//! harnesses start it in place of a test.

use super::exit;
use crate::suite::probe;
use anyhow::Context;
use std::path::PathBuf;

/// Write what a process that is started here can see to a file, for `tasting suite`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file that is not there
    file: PathBuf,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    probe::write(&arguments.file)
        .with_context(|| format!("cannot write {}", arguments.file.display()))?;
    Ok(exit::OK)
}
