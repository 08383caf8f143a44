//! Runs the compiler. In: a call, with the options that we add to it. Out: how it ended. If it
//! fails with our options, it is run again without them before its failure is reported: some
//! sources cannot be compiled with one section per function, such as assembler that uses the
//! distance between two functions.

use super::words::{self, Word};
use super::{Call, Work, languages};
use crate::process::sys::Memory;
use crate::process::{guard, spawn, sys};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitStatus;

/// What came of running the compiler.
pub struct Made {
    pub status: ExitStatus,
    /// Its messages were captured, and there were none.
    pub has_no_diagnostics: bool,
    /// It was given our options, and not only the user's.
    pub is_split: bool,
}

impl Call<'_> {
    /// Runs the compiler with these arguments.
    pub(super) fn run(&self, arguments: &[OsString]) -> ExitStatus {
        spawn::run(&self.compiler.program, arguments, &[guard::mark(guard::COMPILER)])
            .unwrap_or_else(|error| spawn::fail_to_run(&self.compiler.program.path, &error))
    }

    /// Compiles. What fails with the section flags, such as the distance between two functions in
    /// assembler, is compiled without them before a message is shown.
    pub(super) fn make(&self, work: &Work, captures_messages: bool) -> Made {
        let inputs = || match &work.job.source {
            Some((source, _)) => vec![source.clone()],
            None => sources(self.user),
        };
        let is_captured =
            captures_messages || !work.added.is_empty() && mentions_sections(&inputs());
        match is_captured.then(|| self.capture_messages(&work.arguments, &[])).flatten() {
            Some((status, messages)) => self.finish_after_capture(work, status, &messages),
            None => self.compile_with_own_stderr(work),
        }
    }

    /// Passes the captured messages on. Where our options may be why it failed, nothing is passed on, and
    /// the compiler is run again.
    fn finish_after_capture(&self, work: &Work, status: ExitStatus, messages: &[u8]) -> Made {
        if may_fail_by_ours(work, status) {
            return Made {
                status: self.run(self.user),
                has_no_diagnostics: false,
                is_split: false,
            };
        }
        let has_no_diagnostics = messages.is_empty();
        let status = if has_no_diagnostics {
            status
        } else {
            self.pass_on(status, messages, || self.run(&work.arguments))
        };
        Made { status, has_no_diagnostics, is_split: true }
    }

    /// A source that hardly fails by our options: its messages go where they
    /// always go. Only if it fails is it known too late that they had better not been shown.
    fn compile_with_own_stderr(&self, work: &Work) -> Made {
        let status = self.run(&work.arguments);
        let again =
            may_fail_by_ours(work, status).then(|| self.capture_messages(self.user, &[])).flatten();
        match again.filter(|(status, _)| status.success()) {
            Some((status, messages)) => {
                let _ = io::stderr().write_all(&messages);
                Made { status, has_no_diagnostics: false, is_split: false }
            }
            None => Made { status, has_no_diagnostics: false, is_split: true },
        }
    }

    /// Compiles and links by one call, in the same way.
    pub(super) fn link_split(
        &self,
        flags: &[OsString],
        arguments: &[OsString],
        environment: &[spawn::Change],
    ) -> ExitStatus {
        let split = [flags, arguments].concat();
        let program = &self.compiler.program;
        let run = |arguments: &[OsString]| {
            let status = spawn::run(program, arguments, environment);
            status.unwrap_or_else(|error| spawn::fail_to_run(&program.path, &error))
        };
        match self.capture_messages(&split, environment) {
            Some((status, messages)) if status.success() => {
                self.pass_on(status, &messages, || run(&split))
            }
            Some((status, _)) if status.code().is_some() => run(arguments),
            Some((status, _)) => status,
            None => run(&split),
        }
    }

    /// Runs the compiler, and hears what it has to say.
    fn capture_messages(
        &self,
        arguments: &[OsString],
        changes: &[spawn::Change],
    ) -> Option<(ExitStatus, Vec<u8>)> {
        let messages = Memory::new(c"messages").ok()?;
        let stderr = messages.descriptor().try_clone_to_owned().ok()?;
        let mark = [guard::mark(guard::COMPILER)];
        let changes = [&mark[..], changes].concat();
        let status =
            spawn::run_with_messages_to(&self.compiler.program, arguments, &changes, stderr.into())
                .ok()?;
        Some((status, messages.content().ok()?.to_vec()))
    }

    /// Passes on captured messages. A terminal is told by the compiler itself, which writes to it as
    /// it does to nobody else: for that it is run again.
    fn pass_on(
        &self,
        status: ExitStatus,
        messages: &[u8],
        again: impl FnOnce() -> ExitStatus,
    ) -> ExitStatus {
        if io::stderr().is_terminal() {
            return again();
        }
        let _ = io::stderr().write_all(messages);
        status
    }
}

/// The sources of a call, as far as their names tell.
pub fn sources(arguments: &[OsString]) -> Vec<PathBuf> {
    let is_source = |word: &Word| word.is_input() && languages::by_name(word.word).is_some();
    words::words(arguments).into_iter().filter(is_source).map(|word| word.word.into()).collect()
}

/// Whether sources have assembler or sections of their own in them, which our options may not go
/// together with.
pub fn mentions_sections(sources: &[PathBuf]) -> bool {
    let has = |source: &PathBuf| {
        let finds = |text: &[u8], word: &[u8]| memchr::memmem::find(text, word).is_some();
        sys::map(source).is_ok_and(|text| finds(&text, b"asm") || finds(&text, b"section"))
    };
    sources.iter().any(has)
}

/// Whether it failed, and not for somebody having ended it, with options of ours.
fn may_fail_by_ours(work: &Work, status: ExitStatus) -> bool {
    !work.added.is_empty() && status.code().is_some_and(|code| code != 0)
}
