//! What the tools print and how they end: errors, warnings, answers to questions, dependency files.

use super::cases::{MAIN, ONE, PART, PART_H};
use super::twins::{Scene, shell};
use crate::edits::matrix::{COMPILERS, compilers, linkers};
use crate::workshop::{Outcome, Workshop, tool};

#[test]
fn errors_and_warnings_are_the_compilers_own() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("bad.c", "int main(void) { return undeclared; }\n")
            .file("warn.c", "int f(void) { int unused; }\n")
            .file("bad.s", "  no_such_instruction %eax\n")
            .file("fatal.c", "#include \"missing.h\"\n");
        let twins = scene.run(&[
            "$CC -c bad.c -o bad.o",
            "$CC -Wall -c warn.c -o warn.o",
            "$CC -Wall -Werror -c warn.c -o error.o",
            "$CC -Wno-unused-command-line-argument -c bad.s",
            "$CC -c fatal.c",
            "$CC -c missing.c",
            "$CC -c warn.c --no-such-option",
            "$CC -c warn.c -o no/such/folder/warn.o",
            "$CC",
            "$CC -c",
            "$CC -o",
        ]);
        let twins = twins.same();
        let failed: Vec<bool> =
            twins.plain.outcomes.iter().map(|outcome| !outcome.success()).collect();
        assert_eq!(
            failed,
            [true, false, true, true, true, true, true, true, true, true, true],
            "{}",
            compiler.name
        );
        assert_eq!(twins.with_record(), ["warn.o"]);
    }
}

#[test]
fn failed_compilations_leave_the_compilers_object() {
    for compiler in compilers() {
        let scene = Scene::new(compiler).file("good.c", "int x;\n").file("bad.c", "int x\n");
        scene.run(&["$CC -c good.c -o x.o", "$CC -c bad.c -o x.o"]).same();
    }
}

#[test]
fn errors_of_every_linker_are_its_own() {
    for compiler in compilers() {
        for linker in linkers() {
            let scene = Scene::new(compiler)
                .file("undefined.c", "int missing(void);\nint main(void) { return missing(); }\n")
                .file("one.c", ONE)
                .file("text.o", "this is no object\n");
            let with = format!("-fuse-ld={}", linker.name);
            let twins = scene.run(&[
                "$CC -c undefined.c one.c".to_owned(),
                format!("$CC {with} undefined.o -o prog"),
                format!("$CC {with} one.o one.o -o prog"),
                format!("$CC {with} one.o -lno_such_library -o prog"),
                format!("$CC {with} one.o missing.o -o prog"),
                format!("$CC {with} text.o -o prog"),
                // mold names a file by chance in this message.
                format!("$CC {with} one.o -o no/such/folder/prog 2>&1 | sed 's,mold-[^:]*:,mold,'"),
                format!("$CC {with} one.o -Wl,--no-such-option -o prog"),
            ]);
            let twins = twins.same();
            assert!(twins.manifests().is_empty(), "{} {}", compiler.name, linker.name);
            let failed = twins.plain.outcomes[1..].iter().filter(|outcome| !outcome.success());
            assert!(
                failed.count() >= 5,
                "{} {}: the cases do not fail",
                compiler.name,
                linker.name
            );
        }
    }
}

#[test]
fn an_unknown_linker_is_the_drivers_own_complaint() {
    for compiler in compilers() {
        let scene = Scene::new(compiler).file("one.c", ONE);
        let twins = scene.run(&[
            "$CC -c one.c",
            "$CC -fuse-ld=nonsense one.o -o prog",
            "$CC -B/no/such/folder one.o -Wl,--build-id=none -o prog",
        ]);
        assert!(!twins.same().plain.outcomes[1].success());
    }
}

