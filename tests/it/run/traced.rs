//! Reuse by what was executed: whatever changes in functions that a test does not execute, and in nothing else.

use super::Bench;
use std::io::Write;
use tasting::model::{Step, Verdict};

/// A program, before and after an edit. The part before the arrow is replaced by the part behind it.
struct Edit<'a> {
    source: &'a str,
    edit: (&'a str, &'a str),
    flags: &'a [&'a str],
    arguments: &'a [&'a str],
}

impl Edit<'_> {
    /// The decision about the edited program, and both outputs.
    fn decide(&self) -> (Verdict, Option<Step>) {
        let bench = Bench::new();
        let flags = [self.flags, &["-o", "t", "-"][..]].concat();
        let words = [&["./t"], self.arguments].concat();
        bench.compile(&flags, self.source);
        bench.settles(&words);
        let edited = self.source.replace(self.edit.0, self.edit.1);
        assert_ne!(edited, self.source, "the edit changes something");
        bench.compile(&flags, &edited);
        let ran = bench.run(&words);
        // Whatever was decided has to be what the program does.
        let plain = crate::workshop::Outcome::of(bench.command(bench.path("t")).args(self.arguments));
        assert_eq!(ran.outcome.stdout_text(), plain.stdout_text());
        (ran.decision.decision, ran.decision.step)
    }

    #[track_caller]
    fn is_reused(&self) {
        assert_eq!(self.decide(), (Verdict::Reused, Some(Step::Executed)));
    }

    #[track_caller]
    fn runs(&self) {
        assert_eq!(self.decide(), (Verdict::Executed, None));
    }
}

fn edit<'a>(source: &'a str, from: &'a str, to: &'a str) -> Edit<'a> {
    Edit { source, edit: (from, to), flags: &["-O1"], arguments: &[] }
}

const BRANCHES: &str = r#"
#include <stdio.h>
__attribute__((noinline)) int used(int x) { return x + 10; }
__attribute__((noinline)) int unused(int x) { return x + 20; }
int main(int argc, char **argv) { printf("%d\n", argc > 1 ? unused(argc) : used(argc)); return 0; }
"#;

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
fn what_an_unexecuted_function_comes_to_call() {
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
    // Neither of them is executed, so that it does not matter which of them is where.
    edit(TABLE, "{ one, two, three }", "{ one, three, two }").is_reused();
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
    edit(CONSTRUCTORS, "/* third */", "__attribute__((constructor(203))) static void third(void) { order *= 2; }")
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
        let executed = Edit { source: ENDS, edit: (ENDS, &edited), flags: &["-O1", "-pthread"], arguments: &[] };
        assert_eq!(executed.decide(), (Verdict::Executed, None), "{from}");
    }
    Edit { flags: &["-O1", "-pthread"], ..edit(ENDS, "x + 8;", "x + 18;") }.is_reused();
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
    Edit { flags: &["-O1", "-x", "c++", "-Wl,--no-as-needed", "-lstdc++"], ..edit(CLASSES, from, to) }
}

#[test]
fn virtual_calls_and_exceptions() {
    class_edit("return 3", "return 30").runs();
    class_edit("return 4", "return 40").is_reused();
    class_edit("return 2", "return 20").is_reused();
    class_edit("catch (Special &) { return 5; }", "catch (int) { return 5; }").runs();
    class_edit("struct Derived : Base { int value() override { return 3; } }", "struct Derived : Base {}").runs();
}

const COLD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, cold)) void complain(const char *text) { fprintf(stderr, "%s\n", text); }
__attribute__((noinline)) int risky(int x) {
    if (__builtin_expect(x > 5, 0)) { complain("large"); complain("very large"); return x * 3; }
    return x;
}
int main(int argc, char **argv) { printf("%d\n", risky(argc > 1 ? 9 : 1)); return 0; }
"#;

