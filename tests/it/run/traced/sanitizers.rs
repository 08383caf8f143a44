//! Programs with the runtime of a sanitizer, started directly, by a script and by `env`.

use super::is_unnoticed;
use crate::run::Bench;
use tasting::model::Verdict;

const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int shared;
__attribute__((noinline)) static int value(int x) { return x + 10; }
static void *work(void *argument) { shared += value(*(int *)argument); return 0; }
int main(int argc, char **argv) {
    pthread_t thread;
    FILE *file = fopen("written", "w");
    char *volatile kept = malloc(10);
    pthread_create(&thread, 0, work, &argc);
    pthread_join(thread, 0);
    fprintf(file, "%d\n", shared);
    fclose(file);
    printf("%d\n", shared);
    if (argc == 1) free(kept);
    return 0;
}
"#;

/// Each sanitizer with each way to start the program; where what the program computes changes, it
/// runs.
#[track_caller]
fn are_unnoticed(compiler: &str, flags: &[&str]) {
    for sanitizer in flags {
        let bench = Bench::new();
        let build = |source: &str| {
            let source = bench.write(".source.c", source);
            let mut command = bench.command(crate::workshop::TASTING_CC);
            command
                .env("TASTING_CC", compiler)
                .args(["-g", "-O1", "-pthread", "-o", "t"])
                .arg(source);
            crate::workshop::succeed(command.args(sanitizer.split(' ')))
                .unwrap_or_else(|error| panic!("{error}"));
        };
        build(SOURCE);
        bench.script("test.sh", "#!/bin/sh\n./t && exec env NAME=value ./t\n");
        for words in [&["./t"][..], &["env", "./t"], &["./test.sh"]] {
            let plain = is_unnoticed(&bench, words);
            assert_eq!(
                (plain.code, plain.stderr_text().as_str()),
                (Some(0), ""),
                "{compiler} {sanitizer}: {plain:?}"
            );
        }
        build(&SOURCE.replace("x + 10", "x + 11"));
        let ran = bench.run(&["./test.sh"]);
        assert_eq!(
            (ran.decision.decision, ran.text().as_str()),
            (Verdict::Executed, "12\n12\n"),
            "{compiler} {sanitizer}"
        );
    }
}

#[test]
fn gcc_shared_sanitizers_are_not_preloaded() {
    are_unnoticed(
        "gcc",
        &["-fsanitize=address", "-fsanitize=leak", "-fsanitize=thread", "-fsanitize=undefined"],
    );
}

#[test]
fn gcc_static_sanitizers_are_not_preloaded() {
    are_unnoticed(
        "gcc",
        &[
            "-fsanitize=address -static-libasan -s",
            "-fsanitize=thread -static-libtsan",
            "-fsanitize=undefined -static-libubsan",
        ],
    );
}

#[test]
#[ignore = "needs clang"]
fn clang_static_sanitizers_are_not_preloaded() {
    are_unnoticed(
        "clang",
        &[
            "-fsanitize=address",
            "-fsanitize=leak",
            "-fsanitize=thread",
            "-fsanitize=memory",
            "-fsanitize=undefined",
            "-fsanitize=address,undefined -s",
        ],
    );
}

#[test]
#[ignore = "needs clang"]
fn clang_shared_address_sanitizer_is_not_preloaded() {
    let folder =
        crate::workshop::Outcome::of(std::process::Command::new("clang").arg("-print-runtime-dir"));
    let folder = folder.stdout_text();
    let flags = format!("-fsanitize=address -shared-libsan -Wl,-rpath,{}", folder.trim());
    are_unnoticed("clang", &[&flags]);
}

/// The program itself has none: the environment asks for it.
#[test]
fn sanitizers_that_are_preloaded_themselves() {
    let bench = Bench::new();
    bench.compile(&["-O1", "-pthread", "-o", "t", "-"], SOURCE);
    for library in ["libasan.so", "liblsan.so"] {
        let found = crate::workshop::Outcome::of(
            bench.command("gcc").arg(format!("-print-file-name={library}")),
        );
        let path = format!("LD_PRELOAD={}", found.stdout_text().trim());
        let plain = is_unnoticed(&bench, &["env", &path, "./t"]);
        assert_eq!((plain.code, plain.stdout_text().as_str()), (Some(0), "11\n"), "{plain:?}");
    }
}

/// One that only a library of the program needs is met when the library is loaded, behind the
/// agent.
#[test]
fn sanitizers_of_libraries_are_not_traced() {
    let bench = Bench::new();
    let library = ["-fsanitize=leak", "-shared", "-fPIC", "-o", "libx.so", "-"];
    bench.compile(&library, "int value(int x) { return x + 10; }");
    let program = "#include <stdio.h>\nint value(int);\nint main(int c, char **v) { printf(\"%d\\n\", value(c)); return 0; }";
    bench.compile(&["-O1", "-o", "t", "-", "./libx.so"], program);
    let plain = is_unnoticed(&bench, &["sh", "-c", "./t"]);
    assert_eq!((plain.code, plain.stdout_text().as_str()), (Some(0), "11\n"), "{plain:?}");
    bench.compile(&library, "int value(int x) { return x + 20; }");
    assert_eq!(bench.runs(&["sh", "-c", "./t"]).text(), "21\n");
}
