//! Programs that read the code of their own functions by an address: they print what they print
//! without Tasting, and count whole. And programs that do everything else with such addresses: they
//! are traced.

use super::Bench;
use crate::workshop::Outcome;
use tasting::fingerprint::execution;
use tasting::model::Step;
use tasting::process::Settings;

const HEAD: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#define APART __attribute__((noinline))
typedef const unsigned char *Bytes;
APART int f(int x) { volatile int y = x * 7 + 3; return y * y + x / 3; }
APART int g(int x) { volatile int y = x * 9 + 1; return y * y - x / 5; }
APART int never(int x) { volatile int y = x * 11 + 5; return y + 1; }
APART unsigned sum(Bytes at, int length) { unsigned sum = 0; for (int i = 0; i < length; i++) sum = sum * 31 + at[i]; return sum; }
static unsigned char room[64];
"#;

/// Each prints something of `f`, or of `g` too, which are not executed.
const READERS: [(&str, &str); 24] = [
    (
        "a loop",
        "int main(int c, char **v) { unsigned s = 0; Bytes p = (Bytes)f; for (int i = 0; i < 24; i++) s = s * 31 + p[i]; printf(\"%u\\n\", s); LATER }",
    ),
    ("one byte", "int main(int c, char **v) { printf(\"%d\\n\", ((Bytes)f)[1]); LATER }"),
    (
        "whole words",
        "int main(int c, char **v) { uint64_t s = 0; for (int i = 0; i < c + 1; i++) s ^= ((uint64_t *)f)[i]; printf(\"%lx\\n\", (long)s); LATER }",
    ),
    (
        "from its end",
        "int main(int c, char **v) { unsigned s = 0; Bytes p = (Bytes)f + 20; while (p > (Bytes)f) s = s * 31 + *--p; printf(\"%u\\n\", s); LATER }",
    ),
    ("an argument", "int main(int c, char **v) { printf(\"%u\\n\", sum((Bytes)f, 24)); LATER }"),
    (
        "an argument of an argument",
        "APART unsigned two(void *p) { return sum(p, 24) + 1; } int main(int c, char **v) { printf(\"%u\\n\", two((void *)f)); LATER }",
    ),
    (
        "memcpy",
        "int main(int c, char **v) { memcpy(room, (void *)f, 19 + c); for (int i = 0; i < 20; i++) printf(\"%02x\", room[i]); LATER }",
    ),
    (
        "memcpy of a constant size",
        "int main(int c, char **v) { memcpy(room, (void *)f, 16); for (int i = 0; i < 16; i++) printf(\"%02x\", room[i]); LATER }",
    ),
    (
        "memcmp",
        "int main(int c, char **v) { printf(\"%d\\n\", memcmp((void *)f, \"\\xe8\\xcc\\xcc\\xcc\\xcc\", 4 + c)); LATER }",
    ),
    (
        "write",
        "int main(int c, char **v) { return write(1, (void *)f, 20) != 20 || (c > 5 && f(c) + g(c) + never(c)); }",
    ),
    ("fwrite", "int main(int c, char **v) { fwrite((void *)f, 1, 20, stdout); LATER }"),
    (
        "writev",
        "int main(int c, char **v) { struct iovec all[] = { { (void *)f, 20 }, { \"x\", 1 } }; if (writev(1, all, 2) < 0) return 1; LATER }",
    ),
    (
        "a table",
        "static void *const all[] = { (void *)f, (void *)g }; int main(int c, char **v) { for (int i = 0; i < c + 1; i++) printf(\"%u\\n\", sum(all[i], 20)); LATER }",
    ),
    (
        "a table of records",
        "typedef struct { const char *name; void *at; int length; } Part; static Part all[] = { { \"f\", (void *)f, 20 }, { \"g\", (void *)g, 20 }, { 0 } };\
        APART void each(Part *p) { for (; p->name; p++) printf(\"%s %u\\n\", p->name, sum(p->at, p->length)); } int main(int c, char **v) { each(all); LATER }",
    ),
    (
        "a local table",
        "int main(int c, char **v) { void *all[] = { (void *)f, (void *)g, (void *)never }; for (int i = 0; i < c + 2; i++) printf(\"%u\\n\", sum(all[i], 20)); LATER }",
    ),
    (
        "a local record",
        "typedef struct { void *at; long length; } Part; APART unsigned of(Part *p) { return sum(p->at, p->length); } int main(int c, char **v) { Part p = { (void *)f, 20 }; printf(\"%u\\n\", of(&p)); LATER }",
    ),
    (
        "a record on the stack",
        "typedef struct { long a, b; void *at; long length; } Part; APART unsigned of(Part p) { return sum(p.at, p.length); } int main(int c, char **v) { Part p = { 1, c, (void *)f, 20 }; printf(\"%u\\n\", of(p)); LATER }",
    ),
    (
        "a variable",
        "static Bytes kept; APART void keep(void) { kept = (Bytes)f; } APART unsigned of(void) { unsigned s = 0; for (int i = 0; i < 20; i++) s = s * 31 + kept[i]; return s; } int main(int c, char **v) { keep(); printf(\"%u\\n\", of()); LATER }",
    ),
    (
        "an initialised variable",
        "static Bytes kept = (Bytes)f; APART unsigned of(void) { unsigned s = 0; for (int i = 0; i < 20; i++) s = s * 31 + kept[i]; return s; } int main(int c, char **v) { if (c > 7) kept = 0; printf(\"%u\\n\", of()); LATER }",
    ),
    (
        "what a function returns",
        "APART void *start(void) { return (void *)f; } int main(int c, char **v) { printf(\"%u\\n\", sum(start(), 20)); LATER }",
    ),
    (
        "a rounded address",
        "int main(int c, char **v) { printf(\"%u\\n\", sum((Bytes)((uintptr_t)f & ~15ul) + 16, 20)); LATER }",
    ),
    (
        "a choice",
        "int main(int c, char **v) { printf(\"%u\\n\", sum(c > 3 ? (Bytes)g : (Bytes)f, 20)); LATER }",
    ),
    (
        "a call through a pointer",
        "int main(int c, char **v) { unsigned (*how)(Bytes, int) = sum; printf(\"%u\\n\", how((Bytes)f, 20)); LATER }",
    ),
    (
        "its own memory",
        "#include <fcntl.h>\nint main(int c, char **v) { int self = open(\"/proc/self/mem\", O_RDONLY); if (pread(self, room, 20, (off_t)f) != 20) return 1; printf(\"%u\\n\", sum(room, 20)); LATER }",
    ),
];