#[test]
fn cold_parts() {
    Edit { flags: &["-O2"], ..edit(COLD, "\"%s\\n\"", "\"<%s>\\n\"") }.is_reused();
    Edit { flags: &["-O2"], ..edit(COLD, "return x * 3", "return x * 4") }.is_reused();
    Edit { flags: &["-O2"], arguments: &["x"], ..edit(COLD, "return x * 3", "return x * 4") }.runs();
    Edit { flags: &["-O2"], arguments: &["x"], ..edit(COLD, "\"%s\\n\"", "\"<%s>\\n\"") }.runs();
}

#[test]
fn another_definition_for_an_executed_symbol() {
    let bench = Bench::new();
    let main = "#include <stdio.h>\nint value(void);\nint main(void) { printf(\"%d\\n\", value()); }";
    let (one, two) = ("int value(void) { return 1; }", "int value(void) { return 2; }\nint more(void) { return 0; }");
    bench.compile(&["-c", "-o", "main.o", "-"], main);
    bench.compile(&["-c", "-o", "one.o", "-"], one);
    bench.compile(&["-c", "-o", "two.o", "-"], two);
    let link = |object: &str| bench.compile(&["-o", "t", "main.o", object], "");
    link("one.o");
    bench.settles(&["./t"]);
    link("two.o");
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
    link("one.o");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn interposition() {
    let bench = Bench::new();
    bench.compile(
        &["-shared", "-fPIC", "-o", "libx.so", "-"],
        "int inner(void) { return 1; }\nint value(void) { return inner(); }",
    );
    let main = |more: &str| {
        format!("#include <stdio.h>\nint value(void);\n{more}\nint main(void) {{ printf(\"%d\\n\", value()); }}")
    };
    let build = |more: &str| {
        bench.compile(&["-rdynamic", "-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"], &main(more));
    };
    build("");
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    build("int unrelated(void) { return 7; }");
    bench.run(&["./t"]);
    build("int inner(void) { return 2; }");
    assert_eq!(bench.runs(&["./t"]).text(), "2\n");
}

#[test]
fn libraries_of_the_project_are_traced_too() {
    let bench = Bench::new();
    let library = |used: &str, unused: &str| {
        let source = format!(
            "__attribute__((noipa)) static int a(void) {{ return {used}; }}\n\
             __attribute__((noipa)) static int b(void) {{ return {unused}; }}\n\
             int value(int x) {{ return x ? b() : a(); }}"
        );
        bench.compile(&["-O1", "-shared", "-fPIC", "-o", "libx.so", "-"], &source);
    };
    library("1", "2");
    bench.compile(
        &["-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
        "#include <stdio.h>\nint value(int);\nint main(int argc, char **argv) { printf(\"%d\\n\", value(argc - 1)); }",
    );
    bench.settles(&["./t"]);
    bench.settles(&["./t", "x"]);
    library("1", "3");
    assert_eq!(bench.reuses(&["./t"]).decision.step, Some(Step::Executed));
    assert_eq!(bench.runs(&["./t", "x"]).text(), "3\n");
    library("4", "2");
    assert_eq!(bench.runs(&["./t"]).text(), "4\n");
    assert_eq!(bench.reuses(&["./t", "x"]).text(), "2\n");
}

#[test]
fn constructors_of_libraries_are_seen() {
    let bench = Bench::new();
    let library = |executed: &str, other: &str| {
        let source = format!(
            "static int value;\n__attribute__((noipa)) static int a(void) {{ return {executed}; }}\n\
             __attribute__((noipa)) static int b(void) {{ return {other}; }}\n\
             __attribute__((constructor)) static void start(void) {{ value = a(); }}\n\
             int get(int x) {{ return x ? b() : value; }}"
        );
        bench.compile(&["-O1", "-shared", "-fPIC", "-o", "libx.so", "-"], &source);
    };
    library("1", "2");
    bench.compile(
        &["-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
        "#include <stdio.h>\nint get(int);\nint main(int argc, char **argv) { printf(\"%d\\n\", get(argc - 1)); }",
    );
    bench.settles(&["./t"]);
    library("1", "3");
    assert_eq!(bench.reuses(&["./t"]).decision.step, Some(Step::Executed));
    library("4", "3");
    assert_eq!(bench.runs(&["./t"]).text(), "4\n");
}

const PLUGIN: &str = r#"
#include <stdio.h>
static int count = 1;
__attribute__((noipa)) static int at_start(void) { return 10; }
__attribute__((noipa)) static int used(void) { return 20; }
__attribute__((noipa)) static int unused(void) { return 30; }
__attribute__((constructor)) static void start(void) { count += at_start(); }
__attribute__((destructor)) static void end(void) { printf("end %d\n", count); }
int helper(int x) { return x ? unused() : used(); }
int run(int x) { return count + helper(x); }
"#;

const OPENS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    for (int round = 0; round < 3; round++) {
        void *plugin = argc > 1 && !strcmp(argv[1], "apart") ? dlmopen(LM_ID_NEWLM, "./plugin.so", RTLD_NOW)
                                                             : dlopen("./plugin.so", RTLD_NOW);
        if (!plugin) return puts(dlerror()), 1;
        int (*run)(int) = (int (*)(int))dlsym(plugin, "run");
        printf("%d\n", run(argc > 1));
        dlclose(plugin);
    }
    return 0;
}
"#;

#[test]
fn plugins_are_traced_from_their_constructors_on() {
    let bench = Bench::new();
    let plugin = |from: &str, to: &str| {
        let source = PLUGIN.replace(from, to);
        assert!(from == to || source != PLUGIN, "the edit changes something");
        bench.compile(&["-O1", "-shared", "-fPIC", "-o", "plugin.so", "-"], &source);
    };
    plugin("", "");
    bench.compile(&["-O1", "-o", "t", "-"], OPENS);
    let round = "31\nend 11\n";
    assert_eq!(bench.settles(&["./t"]).text(), round.repeat(3));
    plugin("return 30", "return 31");
    assert_eq!(bench.reuses(&["./t"]).decision.step, Some(Step::Executed));
    for (from, to, expected) in [
        ("return 20", "return 21", "32\nend 11\n"),
        ("return 10", "return 11", "32\nend 12\n"),
        ("count = 1", "count = 2", "32\nend 12\n"),
        ("\"end", "\"END", "31\nEND 11\n"),
        ("int helper", "__attribute__((constructor)) static void more(void) { count++; }\nint helper", "32\nend 12\n"),
    ] {
        plugin(from, to);
        assert_eq!(bench.runs(&["./t"]).text(), expected.repeat(3), "{to}");
    }
}

/// The same library, once where it is seen and once where it is not.
#[test]
fn a_plugin_in_a_namespace_of_its_own_counts_by_all_that_it_can_reach() {
    let bench = Bench::new();
    let plugin = |value: &str| {
        let source = PLUGIN.replace("return 30", &format!("return {value}"));
        bench.compile(&["-O1", "-shared", "-fPIC", "-o", "plugin.so", "-"], &source);
    };
    plugin("30");
    bench.compile(&["-O1", "-o", "t", "-"], OPENS);
    bench.script("both.sh", "#!/bin/sh\n./t && ./t apart\n");
    bench.settles(&["./both.sh"]);
    plugin("31");
    assert!(bench.runs(&["./both.sh"]).text().contains("42\n"));
}

/// Both plugins have a `helper` of their own, and the program has none: each uses its own.
#[test]
fn plugins_with_the_same_names() {
    let bench = Bench::new();
    let program = OPENS.replace("./plugin.so\", RTLD_NOW);\n        if", "./\" PLUGIN, RTLD_NOW);\n        if");
    let plugin = |name: &str, value: &str| {
        let source = PLUGIN.replace("return 20", &format!("return {value}"));
        bench.compile(&["-O1", "-shared", "-fPIC", "-o", name, "-"], &source);
    };
    plugin("a.so", "20");
    plugin("b.so", "20");
    for name in ["a", "b"] {
        bench.compile(&["-O1", &format!("-DPLUGIN=\"{name}.so\""), "-o", name, "-"], &program);
    }
    bench.script("both.sh", "#!/bin/sh\n./a && ./b\n");
    bench.settles(&["./both.sh"]);
    plugin("b.so", "25");
    assert!(bench.runs(&["./both.sh"]).text().contains("36\n"));
    plugin("b.so", "20");
    plugin("a.so", "27");
    assert!(bench.runs(&["./both.sh"]).text().contains("38\n"));
}

/// The program jumps to what it has found, past the front, and has breakpoints of its own behind that.
#[test]
fn functions_that_are_entered_in_the_middle() {
    let source = r#"
#include <signal.h>
#include <stdio.h>
static volatile int count;
static void trapped(int number) { count += number; }
__attribute__((noipa)) int other(int x) { return x + 100; }
__attribute__((noipa, patchable_function_entry(8, 0))) int f(int x) { __asm__ volatile("int3"); return x + 7; }
int main(int argc, char **argv) {
    int (*volatile past)(int) = (int (*)(int))((char *)f + PAST);
    signal(SIGTRAP, trapped);
    printf("%d", past(argc));
    printf(" %d", past(argc));
    printf(" %d\n", count);
    return argc > 1 ? other(argc) : 0;
}
"#;
    for past in ["-DPAST=8", "-DPAST=4"] {
        let flags = ["-O2", "-fcf-protection=none", past];
        Edit { flags: &flags, ..edit(source, "x + 7", "x + 8") }.runs();
        Edit { flags: &flags, ..edit(source, "x + 100", "x + 101") }.is_reused();
    }
}

/// Whatever a function is given, and whatever its caller keeps in registers meanwhile, is there when it starts.
#[test]
fn functions_get_what_they_are_given() {
    let source = r#"
#include <stdarg.h>
#include <stdio.h>
typedef struct { long a, b, c; } Large;
typedef struct { double x; int n; } Small;
typedef double Wide __attribute__((vector_size(32)));
#define APART __attribute__((noinline, noclone))
APART static double many(int a, double b, long c, float d, char e, double f, short g, double h, int i, double j, long double k,
                         int l, double m, double n, double o, double p) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p;
}
APART static Large large(Large in, int x) { Large out = { in.c + x, in.b - x, in.a * x }; return out; }
APART static Small small(Small in) { in.x *= in.n; in.n++; return in; }
APART static double listed(int count, ...) {
    va_list list; double sum = 0; va_start(list, count);
    for (int i = 0; i < count; i++) sum = sum * 3 + va_arg(list, double);
    va_end(list); return sum;
}
APART __attribute__((target("avx"))) static Wide wide(Wide a, Wide b) { return a * b + a; }
APART static int leaf(int x) { return x * 3 + 1; }
APART static double kept(double a, double b, int n) {
    double c = a * b, d = a - b, e = a + b; long x = n * 7, y = n * 11, z = n * 13;
    x += leaf(n); y += leaf((int)x); z += leaf((int)y);
    return c * x + d * y + e * z;
}
__attribute__((noinline)) int never(int x) { return x + 1; }
__attribute__((target("avx"))) static void avx(void) { Wide w = wide((Wide){ 1, 2, 3, 4 }, (Wide){ 5, 6, 7, 8 }); printf("%g %g\n", w[0], w[3]); }
int main(int argc, char **argv) {
    int base = argc * 100;
    int nested(int x) { return base + x; }
    int (*volatile indirect)(int) = nested;
    Large l = large((Large){ 1, 2, 3 }, 5); Small s = small((Small){ 1.5, 4 });
    printf("%g\n", many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    printf("%ld %ld %ld %g %d %g %d %g\n", l.a, l.b, l.c, s.x, s.n, listed(5, 1., 2., 3., 4., 5.), indirect(7), kept(1.25, 2.5, argc + 2));
    if (__builtin_cpu_supports("avx")) avx();
    return argc > 1 ? never(argc) : 0;
}
"#;
    for level in ["-O0", "-O2"] {
        let flags = [level, "-Wno-psabi", "-falign-functions=16"];
        Edit { flags: &flags, ..edit(source, "x + 1;", "x + 2;") }.is_reused();
        Edit { flags: &flags, ..edit(source, "x * 3 + 1", "x * 3 + 2") }.runs();
    }
}

#[test]
fn a_program_that_changes_its_own_code_is_not_traced_again() {
    let bench = Bench::new();
    let source = r#"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noipa, patchable_function_entry(8, 0))) int f(void) { return 1; }
int main(void) {
    char *page = (char *)((uintptr_t)f & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return 1;
    /* mov $9, %eax; ret */
    __builtin_memcpy((char *)f, "\xb8\x09\x00\x00\x00\xc3", 6);
    printf("%d\n", f());
    return 0;
}
"#;
    bench.compile(&["-O1", "-fcf-protection=none", "-o", "t", "-"], source);
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), "9\n"), "{ran:?}");
    assert_eq!(bench.settles(&["./t"]).text(), "9\n");
}

