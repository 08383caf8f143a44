//! Ways to notice the watcher: a run that uses one is not kept, and what fails by it is repeated
//! without us.

use super::Bench;
use crate::workshop::{Outcome, tool};

/// Strict mode is impossible below a filter: `open` would not be killed.
const STRICT: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int status;
    if (!fork()) {
        prctl(PR_SET_SECCOMP, 1);
        open("t", O_RDONLY);
        _exit(0);
    }
    wait(&status);
    printf("%d\n", status);
    return RESULT;
}
"#;

#[test]
fn a_pass_without_strict_mode_is_not_kept() {
    let bench = Bench::with(&STRICT.replace("RESULT", "0"));
    bench.runs(&["./t"]).not_kept("below a filter");
    // From then on it is believed when it has run without us only.
    bench.runs(&["./t"]);
}

#[test]
fn a_failure_without_strict_mode_is_repeated() {
    let bench = Bench::with(&STRICT.replace("RESULT", "status != 9"));
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text()), (Some(0), "9\n".to_owned()), "{ran:?}");
}

#[test]
fn asking_for_the_filter_is_not_kept() {
    let bench = Bench::with(
        "#include <stdio.h>\n#include <sys/prctl.h>\nint main(void) { printf(\"%d\\n\", prctl(PR_GET_SECCOMP)); }",
    );
    bench.runs(&["./t"]).not_kept("filtered");
}

/// The watcher has the test ended with it.
#[test]
fn asking_for_the_parent_death_signal_is_refused() {
    let bench = Bench::with(
        "#include <stdio.h>\n#include <sys/prctl.h>\n\
        int main(void) { int number = 0; prctl(PR_GET_PDEATHSIG, &number); printf(\"%d\\n\", number); return FAILS; }"
            .replace("FAILS", "number != 0")
            .as_str(),
    );
    // What fails by it is repeated without us.
    assert_eq!(bench.runs(&["./t"]).text(), "0\n");
}

const WATCHES: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>
int main(void) {
    char buffer[4096];
    int watch = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(watch, ".", EVENTS);
    close(open("input", O_RDONLY));
    close(open("new", O_CREAT | O_WRONLY, 0644));
    unlink("new");
    printf("%d\n", (int)read(watch, buffer, sizeof buffer));
}
"#;

#[test]
fn watching_who_reads_is_not_kept() {
    let bench = Bench::with(&WATCHES.replace("EVENTS", "IN_ALL_EVENTS"));
    bench.write("input", "text\n");
    bench.runs(&["./t"]).not_kept("who reads files");
}

#[test]
fn watching_who_writes_is_reused() {
    let bench = Bench::with(
        &WATCHES.replace("EVENTS", "IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE"),
    );
    bench.write("input", "text\n");
    bench.settles(&["./t"]);
}

#[test]
fn printed_mappings_are_refused() {
    let bench = Bench::new();
    bench.runs(&["cat", "/proc/self/maps"]).not_kept("mapped into memory");
    bench.write("t.py", "print(open('/proc/self/maps').read())");
    bench.runs(&["python3", "t.py"]).not_kept("shows that it is watched");
    bench.runs(&["grep", "-c", "memfd", "/proc/self/maps"]).not_kept("mapped into memory");
    bench
        .runs(&["python3", "-c", "print(len(open('/proc/self/maps').readlines()))"])
        .not_kept("mapped into memory");
}

/// The C library reads the list to find the stack of the first thread, `grep` to know an overflow
/// of it.
#[test]
fn reading_ones_own_stack_is_reused() {
    let source = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n\
                  int main(void) { pthread_attr_t a; size_t size; pthread_getattr_np(pthread_self(), &a);\n\
                  pthread_attr_getstacksize(&a, &size); printf(\"%d\\n\", size > 0); }";
    let bench = Bench::with(source);
    bench.write("input", "a\n");
    bench.settles(&["sh", "-c", "./t; grep a input"]);
}

#[test]
fn a_status_is_shown_without_the_filter() {
    let bench = Bench::new();
    for test in [
        "grep -E 'Seccomp|NoNewPrivs|Threads|TracerPid' /proc/self/status; grep Seccomp /proc/$$/task/$$/status",
        "if grep -q 'Seccomp:.*0' /proc/self/status; then echo plain; else echo filtered; fi",
        "grep State /proc/self/status; grep State: /proc/$$/status | cut -c1",
        "python3 -c 'import os; print([l for l in open(\"/proc/self/status\") if \"Seccomp\" in l], os.open(\"input\", 0))'",
    ] {
        bench.write("input", "");
        let plain = Outcome::of(bench.command("sh").args(["-c", test]));
        let ran = bench.settles(&["sh", "-c", test]);
        assert_eq!(ran.outcome, plain, "{test}");
    }
}

/// Neither the question to the watcher nor the agent's own calls are to be seen.
#[test]
#[ignore = "needs strace"]
fn calls_of_a_program_are_listed_as_plainly() {
    let strace = tool("strace");
    let bench = Bench::new();
    bench.write("input", "a\n");
    let words = [
        "-f",
        "-e",
        "trace=execve,openat",
        "-e",
        "verbose=none",
        "-E",
        "LD_BIND_NOW=",
        "sh",
        "-c",
        "cat input; :",
    ];
    let list = |mut outcome: Outcome| {
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let lines =
            text.lines().filter(|line| line.contains("execve(") || line.contains("openat("));
        let name = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
        outcome.stderr.clear();
        (outcome, lines.map(name).collect::<Vec<_>>())
    };
    let plain = list(Outcome::of(bench.command(&strace).args(words)));
    let ran = bench.runs(&[&[strace.to_str().unwrap()], &words[..]].concat());
    assert_eq!(list(ran.outcome), plain);
}

/// Its shell has handlers that interrupt calls, and no agent to lead them.
#[test]
#[ignore = "needs busybox"]
fn a_static_shell_is_believed_plainly_only() {
    let busybox = tool("busybox");
    let bench = Bench::new();
    bench.write("input", "a\n");
    let script = "for i in 1 2 3 4 5 6 7 8; do (echo $i > out.$i) & done; n=0\n\
                  while [ $n -lt 100 ]; do [ -f input ] || exit 3; n=$((n + 1)); done; wait; cat input out.8";
    for _ in 0..5 {
        let ran = bench.runs(&[busybox.to_str().unwrap(), "sh", "-c", script]);
        assert_eq!((ran.outcome.code, ran.text()), (Some(0), "a\n8\n".to_owned()), "{ran:?}");
    }
}
