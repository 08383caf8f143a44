//! The forms in which inputs and outputs are named: several sources, `-o` in all its forms, `-x`,
//! standard input, response files, odd names.

use super::cases::{CXX, MAIN, ONE, PART, PART_H};
use super::twins::Scene;
use crate::edits::matrix::compilers;

#[test]
fn outputs_are_found_wherever_they_are() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("one.c", ONE)
            .file("sub/two.c", "int two(void) { return 2; }\n");
        let twins = scene.run(&[
            "$CC -c one.c -o separate.o",
            "$CC -c one.c -ojoined.o",
            "$CC -o first.o -c one.c",
            "$CC -c one.c -o object-without-ending",
            "$CC -c one.c sub/two.c",
            "mkdir in && cd in && $CC -c ../one.c",
            "$CC -c sub/../one.c -o \"$PWD/absolute.o\"",
            "$CC --compile one.c --output=long.o",
            "$CC one.c -c -o link.o -o last.o",
        ]);
        let twins = twins.same();
        let expected = [
            "absolute.o",
            "first.o",
            "in/one.o",
            "joined.o",
            "last.o",
            "object-without-ending",
            "one.o",
        ];
        let objects = twins.with_record();
        let missing: Vec<_> =
            expected.iter().filter(|name| !objects.iter().any(|found| found == *name)).collect();
        assert!(missing.is_empty(), "{}: no record in {missing:?}", compiler.name);
        assert!(objects.contains(&"two.o".to_owned()), "{}", compiler.name);
    }
}

#[test]
fn compiling_and_linking_in_one_call() {
    for compiler in compilers() {
        let scene =
            Scene::new(compiler).file("main.c", MAIN).file("part.c", PART).file("part.h", PART_H);
        let twins = scene.run(&[
            "$CC -O1 main.c part.c -Wl,--build-id=none && ./a.out",
            "$CC -O1 main.c part.c -Wl,--build-id=none -o prog && ./prog",
            "$CC -c part.c && $CC -O1 main.c part.o -Wl,--build-id=none -omixed && ./mixed",
            "$CC -shared -fPIC part.c -Wl,--build-id=none -o libpart.so",
            "$CC main.c -L. -lpart -Wl,-rpath,'$ORIGIN' -Wl,--build-id=none -o dynamic && ./dynamic",
        ]);
        let twins = twins.same_and_well();
        let expected = ["a.out", "dynamic", "libpart.so", "mixed", "prog"]
            .map(|name| format!("{name}.tasting"));
        assert_eq!(twins.manifests(), expected, "{}", compiler.name);
        assert_eq!(twins.fingerprint("a.out"), twins.fingerprint("prog"));
    }
}

#[test]
fn languages_by_option_and_by_ending() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("odd.suffix", ONE)
            .file("x.cc", CXX)
            .file("x.C", CXX)
            .file("plain.s", "  .text\n  .globl plain\nplain:\n  ret\n")
            .file("with.S", "#define RETURN ret\n  .text\n  .globl with\nwith:\n  RETURN\n")
            .file("pre.i", ONE);
        let twins = scene.run(&[
            "$CC -x c -c odd.suffix -o odd.o",
            "$CC -xc -c odd.suffix -o joined.o",
            "$CC -x c odd.suffix -x none -Wl,--build-id=none -o prog && ./prog",
            "$CC -x c++ -c odd.suffix -o cxx.o",
            "$CC -c x.cc -o by-cc.o",
            "$CXX -c x.C -o by-cxx.o",
            "$CC -Wno-unused-command-line-argument -c plain.s",
            "$CC -Wno-unused-command-line-argument -c with.S",
            "$CC -c pre.i",
        ]);
        let twins = twins.same_and_well();
        let objects =
            ["by-cc.o", "by-cxx.o", "cxx.o", "joined.o", "odd.o", "plain.o", "pre.o", "with.o"];
        assert_eq!(twins.with_record(), objects, "{}", compiler.name);
        assert_eq!(twins.manifests(), ["prog.tasting"], "{}", compiler.name);
    }
}

#[test]
fn standard_input_and_output_are_left_alone() {
    for compiler in compilers() {
        let scene = Scene::bare(compiler).file("one.c", ONE);
        let twins = scene.run(&[
            "$CC -x c -c - -o stdin.o <one.c",
            "cat one.c | $CC -x c - -Wl,--build-id=none -o prog && ./prog",
            "$CC -S -o - one.c",
        ]);
        twins.same();
    }
}