/// The second program lies where the first one did, and is nearly the same.
#[test]
fn a_program_that_is_replaced_while_the_test_runs() {
    let bench = Bench::new();
    for (name, value) in [("one", "x"), ("two", "x + x * x - 4")] {
        let source = BRANCHES.replace("x + 10", value).replace("puts", "printf");
        bench.compile(&["-O2", "-o", name, "-"], &source);
    }
    bench.script(
        "test.sh",
        "#!/bin/sh\nfor name in one two one two; do cp $name t && cp $name.tasting t.tasting && ./t || exit; done\n",
    );
    let expected = "1\n-2\n1\n-2\n";
    let ran = bench.run(&["./test.sh"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), expected), "{ran:?}");
}

/// Only one library can be the first.
#[test]
fn constructors_that_run_before_everything_else() {
    let bench = Bench::new();
    let library = |value: &str, other: &str| {
        let source = format!(
            "static int value;\n__attribute__((noipa)) static int a(void) {{ return {value}; }}\n\
             __attribute__((noipa)) static int b(void) {{ return {other}; }}\n\
             __attribute__((constructor)) static void start(void) {{ value = a(); }}\n\
             int get(int x) {{ return x ? b() : value; }}"
        );
        bench.compile(&["-O1", "-shared", "-fPIC", "-Wl,-z,initfirst", "-o", "libx.so", "-"], &source);
    };
    library("1", "2");
    bench.compile(
        &["-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
        "#include <stdio.h>\nint get(int);\nint main(int argc, char **argv) { printf(\"%d\\n\", get(argc - 1)); }",
    );
    bench.settles(&["./t"]);
    library("4", "2");
    assert_eq!(bench.runs(&["./t"]).text(), "4\n");
}

/// Some programs move their code to large pages.
#[test]
fn a_program_that_moves_its_own_code_is_not_traced_again() {
    let bench = Bench::new();
    let source = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
extern char __executable_start[], __etext[];
__attribute__((noipa, section(".text.apart"), aligned(4096))) int moved(int x) { return x + 1; }
__attribute__((noipa, section(".text.apart.end"), aligned(4096))) int behind(int x) { return x + 2; }
int main(int argc, char **argv) {
    char *page = (char *)((uintptr_t)moved & ~4095ul);
    char *copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, page, 4096);
    if (mprotect(copy, 4096, PROT_READ | PROT_EXEC)) return 1;
    if (mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page) != page) return 2;
    printf("%d\n", moved(argc));
    return argc > 1 ? behind(argc) : 0;
}
"#;
    bench.compile(&["-O2", "-o", "t", "-"], source);
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), "2\n"), "{ran:?}");
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
}