#[test]
fn questions_are_answered_by_the_real_compiler() {
    let questions = [
        "--version",
        "-v",
        "-dumpmachine",
        "-dumpversion",
        "-print-prog-name=ld",
        "-print-file-name=libc.so",
        "-print-search-dirs",
        "-print-libgcc-file-name",
        "-print-resource-dir",
        "-### -S one.c",
        "-### one.o -o prog",
        "-E one.c",
        "-E -dM -x c /dev/null",
        "-E -o one.i one.c",
        "-S one.c -o -",
        "-S one.c",
        "-M main.c",
        "-MM main.c",
        "-MM -MG -MT target main.c",
        "-fsyntax-only one.c",
        "--help",
        "-Q --help=target",
        "-Wl,--version one.c",
    ];
    for compiler in compilers() {
        let lines: Vec<String> = questions
            .iter()
            .map(|question| format!("$CC {question} 2>&1 | sed 's,/tmp/[^ \"]*,TMP,g'"))
            .collect();
        let scene =
            Scene::bare(compiler).file("one.c", ONE).file("main.c", MAIN).file("part.h", PART_H);
        let twins = scene.run(&lines).same();
        assert!(twins.manifests().is_empty() && twins.with_record().is_empty());
        assert!(
            twins
                .plain
                .outcomes
                .iter()
                .all(|outcome| !outcome.stdout.is_empty() || outcome.success())
        );
    }
}

#[test]
fn dependency_files_are_the_same() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("main.c", MAIN)
            .file("sub/part.c", PART)
            .file("part.h", PART_H);
        let twins = scene.run(&[
            "$CC -MD -c main.c",
            "$CC -MMD -c main.c -o mmd.o",
            "$CC -MD -MF named.dep -c main.c -o named.o",
            "$CC -MMD -MP -MT 'a target' -MF target.dep -c main.c -o target.o",
            "$CC -MD -MQ '$(odd)' -MFjoined.dep -c main.c -ojoined.o",
            "$CC -I. -Wp,-MD,wp.dep -c sub/part.c -o sub/wp.o",
            "$CC -I. -MD -c sub/part.c -o sub/part.o",
            "$CC -I. -MMD main.c sub/part.c -Wl,--build-id=none -o prog",
        ]);
        let twins = twins.same_and_well();
        let dependencies = twins
            .plain
            .files
            .keys()
            .filter(|path| path.extension().is_some_and(|end| end == "d" || end == "dep"));
        assert!(dependencies.count() >= 7);
        assert_eq!(twins.with_record().len(), 7);
    }
}

/// A compiler colours its messages on a terminal only.
#[test]
fn a_terminal_stays_a_terminal() {
    tool("script");
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("bad.c", "int main(void) { return undeclared; }\n")
            .file("warn.c", "int f(void) { int unused; }\n");
        let twins = scene.run(&[
            "TERM=xterm script -qec \"$CC -c bad.c\" /dev/null",
            "TERM=xterm script -qec \"$CC -Wall -c warn.c\" /dev/null",
            "script -qec \"$CC warn.c -o prog 2>&1 | sed 's,/tmp/[^ :]*,TMP,'\" /dev/null",
        ]);
        let twins = twins.same();
        assert!(
            twins.plain.outcomes[0].stdout_text().contains("\x1b["),
            "{}: no colour at all",
            compiler.name
        );
    }
}

/// What the tool writes first comes first, also where both streams go to one file.
#[test]
fn closed_and_merged_streams_are_left_alone() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("warn.c", "#pragma message \"here\"\nint f(void) { int unused; }\n");
        scene
            .run(&[
                "$CC -Wall -c warn.c >both.txt 2>&1",
                "$CC -Wall -c warn.c -o closed.o <&- >&- 2>&-",
                "$CC -Wall -shared warn.c -Wl,--build-id=none -o closed.so <&- >&- 2>/dev/null",
            ])
            .same_and_well();
    }
}

/// The log is the only place that tells of the shims' own work.
#[test]
fn the_log_file_tells_what_was_passed_through() {
    let workshop = Workshop::new();
    workshop.write("work/one.c", ONE);
    let mut command = shell(&workshop, COMPILERS[0]);
    command.env("TASTING_LOGFILE", workshop.path("log"));
    let outcome = Outcome::of(command.arg("$CC -E one.c >/dev/null"));
    assert!(outcome.success() && outcome.stderr.is_empty(), "{outcome:?}");
    let log = std::fs::read_to_string(workshop.path("log")).expect("a log was written");
    assert!(log.contains("passed through"), "{log}");
}
