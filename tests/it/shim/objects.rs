//! Objects that are reused: the build with the cache is the build without it, in objects,
//! dependency files, messages and statuses, whatever is edited; and what means the same is not
//! compiled again.

mod cache;

use super::twins::{Scene, Twins};
use crate::edits::matrix::{COMPILERS, Compiler, compilers};

const MAIN: &str = r#"#include <stdio.h>
#include <string.h>
#include "things.h"
static int sum(const struct thing *it) { return it->one + it->two * FACTOR; }
int main(void) { struct thing it = { 1, 2, GREEN }; printf("%d %d %zu\n", sum(&it), it.colour, strlen("abc")); return 0; }
"#;

const THINGS: &str = r#"#ifndef THINGS_H
#define THINGS_H
#define FACTOR 3
enum colour { RED, GREEN };
struct thing { int one, two; enum colour colour; };
int length(struct thing *it);
#endif
"#;

/// A scene in which objects are reused; the log of the shims lies beside the working folder.
fn scene(compiler: Compiler) -> Scene {
    let scene =
        Scene::bare(compiler).env("TASTING_REUSE_OBJECTS", "1").env("TASTING_LOGFILE", "../log");
    scene.env("TASTING_LEVEL", "ast").file("main.c", MAIN).file("things.h", THINGS)
}

/// How many objects were reused.
fn reused(twins: &Twins) -> usize {
    log(twins).matches(": reused").count()
}

fn log(twins: &Twins) -> String {
    std::fs::read_to_string(twins.workshop.path("log")).expect("the shims wrote their log")
}

/// Compiles, edits, compiles again, and links: with `sed` on one of the files.
fn edited(compiler: Compiler, flags: &str, edit: &str) -> Twins {
    let compile = format!("$CC {flags} -MD -MP -c main.c -o main.o");
    let lines = [
        compile.clone(),
        edit.to_owned(),
        compile,
        "$CC main.o -Wl,--build-id=none -o prog && ./prog".to_owned(),
    ];
    scene(compiler).run(&lines).same_and_well()
}

/// Edits that change no meaning of `main.c`.
const HARMLESS: [(&str, &str); 7] = [
    ("a comment in a header", "sed -i '1i /* About things. */\\n' things.h"),
    ("a prototype", "sed -i '6i int width(struct thing *it, int what);' things.h"),
    ("a macro", "sed -i '3i #define OTHER 4' things.h"),
    (
        "a type and an enumeration",
        "sed -i '4i typedef unsigned long count_t; enum shape { ROUND, FLAT };' things.h",
    ),
    ("an unused variable of others", "sed -i '6i extern int counter;' things.h"),
    ("the order of #include", "sed -i '1{h;d};2{G}' main.c"),
    ("layout", "sed -i 's/static int sum/static\\n  int\\n  sum/' main.c"),
];

#[test]
fn equal_meaning_reuses_the_object() {
    for compiler in compilers() {
        for (name, edit) in HARMLESS {
            let twins = edited(compiler, "-O2 -Wall -Wextra", edit);
            assert_eq!(reused(&twins), 1, "{}, {name}: {}", compiler.name, log(&twins));
        }
    }
}

#[test]
fn different_meaning_is_compiled() {
    let edits = [
        ("a macro that is used", "sed -i 's/FACTOR 3/FACTOR 4/' things.h"),
        ("a body", "sed -i 's/it->one + /it->one - /' main.c"),
        ("an enumerator before the one that is used", "sed -i 's/RED, /RED, BLUE, /' things.h"),
        ("a field before those that are used", "sed -i 's/{ int one/{ int zero, one/' things.h"),
        ("a macro in the text", "sed -i '1i #define printf(...) 0' things.h"),
    ];
    for compiler in compilers() {
        for (name, edit) in edits {
            let compile = "$CC -O2 -MD -c main.c -o main.o";
            let twins = scene(compiler).run(&[compile, edit, compile]).same_and_well();
            assert_eq!(reused(&twins), 0, "{}, {name}", compiler.name);
        }
    }
}

#[test]
fn line_numbers_count_with_debug_information_by_default() {
    let (compile, edit) =
        ("$CC -g -O1 -c main.c", "sed -i '1i /* One more line. */' things.h main.c");
    for compiler in compilers() {
        assert_eq!(
            reused(&scene(compiler).run(&[compile, edit, compile]).same_and_well()),
            0,
            "{}",
            compiler.name
        );
        assert_eq!(
            reused(&scene(compiler).run(&[compile, "rm *.o", compile]).same_and_well()),
            1,
            "{}",
            compiler.name
        );
        let twins =
            scene(compiler).env("TASTING_SLOPPINESS", "lines").run(&[compile, edit, compile]);
        assert_eq!(reused(&twins), 1, "{}", compiler.name);
    }
}

