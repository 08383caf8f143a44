//! The compile shim: source → object + record.
//!
//! In: a compiler driver's command line. Out: exactly what the real driver does, and a record in
//! each object that it writes. What does not write plain objects is passed through untouched.

/// Whose addresses an object uses as values.
pub mod addresses;
/// What a call will do.
pub mod arguments;
/// The record, added to an object.
pub mod attach;
/// Records at the AST level.
pub mod definitions;
/// The dependency file of a compilation that is not done.
pub mod dependencies;
/// The way from a driver that links to the linker's shim.
pub mod drive;
/// Which compiler it is.
pub mod identity;
/// Options with which results depend on inlining.
pub mod inlining;
/// Whether the labels of constants are to be kept.
pub mod labels;
/// The languages of input files.
pub mod languages;
/// The folder of links that stand for linkers.
pub mod ld_links;
/// Of which text the compiler may have something to say.
pub mod messages;
/// One option of a driver, and all that it decides.
pub mod option;
/// The table of the drivers' options.
pub mod option_table;
/// What an option means.
pub mod options;
/// Positions in the source that are part of the object.
pub mod positions;
/// The preprocessed text.
pub mod preprocess;
/// Objects that need not be made.
pub mod reuse;
/// Running the compiler with our options, and without them where it fails.
pub mod run_compiler;
/// Sources of a call that links, compiled by calls of their own.
pub mod separately;
/// What a source means.
pub mod syntax;
/// The words of a call, each with what its option means.
pub mod words;

use crate::ast;
use crate::elf::Labels;
use crate::model::{FileIdentity, Level, Refusal};
use crate::process::find::{self, Compiler, Tool};
use crate::process::quiet::{self, quietly};
use crate::process::{Settings, atomic_write, guard, response, spawn, sys};
use arguments::{CompileJob, Invocation, LinkJob};
use preprocess::PreprocessOptions;
use reuse::{Answer, Missing, Request};
use run_compiler::Made;
use separately::Separately;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;
use syntax::{Plan, Understood};

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

