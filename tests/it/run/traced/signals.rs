//! Programs that block, ignore, send, wait for or handle SIGTRAP themselves. Each enters functions
//! that have no gate: parts that compilers put aside, and short ones that others follow at once.

use super::is_unnoticed;
use crate::run::Bench;

/// Before `main` and behind it. `late` is short, and at -Os nothing is between it and the next one;
/// `rare` has a cold part.
const FRAME: (&str, &str) = (
    r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#define APART __attribute__((noipa, optimize("Os"), aligned(1)))
APART int late1(int x) { return x + 1; }
APART int late2(int x) { return x + 2; }
APART int late3(int x) { return x + 3; }
APART void unlikely(int x) { printf("unlikely %d\n", x); }
__attribute__((noipa)) int rare(int x) { if (__builtin_expect(x > 0, 0)) { unlikely(x); unlikely(x + 1); } return x; }
int all(int x) { return late1(x) + late2(x) + late3(x) + rare(x); }
static volatile int count;
static void trapped(int number) { count += number; }
"#,
    r#"
__attribute__((noipa)) int never(int x) { return x + 100; }
"#,
);

/// The program with this body of `main`, with several alignments of its functions.
#[track_caller]
pub(super) fn is_undisturbed(body: &str, others: &str) {
    let source =
        format!("{}{others}{}\nint main(int argc, char **argv) {{ {body} }}", FRAME.0, FRAME.1);
    for flags in [&["-O2"][..], &["-O0"], &["-Os"], &["-O2", "-no-pie"]] {
        let bench = Bench::new();
        let build =
            |source: &str| bench.compile(&[flags, &["-pthread", "-o", "t", "-"]].concat(), source);
        build(&source);
        for words in [&["./t"][..], &["sh", "-c", "./t; echo $?"]] {
            let plain = is_unnoticed(&bench, words);
            assert!(plain.stdout_text().contains("unlikely 1\n"), "{flags:?}: {plain:?}");
        }
        build(&source.replace("x + 2;", "x + 20;"));
        let ran = bench.runs(&["./t"]);
        let plain = crate::workshop::Outcome::of(&mut bench.command(bench.path("t")));
        assert_eq!(ran.outcome, plain, "{flags:?}");
        assert!(plain.stdout_text().contains("end 28"), "{flags:?}: {plain:?}");
    }
}

/// What every program ends with.
pub(super) const END: &str = "printf(\"end %d\\n\", all(1)); return 0;";

#[test]
fn a_handler_for_signals_from_outside() {
    is_undisturbed(
        &format!(
            "signal(SIGTRAP, trapped); pid_t child = fork(); if (!child) {{ kill(getppid(), SIGTRAP); _exit(0); }}\
             waitpid(child, 0, 0); printf(\"%d\\n\", count); {END}"
        ),
        "",
    );
}

#[test]
fn signals_from_outside_without_a_handler() {
    is_undisturbed(
        &format!(
            "int status; pid_t child = fork(); if (!child) {{ pause(); _exit(0); }} kill(child, SIGTRAP); waitpid(child, &status, 0);\
             printf(\"%d\\n\", WTERMSIG(status)); {END}"
        ),
        "",
    );
}

#[test]
fn ignored_signals_are_ignored() {
    is_undisturbed(&format!("signal(SIGTRAP, SIG_IGN); raise(SIGTRAP); {END}"), "");
    is_undisturbed(&format!("sigignore(SIGTRAP); raise(SIGTRAP); {END}"), "");
    is_undisturbed(
        &format!("syscall(SYS_rt_sigaction, SIGTRAP, (long[4]){{1}}, 0, 8); raise(SIGTRAP); {END}"),
        "",
    );
}

#[test]
fn blocked_signals_are_blocked() {
    let masks = [
        "sigset_t set; sigfillset(&set); sigprocmask(SIG_SETMASK, &set, 0);",
        "sigset_t set; sigfillset(&set); pthread_sigmask(SIG_BLOCK, &set, 0);",
        "sigblock(sigmask(SIGTRAP));",
        "sigsetmask(~0);",
        "sighold(SIGTRAP);",
        "long set = -1; syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, 0, 8);",
    ];
    for mask in masks {
        let shows = "sigset_t now; sigprocmask(SIG_BLOCK, 0, &now); printf(\"%d\\n\", sigismember(&now, SIGTRAP));";
        is_undisturbed(&format!("{mask} {shows} {END}"), "");
    }
}

