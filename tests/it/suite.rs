//! `tasting suite` and `tasting select`: the same tests, ends and exit status as the harness gives
//! without them, and the same decisions as `tasting run` makes in the harness.

mod automake;
mod cargo;
mod ctest;
mod ctest_properties;
mod list;
mod meson;
mod output;

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// `tasting suite`, or another subcommand, with these words.
fn tasting(bench: &Bench, words: &[&str]) -> Command {
    let mut command = bench.command(TASTING);
    command.args(words);
    command
}

/// What `--json` prints.
#[track_caller]
fn json(outcome: &Outcome) -> Value {
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// Name and one field of each test.
fn field(suite: &Value, name: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let tests = suite["tests"].as_array().expect("a list of tests");
    let mut fields: Vec<_> =
        tests.iter().map(|test| (text(&test["name"]), text(&test[name]))).collect();
    fields.sort();
    fields
}

/// How a harness ended, and its tests by name.
type Ended = (Option<i32>, Vec<(String, String)>);

/// A suite ended as without us, and these tests were executed.
#[track_caller]
fn agrees(outcome: &Outcome, executed: &[&str], plain: Ended) {
    let suite = json(outcome);
    let ran = field(&suite, "decision").into_iter().filter(|(_, decision)| decision == "executed");
    let ran: Vec<String> = ran.map(|(name, _)| name).collect();
    assert_eq!(ran, executed, "{suite:#} {}", outcome.stderr_text());
    assert_eq!((outcome.code, field(&suite, "end")), plain, "{suite:#} {}", outcome.stderr_text());
}

/// Whether a process of a group is alive. One that has ended and that nobody has waited for is not.
fn is_alive(group: u32) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|one| std::fs::read_to_string(one.path().join("stat")).ok());
    stats.into_iter().any(|stat| {
        // Behind the name: state, parent, group.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = behind.split_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
    })
}

/// How a command ends that Ctrl-C is sent to as soon as a file is there. It starts with `setsid`,
/// and nothing of it is left.
fn interrupted(bench: &Bench, command: &mut Command, file: &Path) -> ExitStatus {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    crate::workshop::wait_for(file);
    let group = format!("-{}", child.id());
    succeed(bench.command("kill").args(["-INT", "--", &group])).unwrap();
    let status = child.wait().unwrap();
    // What has been told to end may take a moment.
    let end = Instant::now() + Duration::from_secs(30);
    while is_alive(child.id()) {
        assert!(Instant::now() < end, "processes are left");
        std::thread::sleep(Duration::from_millis(5));
    }
    status
}
