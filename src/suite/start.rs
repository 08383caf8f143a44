//! Starts a harness with the environment and descriptors of this process, its output redirected as
//! asked, and starts of tests recorded.
//!
//! In: the words of a command. Out: how it ended, or what it printed.

use super::{Output, SuiteError};
use crate::process::{spawn, sys};
use crate::run::context::STARTED;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// How a harness is to be run.
#[derive(Clone, Copy)]
pub struct HarnessOptions<'a> {
    pub output: Output,
    /// Where `tasting run` notes starts.
    pub notes: Option<&'a Path>,
}

/// A command that starts as this process was started.
pub fn command(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    sys::start_as_given(&mut command);
    command
}

/// Runs a harness to its end.
pub fn run(
    program: &OsStr,
    words: &[OsString],
    options: HarnessOptions,
) -> Result<ExitStatus, SuiteError> {
    let mut command = command(program);
    command.args(words);
    run_command(command, program, options)
}

/// The same for a command that is made already.
pub fn run_command(
    mut command: Command,
    program: &OsStr,
    options: HarnessOptions,
) -> Result<ExitStatus, SuiteError> {
    if let Some(notes) = options.notes {
        command.env(STARTED, notes);
    }
    if options.output == Output::ToMessages {
        // Nobody else is to inherit the copy.
        command.stdout(
            io::stderr()
                .as_fd()
                .try_clone_to_owned()
                .map_err(|error| not_started(program, error))?,
        );
    }
    spawn::run_to_end(command).map_err(|error| not_started(program, error))
}

/// What a program prints when it is asked something.
pub fn ask(program: &OsStr, words: &[OsString]) -> Result<Vec<u8>, SuiteError> {
    let mut command = command(program);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(|error| not_started(program, error))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(no_list(program, format_args!("it ends with {}", output.status))),
    }
}

pub fn not_started(program: &OsStr, error: io::Error) -> SuiteError {
    SuiteError::NotStarted { program: program.to_string_lossy().into_owned(), error }
}

pub fn no_list(program: &OsStr, reason: impl ToString) -> SuiteError {
    SuiteError::NoList {
        program: program.to_string_lossy().into_owned(),
        reason: reason.to_string(),
    }
}