/// Each calls what it has the address of, and nothing else.
const CALLERS: [(&str, &str); 12] = [
    (
        "a pointer",
        "int main(int c, char **v) { int (*p)(int) = c > 3 ? g : f; printf(\"%d\\n\", p(c)); OTHER }",
    ),
    (
        "a table",
        "static int (*const all[])(int) = { f, g }; int main(int c, char **v) { for (int i = 0; i < c + 1; i++) printf(\"%d\\n\", all[i](i)); OTHER }",
    ),
    (
        "a table with names",
        "typedef struct { const char *name; int (*call)(int); } Entry; static Entry all[] = { { \"f\", f }, { \"g\", g }, { 0 } };\
        APART void each(Entry *e, const char *wanted) { for (; e->name; e++) if (strcmp(e->name, wanted)) printf(\"%s %d\\n\", e->name, e->call(1)); } int main(int c, char **v) { each(all, v[0]); OTHER }",
    ),
    (
        "a table of large records",
        "typedef struct { const char *name; int (*call)(int); const char *help; } Entry; static Entry all[] = { { \"f\", f, \"x\" }, { \"g\", g, \"y\" } };\
        APART void each(Entry *e, const char *wanted, int n) { for (int i = 0; i < n; i++) if (strcmp(e[i].name, wanted)) printf(\"%s %s %d\\n\", e[i].help, e[i].name, e[i].call(1)); } int main(int c, char **v) { each(all, v[0], c + 1); OTHER }",
    ),
    (
        "tables in a table",
        "typedef struct { const char *name; int (*call)(int); int *given; } Entry; static int one, two; static Entry a = { \"a\", f, &one }, b = { \"b\", g, &two }; static Entry *const all[] = { &a, &b, 0 };\
        int main(int c, char **v) { for (int i = 0; all[i]; i++) if (strcmp(all[i]->name, v[0])) printf(\"%s %d\\n\", all[i]->name, all[i]->call(*all[i]->given)); OTHER }",
    ),
    (
        "qsort",
        "static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; } int main(int c, char **v) { int all[] = { 3, 1, c }; qsort(all, 3, sizeof *all, order); printf(\"%d\\n\", all[0]); OTHER }",
    ),
    (
        "hooks",
        "static struct { void *(*get)(size_t); void (*give)(void *); } hooks = { malloc, free }; APART void *mine(size_t n) { return malloc(n + 1); }\
        int main(int c, char **v) { if (c > 0) hooks.get = mine; char *p = hooks.get(20); strcpy(p, \"x\"); puts(p); hooks.give(p); OTHER }",
    ),
    (
        "registers that are left over",
        "APART int three(int a, void *b) { return b ? a + 1 : a; } APART int one(int a) { char text[20]; snprintf(text, sizeof text, \"%d\", a); return strlen(text); }\
        int main(int c, char **v) { int r = three(c, (void *)f); r += one(c); printf(\"%d\\n\", r); OTHER }",
    ),
    (
        "a context",
        "typedef struct { int (*call)(int); const char *name; int *data; } Context; APART int use(Context *x) { return x->call(*x->data) + strlen(x->name); } int main(int c, char **v) { int data = c; Context x = { f, \"name\", &data }; printf(\"%d\\n\", use(&x)); OTHER }",
    ),
    (
        "texts beside a pointer",
        "int main(int c, char **v) { int (*p)(int) = f; const char *names[] = { \"a\", \"b\", \"c\" }; for (int i = 0; i < c + 1; i++) printf(\"%s %zu\\n\", names[i], strlen(names[i])); printf(\"%d\\n\", p(c)); OTHER }",
    ),
    (
        "a switch",
        "APART int choose(int c) { switch (c) { case 1: return f(1); case 2: return g(2); case 3: return f(3) + 1; case 4: return 9; case 5: return g(7); case 6: return 77; default: return 0; } }\
        int main(int c, char **v) { int (*volatile p)(int) = choose; printf(\"%d\\n\", p(c)); OTHER }",
    ),
    (
        "any number of arguments",
        "#include <stdarg.h>\nAPART int all(const char *kinds, ...) { va_list list; va_start(list, kinds); int n = 0; for (; *kinds; kinds++) n += *kinds == 'c' ? va_arg(list, int (*)(int))(1) : (int)strlen(va_arg(list, char *)); va_end(list); return n; }\
        int main(int c, char **v) { printf(\"%d\\n\", all(\"tc\", \"text\", f)); OTHER }",
    ),
];

