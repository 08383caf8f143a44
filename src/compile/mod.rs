//! The compile shim: source → object + record.
//!
//! In: a compiler driver's command line. Out: exactly what the real driver does, and a record in each
//! object that it writes. What does not write plain objects is passed through untouched.

/// What a call will do.
pub mod arguments;
/// The record, added to an object.
pub mod attach;
/// What each option has an effect on.
pub mod bearing;
/// Records at the AST level.
pub mod definitions;
/// The way from a driver that links to the linker's shim.
pub mod drive;
/// Which compiler it is.
pub mod identity;
/// Whether the labels of constants are to be kept.
pub mod labels;
/// The languages of input files.
pub mod languages;
/// The folder of links that stand for linkers.
pub mod ld_links;
/// The drivers' options.
pub mod options;
/// The preprocessed text.
pub mod preprocess;
/// What a source means.
pub mod syntax;

use crate::elf::Labels;
use crate::model::{Level, Refusal};
use crate::process::find::{self, Compiler, Tool};
use crate::process::quiet::{self, quietly};
use crate::process::{Settings, aside, guard, response, spawn, sys};
use arguments::{CompileJob, Invocation, LinkJob};
use preprocess::Wish;
use syntax::{Plan, Understood};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

/// What a source means, or why that is not known.
pub type Syntax = Result<Understood, Refusal<'static>>;

/// One section for each function and each variable: the atoms.
const SECTION_FLAGS: [&str; 2] = ["-ffunction-sections", "-fdata-sections"];

/// The whole of `tasting-cc` and `tasting-c++`. It ends as the real compiler ends.
pub fn main(tool: Tool) -> ! {
    let settings = Settings::from_environment();
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let compiler = find::compiler(tool, &called, &arguments).unwrap_or_else(|error| {
        let name = Path::new(&called).file_name().unwrap_or(&called);
        spawn::fail(format_args!("{}: {error}", name.display()), spawn::NOT_FOUND)
    });
    let call = Call { settings: &settings, user: &arguments[compiler.words..], compiler };
    if settings.disable || guard::is_inside(guard::COMPILER) {
        call.pass_through();
    }
    let expanded = response::expand(call.user);
    match call.understand(&expanded) {
        Invocation::PassThrough(why) => {
            settings.log(format_args!("passed through: {why}"));
            call.pass_through()
        }
        Invocation::Compile(job) => call.compile(&job, &expanded.arguments),
        Invocation::Link(job) => call.link(&job, &expanded.arguments),
    }
}

/// One call of the compiler.
struct Call<'a> {
    settings: &'a Settings,
    compiler: Compiler,
    /// The user's arguments, as given.
    user: &'a [OsString],
}

impl Call<'_> {
    fn understand(&self, expanded: &response::Expanded) -> Invocation {
        if expanded.opaque {
            return Invocation::PassThrough("a response file cannot be read");
        }
        let folder = std::env::current_dir().unwrap_or_default();
        arguments::parse(&expanded.arguments, &folder)
    }

    fn pass_through(&self) -> ! {
        spawn::become_or_fail(&self.compiler.program, self.user, &[])
    }

    /// The section flags, where they are wanted. In front of the user's arguments: a user's
    /// `-fno-function-sections` wins.
    fn section_flags(&self, compiles: bool) -> Vec<OsString> {
        let wanted = compiles && self.compiler.known && self.settings.split();
        SECTION_FLAGS.iter().filter(|_| wanted).map(OsString::from).collect()
    }

    /// Whether the labels of constants are to be kept for the record.
    fn labels(&self, job: &CompileJob, expanded: &[OsString]) -> Labels {
        let wanted = job.is_c && self.compiler.known && self.settings.split();
        let can_be_kept = || labels::can_be_kept(&self.compiler.program, expanded);
        // The object is larger until they are taken away again, and then it has to be written anew.
        let has_room = || !sys::file_size_is_limited() && job.outputs.iter().all(|output| aside::is_possible(output));
        if wanted && can_be_kept() && has_room() { Labels::Kept } else { Labels::Plain }
    }

    fn compile(&self, job: &CompileJob, expanded: &[OsString]) -> ! {
        let before: Vec<Option<State>> = job.outputs.iter().map(|output| State::of(output)).collect();
        if before.iter().flatten().any(|state| !state.is_file) {
            self.pass_through();
        }
        let at_syntax = self.settings.level == Level::Ast;
        if job.lto && !at_syntax {
            self.settings.log("passed through: its objects are for link-time optimisation");
            self.pass_through();
        }
        let plan = if at_syntax { Plan::new(self.settings, &self.compiler, job, expanded) } else { None };
        let labels = self.labels(job, expanded);
        let mut arguments = self.section_flags(job.compiles);
        arguments.extend((labels == Labels::Kept).then(|| labels::KEEP.into()));
        arguments.extend_from_slice(self.user);
        // The source is read while it is compiled.
        let (status, syntax) = thread::scope(|scope| {
            let reading = plan.map(|plan| scope.spawn(move || self.read(job, plan)));
            let status = spawn::run(&self.compiler.program, &arguments, &[guard::mark(guard::COMPILER)])
                .unwrap_or_else(|error| spawn::fail_to_run(&self.compiler.program.path, &error));
            (status, reading.and_then(|reading| reading.join().ok().flatten()))
        });
        if status.success() {
            for (output, before) in job.outputs.iter().zip(before) {
                // What the compiler did not write is none of our business.
                if State::of(output).is_some_and(|after| Some(after) != before) {
                    quietly(self.settings, output.display(), || attach::attach(output, self.settings.level, labels, syntax.as_ref()));
                }
            }
        }
        spawn::end_like(status)
    }

    /// What the source of a compilation means, or why that is not known. `None` after a panic.
    fn read(&self, job: &CompileJob, plan: Result<Plan, String>) -> Option<Syntax> {
        let name = job.source.as_ref().map_or("its sources".into(), |(source, _)| source.display().to_string());
        let refuse = |reason: String| Refusal::new(name.clone(), reason);
        let syntax = quiet::attempt(self.settings, &name, || {
            let plan = plan.map_err(refuse)?;
            let preprocessed = plan.preprocess(&Wish::default()).map_err(refuse)?;
            plan.understand(&preprocessed.text)
        })?;
        if let Err(refusal) = &syntax {
            self.settings.log(format_args!("by its code: {refusal}"));
        }
        Some(syntax)
    }

    fn link(&self, job: &LinkJob, expanded: &[OsString]) -> ! {
        let program = &self.compiler.program;
        let flags = self.section_flags(job.compiles);
        let detour = drive::detour(self.settings, program, job);
        let arguments = detour.as_ref().and_then(|detour| drive::with_detour(detour, self.user, expanded));
        match (detour, arguments) {
            (Some(detour), Some(arguments)) => {
                spawn::become_or_fail(program, &[flags, arguments].concat(), &detour.environment)
            }
            _ => {
                self.settings.log(format_args!("{}: no way to the linker", job.output.display()));
                spawn::become_or_fail(program, &[&flags[..], self.user].concat(), &[])
            }
        }
    }
}

/// By what one sees that a file was written.
#[derive(PartialEq, Eq)]
struct State {
    is_file: bool,
    identity: (u64, u64),
    times: [i64; 4],
    size: u64,
}

impl State {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(State {
            is_file: file.is_file(),
            identity: (file.dev(), file.ino()),
            times: [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()],
            size: file.size(),
        })
    }
}
