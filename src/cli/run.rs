//! `tasting run`: a test's result, from the store or from the test.

use crate::harness::HarnessHints;
use crate::run::{self, Options, config::Share};
use std::ffi::OsString;

/// Run a test, or replay what it did when nothing that it uses has changed.
///
/// Put it in front of any test command: a program, a script, a driver that starts others. Nothing
/// of its own is printed; output, exit status and files are those of the test. `tasting log` tells
/// what was decided, `tasting explain` why.
#[derive(clap::Args)]
pub struct Arguments {
    /// Reuse failures as well; without it, what failed runs again
    #[arg(long)]
    reuse_failures: bool,
    /// Run this share of the tests although their results could be reused, and compare (`5%`)
    #[arg(long, value_name = "SHARE")]
    audit: Option<Share>,
    /// What the test is called in the lists that `ctest` leaves in the environment
    /// (`PREFIX/share/tasting/cmake/ctest.cmake.in`)
    #[arg(long, value_name = "NAME", hide = true)]
    ctest: Option<String>,
    /// Keep the decision out of the log: `tasting suite` asks a harness something
    #[arg(long, hide = true)]
    unlogged: bool,
    /// The test and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(arguments: Arguments) -> ! {
    let harness = arguments.ctest.as_deref().map(HarnessHints::of_ctest).unwrap_or_default();
    let Arguments { reuse_failures, audit, unlogged: is_unlogged, .. } = arguments;
    let options = Options { reuse_failures, audit, harness, is_unlogged };
    run::end(run::run(&arguments.command, options))
}
