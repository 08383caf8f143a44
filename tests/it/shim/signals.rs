//! A tool that dies by a signal, and signals that are sent to a shim.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::cases::ONE;
use crate::workshop::{Outcome, TASTING_CC, TASTING_LD, Workshop, write_executable};

fn script(workshop: &Workshop, text: &str) -> PathBuf {
    let path = workshop.path("tool");
    write_executable(&path, format!("#!/bin/sh\n{text}\n"));
    path
}

#[test]
fn the_shim_dies_by_the_tools_signal() {
    for (name, signal) in
        [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6), ("INT", 2), ("PIPE", 13)]
    {
        let workshop = Workshop::new();
        workshop.write("one.c", ONE);
        workshop.write("x.o", "");
        let tool = script(&workshop, &format!("kill -{name} $$"));
        for arguments in [&["-c", "one.c"][..], &["one.c", "-o", "prog"], &["-E", "one.c"]] {
            let outcome =
                Outcome::of(workshop.command(TASTING_CC).env("TASTING_CC", &tool).args(arguments));
            assert_eq!(
                (outcome.signal, outcome.code),
                (Some(signal), None),
                "{name} {arguments:?}: {outcome:?}"
            );
            assert!(outcome.stderr.is_empty(), "{name} {arguments:?}: {outcome:?}");
        }
        let outcome = Outcome::of(
            workshop.command(TASTING_LD).env("TASTING_LD", &tool).args(["x.o", "-o", "prog"]),
        );
        assert_eq!((outcome.signal, outcome.code), (Some(signal), None), "{name}: {outcome:?}");
    }
}

#[test]
fn exit_codes_come_through() {
    let workshop = Workshop::new();
    workshop.write("one.c", ONE);
    for code in [1, 4, 42, 126, 127, 255] {
        let tool = script(&workshop, &format!("exit {code}"));
        for arguments in [&["-c", "one.c"][..], &["one.c"]] {
            let outcome =
                Outcome::of(workshop.command(TASTING_CC).env("TASTING_CC", &tool).args(arguments));
            assert_eq!(outcome.code, Some(code), "{outcome:?}");
        }
    }
}

/// Whoever ends the shim means the compiler, and nothing of it may go on in secret.
#[test]
fn a_signal_to_the_shim_ends_the_tool() {
    for signal in ["TERM", "HUP"] {
        let workshop = Workshop::new();
        workshop.write("one.c", ONE);
        let tool = script(&workshop, "echo $$ > pid.new; mv pid.new pid; exec sleep 60");
        let mut shim = workshop
            .command(TASTING_CC)
            .env("TASTING_CC", &tool)
            .args(["-c", "one.c"])
            .spawn()
            .expect("it starts");
        let child = wait_for(|| std::fs::read_to_string(workshop.path("pid")).ok());
        let sent =
            Command::new("kill").args([format!("-{signal}"), shim.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let status = wait_for(|| shim.try_wait().expect("it can be waited for"));
        assert_eq!(status.signal(), Some(if signal == "TERM" { 15 } else { 1 }), "{status:?}");
        let process = format!("/proc/{}", child.trim());
        wait_for(|| (!std::path::Path::new(&process).exists()).then_some(()));
    }
}

fn wait_for<Answer>(mut question: impl FnMut() -> Option<Answer>) -> Answer {
    let start = Instant::now();
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "waited for too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}
