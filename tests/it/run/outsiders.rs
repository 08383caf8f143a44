//! Others than the test's own processes: who connects to its servers, and of whom it asks or
//! changes something without a file.

use super::Bench;
use crate::workshop::tool;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A server that gets two connections; the second, or both, are of the test's own.
const SERVES: &str = "
import os, socket, subprocess, sys
family, address, own = sys.argv[1:]
server = socket.socket(getattr(socket, family))
server.bind(address if family == 'AF_UNIX' else ('127.0.0.1', 0))
server.listen()
place = server.getsockname()
open('place.new', 'w').write(place if family == 'AF_UNIX' else '127.0.0.1:%d' % place[1])
os.rename('place.new', 'place')
client = 'import socket, sys; s = socket.socket(socket.%s); s.connect(eval(sys.argv[1])); s.sendall(b\"own\"); s.close()' % family
names = []
for index in range(2):
    if index or own == 'both':
        subprocess.run([sys.executable, '-c', client, repr(place)], check=True)
    connection = server.accept()[0]
    names.append(connection.recv(9).decode())
    connection.close()
print(*names)
server.close()
os.remove('place')
if family == 'AF_UNIX': os.remove(address)
";

/// Connects as soon as the server is there.
fn connect(place: &Path) {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        let Ok(address) = fs::read_to_string(place) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let sent = match address.contains(':') {
            true => TcpStream::connect(address).and_then(|mut stream| stream.write_all(b"other")),
            false => UnixStream::connect(place.with_file_name(address))
                .and_then(|mut stream| stream.write_all(b"other")),
        };
        return sent.unwrap();
    }
}

fn an_outsider_beside_a_client(family: &str) {
    let bench = Bench::new();
    let python = tool("python3");
    let words = |own| [python.to_str().unwrap(), "-c", SERVES, family, "socket", own];
    std::thread::scope(|scope| {
        scope.spawn(|| connect(&bench.path("place")));
        let ran = bench.runs(&words("second"));
        assert_eq!(ran.text(), "other own\n", "{ran:?}");
        ran.not_kept("somebody outside the test");
    });
    assert_eq!(bench.settles(&words("both")).text(), "own own\n");
}

#[test]
fn a_foreign_client_at_a_port_is_refused() {
    an_outsider_beside_a_client("AF_INET");
}

#[test]
fn a_foreign_client_at_a_path_is_refused() {
    an_outsider_beside_a_client("AF_UNIX");
}

/// Makes one call about a process.
const ASKS: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static char buffer[4096];
static long ask(const char *what, int pid) {
    struct iovec here = {buffer, 8}, there = {buffer, 8};
    struct rlimit limit;
    cpu_set_t set;
#define IS(name) !strcmp(what, name)
    if (IS("getpriority")) return getpriority(PRIO_PROCESS, pid);
    if (IS("setpriority")) return setpriority(PRIO_PROCESS, pid, 5);
    if (IS("prlimit")) return prlimit(pid, RLIMIT_NOFILE, 0, &limit);
    if (IS("getpgid")) return getpgid(pid) > 0;
    if (IS("getsid")) return getsid(pid) > 0;
    if (IS("sched_getaffinity")) return sched_getaffinity(pid, sizeof set, &set);
    if (IS("sched_getscheduler")) return sched_getscheduler(pid);
    if (IS("ioprio_get")) return syscall(SYS_ioprio_get, 1, pid);
    if (IS("process_vm_readv")) return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
    if (IS("pidfd_open")) return syscall(SYS_pidfd_open, pid, 0) > 0;
    if (IS("users")) return getpriority(PRIO_USER, 0);
    if (IS("group")) return getpriority(PRIO_PGRP, 0);
    if (IS("unknown")) return syscall(1000, pid);
    exit(3);
}
int main(int count, char **words) {
    int pid = count > 2 ? atoi(words[2]) : fork();
    if (!pid) { pause(); return 0; }
    printf("%ld\n", ask(words[1], pid));
    if (count <= 2) { kill(pid, SIGKILL); wait(0); }
    return 0;
}
"#;

const CALLS: [&str; 10] = [
    "getpriority",
    "setpriority",
    "prlimit",
    "getpgid",
    "getsid",
    "sched_getaffinity",
    "sched_getscheduler",
    "ioprio_get",
    "process_vm_readv",
    "pidfd_open",
];

#[test]
fn asking_for_an_outsiders_settings_is_not_kept() {
    let bench = Bench::with(ASKS);
    let mut outsider = Command::new("sleep").arg("300").spawn().unwrap();
    for call in CALLS {
        bench.runs(&["./t", call, &outsider.id().to_string()]).not_kept("not its own");
    }
    for all in ["users", "group"] {
        bench.runs(&["./t", all]).not_kept("not its own");
    }
    outsider.kill().unwrap();
    outsider.wait().unwrap();
}

#[test]
fn asking_for_an_own_childs_settings_is_reused() {
    let bench = Bench::with(ASKS);
    for call in CALLS {
        bench.settles(&["./t", call]);
    }
}

#[test]
fn unknown_system_calls_are_refused() {
    let bench = Bench::with(ASKS);
    let ran = bench.runs(&["./t", "unknown", "1"]);
    assert_eq!(ran.text(), "-1\n");
    ran.not_kept("unknown");
}