/// Many threads come upon each of many functions at once, in processes that share their code.
#[test]
fn threads_and_processes_that_execute_the_same_for_the_first_time() {
    let functions: String = (0..401)
        .map(|n| format!("__attribute__((noipa)) static unsigned f{n}(unsigned x) {{ for (int i = 0; i < {n} % 7; i++) x = x * 31 + {n}; return x ^ {n}; }}\n"))
        .collect();
    let names: String = (0..400).map(|n| format!("f{n}, ")).collect();
    let source = format!(
        "#include <pthread.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n{functions}\
         static unsigned (*const all[])(unsigned) = {{ {names} }};\nstatic pthread_barrier_t together;\n\
         static void *work(void *result) {{ unsigned x = 1; for (int i = 0; i < 400; i++) {{ pthread_barrier_wait(&together); x = all[i](x); }} *(unsigned *)result = x; return 0; }}\n\
         int main(int argc, char **argv) {{ if (argc > 1) return f400(argc); for (int i = 0; i < 3; i++) fork(); pthread_t threads[4]; unsigned results[4]; pthread_barrier_init(&together, 0, 4);\n\
         for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, &results[i]);\n\
         for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);\n\
         int bad = 0, status; for (int i = 1; i < 4; i++) bad |= results[i] != results[0];\n\
         while (wait(&status) > 0) bad |= status != 0; return bad; }}"
    );
    for level in ["-O1", "-O2"] {
        let bench = Bench::new();
        let flags = [level, "-pthread", "-o", "t", "-"];
        bench.compile(&flags, &source);
        let ran = bench.run(&["./t"]);
        assert_eq!(ran.outcome.code, Some(0), "{ran:?}");
        bench.compile(&flags, &source.replace("x ^ 400", "x ^ 401"));
        assert_eq!(bench.reuses(&["./t"]).decision.step, Some(Step::Executed));
    }
}

