//! Programs with small stacks, programs that change their own code or get a debugger, and functions
//! that are entered past their fronts.

use super::is_unnoticed;
use crate::run::Bench;

/// Builds and compares; then changes what the innermost function computes.
#[track_caller]
fn is_undisturbed(source: &str, edit: (&str, &str)) {
    for flags in [&["-O2"][..], &["-O0"], &["-Os"], &["-O2", "-no-pie"]] {
        let bench = Bench::new();
        let build = |source: &str| {
            bench.compile(&[flags, &["-fcf-protection=none", "-o", "t", "-"]].concat(), source)
        };
        build(source);
        for words in [&["./t"][..], &["sh", "-c", "./t; echo $?"]] {
            let plain = is_unnoticed(&bench, words);
            assert_eq!(plain.code, Some(0), "{flags:?}: {plain:?}");
        }
        let edited = source.replace(edit.0, edit.1);
        assert_ne!(edited, source);
        build(&edited);
        let plain = crate::workshop::Outcome::of(&mut bench.command(bench.path("t")));
        assert_eq!(bench.runs(&["./t"]).outcome, plain, "{flags:?}");
    }
}

#[test]
fn alternate_stacks_of_five_kilobytes() {
    let source = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int result;
__attribute__((noipa)) int inner(int x) { return x + 1; }
__attribute__((noipa)) int outer(int x) { return inner(x) * 3; }
static void handler(int number) { result = outer(number); }
int main(void) {
    char *pages = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, 4096, PROT_NONE);
    stack_t stack = { .ss_sp = pages + 4096, .ss_size = 5120 };
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    if (sigaltstack(&stack, 0) || sigaction(SIGUSR1, &action, 0)) return 1;
    raise(SIGUSR1);
    printf("%d\n", result);
    return 0;
}
"#;
    is_undisturbed(source, ("x + 1", "x + 2"));
}

/// The stack switch is the program's own: nobody can know that the stack is small.
#[test]
fn coroutines_on_stacks_of_one_kilobyte() {
    let source = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static volatile long result;
__attribute__((noipa)) long inner(long x) { return x * 7 + 1; }
__attribute__((noipa)) long outer(long x) { return inner(x) * 3 + inner(x + 1); }
__attribute__((noipa)) void work(void) { result = outer(5); }
void run_on(char *top, void (*function)(void));
__asm__(".text\n.globl run_on\n.type run_on, @function\nrun_on: push %rbx\nmov %rsp, %rbx\nmov %rdi, %rsp\ncall *%rsi\nmov %rbx, %rsp\npop %rbx\nret\n.size run_on, .-run_on");
int main(void) {
    char *pages = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *stack = pages + 4096;
    memset(pages, 0x55, 8192);
    run_on(stack + 1024, work);
    for (int i = 0; i < 4096; i++) if (pages[i] != 0x55) { puts("below the stack"); return 1; }
    printf("%ld\n", result);
    return 0;
}
"#;
    is_undisturbed(source, ("x * 7 + 1", "x * 7 + 2"));
}

#[test]
fn contexts_on_stacks_of_two_kilobytes() {
    let source = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
static volatile long result;
static ucontext_t here, there;
__attribute__((noipa)) long inner(long x) { return x + 1; }
__attribute__((noipa)) long outer(long x) { return inner(x) * 3 + inner(x + 1); }
static void work(void) { result = outer(5); }
int main(void) {
    char *pages = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 0x55, 8192);
    getcontext(&there);
    there.uc_stack.ss_sp = pages + 4096;
    there.uc_stack.ss_size = 2048;
    there.uc_link = &here;
    makecontext(&there, work, 0);
    swapcontext(&here, &there);
    for (int i = 0; i < 4096; i++) if (pages[i] != 0x55) { puts("below the stack"); return 1; }
    printf("%ld\n", result);
    return 0;
}
"#;
    is_undisturbed(source, ("x + 1;", "x + 2;"));
}

