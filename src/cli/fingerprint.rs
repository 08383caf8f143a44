//! `tasting fingerprint`: one line for each binary.

use super::{exit, report_error};
use crate::fingerprint;
use crate::process::Settings;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Print the fingerprint of each binary: 32 hex digits, two spaces, the path.
///
/// It changes when anything that the binary can reach has changed: functions, data, project-built
/// shared libraries symbol by symbol, other libraries by their content.
#[derive(clap::Args)]
pub struct Arguments {
    /// Start at this function instead of the program's entry (constructors still count)
    #[arg(long, value_name = "FUNCTION")]
    entry: Option<String>,
    /// Executables and shared libraries that were linked with the shims
    #[arg(required = true, value_name = "BINARY")]
    binaries: Vec<PathBuf>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let mut code = exit::OK;
    let mut out = io::stdout().lock();
    for path in &arguments.binaries {
        match fingerprint::fingerprint(path, arguments.entry.as_deref(), &settings) {
            Ok(fingerprint) => {
                write!(out, "{fingerprint}  ")?;
                out.write_all(path.as_os_str().as_bytes())?;
                out.write_all(b"\n")?;
            }
            Err(error) => code = report_error(&error.into()),
        }
    }
    Ok(code)
}
