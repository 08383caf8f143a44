//! Runs a command under watch and tells what it used: `cargo run --example watch -- COMMAND ARGS…`

use std::process::{Command, ExitCode};
use tasting::observe::tracing::Tracing;
use tasting::observe::{CannotWatch, Use, Watch, watch};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: watch COMMAND ARGS…");
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    command.args(words);
    let tracing = Tracing::that_only_leads(&std::env::temp_dir());
    let watched = match watch(command, &Watch { tracing, ..Watch::default() }) {
        Ok(watched) => watched,
        Err(CannotWatch::Unavailable { reason, .. }) => {
            eprintln!("watching is not possible: {reason}");
            return ExitCode::from(125);
        }
        Err(CannotWatch::CannotRun(error)) => {
            eprintln!("cannot run it: {error}");
            return ExitCode::from(127);
        }
    };
    if std::env::var_os("WATCH_QUIET").is_none() {
        watched.used.iter().for_each(|used| eprintln!("{}", line(used)));
    }
    watched.refusals.iter().for_each(|refusal| eprintln!("refused   {refusal}"));
    eprintln!("{}, {:?}, standard input {:?}", watched.status, watched.duration, watched.input);
    ExitCode::from(watched.status.code().map_or(128, |code| code as u8))
}

fn line(used: &Use) -> String {
    let path = used.path().display();
    match used {
        Use::Read { content, .. } => format!("read      {path} {content}"),
        Use::Loaded { content, .. } => format!("loaded    {path} {content}"),
        Use::Executed { content, .. } => format!("executed  {path} {content}"),
        Use::Exists { what, .. } => format!("exists    {path} {what:?}"),
        Use::Absent { .. } => format!("absent    {path}"),
        Use::Denied { .. } => format!("denied    {path}"),
        Use::Listed { listing, .. } => format!("listed    {path} {listing}"),
        Use::Link { target, .. } => format!("link      {path} -> {}", target.display()),
        Use::Extended { attributes, .. } => format!("extended  {path} {attributes}"),
        Use::Target { target, state, .. } => format!("target    {path} {target:?} {state}"),
        Use::Fact { value, .. } => format!("fact      {path} {value}"),
        Use::Written { kind, .. } => format!("written   {path} {kind:?}"),
        Use::Removed { .. } => format!("removed   {path}"),
    }
}
