//! The course of `tasting-ld`: it runs the real linker, asks it for its map, and has the manifest
//! made.
//!
//! In: a linker's command line. Out: exactly what the real linker does, and a manifest beside the
//! binary. While the linker runs, we read its inputs, and its map as it is written; the rest begins
//! when it has ended, on two threads: one reads the binary, the other the objects. Failures of this
//! part are reported in the log file only.

use super::arguments::{self, LinkerInvocation, LinkerJob};
use super::early::Early;
use super::files::Files;
use super::finished::Finished;
use super::linked::Linked;
use super::map_source::MapSource;
use super::map_text::MapText;
use super::plain_sections::Copies;
use super::{describe, real};
use crate::process::linker;
use crate::process::quiet::{attempt, quietly};
use crate::process::spawn::{self, Change, Program};
use crate::process::sys::Memory;
use crate::process::{Settings, guard, handover, manifest_file, response, sys};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::resume_unwind;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::thread;

/// The signals by which a program dies of itself.
const CRASHES: [i32; 4] = [libc::SIGABRT, libc::SIGBUS, libc::SIGILL, libc::SIGSEGV];

/// Why a map is not used.
const NOT_WHOLE: &str = "the linker's map ends too early, or was written twice";

/// About what the graph takes for each atom, with what it is built from and becomes.
const MEMORY_PER_ATOM: usize = 512;

/// The whole of `tasting-ld`. It ends as the real linker ends.
pub fn main() -> ! {
    let settings = Settings::from_environment();
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let found = real::linker(&settings, &called, &arguments)
        .unwrap_or_else(|error| spawn::fail(format_args!("tasting-ld: {error}"), spawn::NOT_FOUND));
    let linker = Program { name: found.name, ..Program::at(found.path) };
    let call = Call { settings: &settings, linker, user: &arguments[found.words..] };
    if settings.disable || guard::is_inside(guard::LINKER) {
        call.pass_through();
    }
    match call.understand() {
        LinkerInvocation::PassThrough(why) => {
            settings.log(format_args!("passed through: {why}"));
            call.pass_through()
        }
        LinkerInvocation::Link(job) => call.link(&job),
    }
}

/// One call of the linker.
struct Call<'a> {
    settings: &'a Settings,
    linker: Program,
    /// The user's arguments, as given.
    user: &'a [OsString],
}

