//! How runs end: by codes and signals, with survivors, by the death of the watcher; and below
//! another watcher.

use super::{see, see_shell};
use crate::workshop::Workshop;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tasting::observe::tracing::Tracing;
use tasting::observe::{CannotWatch, Watch, start, watch};

/// This test binary as a process of its own that watches a line of shell, if it is told one. What
/// it found it writes to a file.
pub const LINE: &str = "TASTING_TEST_WATCHED_LINE";
pub const REPORT: &str = "TASTING_TEST_WATCHED_REPORT";

#[test]
fn as_a_process() {
    let (Ok(line), Some(report)) = (std::env::var(LINE), std::env::var_os(REPORT)) else { return };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]).env_remove(LINE);
    let folder = tempfile::tempdir().unwrap();
    let how = Watch { tracing: Tracing::that_only_leads(folder.path()), ..Watch::default() };
    let text = match watch(command, &how) {
        Ok(watched) => format!("{:?}\n{:?}\n{:?}", watched.status, watched.input, watched.refusals),
        Err(error) => format!("{error:?}"),
    };
    fs::write(report, text).unwrap();
}

/// The command for `as_a_process`.
pub fn watcher(shop: &Workshop, line: &str) -> Command {
    let mut command = shop.command(std::env::current_exe().unwrap());
    command.args(["--exact", "observe::ends::as_a_process", "--nocapture", "--test-threads=1"]);
    command.env(LINE, line).env(REPORT, shop.path("report")).stdout(Stdio::null());
    command
}

/// What a watcher of its own process reports.
pub fn report(shop: &Workshop, command: &mut Command) -> String {
    assert!(command.status().unwrap().success());
    fs::read_to_string(shop.path("report")).unwrap()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", process.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn codes_and_signals_come_through() {
    let shop = Workshop::new();
    for code in [0, 1, 77, 99, 255] {
        assert_eq!(see_shell(&shop, &format!("exit {code}")).watched.status.code(), Some(code));
    }
    assert_eq!(
        see_shell(&shop, "ulimit -c 0; kill -SEGV $$").watched.status.signal(),
        Some(libc::SIGSEGV)
    );
}

#[test]
fn a_missing_command_is_an_error() {
    let shop = Workshop::new();
    match watch(shop.command("./missing"), &Watch::default()) {
        Err(CannotWatch::CannotRun(error)) => {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound)
        }
        other => panic!("{:?}", other.map(|watched| watched.status)),
    }
}

#[test]
fn pipes_can_be_read_while_it_runs() {
    let shop = Workshop::new();
    let mut command = shop.command("/bin/sh");
    command.args(["-c", "head -c 1000000 /dev/zero"]).stdout(Stdio::piped());
    let mut watching =
        start(command, &Watch { inherits_input: false, ..Watch::default() }).unwrap();
    let mut output = Vec::new();
    let mut pipe = watching.child.stdout.take().unwrap();
    std::io::Read::read_to_end(&mut pipe, &mut output).unwrap();
    assert!(watching.wait().unwrap().status.success() && output.len() == 1_000_000);
}

#[test]
fn survivors_are_refused_and_live_on() {
    let shop = Workshop::new();
    // Each turn opens, executes and writes: none of it may fail when the watcher is gone.
    let daemon = "while test ! -e stop; do sleep 0.05; date > turn || touch bad; done; touch done";
    let script = format!("(setsid sh -c '{daemon}' > /dev/null 2>&1 &) ; echo started");
    let start = Instant::now();
    let outcome = report(&shop, watcher(&shop, &script).stderr(Stdio::null()));
    assert!(outcome.contains("still runs after the test's end"), "{outcome}");
    assert!(start.elapsed() < Duration::from_secs(15), "nobody waits for survivors");
    fs::remove_file(shop.path("turn")).unwrap_or_default();
    until("a turn without the watcher", || shop.path("turn").exists());
    shop.write("stop", "");
    until("the end", || shop.path("done").exists());
    assert!(!shop.path("bad").exists());
}

#[test]
fn the_watcher_of_survivors_ends_with_them() {
    let shop = Workshop::new();
    let outcome = report(
        &shop,
        watcher(&shop, "sleep 5 > /dev/null & echo $! > sleeper").stderr(Stdio::null()),
    );
    assert!(outcome.contains("still runs"), "{outcome}");
    let marker = shop.path("report").canonicalize().unwrap();
    let sleeper = fs::read_to_string(shop.path("sleeper")).unwrap();
    until("the sleeper's end", || !is_alive(&sleeper));
    // The one that answered had this binary's environment.
    until("nobody with our environment", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        !processes.filter_map(|process| fs::read(process.path().join("environ")).ok()).any(
            |environment| {
                environment
                    .windows(marker.as_os_str().len())
                    .any(|part| part == marker.as_os_str().as_encoded_bytes())
            },
        )
    });
}

#[test]
fn the_test_dies_with_a_killed_watcher() {
    let shop = Workshop::new();
    let mut watcher = watcher(&shop, "echo $$ > shell; while :; do sleep 0.1; done")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the start", || {
        fs::read_to_string(shop.path("shell")).is_ok_and(|text| text.ends_with('\n'))
    });
    let shell = fs::read_to_string(shop.path("shell")).unwrap();
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    until("the test's end", || !is_alive(&shell));
}

#[test]
fn signals_reach_the_test_and_prevent_storing() {
    let shop = Workshop::new();
    let line =
        "trap 'echo caught > caught; exit 3' TERM; echo x > ready; while :; do sleep 0.05; done";
    let mut watcher = watcher(&shop, line).stderr(Stdio::null()).spawn().unwrap();
    until("the start", || shop.path("ready").exists());
    let sent = Command::new("kill").arg(watcher.id().to_string()).status().unwrap();
    assert!(sent.success() && watcher.wait().unwrap().success());
    let outcome = fs::read_to_string(shop.path("report")).unwrap();
    assert!(
        shop.path("caught").exists() && outcome.contains("interrupted by signal 15"),
        "{outcome}"
    );
}

#[test]
fn stopping_and_going_on() {
    let shop = Workshop::new();
    let mut watcher =
        watcher(&shop, "i=0; while [ $i -lt 20 ]; do cat /dev/null; i=$((i+1)); sleep 0.02; done")
            .spawn()
            .unwrap();
    for signal in ["-STOP", "-CONT"] {
        std::thread::sleep(Duration::from_millis(200));
        assert!(
            Command::new("kill")
                .arg(signal)
                .arg(watcher.id().to_string())
                .status()
                .unwrap()
                .success()
        );
    }
    assert!(watcher.wait().unwrap().success());
    let outcome = fs::read_to_string(shop.path("report")).unwrap();
    assert!(
        outcome.starts_with("ExitStatus(unix_wait_status(0))") && outcome.ends_with("[]"),
        "{outcome}"
    );
}

#[test]
fn watching_below_another_watcher_fails_clearly() {
    let shop = Workshop::new();
    let seen = see(&shop, watcher(&shop, "echo never > ran"));
    assert!(seen.watched.status.success());
    let outcome = fs::read_to_string(shop.path("report")).unwrap();
    assert!(outcome.contains("itself watched") && !shop.path("ran").exists(), "{outcome}");
}