#[test]
fn programs_of_a_script_each_by_its_own() {
    let bench = Bench::new();
    let source = |one: &str, two: &str| BRANCHES.replace("x + 10", one).replace("x + 20", two);
    bench.compile(&["-O1", "-o", "a", "-"], &source("x + 1", "x + 2"));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 4"));
    bench.script("test.sh", "#!/bin/sh\n./a\n./b other\n");
    bench.settles(&["./test.sh"]);
    bench.compile(&["-O1", "-o", "a", "-"], &source("x + 1", "x + 5"));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 6", "x + 4"));
    assert_eq!(bench.reuses(&["./test.sh"]).decision.step, Some(Step::Executed));
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 7"));
    bench.runs(&["./test.sh"]);
    // Started once with its agent and once without: all of it counts.
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 4"));
    bench.script("test.sh", "#!/bin/sh\n./b\nenv -i ./b other\n");
    bench.settles(&["./test.sh"]);
    bench.compile(&["-O1", "-o", "b", "-"], &source("x + 3", "x + 8"));
    assert!(bench.runs(&["./test.sh"]).text().ends_with("10\n"));
}

#[test]
fn programs_that_handle_traps_themselves() {
    let bench = Bench::new();
    let source = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int count;
static void trapped(int number) { count += number; }
__attribute__((noinline)) int later(int x) { return x + 1; }
int main(int argc, char **argv) {
    signal(SIGTRAP, trapped);
    raise(SIGTRAP);
    __asm__ volatile("int3");
    printf("%d %d\n", count, later(argc));
    struct sigaction old;
    sigaction(SIGTRAP, 0, &old);
    printf("%d\n", old.sa_handler == trapped);
    if (argc > 1) { signal(SIGTRAP, SIG_DFL); raise(SIGTRAP); }
    return 0;
}
"#;
    bench.compile(&["-O1", "-o", "t", "-"], source);
    assert_eq!(bench.settles(&["./t"]).text(), "10 2\n1\n");
    assert_eq!(bench.runs(&["./t", "die"]).outcome.signal, Some(libc::SIGTRAP));
}