/// The preprocessor does not keep columns; compilers do.
#[test]
#[ignore = "needs clang"]
fn columns_count_with_debug_information_and_sanitizers() {
    let edits = [
        "sed -i 's/return it->one/return  it->one/' main.c",
        "sed -i '1s/$/ \\/* Things. *\\//' things.h",
        "sed -i '3i \\\\n' main.c",
    ];
    for compiler in compilers() {
        for (flags, edit) in ["-g", "-fsanitize=undefined"]
            .into_iter()
            .flat_map(|flags| edits.map(|edit| (flags, edit)))
        {
            let compile = format!("$CC -O1 {flags} -c main.c");
            let lines = [
                compile.clone(),
                edit.to_owned(),
                compile.clone(),
                "rm main.o".to_owned(),
                compile,
            ];
            let twins = scene(compiler).run(&lines).same_and_well();
            assert_eq!(reused(&twins), 1, "{} {flags} {edit}: {}", compiler.name, log(&twins));
        }
    }
}

/// Debug information names the folder as the shell does, links and all.
#[test]
fn folder_names_count_with_debug_information() {
    let lines = [
        "mkdir real && cp main.c things.h real && ln -s real link",
        "cd real && TASTING_LOGFILE=../../log $CC -g -c main.c -o ../one.o",
        "cd link && TASTING_LOGFILE=../../log $CC -g -c main.c -o ../two.o",
        "cd real && TASTING_LOGFILE=../../log $CC -g -c main.c -o ../three.o",
    ];
    for compiler in compilers() {
        let twins = scene(compiler).run(&lines).same_and_well();
        assert_eq!(reused(&twins), 1, "{}: {}", compiler.name, log(&twins));
    }
}

#[test]
fn messages_are_those_of_the_compiler() {
    let edits = [
        (
            "a static function that nobody uses",
            "sed -i '6i static int idle(void) { return 1; }' things.h",
        ),
        ("a static prototype without a function", "sed -i '6i static int idle(void);' things.h"),
        (
            "two declarations that contradict each other",
            "sed -i '6i int odd(int); int odd(void);' things.h",
        ),
        ("a declaration of nothing", "sed -i '6i struct { int x; };' things.h"),
        ("a warning by the preprocessor", "sed -i '3i #warning mind' things.h"),
        ("a comment within a comment", "sed -i '3i /* one /* two */' things.h"),
    ];
    for compiler in compilers() {
        for (name, edit) in edits {
            let compile = "$CC -O2 -Wall -Wextra -c main.c; echo $?";
            let twins = scene(compiler).run(&[compile, edit, compile, compile]).same();
            let messages = twins.plain.outcomes[2].stderr_text();
            assert!(!messages.is_empty(), "{}, {name}: the compiler says nothing", compiler.name);
        }
    }
}

/// Compiles two files with a header of both, each with a text before it, and compiles them again
/// after an edit.
fn two_files(compiler: Compiler, one: &str, two: &str, flags: &str, edit: &str) -> Twins {
    let source = |before: &str, name: &str| {
        format!("{before}#include \"things.h\"\nint {name}(void) {{ return 1; }}\n")
    };
    let compile = format!("$CC -O2 {flags} -c one.c; echo $?; $CC -O2 {flags} -c two.c; echo $?");
    let scene = scene(compiler).file("one.c", source(one, "one")).file("two.c", source(two, "two"));
    scene
        .file("sys/sys.h", "#define STRANGE(name) int name();\n")
        .run(&[compile.clone(), edit.to_owned(), compile.clone(), compile])
        .same()
}

#[test]
fn a_shared_prototype_is_checked_once() {
    let edits = [
        "sed -i '6i int width(struct thing *it, int what);' things.h",
        "sed -i '6i extern const char *width(int);\\nint height(const struct thing *,\\n   ...);' things.h",
    ];
    for compiler in compilers() {
        for edit in edits {
            let twins =
                two_files(compiler, "", "", "-Wall -Wextra -Wshadow -Wredundant-decls", edit);
            assert_eq!(reused(&twins), 4, "{}: {}", compiler.name, log(&twins));
            assert_eq!(
                log(&twins).matches("the compiler is asked").count(),
                1,
                "{}: {}",
                compiler.name,
                log(&twins)
            );
        }
    }
}

/// In one file there is nothing to say of a declaration, in the other one there is.
#[test]
fn a_prototype_is_judged_in_each_file_anew() {
    let prototype = "sed -i '6i int width(int);' things.h";
    let cases = [
        (
            "a local of that name",
            "",
            "#include \"things.h\"\nint local(void) { int (*width)(int) = 0; return !width; }\n",
            "-Wshadow",
            prototype,
        ),
        ("declared again", "", "int width(int);\n", "-Wredundant-decls", prototype),
        ("declared otherwise", "", "long width(void);\n", "-Wall", prototype),
        (
            "a structure that is not known",
            "struct known;\n",
            "",
            "-Wall",
            "sed -i '6i int width(struct known *);' things.h",
        ),
        (
            "a warning that is switched off",
            "#pragma GCC diagnostic ignored \"-Wstrict-prototypes\"\n",
            "",
            "-Wstrict-prototypes",
            "sed -i '6i int width();' things.h",
        ),
        (
            "a macro of a system header",
            "#include <sys.h>\n",
            "#define STRANGE(name) int name();\n",
            "-Wstrict-prototypes -isystem sys",
            "sed -i '6i STRANGE(width)' things.h",
        ),
    ];
    for compiler in compilers() {
        for (name, one, two, flags, edit) in cases {
            let twins = two_files(compiler, one, two, flags, edit);
            let messages = twins.plain.outcomes[2].stderr_text();
            // Clang warns of fewer of them.
            let is_said = messages.contains("width") || compiler.name == "clang";
            assert!(is_said, "{}, {name}: the compiler says nothing", compiler.name);
        }
    }
}

