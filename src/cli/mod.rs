//! The `tasting` command: one file per subcommand.

mod fingerprint;
mod run;
mod show;

use clap::{Parser, Subcommand};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The exit codes of `tasting`. (The shims end as the real tool ends.)
pub mod exit {
    /// Everything asked for was done.
    pub const OK: u8 = 0;
    /// At least one thing could not be done; standard error says which and why.
    pub const FAILED: u8 = 1;
    /// The command line was not understood.
    pub const USAGE: u8 = 2;
}

/// Reuses test results: gives binaries fingerprints that change when something they can reach changes.
#[derive(Parser)]
#[command(
    name = "tasting",
    version,
    after_help = "Build with the shims and look at the result:\n\n  \
        make CC=tasting-cc CXX=tasting-c++\n  \
        tasting fingerprint ./program\n  \
        tasting show ./program | less\n\n\
        Exit codes: 0 all done, 1 something could not be done (see standard error), 2 wrong usage."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Fingerprint(fingerprint::Arguments),
    Run(run::Arguments),
    Show(show::Arguments),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; a closed pipe is not ours to complain about.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    let outcome = match arguments.command {
        Command::Fingerprint(arguments) => fingerprint::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Show(arguments) => show::run(arguments),
    };
    ExitCode::from(outcome.unwrap_or_else(|error| complain(&error)))
}

/// Tells what went wrong, in one line. A reader that closed its pipe is no failure.
fn complain(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<io::Error>()
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        return exit::OK;
    }
    let label = if io::stderr().is_terminal() { "\x1b[1;31mtasting:\x1b[0m" } else { "tasting:" };
    let _ = writeln!(io::stderr(), "{label} {error:#}");
    exit::FAILED
}
