//! Programs that block, ignore, wait for or handle SIGTRAP by system calls of their own, which no
//! library sees.

use super::signals::{END, is_undisturbed};

/// A system call without the C library.
const RAW: &str = r#"
static long raw(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
}
__attribute__((naked)) static void back(void) { __asm__("mov $15, %eax; syscall"); }
static void act(int signal, void *handler, long flags) {
    long action[4] = { (long)handler, flags | 0x04000000, (long)back, 0 };
    raw(SYS_rt_sigaction, signal, (long)action, 0, 8);
}
static void block_all(void) { long all = -1; raw(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, 0, 8); }
"#;

#[test]
fn blocked_by_a_system_call() {
    is_undisturbed(&format!("block_all(); {END}"), RAW);
}

#[test]
fn ignored_by_a_system_call() {
    is_undisturbed(&format!("act(SIGTRAP, SIG_IGN, 0); raise(SIGTRAP); {END}"), RAW);
}

#[test]
fn handled_by_a_system_call() {
    let body = "act(SIGTRAP, trapped, 0); raise(SIGTRAP); __asm__ volatile(\"int3\"); printf(\"%d\\n\", count);";
    is_undisturbed(&format!("{body} {END}"), RAW);
}

#[test]
fn waited_for_by_a_system_call() {
    let body = "block_all(); raw(SYS_tgkill, getpid(), getpid(), SIGTRAP, 0); long set = 1 << (SIGTRAP - 1);\
        printf(\"%ld\\n\", raw(SYS_rt_sigtimedwait, (long)&set, 0, 0, 8));";
    is_undisturbed(&format!("{body} {END}"), RAW);
}

/// The context that a handler returns to has the mask that the handler put there.
#[test]
fn blocked_by_the_return_from_a_handler() {
    let handler = "static void handler(int number, siginfo_t *information, void *context) {\
        sigfillset(&((ucontext_t *)context)->uc_sigmask); }";
    let body = "struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }; sigaction(SIGUSR1, &action, 0); raise(SIGUSR1);\
        sigset_t now; sigprocmask(SIG_BLOCK, 0, &now); printf(\"%d\\n\", sigismember(&now, SIGTRAP));";
    is_undisturbed(&format!("{body} {END}"), handler);
}

/// A stack on which no second signal would have room.
#[test]
fn small_alternate_stack_by_a_system_call() {
    let body = "char *pages = mmap(0, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); mprotect(pages, 4096, PROT_NONE);\
        stack_t stack = { .ss_sp = pages + 4096, .ss_size = 5120 }; raw(SYS_sigaltstack, (long)&stack, 0, 0, 0);\
        setvbuf(stdout, 0, _IONBF, 0); act(SIGUSR1, quiet, 0x08000000); raise(SIGUSR1);";
    let quiet = "static volatile int sum; static void quiet(int number) { sum = late1(1) + late2(1) + late3(1) + rare(0); }";
    is_undisturbed(&format!("{body} printf(\"%d\\n\", sum); {END}"), &format!("{RAW} {quiet}"));
}

#[test]
fn read_from_a_descriptor() {
    let body = "sigset_t set; sigemptyset(&set); sigaddset(&set, SIGTRAP); long bits = 1 << (SIGTRAP - 1);\
        raw(SYS_rt_sigprocmask, SIG_BLOCK, (long)&bits, 0, 8); long file = raw(SYS_signalfd4, -1, (long)&bits, 8, 0);\
        raise(SIGTRAP); unsigned information[32]; long got = raw(SYS_read, file, (long)information, 128, 0);\
        printf(\"%ld %u\\n\", got, information[0]);";
    is_undisturbed(&format!("{body} {END}"), RAW);
}