/// Compilers, levels and kinds of programs.
const BUILDS: [[&str; 4]; 6] = [
    ["gcc", "-O0", "-fPIE", "-pie"],
    ["gcc", "-O2", "-fPIE", "-pie"],
    ["clang", "-O0", "-fPIE", "-pie"],
    ["clang", "-O2", "-fPIE", "-pie"],
    ["gcc", "-O2", "-fno-pie", "-no-pie"],
    ["clang", "-O0", "-fno-pie", "-no-pie"],
];

/// The one of them that is run too.
const RUN: [&str; 4] = BUILDS[1];

fn build(bench: &Bench, [compiler, level, code, kind]: [&str; 4], source: &str) {
    let source = bench.write("t.c", source);
    let mut command = bench.command(crate::workshop::TASTING_CC);
    let command = command.args([compiler, level, code, kind, "-w", "-o", "t"]).arg(source);
    crate::workshop::succeed(command).unwrap_or_else(|error| panic!("{error}"));
}

/// Whether the functions of the program would be traced.
fn is_traced(bench: &Bench) -> bool {
    let settings = Settings::default();
    execution::code(&bench.path("t"), &settings).expect("the program has a manifest").is_some()
}

#[test]
fn reading_code_shows_the_original_bytes() {
    for (form, body) in READERS {
        let source = format!(
            "{HEAD}{}",
            body.replace("LATER", "return c > 5 ? f(c) + g(c) + never(c) : 0;")
        );
        for how in BUILDS {
            let bench = Bench::new();
            build(&bench, how, &source);
            assert!(!is_traced(&bench), "{form}, {how:?}");
            if how != RUN {
                continue;
            }
            let plain = Outcome::of(&mut bench.command(bench.path("t")));
            assert_eq!(bench.runs(&["./t"]).outcome, plain, "{form}");
            assert_eq!(bench.reuses(&["./t"]).outcome, plain, "{form}");
            assert_eq!(bench.last().step, Some(Step::Static), "{form}");
            // What it prints is of the code that is there.
            build(&bench, how, &source.replace("x * 7 + 3", "x * 1700 + 3"));
            let plain = Outcome::of(&mut bench.command(bench.path("t")));
            assert_eq!(bench.runs(&["./t"]).outcome, plain, "{form}, edited");
        }
    }
}

