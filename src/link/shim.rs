//! The whole of `tasting-ld`: it runs the real linker, asks it for its map, and has the manifest made.
//!
//! In: a linker's command line. Out: exactly what the real linker does, and a manifest beside the binary. While the
//! linker runs we read what it reads; the rest of our own work begins when it has ended, and whatever happens to it shows
//! in the log file only.

use super::arguments::{self, LinkerInvocation, LinkerJob};
use super::early::{Early, Records};
use super::map_source::MapSource;
use super::{describe, real};
use crate::process::linker;
use crate::process::quiet::quietly;
use crate::process::spawn::{self, Change, Program};
use crate::process::{Settings, guard, handover, manifest_file, response};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::panic::resume_unwind;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::thread;

/// The signals by which a program dies of itself.
const CRASHES: [i32; 4] = [libc::SIGABRT, libc::SIGBUS, libc::SIGILL, libc::SIGSEGV];

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
        let kind = linker::kind(self.settings, &self.linker.path);
        let map = MapSource::choose(job, kind);
        // None must survive a link that we could not describe.
        manifest_file::remove(self.settings, &job.output);
        let early = OnceLock::new();
        thread::scope(|scope| {
            let run = || self.run_with_map(job, &map);
            let linker = thread::Builder::new().spawn_scoped(scope, run);
            let records = self.read_early(job, &map, &early);
            let (status, map) = match linker {
                Ok(linker) => linker.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => run(),
            };
            quietly(self.settings, job.output.display(), || {
                let early = early.get_or_init(Early::default);
                describe::after(self.settings, job, map.and_then(MapSource::read).as_deref(), (early, records))
            });
            spawn::end_like(status)
        })
    }

    /// Reads what the linker reads, while it does.
    fn read_early<'e>(&self, job: &LinkerJob, map: &MapSource, early: &'e OnceLock<Early>) -> Records<'e> {
        let mut records = Records::default();
        quietly(self.settings, job.output.display(), || {
            if !job.relocatable {
                let early = early.get_or_init(|| Early::open(self.settings, job));
                if !matches!(map, MapSource::None) {
                    records = early.records();
                }
            }
            Ok::<(), Infallible>(())
        });
        records
    }

    /// Runs the linker; comes back, with the map that it wrote, only if it succeeds.
    fn run_with_map<'m>(&self, job: &LinkerJob, map: &'m MapSource) -> (ExitStatus, Option<&'m MapSource>) {
        let mut done = (self.run(map), Some(map));
        if done.0.signal().is_some_and(|signal| CRASHES.contains(&signal)) && matches!(map, MapSource::Ours(..)) {
            // It may be the map that it fails on: the user did not ask for one.
            self.settings
                .log(format_args!("{}: the linker crashed, and runs again without a map", job.output.display()));
            done = (self.run(&MapSource::None), None);
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
