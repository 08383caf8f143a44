//! The syntax of C over what real preprocessors write: headers are understood, and where the
//! meaning is the same, so is the object.

use std::process::Stdio;

use tasting::ast::{self, Unit};

use crate::workshop::Workshop;

/// A good part of what programs include.
const HEADERS: &[&str] = &[
    "assert.h",
    "complex.h",
    "ctype.h",
    "errno.h",
    "fcntl.h",
    "fenv.h",
    "float.h",
    "inttypes.h",
    "limits.h",
    "locale.h",
    "math.h",
    "netdb.h",
    "netinet/in.h",
    "poll.h",
    "pthread.h",
    "regex.h",
    "sched.h",
    "semaphore.h",
    "setjmp.h",
    "signal.h",
    "stdarg.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "sys/epoll.h",
    "sys/mman.h",
    "sys/resource.h",
    "sys/socket.h",
    "sys/stat.h",
    "sys/syscall.h",
    "sys/time.h",
    "sys/wait.h",
    "tgmath.h",
    "time.h",
    "unistd.h",
    "wchar.h",
    "linux/fs.h",
    "linux/if.h",
    "linux/perf_event.h",
    "immintrin.h",
];

/// What a preprocessor makes of a source.
fn preprocessed(compiler: &str, flags: &[&str], source: &str) -> String {
    let workshop = Workshop::new();
    workshop.write("unit.c", source);
    let mut command = workshop.command(compiler);
    let output = command
        .args(flags)
        .args(["-E", "unit.c"])
        .stderr(Stdio::inherit())
        .output()
        .expect("a preprocessor runs");
    assert!(output.status.success(), "{compiler} {flags:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn read(text: &str) -> Unit {
    ast::read(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem}"))
}

fn object(compiler: &str, flags: &[&str], text: &str) -> Vec<u8> {
    let workshop = Workshop::new();
    workshop.write("unit.i", text);
    let status = workshop
        .command(compiler)
        .args(flags)
        .args(["-w", "-c", "unit.i"])
        .status()
        .expect("a compiler runs");
    assert!(status.success(), "{compiler} {flags:?}:\n{text}");
    std::fs::read(workshop.path("unit.o")).expect("an object")
}

#[test]
#[ignore = "needs clang"]
fn headers_are_understood_in_every_standard() {
    let here: Vec<&&str> = HEADERS.iter().filter(|header| has(header)).collect();
    assert!(here.len() > HEADERS.len() / 2, "{here:?}");
    let source: String = here.iter().map(|header| format!("#include <{header}>\n")).collect();
    let uses = "\nint main(void) { FILE *f = fopen(\"x\", \"r\"); int c = f ? fgetc(f) : EOF; return isdigit(c) + (int)strlen(\"abc\"); }\n";
    for compiler in ["gcc", "clang"] {
        for flags in [
            &["-std=gnu89"][..],
            &["-std=gnu99"],
            &["-std=gnu11", "-O2", "-D_FORTIFY_SOURCE=2"],
            &["-std=gnu2x", "-D_GNU_SOURCE"],
        ] {
            let unit = read(&preprocessed(compiler, flags, &format!("{source}{uses}")));
            let main = unit
                .definitions
                .iter()
                .find(|found| found.name == "main")
                .expect("the function is there");
            let names: Vec<&str> =
                main.references.iter().map(|reference| reference.name.as_str()).collect();
            assert!(
                names.contains(&"fopen") && names.contains(&"strlen"),
                "{compiler} {flags:?}: {names:?}"
            );
        }
    }
}

/// Another C library: its headers have no attributes, and types of its own.
#[test]
#[ignore = "needs musl-gcc"]
fn headers_of_musl_are_understood_in_every_standard() {
    let here: Vec<&&str> = HEADERS.iter().filter(|header| !header.starts_with("linux/")).collect();
    let source: String = here.iter().map(|header| format!("#include <{header}>\n")).collect();
    let uses = "int main(void) { va_list list; jmp_buf place; return setjmp(place) + isdigit(fgetc(stdin)) + (errno == EAGAIN); }\n";
    for standard in ["-std=c99", "-std=gnu89", "-std=gnu11", "-std=gnu2x"] {
        let flags = [standard, "-D_GNU_SOURCE", "-O2"];
        let unit = read(&preprocessed("musl-gcc", &flags, &format!("{source}{uses}")));
        let main = unit
            .definitions
            .iter()
            .find(|found| found.name == "main")
            .expect("the function is there");
        let names: Vec<&str> =
            main.references.iter().map(|reference| reference.name.as_str()).collect();
        assert!(names.contains(&"setjmp") && names.contains(&"stdin"), "{standard}: {names:?}");
        assert!(names.contains(&"__errno_location"), "{standard}: {names:?}");
    }
}

fn has(header: &str) -> bool {
    ["/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu"]
        .iter()
        .any(|folder| std::path::Path::new(folder).join(header).exists())
        || ["float.h", "limits.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h"]
            .contains(&header)
        || header == "immintrin.h" && cfg!(target_arch = "x86_64")
}

const SOURCE: &str = "#include <stdio.h>\n#include <string.h>\n#include \"own.h\"\n\
    static int count;\nstatic inline int twice(int a) { return a + a; }\n\
    int f(struct point *p) { count += p->x; printf(\"%d\\n\", count); return twice(p->y) + SECOND; }\n\
    char *g(char *to, const char *from) { strcpy(to, from); return to + strlen(to); }\n";
const OWN: &str =
    "struct point { int x, y; };\nenum { FIRST, SECOND };\nint helper(struct point *);\n";

/// Edits of the header. Those that change nothing of the meaning must not change the object either.
#[test]
#[ignore = "needs clang"]
fn equal_meanings_are_equal_objects() {
    let edits = [
        (true, "/* a comment */\n"),
        (true, "int unused(int);\n"),
        (true, "typedef struct { long a[9]; float f; } unused;\n"),
        (true, "enum { THIRD = 7 };\n"),
        (true, "static inline int unused(int a) { return a * 7; }\n"),
        (true, "extern int unused __attribute__((weak, visibility(\"hidden\")));\n"),
        (true, "int helper(struct point *);\n"),
        (true, "#pragma pack(push, 1)\nstruct unused { char c; int i; };\n#pragma pack(pop)\n"),
        (false, "static inline int unused(int a) { static int n; return n += a; }\n"),
        (false, "static const int unused = 3;\n"),
        (false, "int puts(const char *) __asm__(\"other_puts\");\n"),
        (false, "char *stpcpy(char *, const char *) __asm__(\"other_stpcpy\");\n"),
        (false, "#pragma GCC visibility push(hidden)\n"),
        (false, "#pragma weak f\n"),
        (false, "__asm__(\".globl marker\\nmarker:\");\n"),
    ];
    let whole = |own: &str| SOURCE.replace("#include \"own.h\"\n", own);
    for compiler in ["gcc", "clang"] {
        let plain = preprocessed(compiler, &[], &whole(OWN));
        for (is_same, edit) in edits {
            let edited = preprocessed(compiler, &[], &whole(&format!("{OWN}{edit}")));
            assert_eq!(read(&edited).meaning == read(&plain).meaning, is_same, "{edit}");
            for level in ["-O0", "-O2"].iter().filter(|_| is_same) {
                assert!(
                    object(compiler, &[level], &edited) == object(compiler, &[level], &plain),
                    "{compiler} {level}: {edit}"
                );
            }
        }
    }
}
