//! Which edits of a program bring its test to run.

use super::{BRANCHES, Edit, edit};
use tasting::model::Verdict;

#[test]
fn a_function_that_is_not_executed() {
    edit(BRANCHES, "x + 20", "x + 21").is_reused();
    Edit { arguments: &["other"], ..edit(BRANCHES, "x + 20", "x + 21") }.runs();
}

#[test]
fn a_function_that_is_executed() {
    edit(BRANCHES, "x + 10", "x + 11").runs();
    Edit { arguments: &["other"], ..edit(BRANCHES, "x + 10", "x + 11") }.is_reused();
}

#[test]
fn new_callees_of_unexecuted_functions() {
    edit(BRANCHES, "return x + 20", "return used(used(x))").is_reused();
}

const TABLE: &str = r#"
#include <stdio.h>
static int one(void) { return 1; }
static int two(void) { return 2; }
static int three(void) { return 3; }
int (*const table[])(void) = { one, two, three };
int main(int argc, char **argv) { printf("%d\n", table[argc - 1]()); return 0; }
"#;

#[test]
fn a_table_of_functions() {
    edit(TABLE, "return 2", "return 7").is_reused();
    edit(TABLE, "return 1", "return 7").runs();
    edit(TABLE, "{ one, two, three }", "{ two, one, three }").runs();
    // Neither of them is executed, but the table has their addresses in another order.
    edit(TABLE, "{ one, two, three }", "{ one, three, two }").runs();
    edit(TABLE, "{ one, two, three }", "{ one, two, two }").runs();
    edit(TABLE, "{ one, two, three }", "{ one, two, one }").runs();
}

const DATA: &str = r#"
#include <stdio.h>
static int number = 5;
static const char *text = "five";
static const char **behind = &text;
__attribute__((noinline)) int used(void) { return number + (*behind)[0]; }
__attribute__((noinline)) const char *unused(void) { return "never"; }
int main(int argc, char **argv) { printf("%d\n", used()); if (argc > 1) puts(unused()); return 0; }
"#;

#[test]
fn data_that_executed_functions_reach() {
    edit(DATA, "number = 5", "number = 6").runs();
    edit(DATA, "\"five\"", "\"six\"").runs();
    edit(DATA, "\"never\"", "\"ever\"").is_reused();
}

const CONSTRUCTORS: &str = r#"
#include <stdio.h>
static int order;
__attribute__((constructor(201))) static void first(void) { order = order * 10 + 1; }
__attribute__((constructor(202))) static void second(void) { order = order * 10 + 2; }
/* third */
__attribute__((noinline)) int unused(void) { return 4; }
__attribute__((destructor)) static void last(void) { puts("last"); }
int main(int argc, char **argv) { printf("%d\n", order); return argc > 1 ? unused() : 0; }
"#;

#[test]
fn constructors_and_destructors() {
    edit(CONSTRUCTORS, "* 10 + 1", "* 10 + 3").runs();
    edit(CONSTRUCTORS, "constructor(202)", "constructor(200)").runs();
    edit(
        CONSTRUCTORS,
        "/* third */",
        "__attribute__((constructor(203))) static void third(void) { order *= 2; }",
    )
    .runs();
    edit(CONSTRUCTORS, "puts(\"last\")", "puts(\"least\")").runs();
    edit(CONSTRUCTORS, "return 4", "return 5").is_reused();
}

const ENDS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf place;
__attribute__((noipa)) static int handled(int x) { return x + 1; }
__attribute__((noipa)) static int at_exit(int x) { return x + 2; }
__attribute__((noipa)) static int in_thread(int x) { return x + 3; }
__attribute__((noipa)) static int in_child(int x) { return x + 4; }
__attribute__((noipa)) static int after_jump(int x) { return x + 5; }
__attribute__((noipa)) static int computed(int x) { return x + 6; }
__attribute__((noipa)) static int in_compare(int x) { return x + 7; }
__attribute__((noipa)) static int never(int x) { return x + 8; }
static void handler(int number) { char text[9]; int n = snprintf(text, 9, "%d\n", handled(number)); write(1, text, n); }
static void leave(void) { printf("%d\n", at_exit(1)); }
static void *work(void *x) { return (void *)(long)in_thread(1); }
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b + in_compare(0) - in_compare(0); }
int main(int argc, char **argv) {
    void *labels[] = { &&one, &&two };
    setvbuf(stdout, 0, _IONBF, 0);
    sigset_t all;
    sigfillset(&all);
    struct sigaction action = { .sa_handler = handler };
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    atexit(leave);
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
    int status;
    if (fork() == 0) _exit(in_child(1));
    wait(&status);
    printf("%d\n", WEXITSTATUS(status));
    if (setjmp(place) == 0) longjmp(place, 1); else printf("%d\n", after_jump(1));
    goto *labels[argc > 1];
one:
    printf("%d\n", computed(1));
two:;
    int numbers[] = { 3, 1, 2 };
    qsort(numbers, 3, sizeof *numbers, compare);
    printf("%d\n", numbers[0]);
    return argc > 1 ? never(1) : 0;
}
"#;