#[test]
fn code_that_the_program_writes_to() {
    let source = r#"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noipa, patchable_function_entry(8, 0))) int patched(void) { return 1; }
__attribute__((noipa)) int other(int x) { return x + 5; }
int main(int argc, char **argv) {
    char *page = (char *)((uintptr_t)patched & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) { puts("cannot be written to"); return 1; }
    /* mov $9, %eax; ret */
    __builtin_memcpy((char *)patched, "\xb8\x09\x00\x00\x00\xc3", 6);
    printf("%d %d\n", patched(), other(argc));
    return 0;
}
"#;
    is_undisturbed(source, ("x + 5", "x + 6"));
}

/// Each of the first sixteen bytes.
#[test]
fn functions_entered_at_any_distance_past_their_fronts() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa, patchable_function_entry(16, 0))) long sum(long x) { return x + 3; }
int main(int argc, char **argv) {
    for (int past = argc > 1 ? atoi(argv[1]) : 0; past < 16; past++) {
        long (*volatile enter)(long) = (long (*)(long))((char *)sum + past);
        printf("%ld ", enter(argc));
    }
    puts("");
    return 0;
}
"#;
    let bench = Bench::new();
    for (align, kind) in [("1", "-pie"), ("16", "-pie"), ("16", "-no-pie")] {
        let align = format!("-falign-functions={align}");
        let flags = ["-O2", "-fcf-protection=none", &align, kind, "-o", "t", "-"];
        bench.compile(&flags, source);
        for past in 0..16 {
            let past = past.to_string();
            is_unnoticed(&bench, &["./t", &past]);
        }
        bench.compile(&flags, &source.replace("x + 3", "x + 4"));
        for past in 0..16 {
            let past = past.to_string();
            let plain = crate::workshop::Outcome::of(bench.command(bench.path("t")).arg(&past));
            assert_eq!(bench.runs(&["./t", &past]).outcome, plain, "{past}");
        }
    }
}

/// Nothing of ours has a fixed place.
#[test]
fn programs_that_map_pages_at_fixed_places() {
    let source = r#"
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noipa)) int later(int x) { return x + 1; }
int main(int argc, char **argv) {
    for (unsigned long at = 0x10000000; at < 0x7fff0000; at += 0x10000)
        if (mmap((void *)at, 0x10000, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED) return 1;
    printf("%d\n", later(argc));
    return 0;
}
"#;
    is_undisturbed(source, ("x + 1", "x + 2"));
}

/// It finds the program's own code, and can put breakpoints into it.
#[test]
#[ignore = "needs gdb"]
fn a_debugger_attaches_to_a_traced_program() {
    let source = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((noipa)) int early(int x) { return x + 1; }
__attribute__((noipa)) int late(int x) { return x + 2; }
int main(int argc, char **argv) {
    int sum = early(argc);
    puts("ready");
    fflush(stdout);
    fclose(fopen("ready", "w"));
    for (int i = 0; i < 600 && access("go", F_OK) != 0; i++) usleep(50000);
    printf("%d\n", sum + late(argc));
    return 0;
}
"#;
    let bench = Bench::new();
    bench.compile(&["-O1", "-g", "-o", "t", "-"], source);
    bench.script(
        "test.sh",
        "#!/bin/sh\nrm -f go ready; ./t & until [ -e ready ]; do sleep 0.05; done\ntimeout 30 gdb -q -nx -batch -p $! -ex 'break late' -ex 'shell touch go' -ex continue -ex 'print x' \\\n\
         -ex detach >log 2>&1\nwait\ngrep -c 'Breakpoint 1, late' log; grep '^.1 = ' log; grep -c SIGTRAP log; rm -f log go ready\n",
    );
    let plain = is_unnoticed(&bench, &["./test.sh"]);
    assert_eq!(plain.stdout_text(), "ready\n5\n1\n$1 = 1\n0\n", "{plain:?}");
}
