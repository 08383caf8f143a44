//! Signal handlers that interrupt calls (without SA_RESTART): a watched call is not interrupted
//! where it would not be without us, or the run is not believed.

use super::Bench;
use crate::workshop::{succeed, tool};
use tasting::model::Verdict;

/// Makes all kinds of calls while a timer goes off all the time, and tells how many of them were
/// interrupted.
const UNDER_A_TIMER: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void tick(int number) { (void)number; }
static int interrupted[16];
#define TRY(number, call) do { errno = 0; if ((call) < 0 && errno == EINTR) interrupted[number]++; } while (0)
static void *nothing(void *given) { return given; }
int main(void) {
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, 0);
    struct stat found;
    for (int i = 0; i < ROUNDS; i++) {
        int file;
        TRY(0, stat("file", &found));
        TRY(1, file = open("file", O_RDONLY));
        if (file >= 0) { TRY(2, fstat(file, &found)); close(file); }
        TRY(3, access("absent", F_OK));
        TRY(4, file = open("made", O_WRONLY | O_CREAT | O_TRUNC, 0644));
        if (file >= 0) close(file);
        TRY(5, rename("made", "renamed"));
        TRY(6, unlink("renamed"));
        TRY(7, mkdir("folder", 0755));
        TRY(8, rmdir("folder"));
        DIR *folder = opendir(".");
        if (folder) { errno = 0; while (readdir(folder)); TRY(9, errno == EINTR ? -1 : 0); closedir(folder); }
        else interrupted[10]++;
        char *path = realpath("file", 0);
        if (!path) interrupted[11]++;
        free(path);
        if (i % 10 == 0) {
            pthread_t thread;
            if (pthread_create(&thread, 0, nothing, 0) == 0) pthread_join(thread, 0); else interrupted[12]++;
            pid_t child = vfork();
            if (child == 0) { execl("/bin/true", "true", (char *)0); _exit(1); }
            int status;
            while (waitpid(child, &status, 0) < 0);
            if (status != 0) interrupted[13]++;
            child = fork();
            if (child == 0) { errno = 0; _exit(stat("file", &found) != 0); }
            while (waitpid(child, &status, 0) < 0);
            if (status != 0) interrupted[14]++;
        }
    }
    setitimer(ITIMER_REAL, &never, 0);
    int sum = 0;
    for (int i = 0; i < 15; i++) { printf("%d ", interrupted[i]); sum += interrupted[i]; }
    return sum != 0;
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn no_call_is_interrupted_under_a_timer() {
    let bench = Bench::new();
    bench.write("file", "x");
    bench.build("t", &UNDER_A_TIMER.replace("ROUNDS", "500"));
    let ran = bench.settles(&["./t"]);
    assert_eq!(ran.text().trim(), ["0"; 15].join(" "));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_shell_with_background_jobs_finds_its_files() {
    let bench = Bench::new();
    bench.write("file", "x");
    let script = "for i in 1 2 3 4 5 6 7 8; do (echo $i > out.$i) & done; i=0
        while [ $i -lt 200 ]; do [ -f file ] || { echo lost; exit 1; }; i=$((i + 1)); done; wait; cat out.*";
    for _ in 0..5 {
        let ran = bench.finish(bench.tasting(&["sh", "-c", script]).env("TASTING_RECACHE", "1"));
        assert_eq!(ran.text(), "1\n2\n3\n4\n5\n6\n7\n8\n", "{ran:?}");
    }
    bench.reuses(&["sh", "-c", script]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn python_finds_its_files_while_children_end() {
    tool("python3");
    let bench = Bench::new();
    bench.write("file", "x");
    bench.write(
        "t.py",
        "import os, signal
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.siginterrupt(signal.SIGCHLD, True)
lost = 0
for i in range(30):
    child = os.fork()
    if child == 0: os._exit(0)
    lost += sum(not os.path.exists('file') for _ in range(30))
    os.waitpid(child, 0)
print(lost)
",
    );
    assert_eq!(bench.settles(&["python3", "t.py"]).text(), "0\n");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn waiting_for_a_removed_lock_ends() {
    let bench = Bench::new();
    let script = "trap : USR1; : > lock; (sleep 0.5; rm lock) & \
        (while kill -USR1 $$ 2> /dev/null && [ -e lock ]; do :; done) &
        while [ -e lock ]; do :; done; ls lock 2> /dev/null && echo early; wait; wait; true";
    let ran = bench.settles(&["sh", "-c", script]);
    assert_eq!(ran.text(), "");
}

/// A handler that interrupts calls, and a call that can be interrupted.
const HANDLER: &str = "#include <signal.h>\n#include <stddef.h>\n#include <sys/stat.h>\n#include <unistd.h>\n\
    static void handle(int number) { (void)number; }\n\
    int main(int count, char **words) { struct sigaction action = {0}; struct stat found;\n\
    action.sa_handler = handle; if (count > 1) action.sa_flags = SA_RESTART; sigaction(SIGALRM, &action, NULL);\n\
    WHAT;\n\
    return stat(words[0], &found); }";

#[test]
#[ignore = "needs musl-gcc"]
fn handlers_of_static_programs_are_not_trusted() {
    for compiler in ["cc", "musl-gcc"] {
        let compiler = tool(compiler);
        let bench = Bench::new();
        bench.write("t.c", HANDLER.replace("WHAT", "alarm(100)"));
        succeed(bench.command(&compiler).args(["-static", "-o", "t", "t.c"])).unwrap();
        bench.runs(&["./t"]).not_kept("has signal handlers that can interrupt watched calls");
        bench.runs(&["./t"]);
        bench.settles(&["./t", "restarts"]);
        succeed(bench.command(&compiler).args(["-o", "u", "t.c"])).unwrap();
        match compiler.to_string_lossy().contains("musl") || !cfg!(target_arch = "x86_64") {
            true => bench
                .runs(&["./u"])
                .not_kept("has signal handlers that can interrupt watched calls"),
            false => _ = bench.settles(&["./u"]),
        }
    }
}

/// A handler does nothing as long as nobody sends its signal.
#[test]
fn handlers_of_static_programs_need_a_signal() {
    let doubtful = [
        "raise(SIGALRM)",
        "kill(getppid(), 0); kill(getpid(), SIGALRM)",
        "ualarm(900000, 0)",
        TIMER,
        "fork()",
    ];
    let harmless = ["(void)0", "raise(SIGURG)", "kill(getpid(), SIGCONT)"];
    let bench = Bench::new();
    for (what, is_kept) in
        doubtful.map(|what| (what, false)).into_iter().chain(harmless.map(|what| (what, true)))
    {
        let signal = if what == "fork()" { "SIGCHLD" } else { "SIGALRM" };
        let source =
            format!("#define _GNU_SOURCE\n#include <time.h>\n{HANDLER}").replace("WHAT", what);
        bench.write("t.c", source.replace("sigaction(SIGALRM", &format!("sigaction({signal}")));
        succeed(bench.command("cc").args(["-static", "-o", "t", "t.c"])).unwrap();
        match is_kept {
            true => _ = bench.settles(&["./t"]),
            false => bench
                .runs(&["./t"])
                .not_kept("has signal handlers that can interrupt watched calls"),
        }
    }
}

/// A timer of POSIX.
const TIMER: &str = "timer_t timer; timer_create(CLOCK_MONOTONIC, NULL, &timer)";

/// Somebody else of the test can send the signal.
#[test]
fn signals_from_others_reach_static_programs() {
    let bench = Bench::new();
    for (name, what) in [("t", "write(1, \"x\", 1); pause()"), ("u", "write(1, \"x\", 1)")] {
        bench.write("t.c", HANDLER.replace("WHAT", what));
        succeed(bench.command("cc").args(["-static", "-o", name, "t.c"])).unwrap();
    }
    let script = "./t > out & while [ ! -s out ]; do sleep 0.01; done; kill -ALRM $!; wait $!";
    bench
        .runs(&["sh", "-c", script])
        .not_kept("has signal handlers that can interrupt watched calls");
    bench.settles(&["sh", "-c", "./u > out & wait $!"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_are_led_although_nothing_is_traced() {
    let bench = Bench::with(&HANDLER.replace("WHAT", "alarm(100)"));
    let run = || bench.finish(bench.tasting(&["./t"]).env("TASTING_NOTRACE", "1"));
    assert_eq!(
        [run(), run()].map(|ran| ran.decision.decision),
        [Verdict::Executed, Verdict::Reused]
    );
}