#[test]
fn signals_threads_children_jumps_and_callbacks() {
    for number in 1..=7 {
        let (from, to) = (format!("x + {number};"), format!("x + {number} + argc_free;"));
        let edited = ENDS.replace(&from, &to.replace("argc_free", "10"));
        let executed = Edit {
            source: ENDS,
            edit: (ENDS, &edited),
            flags: &["-O1", "-pthread"],
            arguments: &[],
        };
        assert_eq!(executed.decide(), (Verdict::Executed, None), "{from}");
    }
    // With all signals blocked, functions that cannot have a gate count as executed: short ones
    // that others follow at once.
    Edit { flags: &["-O2", "-pthread"], ..edit(ENDS, "x + 8;", "x + 18;") }.is_reused();
    Edit { flags: &["-O1", "-pthread"], ..edit(ENDS, "x + 8;", "x + 18;") }.runs();
}

const CLASSES: &str = r#"
#include <cstdio>
#include <stdexcept>
struct Base { virtual ~Base() {} virtual int value() { return 1; } virtual int other() { return 2; } };
struct Derived : Base { int value() override { return 3; } };
struct Unused : Base { int value() override { return 4; } };
struct Special : std::runtime_error { using runtime_error::runtime_error; };
__attribute__((noinline)) void thrower() { throw Special("x"); }
__attribute__((noinline)) int catcher() {
    try { thrower(); }
    catch (Special &) { return 5; }
    catch (std::exception &) { return 6; }
    return 0;
}
__attribute__((noinline)) Base *make(int kind) { if (kind == 1) return new Derived; return new Unused; }
int main(int argc, char **) { Base *b = make(argc); std::printf("%d %d\n", b->value(), catcher()); delete b; }
"#;

fn class_edit<'a>(from: &'a str, to: &'a str) -> Edit<'a> {
    Edit {
        flags: &["-O1", "-x", "c++", "-Wl,--no-as-needed", "-lstdc++"],
        ..edit(CLASSES, from, to)
    }
}

#[test]
#[ignore = "takes a minute"]
fn virtual_calls_and_exceptions() {
    class_edit("return 3", "return 30").runs();
    class_edit("return 4", "return 40").is_reused();
    class_edit("return 2", "return 20").is_reused();
    class_edit("catch (Special &) { return 5; }", "catch (int) { return 5; }").runs();
    class_edit(
        "struct Derived : Base { int value() override { return 3; } }",
        "struct Derived : Base {}",
    )
    .runs();
}

const COLD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, cold)) void report_error(const char *text) { fprintf(stderr, "%s\n", text); }
__attribute__((noinline)) int risky(int x) {
    if (__builtin_expect(x > 5, 0)) { report_error("large"); report_error("very large"); return x * 3; }
    return x;
}
int main(int argc, char **argv) { printf("%d\n", risky(argc > 1 ? 9 : 1)); return 0; }
"#;

/// The parts that compilers put aside are entered by jumps to any place. They count with their
/// function, but what they call does not.
#[test]
fn cold_parts() {
    Edit { flags: &["-O2"], ..edit(COLD, "\"%s\\n\"", "\"<%s>\\n\"") }.is_reused();
    Edit { flags: &["-O2"], ..edit(COLD, "return x * 3", "return x * 4") }.runs();
    Edit { flags: &["-O2"], arguments: &["x"], ..edit(COLD, "return x * 3", "return x * 4") }
        .runs();
    Edit { flags: &["-O2"], arguments: &["x"], ..edit(COLD, "\"%s\\n\"", "\"<%s>\\n\"") }.runs();
}
