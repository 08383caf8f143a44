//! Symbols that move to other definitions, and libraries: linked, first of all, and opened later.

use super::edit;
use crate::run::Bench;
use tasting::model::Step;

#[test]
fn another_definition_for_an_executed_symbol() {
    let bench = Bench::new();
    let main =
        "#include <stdio.h>\nint value(void);\nint main(void) { printf(\"%d\\n\", value()); }";
    let (one, two) = (
        "int value(void) { return 1; }",
        "int value(void) { return 2; }\nint more(void) { return 0; }",
    );
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
        format!(
            "#include <stdio.h>\nint value(void);\n{more}\nint main(void) {{ printf(\"%d\\n\", value()); }}"
        )
    };
    let build = |more: &str| {
        bench.compile(
            &["-rdynamic", "-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
            &main(more),
        );
    };
    build("");
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    build("int unrelated(void) { return 7; }");
    bench.run(&["./t"]);
    build("int inner(void) { return 2; }");
    assert_eq!(bench.runs(&["./t"]).text(), "2\n");
}

/// The loader binds what a function refers to though it is never executed, and stops where there is
/// nothing.
#[test]
fn a_symbol_that_a_library_has_no_more() {
    let both = "V1 { used; other; }; V2 { };";
    for (before, after) in [
        (("other", ""), ("renamed", "")),
        (("other", both), ("other", "V1 { used; }; V2 { other; };")),
    ] {
        let bench = Bench::new();
        let library = |(name, versions): (&str, &str)| {
            let source = format!("int used(void) {{ return 1; }}\nvoid {name}(void) {{}}\n");
            let script = bench.write("versions", versions);
            let versions = match versions {
                "" => Vec::new(),
                _ => vec![format!("-Wl,--version-script={}", script.display())],
            };
            let options: Vec<&str> = versions.iter().map(String::as_str).collect();
            bench.compile(
                &[&["-O1", "-shared", "-fPIC", "-o", "libx.so", "-"][..], &options].concat(),
                &source,
            );
        };
        library(before);
        bench.compile(
            &["-O1", "-o", "t", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
            "#include <stdio.h>\n#include <stdlib.h>\nint used(void);\nvoid other(void);\n\
             __attribute__((noipa)) void unused(void) { atexit(other); }\n\
             int main(int argc, char **argv) { if (argc > 1) unused(); printf(\"%d\\n\", used()); }",
        );
        bench.settles(&["./t"]);
        library(after);
        let ran = bench.runs(&["./t"]);
        assert_eq!(ran.outcome.code, Some(127), "{ran:?}");
    }
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
        (
            "int helper",
            "__attribute__((constructor)) static void more(void) { count++; }\nint helper",
            "32\nend 12\n",
        ),
    ] {
        plugin(from, to);
        assert_eq!(bench.runs(&["./t"]).text(), expected.repeat(3), "{to}");
    }
}

/// The same library, once where it is seen and once where it is not.
#[test]
fn plugins_in_their_own_namespace_count_statically() {
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
    let program = OPENS
        .replace("./plugin.so\", RTLD_NOW);\n        if", "./\" PLUGIN, RTLD_NOW);\n        if");
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
        bench.compile(
            &["-O1", "-shared", "-fPIC", "-Wl,-z,initfirst", "-o", "libx.so", "-"],
            &source,
        );
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

#[test]
fn functions_called_by_resolvers_always_count() {
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