/// With some options Clang reads all comments.
#[test]
#[ignore = "needs clang"]
fn comments_about_declarations_count() {
    let compile = "$CC -O2 -Wdocumentation -c main.c";
    let edit = "sed -i '6i /** @param nobody Not there. */' things.h";
    let twins = scene(COMPILERS[1]).run(&[compile, edit, compile]).same_and_well();
    assert!(
        twins.plain.outcomes[2].stderr_text().contains("nobody"),
        "Clang does not read the comment"
    );
}

/// GCC takes a comment for a promise that a case is meant to fall through.
#[test]
fn comments_that_the_compiler_reads_count() {
    let source = "int f(int x) { switch (x) { case 1: x++; /* fall through */ case 2: return x; } return 0; }\n";
    let compile = "$CC -O2 -Wextra -c x.c";
    let edit = "sed -i 's:/[*] fall through [*]/:/* on */:' x.c";
    let twins =
        scene(COMPILERS[0]).file("x.c", source).run(&[compile, edit, compile]).same_and_well();
    assert!(
        twins.plain.outcomes[2].stderr_text().contains("fall through"),
        "GCC does not read the comment"
    );
}

#[test]
fn dependency_files_list_the_current_headers() {
    let ways = [
        "-MD",
        "-MMD -MP",
        "-MD -MF deps/x.d",
        "-MD -MT target -MQ 'a b$c'",
        "-MD -MF deps/y -MP -MT one -MT two",
    ];
    for compiler in compilers() {
        for way in ways {
            let compile = format!("mkdir -p deps out && $CC -O1 {way} -c main.c -o out/main.o");
            let edit =
                "echo 'extern int more;' > more.h && sed -i '2a #include \"more.h\"' things.h";
            let twins =
                scene(compiler).run(&[compile.clone(), edit.to_owned(), compile]).same_and_well();
            assert_eq!(reused(&twins), 1, "{} {way}: {}", compiler.name, log(&twins));
        }
        let twins = scene(compiler)
            .run(&["$CC -MD -c main.c", "touch things.h", "$CC -MD -c main.c"])
            .same_and_well();
        assert_eq!(reused(&twins), 1, "{}", compiler.name);
    }
}

#[test]
fn uncacheable_compilations_have_a_reason() {
    let calls = [
        ("--coverage -frandom-seed=1 -c main.c", "a profile"),
        ("-save-temps -c main.c", "further files"),
        ("-g -gsplit-dwarf -c main.c", "debug information"),
        ("-fstack-usage -c main.c", "further files"),
        ("-g3 -c main.c", "macros"),
        ("-march=native -c main.c", "the machine at hand"),
        ("-Wp,-MD,x.d -c main.c", "unusual way"),
    ];
    for (call, reason) in calls {
        let compile = format!("$CC {call}");
        let twins = scene(COMPILERS[0]).run(&[&compile, &compile]).same_and_well();
        assert_eq!(reused(&twins), 0, "{call}");
        assert!(log(&twins).contains(reason), "{call}: {}", log(&twins));
    }
    for (source, reason) in [
        ("const char *when = __TIME__;\n", "time"),
        ("__asm__(\".section .rodata\\n.incbin \\\"main.c\\\"\\n.text\");\n", ".incbin"),
    ] {
        let twins = scene(COMPILERS[0])
            .file("x.c", source)
            .run(&["$CC -c x.c -o /dev/null || :", "$CC -c x.c && rm x.o"]);
        assert!(log(&twins).contains(reason), "{source}: {}", log(&twins));
    }
}

#[test]
fn objects_are_reused_at_the_code_level_too() {
    for compiler in compilers() {
        let scene =
            Scene::new(compiler).env("TASTING_REUSE_OBJECTS", "1").env("TASTING_LOGFILE", "../log");
        let compile = "$CC -O0 -c main.c -o main.o";
        let lines =
            [compile, HARMLESS[1].1, compile, "$CC main.o -Wl,--build-id=none -o prog && ./prog"];
        let twins = scene.file("main.c", MAIN).file("things.h", THINGS).run(&lines).same_and_well();
        assert_eq!(reused(&twins), 1, "{}: {}", compiler.name, log(&twins));
        assert_eq!(twins.with_record(), ["main.o"], "{}", compiler.name);
    }
}