#[test]
fn an_output_to_nowhere_leaves_nothing() {
    for compiler in compilers() {
        let twins = Scene::new(compiler).file("one.c", ONE).run(&[
            "$CC -c one.c -o /dev/null",
            "$CC one.c -o /dev/null",
            "test -c /dev/null",
            "ls /dev/null*",
        ]);
        assert_eq!(twins.same_and_well().shim.files.len(), 1, "{}", compiler.name);
    }
}

#[test]
fn response_files_nested_and_quoted() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("a file.c", ONE)
            .file("it's.c", "int its(void) { return VALUE; }\n")
            .file("compile.rsp", "-c 'a file.c'\n@output.rsp")
            .file("output.rsp", "-o \"an object.o\" -O1\n")
            .file("quoted.rsp", "-c it\\'s.c -DVALUE=\\\"x\\\"[0] \"-o\" its.o")
            .file("link.rsp", "\"an object.o\" its.o -Wl,--build-id=none -o 'a program'");
        let twins = scene.run(&[
            "$CC @compile.rsp",
            "$CC @quoted.rsp",
            "$CC @link.rsp && './a program'",
            "$CC @missing.rsp",
        ]);
        let twins = twins.same();
        assert_eq!(twins.with_record(), ["an object.o", "its.o"], "{}", compiler.name);
        assert_eq!(twins.manifests(), ["a program.tasting"], "{}", compiler.name);
    }
}

/// A linker that is handed its arguments in a file: drivers do so by themselves when the line is
/// long.
#[test]
fn a_linkers_response_file() {
    for compiler in compilers() {
        let scene = Scene::new(compiler)
            .file("one.c", ONE)
            .file("more.c", "int more;\n")
            .file("ld.rsp", "-Map=x.map more.o");
        let twins = scene.run(&[
            "$CC -c one.c more.c",
            "$CC one.o -Wl,@ld.rsp -Wl,--build-id=none -o prog && ./prog",
        ]);
        let twins = twins.same_and_well();
        assert_eq!(twins.manifests(), ["prog.tasting"], "{}", compiler.name);
    }
}

#[test]
fn names_with_spaces_quotes_and_other_bytes() {
    for compiler in compilers() {
        let scene = Scene::new(compiler).file("one.c", ONE);
        let twins = scene.run(&[
            "mkdir 'a folder' && cp one.c 'a folder/it'\\''s \"one\".c'",
            "$CC -c 'a folder/it'\\''s \"one\".c' -o 'a folder/o $HOME;*.o'",
            "$CC 'a folder/o $HOME;*.o' -Wl,--build-id=none -o 'a folder/the \"program\"' && 'a folder/the \"program\"'",
            "name=$(printf 'caf\\351') && cp one.c \"$name.c\" && $CC -c \"$name.c\" && $CC \"$name.o\" -Wl,--build-id=none -o \"$name\" && \"./$name\"",
            "cp one.c -- -odd.c && $CC -c ./-odd.c",
        ]);
        let twins = twins.same_and_well();
        assert_eq!(twins.with_record().len(), 3, "{}: {:?}", compiler.name, twins.with_record());
        assert_eq!(twins.manifests().len(), 2, "{}: {:?}", compiler.name, twins.manifests());
        let lines = [
            "tasting fingerprint 'a folder/the \"program\"'",
            "tasting fingerprint \"$(printf 'caf\\351')\"",
        ];
        for outcome in lines.map(|line| twins.line(line)) {
            assert!(outcome.success(), "{}: {outcome:?}", compiler.name);
        }
        let latin = twins.line("tasting fingerprint \"$(printf 'caf\\351')\"").stdout;
        assert!(latin.ends_with(b"  caf\xe9\n"), "{:?}", latin);
        assert!(twins.line("tasting show \"$(printf 'caf\\351').o\"").success());
    }
}

/// No file beside an object of the longest name can have a longer one.
#[test]
fn the_longest_names() {
    for compiler in compilers() {
        let (object, program) = (format!("{}.o", "o".repeat(253)), "p".repeat(255));
        let twins = Scene::new(compiler).file("one.c", ONE).run(&[
            format!("$CC -c one.c -o {object}"),
            format!("$CC {object} -Wl,--build-id=none -o {program} && ./{program}"),
        ]);
        twins.same_and_well();
    }
}