impl Call<'_> {
    fn understand(&self) -> LinkerInvocation {
        let expanded = response::expand(self.user);
        if expanded.opaque {
            return LinkerInvocation::PassThrough("a response file cannot be read");
        }
        let folder = std::env::current_dir().unwrap_or_default();
        arguments::parse(&expanded.arguments, &folder)
    }

    /// What the linker, and what it starts, gets to see: the environment as it would be without us.
    fn environment(&self) -> Vec<Change> {
        let mut changes = handover::restored();
        changes.push(guard::mark(guard::LINKER));
        changes
    }

    fn pass_through(&self) -> ! {
        spawn::become_or_fail(&self.linker, self.user, &self.environment())
    }

    fn link(&self, job: &LinkerJob) -> ! {
        sys::keep_memory();
        if let Some(copies) = Copies::for_scripts(job) {
            self.link_copies(job, copies);
        }
        let kind = linker::kind(self.settings, &self.linker.path);
        let source = MapSource::choose(job, kind);
        let map = MapText::new(&source, self.is_program());
        // None must survive a link that we could not describe.
        manifest_file::remove(self.settings, &job.output);
        let (early, files, content) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let finished = Finished::new(&job.output, &content);
        thread::scope(|scope| {
            let run = || self.run_and_inspect(job, &source, &map, &finished);
            let linker = thread::Builder::new().spawn_scoped(scope, run).map_err(|_| run());
            let linked = self.read_beside(job, &map, (&early, &files), &finished);
            let done =
                linker.map(|linker| linker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let (status, is_whole) = done.unwrap_or_else(|done| done);
            let linked = linked
                .and_then(|linked| if is_whole { Ok(linked) } else { Err(NOT_WHOLE.to_owned()) });
            quietly(self.settings, job.output.display(), || {
                describe::after(
                    self.settings,
                    job,
                    &finished,
                    linked,
                    early.get_or_init(Early::default),
                )
            });
            spawn::end_like(status)
        })
    }

    /// Links copies of the objects, and takes the binary as a whole.
    fn link_copies(&self, job: &LinkerJob, copies: Copies) -> ! {
        manifest_file::remove(self.settings, &job.output);
        let arguments = copies.arguments(&response::expand(self.user).arguments);
        let told = Memory::new(c"messages")
            .and_then(|told| Ok((told.descriptor().try_clone_to_owned()?, told)));
        let (messages, told) =
            told.unwrap_or_else(|error| spawn::fail_to_run(&self.linker.path, &error));
        let status = spawn::run_with_messages_to(
            &self.linker,
            &arguments,
            &self.environment(),
            messages.into(),
        );
        let status = status.unwrap_or_else(|error| spawn::fail_to_run(&self.linker.path, &error));
        if let Ok(text) = told.content() {
            let _ = io::stderr().write_all(&copies.with_inputs_named(&text));
        }
        drop(copies);
        let content = OnceLock::new();
        let finished = Finished::new(&job.output, &content);
        if status.success() {
            let reason = "its linker script takes in no sections of single functions";
            quietly(self.settings, job.output.display(), || {
                describe::after(
                    self.settings,
                    job,
                    &finished,
                    Err(reason.to_owned()),
                    &Early::default(),
                )
            });
        }
        spawn::end_like(status)
    }

    /// The linker is no script.
    fn is_program(&self) -> bool {
        let mut start = [0; 4];
        let read = File::open(&self.linker.path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *b"\x7fELF"
    }

    /// Reads what the linker reads, while it does, and what it writes about it.
    fn read_beside<'f, 'e: 'f>(
        &self,
        job: &LinkerJob,
        map: &'f MapText<'f>,
        (early, files): (&'e OnceLock<Early>, &'f OnceLock<Files<'e>>),
        finished: &Finished,
    ) -> Result<Linked<'f, 'e>, String> {
        let read = || {
            if job.relocatable {
                return Err("an object is not placed".to_owned());
            }
            let early = early.get_or_init(|| Early::open(self.settings, job));
            if !map.is_expected() {
                return Err("the linker wrote no map that could be read".to_owned());
            }
            let records = early.records();
            sys::prepare_memory(records.atoms() * MEMORY_PER_ATOM);
            Linked::read(self.settings, map, files, (early, records), finished)
        };
        attempt(self.settings, job.output.display(), read)
            .unwrap_or_else(|| Err("gave up after a panic".to_owned()))
    }

    /// Runs the linker, and looks at the binary that it made. Also tells whether the map is whole.
    fn run_and_inspect(
        &self,
        job: &LinkerJob,
        source: &MapSource,
        map: &MapText,
        finished: &Finished,
    ) -> (ExitStatus, bool) {
        // Whatever happens, nobody must wait for a map that does not come.
        let ended = AtEnd(|| map.end(false));
        let (status, is_written) = self.run_with_map(job, source);
        map.end(is_written);
        drop(ended);
        if !job.relocatable {
            attempt(self.settings, job.output.display(), || finished.look());
        }
        let is_whole = is_written
            && attempt(self.settings, job.output.display(), || map.is_whole()).unwrap_or(false);
        (status, is_whole)
    }

    /// Runs the linker; comes back, with whether it wrote the map, only if it succeeds.
    fn run_with_map(&self, job: &LinkerJob, map: &MapSource) -> (ExitStatus, bool) {
        let mut done = (self.run(map), true);
        if done.0.signal().is_some_and(|signal| CRASHES.contains(&signal))
            && matches!(map, MapSource::Ours(..))
        {
            // It may be the map that it fails on: the user did not ask for one.
            self.settings.log(format_args!(
                "{}: the linker crashed, and runs again without a map",
                job.output.display()
            ));
            done = (self.run(&MapSource::None), false);
        }
        if !done.0.success() {
            spawn::end_like(done.0);
        }
        done
    }

    fn run(&self, map: &MapSource) -> ExitStatus {
        let arguments = map.ask(self.user);
        let status = spawn::run(&self.linker, &arguments, &self.environment());
        map.close();
        status.unwrap_or_else(|error| spawn::fail_to_run(&self.linker.path, &error))
    }
}

/// Something to be done when this goes out of scope, even by a panic.
struct AtEnd<F: Fn()>(F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
