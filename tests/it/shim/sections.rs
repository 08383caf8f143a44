//! Sources that do not go together with section flags: the build is the plain one, and the object
//! counts whole.

use super::twins::Scene;
use crate::edits::matrix::compilers;
use crate::workshop::{TASTING, succeed};

/// The distance between two functions, which the assembler knows only if both lie in one section.
const DISTANCE: &str = r#"#include <stdio.h>
int f(void) { return 1; }
int g(void) { return 2; }
asm(".data\n.globl distance\ndistance: .quad g - f\n.text");
extern long distance;
int main(void) { printf("%d\n", distance != 0); return 0; }
"#;

#[test]
fn distance_between_functions_compiles_without_section_flags() {
    let lines = [
        "$CC -c main.c -o main.o",
        "$CC main.o -o prog && ./prog",
        "$CC main.c -o other && ./other",
    ];
    for compiler in compilers() {
        let twins = Scene::bare(compiler).file("main.c", DISTANCE).run(&lines).same_and_well();
        let shown = succeed(twins.workshop.command(TASTING).args(["show", "work/main.o"]));
        let shown = shown.unwrap_or_else(|error| panic!("{error}")).stdout_text();
        assert!(shown.contains("file"), "{}: {shown}", compiler.name);
    }
}

#[test]
fn failing_sources_are_told_of_once() {
    let wrong = DISTANCE.replace("return 1;", "return one;");
    let odd = DISTANCE.replace("g - f", "g - f - nothing");
    let warned = DISTANCE.replace("return 1;", "int unused; return 1;");
    for text in [wrong, odd, warned] {
        for compiler in compilers() {
            // Through a pipe, since the assembler tells the name of its input.
            let twins = Scene::bare(compiler)
                .file("main.c", &text)
                .run(&["$CC -pipe -Wall -c main.c"])
                .same();
            assert!(!twins.plain.outcomes[0].stderr_text().is_empty(), "{}", compiler.name);
        }
    }
}

/// Takes in sections by their usual names, and discards all others.
const SCRIPT: &str = r#"ENTRY(_start)
SECTIONS {
    . = 0x400000 + SIZEOF_HEADERS;
    .text : { *(.text) }
    .rodata : { *(.rodata) *(.rodata.str1.1) *(.rodata.str1.8) }
    .data : { *(.data) }
    .bss : { *(.bss) *(COMMON) }
    /DISCARD/ : { *(*) }
}
"#;

/// A program without a library.
const ALONE: &str = r#"static int last = 7;
static int zero;
int add(int x) { return x + last + zero; }
void _start(void)
{
    const char *text = add(1) == 8 ? "eight\n" : "other\n";
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(1), "D"(1), "S"(text), "d"(6) : "rcx", "r11", "memory");
    __asm__ volatile("syscall" : "=a"(result) : "a"(60), "D"(0) : "rcx", "r11", "memory");
    for (;;) {}
}
"#;

#[test]
fn scripts_that_discard_the_rest_get_usual_names() {
    let flags = "-nostdlib -static -no-pie -fno-pie -fno-stack-protector -O1 -fcf-protection=none";
    let compile = format!("$CC {flags} -c main.c -o main.o && ar rc libmain.a main.o");
    for compiler in compilers() {
        let links = ["bfd", "gold", "lld"].into_iter().flat_map(|linker| {
            let link = |inputs: &str| {
                format!("$CC {flags} -fuse-ld={linker} -T script.ld {inputs} -o prog && ./prog")
            };
            [link("main.o"), link("-Wl,--whole-archive libmain.a"), link("main.c")]
        });
        let lines: Vec<String> = [compile.clone()].into_iter().chain(links).collect();
        let twins =
            Scene::bare(compiler).file("main.c", ALONE).file("script.ld", SCRIPT).run(&lines);
        for (line, (plain, shim)) in
            lines.iter().zip(twins.plain.outcomes.iter().zip(&twins.shim.outcomes))
        {
            assert_eq!(plain, shim, "{}: {line}", compiler.name);
        }
        assert!(
            twins
                .plain
                .outcomes
                .iter()
                .filter(|outcome| outcome.stdout_text() == "eight\n")
                .count()
                > 2
        );
    }
}