/// One compilation.
struct Work<'w> {
    job: &'w CompileJob,
    /// What the objects were before.
    before: Vec<Option<FileState>>,
    labels: Labels,
    /// Our own.
    added: Vec<OsString>,
    /// Ours and the user's.
    arguments: Vec<OsString>,
    /// When it began.
    start: Duration,
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
        let has_room = || {
            !sys::file_size_is_limited()
                && job.outputs.iter().all(|output| atomic_write::is_possible(output))
        };
        if wanted && can_be_kept() && has_room() { Labels::Kept } else { Labels::Plain }
    }

    fn compile(&self, job: &CompileJob, expanded: &[OsString]) -> ! {
        let before: Vec<Option<FileState>> =
            job.outputs.iter().map(|output| FileState::of(output)).collect();
        if before.iter().flatten().any(|state| !state.is_file) {
            self.pass_through();
        }
        let at_syntax = self.settings.level == Level::Ast;
        if job.lto && !at_syntax {
            self.settings.log("passed through: its objects are for link-time optimisation");
            self.pass_through();
        }
        let labels = self.labels(job, expanded);
        let mut added = self.section_flags(job.compiles);
        added.extend((labels == Labels::Kept).then(|| labels::KEEP.into()));
        let arguments = [&added[..], self.user].concat();
        let is_wanted = at_syntax || self.settings.reuse_objects;
        let source = job.source.as_ref().map(|(source, _)| Path::new(source)).filter(|_| is_wanted);
        let work = Work { job, before, labels, added, arguments, start: syntax::moment(source) };
        let plan =
            if is_wanted { Plan::new(self.settings, &self.compiler, job, expanded) } else { None };
        let known = match &plan {
            Some(Ok(plan)) if self.settings.reuse_objects => self.reuse(&work, plan),
            _ => None,
        };
        // The source is read while it is compiled.
        let (made, syntax) = thread::scope(|scope| {
            let is_unread = known.is_none() && at_syntax;
            let reading =
                plan.filter(|_| is_unread).map(|plan| scope.spawn(|| self.read(job, plan)));
            let made = self.make(&work, false);
            (made, known.or_else(|| reading?.join().ok().flatten()))
        });
        self.attach(&work, &made, syntax.map(|syntax| self.unless_changed(&work, syntax)).as_ref());
        spawn::end_like(made.status)
    }

    /// What a source means, unless it was changed while it was compiled.
    fn unless_changed(&self, work: &Work, syntax: Syntax) -> Syntax {
        let understood = syntax?;
        match understood.changed_since(work.start) {
            Some(refusal) => {
                self.settings.log(format_args!("by its code: {refusal}"));
                Err(refusal)
            }
            None => Ok(understood),
        }
    }

    /// Gives each object that was written its record.
    fn attach(&self, work: &Work, made: &Made, syntax: Option<&Syntax>) {
        for (output, before) in
            work.job.outputs.iter().zip(&work.before).filter(|_| made.status.success())
        {
            // What the compiler did not write is none of our business.
            if FileState::of(output).is_some_and(|after| Some(&after) != before.as_ref()) {
                let attach = || match made.is_split {
                    true => attach::attach(output, self.settings.level, work.labels, syntax),
                    false => attach::attach(output, Level::File, Labels::Plain, None),
                };
                quietly(self.settings, output.display(), attach);
            }
        }
    }

    /// What the source of a compilation means, or why that is not known. `None` after a panic.
    fn read(&self, job: &CompileJob, plan: Result<Plan, String>) -> Option<Syntax> {
        let name = job
            .source
            .as_ref()
            .map_or("its sources".into(), |(source, _)| source.display().to_string());
        let refuse = |reason: String| Refusal::new(name.clone(), reason);
        let syntax = quiet::attempt(self.settings, &name, || {
            let plan = plan.map_err(refuse)?;
            let preprocessed = plan.preprocess(&PreprocessOptions::default()).map_err(refuse)?;
            plan.understand(&preprocessed.text, ast::read)
        })?;
        if let Err(refusal) = &syntax {
            self.settings.log(format_args!("by its code: {refusal}"));
        }
        Some(syntax)
    }

    /// Ends with an object from the cache, or with one that was made and kept. Returns where that
    /// cannot be done; with what is known of the source by then.
    fn reuse(&self, work: &Work, plan: &Plan) -> Option<Syntax> {
        let [output] = &work.job.outputs[..] else { return None };
        let log = |reason: &dyn Display| {
            self.settings.log(format_args!("{}: {reason}", output.display()))
        };
        let request = if work.job.lto { Err("it is for link-time optimisation") } else { Ok(()) };
        let request = request
            .and_then(|()| Request::new(self.settings, plan, output, &work.added, work.start));
        let request = request.map_err(|reason| log(&format_args!("not reused: {reason}"))).ok()?;
        match quiet::attempt(self.settings, output.display(), || request.look_up())? {
            Answer::Reused { is_shared } => {
                log(&if is_shared { "reused, from another machine" } else { "reused" });
                std::process::exit(0)
            }
            Answer::Missing(missing) => {
                let reason = if missing.has_diagnostics {
                    "the compiler has something to say of it"
                } else {
                    "its meaning is new"
                };
                log(&format_args!("not reused: {reason}"));
                self.make_and_keep(work, &request, missing)
            }
            Answer::Refused(refusal, understood) => {
                log(&format_args!("not reused: {refusal}"));
                Some(understood.ok_or(refusal))
            }
            Answer::Failed(reason) => {
                log(&format_args!("not reused: {reason}"));
                None
            }
        }
    }

    /// Compiles, and keeps the object if the compiler had nothing to say.
    fn make_and_keep(&self, work: &Work, request: &Request, missing: Missing) -> ! {
        request.count_made();
        let made = self.make(work, !missing.has_diagnostics);
        let Missing { key, text, understood, has_diagnostics, reply } = missing;
        let syntax = self.unless_changed(work, Ok(understood));
        self.attach(work, &made, Some(&syntax));
        if let (Ok(understood), true) =
            (syntax, made.status.success() && made.has_no_diagnostics && made.is_split)
        {
            request.keep(&Missing { key, text, understood, has_diagnostics, reply });
        }
        spawn::end_like(made.status)
    }

    fn link(&self, job: &LinkJob, expanded: &[OsString]) -> ! {
        let at_syntax = self.settings.level == Level::Ast && job.compiles && self.compiler.known;
        // What a response file holds may be too long for a command line.
        let plan = || Separately::plan(expanded).filter(|_| expanded == self.user);
        if let Some(separately) = at_syntax.then(plan).flatten() {
            let compiled = separately.compile(&self.compiler);
            let status = compiled.map_or_else(
                |failed| failed,
                |()| {
                    let (arguments, environment) =
                        self.linking(job, &separately.words, &separately.words);
                    let program = &self.compiler.program;
                    let status = spawn::run(program, &arguments, &environment);
                    status.unwrap_or_else(|error| spawn::fail_to_run(&program.path, &error))
                },
            );
            drop(separately);
            spawn::end_like(status)
        }
        let flags = self.section_flags(job.compiles);
        let (arguments, environment) = self.linking(job, self.user, expanded);
        if flags.is_empty() || !run_compiler::mentions_sections(&run_compiler::sources(expanded)) {
            spawn::become_or_fail(
                &self.compiler.program,
                &[flags, arguments].concat(),
                &environment,
            )
        }
        spawn::end_like(self.link_split(&flags, &arguments, &environment))
    }

    /// The user's arguments and the environment for a call that links, by way of the linker's shim
    /// where there is one.
    fn linking(
        &self,
        job: &LinkJob,
        user: &[OsString],
        expanded: &[OsString],
    ) -> (Vec<OsString>, Vec<spawn::Change>) {
        let detour = drive::detour(self.settings, &self.compiler.program, job);
        let arguments =
            detour.as_ref().and_then(|detour| drive::with_detour(detour, user, expanded));
        match (detour, arguments) {
            (Some(detour), Some(arguments)) => (arguments, detour.environment),
            _ => {
                self.settings.log(format_args!("{}: no way to the linker", job.output.display()));
                (user.to_vec(), Vec::new())
            }
        }
    }
}

/// By what one sees that a file was written.
#[derive(PartialEq, Eq)]
struct FileState {
    is_file: bool,
    identity: FileIdentity,
}

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(FileState { is_file: file.is_file(), identity: FileIdentity::of(&file) })
    }
}
