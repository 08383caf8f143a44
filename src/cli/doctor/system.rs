//! The kernel and the container: whether tests can be watched.

use crate::cli::scratch::Scratch;
use crate::observe::{self, CannotWatch, Use, Watch, Watched};
use crate::process::sys;
use crate::report::findings::Finding;
use crate::report::units;
use std::fs;
use std::process::{Command, Stdio};

/// What follows where tests cannot be watched.
const UNWATCHED: &str = "tests run as ever, and nothing is remembered or reused";

/// The bit of CAP_SYS_ADMIN in `/proc/self/status`.
const ADMINISTRATOR: u64 = 1 << 21;

pub fn examine() -> Vec<Finding> {
    let mut found = vec![kernel()];
    if observe::availability().is_ok() {
        found.push(watching());
        found.push(privileges());
    }
    found.extend(container());
    if sys::file_size_is_limited() {
        found.push(Finding::note(
            "ulimit -f",
            "files may not become large: large results cannot be kept",
        ));
    }
    found
}

fn kernel() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let subject = format!("kernel {}", release.trim_end());
    match observe::availability() {
        Ok(()) => Finding::works(subject, "has seccomp notifications"),
        Err(_) if observe::is_watched() => Finding::note(
            subject,
            "we are inside of a test that is watched already: tasting run passes through",
        ),
        Err(reason) => Finding::broken(subject, format!("{reason}: {UNWATCHED}")),
    }
}

/// Watches a program that reads a file.
fn watching() -> Finding {
    match try_watching() {
        Ok(()) => Finding::works("watching", "a program that reads a file was seen to read it"),
        Err(problem) => Finding::broken("watching", format!("{problem}: {UNWATCHED}")),
    }
}

fn try_watching() -> Result<(), String> {
    let scratch = Scratch::new("doctor")
        .map_err(|error| format!("no temporary folder can be made: {error}"))?;
    let file = scratch.path("file");
    fs::write(&file, "x\n")
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    // Not a shell: those have signal handlers, and calls of programs that are not led can be
    // interrupted.
    let mut reader = Command::new("cat");
    reader.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let how = Watch { inherits_input: false, ..Watch::default() };
    let Watched { status, used, refusals, .. } =
        observe::watch(reader, &how).map_err(|error| match error {
            CannotWatch::Unavailable { reason, .. } => reason,
            CannotWatch::CannotRun(error) => format!("cat cannot be run: {error}"),
        })?;
    if let Some(refusal) = refusals.first() {
        return Err(format!("a plain program is refused: {refusal}"));
    }
    let is_seen = used.iter().any(|used| matches!(used, Use::Read { path, .. } if *path == file));
    match status.success() {
        true if is_seen => Ok(()),
        true => Err("a file that was read was not seen".to_owned()),
        false => Err(format!("a watched program ended with {status}")),
    }
}

/// What programs with more power than their user can do inside of tests.
fn privileges() -> Finding {
    let effective =
        status_field("CapEff").and_then(|field| u64::from_str_radix(&field, 16).ok()).unwrap_or(0);
    let text = match () {
        () if status_field("NoNewPrivs").as_deref() == Some("1") => {
            "no_new_privs is set on us already: set-user-id programs (sudo, ping) have no power, watched or not"
        }
        () if effective & ADMINISTRATOR != 0 => {
            return Finding::works(
                "privileges",
                "set-user-id programs keep their power inside of tests",
            );
        }
        () => {
            "watched tests get no_new_privs: set-user-id programs (sudo, ping) have no power there; a test that starts one is \
             run again plainly if it fails, and is not kept"
        }
    };
    Finding::note("privileges", text)
}

fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(field, _)| *field == name).map(|(_, value)| value.trim().to_owned())
}

/// What limits us, if we are in a container.
fn container() -> Option<Finding> {
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/systemd/container", "systemd"),
    ];
    let kind =
        marks.iter().find(|(mark, _)| fs::exists(mark).unwrap_or(false)).map(|(_, kind)| *kind);
    let limit = |file: &str| {
        fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?.trim().parse::<u64>().ok()
    };
    let mut limits: Vec<String> = Vec::new();
    limits.extend(limit("memory.max").map(|bytes| format!("{} of memory", units::size(bytes))));
    limits.extend(limit("pids.max").map(|count| format!("{count} processes")));
    if status_field("Seccomp").as_deref() == Some("2") {
        limits.push("a filter of system calls".to_owned());
    }
    if kind.is_none() && limits.is_empty() {
        return None;
    }
    let limits = if limits.is_empty() { "none that matter".to_owned() } else { limits.join(", ") };
    Some(Finding::note(
        kind.map_or("container".to_owned(), |kind| format!("container ({kind})")),
        format!("limits: {limits}"),
    ))
}
