//! Starting the real tool: in our place (`exec`), or as a child whose end we wait for (`run`) and
//! then end like (`end_like`).
//!
//! In: the tool, its arguments, changes to the environment. Out: nothing, or the child's status.
//! Standard input, output and error are never touched.

use super::sys;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// What a shell returns for a command that was found but cannot be run.
pub const CANNOT_RUN: i32 = 126;
/// What a shell returns for a command that is not there.
pub const NOT_FOUND: i32 = 127;

/// A program with the words in front of the user's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    /// What the program is told that it is called.
    pub name: OsString,
    /// Words between the program and the user's arguments: the compiler's name behind `ccache`.
    pub words: Vec<OsString>,
}

impl Program {
    /// A program that is called by its path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Program { name: path.clone().into_os_string(), path, words: Vec::new() }
    }
}

/// A change to the environment: set, or removed.
pub type Change = (OsString, Option<OsString>);

/// Sets a variable.
pub fn set(name: &str, value: impl AsRef<OsStr>) -> Change {
    (name.into(), Some(value.as_ref().to_owned()))
}

/// Removes a variable.
pub fn unset(name: &str) -> Change {
    (name.into(), None)
}

fn command<A: AsRef<OsStr>>(program: &Program, arguments: &[A], changes: &[Change]) -> Command {
    let mut command = Command::new(&program.path);
    command.arg0(&program.name).args(&program.words).args(arguments);
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    sys::start_as_given(&mut command);
    command
}

/// Becomes the program. Returns only if that fails.
pub fn exec<A: AsRef<OsStr>>(program: &Program, arguments: &[A], changes: &[Change]) -> io::Error {
    command(program, arguments, changes).exec()
}

/// Runs the program to its end.
pub fn run<A: AsRef<OsStr>>(
    program: &Program,
    arguments: &[A],
    changes: &[Change],
) -> io::Result<ExitStatus> {
    run_to_end(command(program, arguments, changes))
}

/// The same, with its messages going elsewhere.
pub fn run_with_messages_to<A: AsRef<OsStr>>(
    program: &Program,
    arguments: &[A],
    changes: &[Change],
    messages: Stdio,
) -> io::Result<ExitStatus> {
    let mut command = command(program, arguments, changes);
    command.stderr(messages);
    run_to_end(command)
}

/// Runs a command to its end. Signals from outside go to it.
pub fn run_to_end(mut command: Command) -> io::Result<ExitStatus> {
    sys::survive_signals();
    let mut child = command.spawn()?;
    sys::forward_signals_to(Some(child.id()));
    let status = child.wait();
    sys::forward_signals_to(None);
    status
}

/// Starts the program with its output to be read by us, and without its messages.
pub fn start_reading<A: AsRef<OsStr>>(
    program: &Program,
    arguments: &[A],
    changes: &[Change],
    messages: Stdio,
) -> io::Result<Child> {
    command(program, arguments, changes)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(messages)
        .spawn()
}

/// What the program prints when it is asked something; `None` if it fails.
pub fn answer(program: &Program, arguments: &[OsString], changes: &[Change]) -> Option<Vec<u8>> {
    let output =
        start_reading(program, arguments, changes, Stdio::null()).ok()?.wait_with_output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Ends this process as the child ended: with its exit code, or by its signal.
pub fn end_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        sys::die_by(signal);
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// Becomes the program, or says why not and ends as a shell would.
pub fn become_or_fail<A: AsRef<OsStr>>(
    program: &Program,
    arguments: &[A],
    changes: &[Change],
) -> ! {
    let error = exec(program, arguments, changes);
    fail_to_run(&program.path, &error)
}

/// Says that the tool cannot be started, and ends as a shell would.
pub fn fail_to_run(path: &Path, error: &io::Error) -> ! {
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
    fail(format_args!("tasting: cannot run {}: {error}", path.display()), code)
}

/// Says why nothing can be run, and ends. Standard error may be closed; then the code has to be
/// enough.
pub fn fail(message: impl Display, code: i32) -> ! {
    let _ = writeln!(io::stderr(), "{message}");
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ExitStatus {
        run(&Program::at("/bin/sh"), &["-c", script], &[]).unwrap()
    }

    #[test]
    fn exit_codes_and_signals_come_back() {
        assert_eq!(shell("exit 7").code(), Some(7));
        assert_eq!(shell("kill -SEGV $$").signal(), Some(11));
    }

    #[test]
    fn the_environment_is_changed_as_asked() {
        let program = Program::at("/bin/sh");
        let changes = [set("TASTING_TEST_A", "1"), unset("HOME")];
        let status =
            run(&program, &["-c", "test \"$TASTING_TEST_A\" = 1 && test -z \"$HOME\""], &changes)
                .unwrap();
        assert!(status.success());
    }

    #[test]
    fn commands_keep_name_and_arguments() {
        let program = Program {
            path: "/bin/sh".into(),
            name: "other".into(),
            words: vec!["-c".into(), "test $0 = a".into()],
        };
        assert!(run(&program, &["a"], &[]).unwrap().success());
    }
}
