//! Where too little of something is allowed to watch a test, it runs plainly.

use super::Bench;
use crate::workshop::{Outcome, TASTING};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a shell prints that runs these lines as somebody who is not root.
fn limited(bench: &Bench, user: u32, lines: &str) -> Outcome {
    for folder in [bench.path(""), bench.store.path().to_owned()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut command = bench.command("setpriv");
    command.args([
        &format!("--reuid={user}"),
        &format!("--regid={user}"),
        "--clear-groups",
        "bash",
        "-c",
        lines,
    ]);
    Outcome::of(&mut command)
}

#[track_caller]
fn is_as_plainly(limit: &str, test: &str) {
    // The limit of processes does not hold for root, and counts all processes of a user: each call
    // gets one of its own.
    static USERS: AtomicU32 = AtomicU32::new(0);
    let user = 1_000_000 + std::process::id() * 100 + USERS.fetch_add(1, Ordering::Relaxed);
    let bench = Bench::new();
    // The build folder may be one that nobody else can enter.
    let tasting = bench.path("tasting");
    std::fs::hard_link(TASTING, &tasting)
        .or_else(|_| std::fs::copy(TASTING, &tasting).map(drop))
        .unwrap();
    let ran = limited(&bench, user, &format!("ulimit {limit}; exec ./tasting run -- {test}"));
    let plain = limited(&bench, user, &format!("ulimit {limit}; exec {test}"));
    assert_eq!(ran, plain, "ulimit {limit}: {test}");
    assert!(ran.code == Some(0), "{ran:?}");
}

#[test]
fn little_memory_runs_it_plainly() {
    for limit in ["-v 20000", "-v 60000", "-d 10000"] {
        is_as_plainly(limit, "sh -c 'ulimit -v; ulimit -d; echo done'");
    }
}

#[test]
fn few_processes_run_it_plainly() {
    for count in 1..=6 {
        is_as_plainly(&format!("-u {count}"), "bash -c 'ulimit -u; echo done'");
    }
    is_as_plainly("-u 4", "bash -c '(sleep 0.1 & sleep 0.1 & wait); echo done'");
}

#[test]
fn few_descriptors_end_it_as_plainly() {
    for count in [4, 5, 6, 8, 10, 12, 16, 24] {
        is_as_plainly(&format!("-n {count}"), "sh -c 'ulimit -n; echo done'");
    }
}

#[test]
fn small_files_end_it_as_plainly() {
    is_as_plainly("-f 0", "sh -c 'ulimit -f; echo done'");
    is_as_plainly("-f 1", "sh -c 'ulimit -f; head -c 4000 /dev/zero > big; echo $?'");
}
