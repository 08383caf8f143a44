//! At the AST level: decisions follow what the source says, with every compiler and linker.

use super::Bench;
use crate::edits::matrix::{COMPILERS, Compiler, LINKERS, Linker, compilers, linkers};
use crate::workshop::{TASTING, TASTING_CC, succeed};
use std::fs;

const HEAD: &str = "int part(int);\n";
const MAIN: &str = "#include <stdio.h>\n#include \"head.h\"\nint main(void) { printf(\"%d\\n\", part(4)); return 0; }\n";
const PART: &str = "#include \"head.h\"\nstatic int scale(int x) { return 3 * x; }\n\
    int idle(int x) { return x + 1; }\nint part(int x) { return scale(x) + 1; }\n";

/// A project of two files, built with one compiler and linker.
struct Project {
    bench: Bench,
    compiler: Compiler,
    linker: Linker,
    flags: &'static str,
}

impl Project {
    fn new(compiler: Compiler, linker: Linker, flags: &'static str) -> Project {
        let project = Project { bench: Bench::new(), compiler, linker, flags };
        project.build(HEAD, MAIN, PART);
        project
    }

    fn build(&self, head: &str, main: &str, part: &str) {
        for (name, text) in [("head.h", head), ("main.c", main), ("part.c", part)] {
            self.bench.write(name, text);
        }
        self.cc(&["-c", "main.c", "-o", "main.o"]);
        self.cc(&["-c", "part.c", "-o", "part.o"]);
        self.cc(&[&format!("-fuse-ld={}", self.linker.name), "main.o", "part.o", "-o", "t"]);
    }

    fn cc(&self, words: &[&str]) {
        let mut command = self.bench.command(TASTING_CC);
        command.env("TASTING_LEVEL", "ast").env("TASTING_CC", self.compiler.c);
        succeed(command.args(self.flags.split_whitespace()).args(words))
            .unwrap_or_else(|error| panic!("{error}"));
    }

    fn fingerprint(&self) -> String {
        let shown = succeed(self.bench.command(TASTING).args(["fingerprint", "t"]))
            .unwrap_or_else(|error| panic!("{error}"));
        shown.stdout_text()
    }
}

#[test]
#[ignore = "needs every compiler and linker"]
fn sources_decide() {
    // Two linkers for each compiler are enough: they see the same objects.
    let pairs = compilers().zip([["bfd", "mold"], ["gold", "lld"]]);
    for (compiler, names) in pairs.collect::<Vec<_>>() {
        for linker in linkers().filter(|linker| names.contains(&linker.name)) {
            let project = Project::new(compiler, linker, "-O2");
            let bench = &project.bench;
            assert_eq!(bench.settles(&["./t"]).text(), "13\n");
            project.build("/* The parts. */\nint part(int);\nint other(long);\n", MAIN, PART);
            bench.reuses(&["./t"]);
            project.build(HEAD, MAIN, &PART.replace("x + 1; }\nint part", "x + 2; }\nint part"));
            bench.reuses(&["./t"]);
            project.build(HEAD, MAIN, &PART.replace("3 * x", "4 * x"));
            let shown = succeed(bench.command(TASTING).args(["explain", "--", "./t"]))
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(shown.stdout_text().contains("scale"), "{}", shown.stdout_text());
            assert_eq!(bench.settles(&["./t"]).text(), "17\n");
            project.build(HEAD, MAIN, PART);
            assert_eq!(bench.reuses(&["./t"]).text(), "13\n");
        }
    }
}

/// Nothing in this program holds the address of a literal.
const MAIN_WITHOUT_LITERALS: &str = "#include \"head.h\"\nint main(void) { return part(4); }\n";

/// The fingerprints of a project under all linkers, with the linkers' names.
fn under_all_linkers(
    compiler: Compiler,
    flags: &'static str,
    main: &str,
) -> Vec<(&'static str, String)> {
    let of = |linker: Linker| {
        let project = Project { bench: Bench::new(), compiler, linker, flags };
        project.build(HEAD, main, PART);
        (linker.name, project.fingerprint())
    };
    linkers().map(of).collect()
}

#[test]
#[ignore = "needs every compiler and linker"]
fn without_literals_all_linkers_give_one_fingerprint() {
    for compiler in compilers() {
        for flags in ["-O2", "-O0 -g"] {
            let fingerprints = under_all_linkers(compiler, flags, MAIN_WITHOUT_LITERALS);
            let is_same =
                fingerprints.iter().all(|(_, fingerprint)| *fingerprint == fingerprints[0].1);
            assert!(is_same, "{} {flags}: {fingerprints:?}", compiler.name);
        }
    }
}