#[test]
fn calls_through_addresses_are_traced() {
    for (form, body) in CALLERS {
        let source =
            format!("{HEAD}{}", body.replace("OTHER", "return getenv(\"NEVER\") ? never(c) : 0;"));
        for how in BUILDS {
            let bench = Bench::new();
            build(&bench, how, &source);
            assert!(is_traced(&bench), "{form}, {how:?}");
            if how == RUN {
                bench.settles(&["./t"]);
                build(&bench, how, &source.replace("x * 11 + 5", "x * 11 + 6"));
                assert_eq!(bench.reuses(&["./t"]).decision.step, Some(Step::Executed), "{form}");
            }
        }
    }
}

/// By ways that no analysis of the program sees: the memory of a process whose functions are
/// traced.
#[test]
fn reading_another_process_memory_is_refused() {
    let by_call = "#include <sys/uio.h>\nint main(int c, char **v) { char b[16]; struct iovec to = { b, 16 }, from = { PLACE, 16 };\
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 16) return 1;";
    let by_file = "#include <fcntl.h>\nint main(int c, char **v) { char b[16]; int self = open(\"/proc/self/mem\", O_RDONLY);\
        if (pread(self, b, 16, (off_t)PLACE) != 16) return 1;";
    let by_parent = "#include <signal.h>\n#include <sys/ptrace.h>\n#include <sys/wait.h>\nint main(int c, char **v) { char b[16]; pid_t child = fork(); int status;\
        if (!child) { ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); _exit(0); } waitpid(child, &status, 0);\
        for (int i = 0; i < 2; i++) { long word = ptrace(PTRACE_PEEKTEXT, child, (char *)PLACE + 8 * i, 0); memcpy(b + 8 * i, &word, 8); }\
        ptrace(PTRACE_KILL, child, 0, 0); waitpid(child, &status, 0);";
    for body in [by_call, by_file, by_parent] {
        // The address comes as a text.
        let source = format!(
            "#define _GNU_SOURCE\n{HEAD}{} for (int i = 0; i < 16; i++) printf(\"%02x\", (unsigned char)b[i]); return c > 5 ? f(c) : 0; }}",
            body.replace("PLACE", "(void *)strtoul(getenv(\"AT\"), 0, 16)")
        );
        let bench = Bench::new();
        build(&bench, ["gcc", "-O2", "-fno-pie", "-no-pie"], &source);
        let names = Outcome::of(bench.command("nm").arg("t")).stdout_text();
        let at = names.lines().find_map(|line| line.strip_suffix(" T f")).expect("f has a place");
        let plain = Outcome::of(bench.command(bench.path("t")).env("AT", at));
        let run = || bench.finish(bench.tasting(&["./t"]).env("AT", at));
        let ran = run();
        assert_eq!(ran.outcome.code, Some(0), "{ran:?}");
        assert!(ran.decision.reason.contains("not kept"), "{ran:?}");
        // From then on it is not traced.
        assert_eq!(run().outcome, plain);
    }
}