#[test]
fn a_program_that_checks_its_own_code_is_not_traced_again() {
    let bench = Bench::new();
    let source = r#"
#include <stdio.h>
__attribute__((noinline)) int checked(int x) { return x * 7 + 3; }
int main(int argc, char **argv) {
    int is_patched = *(unsigned char *)checked == 0xcc;
    puts(is_patched ? "patched" : "whole");
    return is_patched ? 1 : checked(argc) * 0;
}
"#;
    bench.compile(&["-O1", "-o", "t", "-"], source);
    let ran = bench.runs(&["./t"]);
    assert_eq!(ran.outcome.code, Some(0), "nobody hears of a failure that tracing made: {ran:?}");
    assert!(ran.text().ends_with("whole\n"));
    assert_eq!(bench.settles(&["./t"]).text(), "whole\n");
    assert_eq!(bench.last().step, Some(Step::Static));
}

const SNAPSHOT: &str = r#"
#include <stdio.h>
int main(void) {
    if (fopen("snapshot", "r")) return 0;
    fclose(fopen("snapshot", "w"));
    return 1;
}
"#;

const READER: &str = r#"
#include <stdio.h>
int main(void) { return getchar() == 'x'; }
"#;

/// A failure while functions are traced is doubted. But the second attempt would find what the first one left, or nothing where
/// the first one read, and pass.
#[test]
fn a_failure_that_cannot_be_repeated_is_believed() {
    let bench = Bench::with(SNAPSHOT);
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(1));
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(0));

    let bench = Bench::with(READER);
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    writer.write_all(b"x").expect("a pipe has room for a letter");
    drop(writer);
    assert_eq!(bench.finish(bench.tasting(&["./t"]).stdin(reader)).outcome.code, Some(1));

    bench.write("input", "x");
    let input = std::fs::File::open(bench.path("input")).expect("it was just written");
    assert_eq!(bench.finish(bench.tasting(&["./t"]).stdin(input)).outcome.code, Some(1));
}