/// GNU ld puts literals behind the code, lld before it, and a program can compare their addresses.
#[test]
#[ignore = "needs clang and lld"]
fn the_linkers_order_of_literals_and_code_counts() {
    for compiler in compilers() {
        let fingerprints = under_all_linkers(compiler, "-O2", MAIN);
        let of = |name| {
            fingerprints
                .iter()
                .find(|(linker, _)| *linker == name)
                .expect("it is one of all")
                .1
                .as_str()
        };
        assert_ne!(of("bfd"), of("lld"), "{}", compiler.name);
    }
}

/// The linker makes the code, of objects that hold none; and it makes the same one as without the
/// shims.
#[test]
#[ignore = "needs clang and lld"]
fn lto_sources_decide() {
    let kinds = [
        ("gcc", "bfd", "-O2 -flto -frandom-seed=1"),
        ("clang", "lld", "-O2 -flto"),
        ("clang", "lld", "-O1 -flto=thin"),
    ];
    for (name, linker, flags) in kinds {
        let linker = linkers().find(|known| known.name == linker).expect("a linker");
        let compiler = compilers().find(|known| known.name == name).expect("a compiler");
        // What is kept without being used makes another binary.
        let part = PART.replace("int idle", "__attribute__((used)) static int idle");
        let project = Project { bench: Bench::new(), compiler, linker, flags };
        project.build(HEAD, MAIN, &part);
        let bench = &project.bench;
        assert_eq!(bench.settles(&["./t"]).text(), "13\n", "{name} {flags}");
        let read = |name| fs::read(bench.path(name)).unwrap();
        let mut plain = bench.command(compiler.c);
        let files = [&format!("-fuse-ld={}", linker.name), "main.c", "part.c", "-o", "plain"];
        succeed(plain.args(flags.split_whitespace()).args(files))
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(read("t") == read("plain"), "{name} {flags}");
        project.build(HEAD, MAIN, &part.replace("x + 1; }\nint part", "x + 2; }\nint part"));
        assert!(read("t") != read("plain"), "{name} {flags}");
        bench.reuses(&["./t"]);
        project.build(HEAD, MAIN, &part.replace("3 * x", "4 * x"));
        assert_eq!(bench.settles(&["./t"]).text(), "17\n", "{name} {flags}");
    }
}

/// Options of the link decide over code where the linker makes it: here whether a product and a sum
/// are rounded once or twice.
#[test]
#[ignore = "needs clang and lld"]
fn lto_link_options_count() {
    let find = |name| compilers().find(|known| known.name == name);
    for (compiler, linker, before, after) in [
        ("clang", "lld", "-Wl,-plugin-opt=mcpu=x86-64", "-Wl,-plugin-opt=mcpu=x86-64-v3"),
        ("clang", "lld", "-Wl,--lto-O2", "-Wl,--lto-O1"),
        ("clang", "lld", "-Wl,-mllvm,-enable-misched=0", "-Wl,-mllvm,-enable-misched=1"),
        ("gcc", "bfd", "-O2", "-O2 -fno-inline"),
    ] {
        let linker = linkers().find(|known| known.name == linker).expect("a linker");
        let compiler = find(compiler).expect("a compiler");
        let project = Project {
            bench: Bench::new(),
            compiler,
            linker,
            flags: "-O2 -flto -ffp-contract=fast",
        };
        project.build(HEAD, MAIN, PART);
        let with = |options: &str| {
            let named = [&format!("-fuse-ld={}", linker.name), "main.o", "part.o", "-o", "t"];
            project.cc(&options.split_whitespace().chain(named).collect::<Vec<_>>());
            project.fingerprint()
        };
        let [first, second, third] = [before, after, before].map(with);
        assert_ne!(first, second, "{before}, {after}");
        assert_eq!(first, third, "{before}");
    }
}

/// A call that compiles and links is divided at this level; but not where its words are in a file
/// because they are too long.
#[test]
fn response_files_longer_than_a_command_line() {
    let project =
        Project { bench: Bench::new(), compiler: COMPILERS[0], linker: LINKERS[0], flags: "-O1" };
    let bench = &project.bench;
    bench.write("main.c", "int main(void) { return 0; }\n");
    let archive = format!("{}.a", "long".repeat(60));
    bench.write(&archive, "!<arch>\n");
    let words = format!("{archive}\n").repeat(10_000);
    assert!(words.len() > 2 << 20, "more than a command line may have");
    bench.write("words", words);
    project.cc(&["main.c", "@words", "-o", "t"]);
    bench.settles(&["./t"]);
}