#[test]
fn a_program_that_waits_for_the_signal() {
    is_undisturbed(
        &format!(
            "sigset_t set; int got; sigemptyset(&set); sigaddset(&set, SIGTRAP); sigprocmask(SIG_BLOCK, &set, 0);\
             kill(getpid(), SIGTRAP); sigwait(&set, &got); printf(\"%d\\n\", got); {END}"
        ),
        "",
    );
}

#[test]
fn handlers_that_block_all_signals() {
    is_undisturbed(
        "struct sigaction action = { .sa_handler = handler }; sigfillset(&action.sa_mask); sigaction(SIGUSR1, &action, 0);\
         raise(SIGUSR1); return 0;",
        "static void handler(int number) { printf(\"end %d\\n\", all(1)); }",
    );
}

#[test]
fn threads_with_masks_of_their_own() {
    let thread = "static void *work(void *x) { printf(\"end %d\\n\", all(1)); return x; }";
    let body = "pthread_attr_t attributes; pthread_t thread; sigset_t set; sigfillset(&set); pthread_attr_init(&attributes);\
        pthread_attr_setsigmask_np(&attributes, &set); pthread_create(&thread, &attributes, work, 0); pthread_join(thread, 0); return 0;";
    is_undisturbed(body, thread);
}

#[test]
fn timers_that_notify_by_threads() {
    let timer = "static volatile int done; static void work(union sigval x) { printf(\"end %d\\n\", all(1)); done = 1; }";
    let body = "struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = work }; timer_t timer;\
        struct itimerspec when = { .it_value.tv_nsec = 1000000 }; timer_create(CLOCK_MONOTONIC, &event, &timer);\
        timer_settime(timer, 0, &when, 0); while (!done) usleep(1000); return 0;";
    is_undisturbed(body, timer);
}

#[test]
fn contexts_with_masks_of_their_own() {
    let other = "static ucontext_t here, there; static char stack[65536]; static void work(void) { printf(\"end %d\\n\", all(1)); }";
    let body = "getcontext(&there); there.uc_stack.ss_sp = stack; there.uc_stack.ss_size = sizeof stack; there.uc_link = &here;\
        sigfillset(&there.uc_sigmask); makecontext(&there, work, 0); swapcontext(&here, &there); return 0;";
    is_undisturbed(body, other);
}

/// Who starts the test may have blocked or ignored it.
#[test]
fn inherited_masks_stay() {
    let body = format!(
        "if (argc == 1) {{ sigset_t set; sigemptyset(&set); sigaddset(&set, SIGTRAP); sigprocmask(SIG_BLOCK, &set, 0);\
         execl(argv[0], argv[0], \"again\", (char *)0); }} sigset_t now; sigprocmask(SIG_BLOCK, 0, &now);\
         printf(\"%d\\n\", sigismember(&now, SIGTRAP)); {END}"
    );
    is_undisturbed(&body, "");
    let body = format!(
        "if (argc == 1) {{ signal(SIGTRAP, SIG_IGN); execl(argv[0], argv[0], \"again\", (char *)0); }} raise(SIGTRAP); {END}"
    );
    is_undisturbed(&body, "");
}

#[test]
fn mask_changes_keep_functions_with_gates_traced() {
    let source = "#include <signal.h>\n#include <stdio.h>\n__attribute__((noipa)) int used(int x) { return x * 7 + 10; }\n\
        __attribute__((noipa)) int unused(int x) { return x * 7 + 20; }\n\
        int main(int argc, char **argv) { sigset_t set; sigfillset(&set); sigprocmask(SIG_BLOCK, &set, 0);\n\
        printf(\"%d\\n\", argc > 1 ? unused(argc) : used(argc)); return 0; }";
    super::Edit { flags: &["-O2"], ..super::edit(source, "x * 7 + 20", "x * 7 + 21") }.is_reused();
    super::Edit { flags: &["-O2"], ..super::edit(source, "x * 7 + 10", "x * 7 + 11") }.runs();
}