/// GoogleTest prints the addresses of mock objects with each failure.
#[test]
fn a_failure_is_printed_once() {
    let source = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\\n\", getpid()); return 1; }";
    let bench = Bench::with(source);
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().lines().count()), (Some(1), 1), "{ran:?}");
}

#[test]
fn static_programs_count_by_all_that_they_reach() {
    let flags = ["-O1", "-static"];
    Edit { flags: &flags, ..edit(BRANCHES, "x + 20", "x + 21") }.runs();
    Edit { flags: &flags, ..edit(BRANCHES, "x + 10", "x + 11") }.runs();
}

#[test]
fn what_a_resolver_calls_runs_unseen() {
    let source = r#"
#include <stdio.h>
static int level = 1;
__attribute__((noinline)) int look(void) { return level; }
static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*resolve(void))(void) { return look() ? one : two; }
int chosen(void) __attribute__((ifunc("resolve")));
int main(void) { printf("%d\n", chosen()); return 0; }
"#;
    edit(source, "return level;", "return !level;").runs();
}

#[test]
fn it_can_be_turned_off() {
    let bench = Bench::new();
    bench.compile(&["-O1", "-o", "t", "-"], BRANCHES);
    let run = || bench.finish(bench.tasting(&["./t"]).env("TASTING_NOTRACE", "1")).decision;
    run();
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 20", "x + 21"));
    assert_eq!(run().decision, Verdict::Executed);
}

#[test]
fn explain_names_the_executed_function_that_changed() {
    let bench = Bench::new();
    let build = |source: &str| bench.compile(&["-O1", "-g", "-o", "t", "-"], source);
    build(BRANCHES);
    bench.settles(&["./t"]);
    build(&BRANCHES.replace("x + 10", "x + 11").replace("x + 20", "x + 21"));
    let mut command = bench.command(crate::workshop::TASTING);
    let text = crate::workshop::Outcome::of(command.args(["explain", "--", "./t"])).stdout_text();
    assert!(text.contains("main → used") && text.contains("used (") && !text.contains("unused"), "{text}");
}
