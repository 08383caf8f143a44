//! Signals that are sent to `tasting run` reach the test, and end it as they would without.

use super::Bench;
use crate::workshop::{Outcome, TASTING, tool};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Code for programs that find out whether their code is not what is in their file. Two functions
/// are not executed: a few places are such that what lies there cannot be traced, but not as many
/// as one of these is long. The addresses are kept in allocated memory, where nobody can follow them
/// beforehand: a program that can be seen to read its code is not traced at all.
pub const IS_TRACED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline, used)) static int idle(int x) { for (int i = 0; i < x; i++) x += i * x; return x; }
__attribute__((noinline, used)) static int as_idle(int x) { for (int i = 0; i < x; i++) x += i * x * 3; return x; }
static int differs(int (*function)(int)) {
    Dl_info module;
    char bytes[8];
    int file = open("/proc/self/exe", O_RDONLY);
    if (!dladdr((void *)function, &module)) abort();
    if (pread(file, bytes, sizeof bytes, (char *)function - (char *)module.dli_fbase) != sizeof bytes) abort();
    close(file);
    return memcmp(bytes, (void *)function, sizeof bytes) != 0;
}
static int is_traced(void) {
    int (*volatile *kept)(int) = malloc(2 * sizeof *kept);
    kept[0] = idle, kept[1] = as_idle;
    return differs(kept[0]) || differs(kept[1]);
}
"#;

/// A `tasting run` that has printed its first line.
struct Begun {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Begun {
    fn new(mut command: Command) -> Begun {
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "begun");
        Begun { child, lines }
    }

    fn send(&self, signal: i32) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// The signal that it ends by, soon.
    fn end(mut self) -> Option<i32> {
        let start = Instant::now();
        let status = self.child.wait().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
        status.signal()
    }
}

const CATCHES: &str = r#"
import os, signal, time
def note(number, frame):
    os.write(1, b"%d\n" % number)
for number in sorted(signal.valid_signals()):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, note)
print("begun", flush=True)
while True:
    time.sleep(60)
"#;

#[test]
fn every_signal_reaches_the_test() {
    tool("python3");
    let bench = Bench::new();
    bench.write("t.py", CATCHES);
    let mut begun = Begun::new(bench.tasting(&["python3", "t.py"]));
    let left_alone = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU, 32, 33];
    for signal in (1..=64).filter(|signal| !left_alone.contains(signal)) {
        begun.send(signal);
        assert_eq!(begun.lines.next().map(Result::unwrap), Some(signal.to_string()));
    }
    begun.send(libc::SIGKILL);
    assert_eq!(begun.end(), Some(libc::SIGKILL));
}

#[test]
fn the_runner_dies_by_the_tests_signal() {
    let bench = Bench::new();
    for signal in [
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGXCPU,
        libc::SIGSEGV,
        34,
        64,
    ] {
        let begun = Begun::new(bench.tasting(&["sh", "-c", "echo begun; exec sleep 60"]));
        begun.send(signal);
        assert_eq!(begun.end(), Some(signal));
    }
}

#[test]
fn signals_ignored_by_the_test_end_nothing() {
    let bench = Bench::new();
    let script = "trap '' VTALRM PWR USR1; echo begun; read line < fifo; echo $line";
    assert!(bench.command("mkfifo").arg("fifo").status().unwrap().success());
    let mut begun = Begun::new(bench.tasting(&["sh", "-c", script]));
    for signal in
        [libc::SIGVTALRM, libc::SIGPWR, libc::SIGUSR1, libc::SIGWINCH, libc::SIGCHLD, libc::SIGURG]
    {
        begun.send(signal);
    }
    std::fs::write(bench.path("fifo"), "all survived\n").unwrap();
    assert_eq!(begun.line(), "all survived");
    assert_eq!(begun.end(), None);
}

fn state(process: u32) -> char {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    text.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

fn becomes(process: u32, wanted: char) -> bool {
    let start = Instant::now();
    while state(process) != wanted {
        if start.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn stopped_and_continued_with_the_test() {
    let bench = Bench::new();
    let script =
        "echo begun; echo $$; i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done; echo done";
    let mut begun = Begun::new(bench.tasting(&["sh", "-c", script]));
    let test: u32 = begun.line().parse().unwrap();
    begun.send(libc::SIGTSTP);
    assert!(becomes(begun.child.id(), 'T') && becomes(test, 'T'));
    begun.send(libc::SIGCONT);
    assert_eq!(begun.line(), "done");
    assert_eq!(begun.end(), None);
}

#[test]
fn a_test_that_stops_itself_goes_on() {
    let bench = Bench::new();
    // It is continued again and again, since the first time may come before it has stopped.
    let script = "(while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; kill -CONT $$; done) & \
        kill -STOP $$; kill $!; wait; echo done";
    assert_eq!(bench.run(&["sh", "-c", script]).text(), "done\n");
}

/// The timer was set for the program in whose place we are.
#[test]
fn an_alarm_from_before_ends_the_test() {
    tool("perl");
    let bench = Bench::new();
    let mut command = bench.command("perl");
    command.args([
        "-e",
        "alarm 5; exec @ARGV",
        TASTING,
        "run",
        "sh",
        "-c",
        "echo begun; exec sleep 60",
    ]);
    assert_eq!(Begun::new(command).end(), Some(libc::SIGALRM));
}

#[test]
fn ignored_and_blocked_signals_stay_so() {
    let bench = Bench::new();
    let script = "grep -E 'SigBlk|SigIgn' /proc/self/status";
    let run = |words: &[&str]| {
        let mut command = bench.command("env");
        command.args(["--ignore-signal=HUP,USR1", "--block-signal=USR2"]).args(words);
        crate::workshop::Outcome::of(&mut command).stdout_text()
    };
    assert_eq!(run(&["sh", "-c", script]), run(&[TASTING, "run", "sh", "-c", script]));
}

/// The first attempt fails because it is traced. A harness's timeout meets the second one.
#[test]
fn signals_reach_the_second_attempt() {
    let source = format!(
        "{IS_TRACED}\nint main(void) {{ if (is_traced()) return 1; fclose(fopen(\"ready\", \"w\")); sleep(60); }}"
    );
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let bench = Bench::with(&source);
        let mut child = bench.tasting(&["./t"]).stdout(Stdio::null()).spawn().unwrap();
        crate::workshop::wait_for(&bench.path("ready"));
        Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        let start = Instant::now();
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

/// Who ignores the signal has no children to wait for.
#[test]
fn a_test_whose_parent_ignores_its_children() {
    let perl = tool("perl");
    let bench = Bench::new();
    let ignoring = |words: &[&str]| {
        let mut command = bench.command(&perl);
        command.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV or die"]).args(words);
        command
    };
    let words = ["sh", "-c", "grep SigIgn /proc/self/status; (exit 2); exit 3"];
    let plain = Outcome::of(&mut ignoring(&words));
    let ran = bench.finish(&mut ignoring(&[&[TASTING, "run", "--"][..], &words].concat()));
    assert_eq!(ran.outcome, plain);
    assert_eq!(plain.code, Some(3));
}
