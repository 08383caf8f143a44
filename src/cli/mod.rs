//! The `tasting` command: one file per subcommand.

mod clear;
mod completions;
mod config;
mod context;
mod cover;
mod doctor;
mod explain;
mod fingerprint;
mod gc;
mod help;
mod history;
mod init;
mod log;
mod objects;
mod pull;
mod push;
mod report;
mod run;
mod scratch;
mod select;
mod setup;
mod show;
mod stats;
mod suite;
mod topics;
mod version;

use crate::process::Settings;
use crate::report::json;
use crate::store::{DEFAULT_LIMIT, FileStore, Options};
use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The exit codes of `tasting`. (The shims end as the real tool ends.)
pub mod exit {
    /// Everything asked for was done.
    pub const OK: u8 = 0;
    /// At least one thing could not be done; standard error says which and why.
    pub const FAILED: u8 = 1;
    /// The command line was not understood.
    pub const USAGE: u8 = 2;
}

/// Reuses test results: runs a test only when something that it can depend on has changed.
#[derive(Parser)]
#[command(
    name = "tasting",
    version = version::SHORT,
    long_version = version::LONG,
    disable_help_subcommand = true,
    after_help = "Build with the shims, put `tasting run` before your tests, and see what comes of it:\n\n  \
        make CC=tasting-cc CXX=tasting-c++\n  \
        tasting run -- ./test --all\n  \
        tasting suite -- ctest --test-dir build\n  \
        tasting log -n 10\n  \
        tasting explain -- ./test --all\n\n\
        What to type for your build system? `tasting init` tells. Does it work here at all? `tasting doctor` tries.\n\n\
        Exit codes: 0 all done, 1 something could not be done (see standard error), 2 wrong usage. \
        `tasting run` ends as the test ends, `tasting suite` as the harness ends."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Arguments),
    Run(run::Arguments),
    Suite(suite::Arguments),
    Select(select::Arguments),
    Explain(explain::Arguments),
    Log(log::Arguments),
    Stats(stats::Arguments),
    History(history::Arguments),
    Report(report::Arguments),
    Fingerprint(fingerprint::Arguments),
    Show(show::Arguments),
    Doctor(doctor::Arguments),
    Config(config::Arguments),
    #[command(hide = true)]
    Context(context::Arguments),
    #[command(hide = true)]
    Cover(cover::Arguments),
    #[command(hide = true)]
    Objects(objects::Arguments),
    Push(push::Arguments),
    Pull(pull::Arguments),
    Gc(gc::Arguments),
    Clear(clear::Arguments),
    Setup(setup::Arguments),
    Completions(completions::Arguments),
    Help(help::Arguments),
}

/// The definition of the whole command line: for the manual, completions and help.
fn command() -> clap::Command {
    Arguments::command()
}

/// `tasting run` by itself: it stands before every test, and making the definition of the whole
/// command line takes as long as starting a program.
#[derive(Parser)]
#[command(name = "tasting run", disable_help_flag = true)]
struct RunAlone {
    #[command(flatten)]
    arguments: run::Arguments,
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let words = || std::env::args_os().skip(1);
    if words().next().is_some_and(|word| word == "run")
        && let Ok(RunAlone { arguments }) = RunAlone::try_parse_from(words())
    {
        run::run(arguments);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; a closed pipe is not ours to report_error about.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    let outcome = match arguments.command {
        Command::Init(arguments) => init::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Suite(arguments) => suite::run(arguments),
        Command::Select(arguments) => select::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Log(arguments) => log::run(arguments),
        Command::Stats(arguments) => stats::run(arguments),
        Command::History(arguments) => history::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Fingerprint(arguments) => fingerprint::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Config(arguments) => config::run(arguments),
        Command::Context(arguments) => context::run(arguments),
        Command::Cover(arguments) => cover::run(arguments),
        Command::Objects(arguments) => objects::run(arguments),
        Command::Push(arguments) => push::run(arguments),
        Command::Pull(arguments) => pull::run(arguments),
        Command::Gc(arguments) => gc::run(arguments),
        Command::Clear(arguments) => clear::run(arguments),
        Command::Setup(arguments) => setup::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Help(arguments) => help::run(arguments),
    };
    ExitCode::from(outcome.unwrap_or_else(|error| report_error(&error)))
}

/// Prints an error, in one line. A reader that closed its pipe is no failure.
fn report_error(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<io::Error>()
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        return exit::OK;
    }
    let label = if io::stderr().is_terminal() { "\x1b[1;31mtasting:\x1b[0m" } else { "tasting:" };
    let _ = writeln!(io::stderr(), "{label} {error:#}");
    exit::FAILED
}

/// The store of this user, its folder and its limit.
struct OpenStore {
    store: FileStore,
    folder: PathBuf,
    limit: u64,
}

fn open_store(settings: &Settings) -> anyhow::Result<OpenStore> {
    let folder = settings
        .dir
        .clone()
        .context("there is no folder for the store: set TASTING_DIR or HOME")?;
    let limit = settings.max_size.unwrap_or(DEFAULT_LIMIT);
    let store = FileStore::new(&folder, Options { limit, read_only: settings.readonly });
    Ok(OpenStore { store, folder, limit })
}

/// Prints JSON, or text for people, in colour where they see it.
fn print<T: Serialize>(
    as_json: bool,
    shown: &T,
    text: impl FnOnce(&mut BufWriter<StdoutLock<'static>>, &T, bool) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if as_json {
        json::write(&mut out, shown)?;
    } else {
        text(&mut out, shown, is_colourful())?;
    }
    Ok(out.flush()?)
}

/// Whether standard output is for the eyes of people who have not asked for plain text.
fn is_colourful() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}
