//! Programs whose code is entered, changed, replaced or looked at in unusual ways.

use super::{BRANCHES, Edit, edit};
use crate::run::Bench;
use crate::workshop::TASTING;
use tasting::model::Step;

/// The program jumps to what it has found, past the front, and has breakpoints of its own behind
/// that, which it handles: it is not traced.
#[test]
fn functions_that_are_entered_in_the_middle() {
    let source = r#"
#include <signal.h>
#include <stdio.h>
static volatile int count;
static void trapped(int number) { count += number; }
__attribute__((noipa)) int other(int x) { return x * 1000; }
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
        Edit { flags: &flags, ..edit(source, "x * 1000", "x * 1001") }.runs();
        let plain = source
            .replace("__asm__ volatile(\"int3\");", "")
            .replace("signal(SIGTRAP, trapped);", "");
        Edit { flags: &flags, ..edit(&plain, "x + 7", "x + 8") }.runs();
        Edit { flags: &flags, ..edit(&plain, "x * 1000", "x * 1001") }.is_reused();
    }
}

/// Whatever a function is given, and whatever its caller keeps in registers meanwhile, is there
/// when it starts.
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
fn self_modifying_programs_count_whole() {
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
    let ran = bench.settles(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), "9\n"), "{ran:?}");
    assert_eq!(bench.last().step, Some(Step::Static));
}

/// The second program lies where the first one did, and is nearly the same.
#[test]
fn a_program_replaced_during_the_test() {
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

/// Some programs move their code to large pages.
#[test]
fn programs_moving_their_code_count_whole() {
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
    let ran = bench.settles(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().as_str()), (Some(0), "2\n"), "{ran:?}");
    assert_eq!(bench.last().step, Some(Step::Static));
}

/// Many threads come upon each of many functions at once, in processes that share their code.
#[test]
#[ignore = "takes a minute"]
fn simultaneous_first_executions_in_threads_and_processes() {
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

/// Where nobody can follow the address: it is kept in allocated memory.
#[test]
fn programs_checking_their_code_are_not_traced_again() {
    let bench = Bench::new();
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int checked(int x) { return x * 7 + 3; }
int main(int argc, char **argv) {
    unsigned char *volatile *kept = malloc(sizeof *kept);
    *kept = (unsigned char *)checked;
    int is_patched = (*kept)[1] == 0xcc;
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

/// By the symbols of the linker a program gets at all of its code, which has to be its own.
#[test]
fn a_checksum_of_all_code_is_as_without() {
    let by_bounds = "extern const char __executable_start, etext; const char *at = &__executable_start, *end = &etext;";
    let by_headers = "extern const Elf64_Ehdr __ehdr_start; const char *at = (const char *)&__ehdr_start;\
        const Elf64_Phdr *header = (const Elf64_Phdr *)(at + __ehdr_start.e_phoff);\
        while (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) header++;\
        at += header->p_vaddr; const char *end = at + header->p_memsz;";
    for find in [by_bounds, by_headers] {
        let bench = Bench::new();
        let source = format!(
            "#include <elf.h>\n#include <stdio.h>\n__attribute__((noinline)) int unused(int x) {{ return x * 7 + 3; }}\n\
            int main(int argc, char **argv) {{ {find} unsigned sum = 0;\n\
            while (at < end) sum = sum * 31 + (unsigned char)*at++; printf(\"%u\\n\", sum); return argc > 5 ? unused(argc) : 0; }}"
        );
        bench.compile(&["-O1", "-o", "t", "-"], &source);
        let plain = crate::workshop::Outcome::of(&mut bench.command("./t")).stdout_text();
        assert_eq!(bench.settles(&["./t"]).text(), plain, "{find}");
        assert_eq!(bench.last().step, Some(Step::Static));
    }
}

/// Where a linker folds equal functions into one, the place of one is that of both: whichever is
/// executed counts, and its place is covered.
#[test]
#[ignore = "needs gold"]
fn functions_that_are_folded_into_one() {
    let source = BRANCHES.replace("x + 20", "x + 10");
    let flags = ["-O1", "-fuse-ld=lld", "-Wl,--icf=all"];
    for (arguments, executed) in [(&[][..], "used"), (&["other"][..], "unused")] {
        let changed = format!("noinline)) long {executed}(long x) {{ return x + 10");
        let other = changed.replace("10", "11");
        Edit { flags: &flags, arguments, ..edit(&source, &changed, &other) }.runs();
        let bench = Bench::new();
        bench.compile(&[&flags[..], &["-o", "t", "-"]].concat(), &source);
        let words = [&["./t"], arguments].concat();
        bench.settles(&words);
        let cover =
            crate::workshop::Outcome::of(bench.command(TASTING).args(["cover", "--"]).args(&words));
        let modules: serde_json::Value = serde_json::from_slice(&cover.stdout).expect("JSON");
        let atoms = modules[0]["atoms"].as_array().expect("a list");
        let twins: Vec<_> =
            atoms.iter().filter(|atom| atom[3] == "used" || atom[3] == "unused").collect();
        assert!(
            !twins.is_empty() && twins.iter().all(|twin| twin[2] == true),
            "{executed}: {twins:?}"
        );
    }
}

/// gold folds equal exception tables, though their functions differ: the table that is left is that
/// of both.
#[test]
#[ignore = "needs gold"]
fn exception_tables_that_are_folded_into_one() {
    let function = |name: &str, number: u32| {
        format!(
            "extern \"C\" __attribute__((noipa)) long {name}(long x)\n\
            {{ Guard guard; if (x > 100) throw 1; return x + {number}; }}\n"
        )
    };
    let source = format!(
        "#include <cstdio>\nstruct Guard {{ __attribute__((noipa)) ~Guard() {{ std::puts(\"left\"); }} }};\n{}{}\
        int main(int argc, char **argv) {{\n\
            try {{ argc > 5 ? unused(argc) : used(argc + 100); }} catch (int) {{ std::puts(\"caught\"); }}\n\
            return 0; }}\n",
        function("unused", 1000),
        function("used", 2000)
    );
    let bench = Bench::new();
    let flags = [
        "-O1",
        "-fno-pie",
        "-no-pie",
        "-x",
        "c++",
        "-fuse-ld=gold",
        "-Wl,--icf=all",
        "-Wl,--no-as-needed",
    ];
    bench.compile(&[&flags[..], &["-lstdc++", "-o", "t", "-"]].concat(), &source);
    assert_eq!(bench.settles(&["./t"]).text(), "left\ncaught\n");
    let cover = crate::workshop::Outcome::of(bench.command(TASTING).args(["cover", "--", "./t"]));
    let modules: serde_json::Value = serde_json::from_slice(&cover.stdout).expect("JSON");
    let atoms = modules[0]["atoms"].as_array().expect("a list");
    let is_table =
        |atom: &&serde_json::Value| atom[3].as_str().is_some_and(|name| name.ends_with("used"));
    let tables: Vec<_> = atoms
        .iter()
        .filter(is_table)
        .filter(|atom| atom[3] != "used" && atom[3] != "unused")
        .collect();
    assert!(tables.len() == 1 && tables[0][2] == true, "{tables:?}");
}
