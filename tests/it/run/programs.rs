//! Programs and libraries: by what of them can be reached, not by their bytes.

use super::Bench;
use std::fs;

fn program(reached: &str, unreached: &str) -> String {
    format!(
        "#include <stdio.h>\n__attribute__((noinline)) int f(void) {{ return {reached}; }}\n\
         __attribute__((noinline)) int g(void) {{ return {unreached}; }}\nint main(void) {{ printf(\"%d\\n\", f()); }}"
    )
}

#[test]
fn only_reachable_atoms_count() {
    let bench = Bench::with(&program("1", "1"));
    bench.settles(&["./t"]);
    bench.build("t", &program("1", "2"));
    bench.reuses(&["./t"]);
    bench.build("t", &program("2", "2"));
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
    bench.build("t", &program("1", "3"));
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn programs_without_manifest_count_by_content() {
    let bench = Bench::with(&program("1", "1"));
    fs::remove_file(bench.path("t.tasting")).unwrap();
    bench.settles(&["./t"]);
    bench.build("t", &program("1", "2"));
    fs::remove_file(bench.path("t.tasting")).unwrap();
    bench.runs(&["./t"]);
}

#[test]
fn a_mismatched_manifest_is_ignored() {
    let bench = Bench::with(&program("1", "1"));
    let manifest = fs::read(bench.path("t.tasting")).unwrap();
    bench.settles(&["./t"]);
    bench.build("t", &program("2", "1"));
    bench.write("t.tasting", &manifest);
    assert_eq!(bench.runs(&["./t"]).text(), "2\n");
    for damaged in [&manifest[..manifest.len() / 2], b"nonsense", b""] {
        bench.write("t.tasting", damaged);
        assert_eq!(bench.run(&["./t"]).text(), "2\n");
    }
}

#[test]
fn a_program_read_as_data_counts_by_content() {
    let bench = Bench::with(&program("1", "1"));
    let words = ["sh", "-c", "./t; cksum < t"];
    let first = bench.settles(&words);
    bench.build("t", &program("1", "2"));
    assert_ne!(bench.runs(&words).text(), first.text());
}

#[test]
fn unknown_programs_can_be_refused() {
    let bench = Bench::with(&program("1", "1"));
    bench.write("tasting.toml", "unknown-programs = 'refuse'");
    bench.settles(&["./t"]);
    fs::remove_file(bench.path("t.tasting")).unwrap();
    bench.runs(&["./t"]).not_kept("unknown provenance");
    bench.settles(&["true"]);
}

#[test]
fn an_entry_point_other_than_main() {
    let source = |main: &str, start: &str| {
        format!(
            "#include <stdio.h>\nint start(void) {{ return puts(\"{start}\"); }}\nint main(void) {{ return start() * 0 + {main}; }}"
        )
    };
    let bench = Bench::with(&source("0", "a"));
    bench.write("tasting.toml", "entry-points = { t = 'start' }");
    bench.settles(&["./t"]);
    bench.build("t", &source("1 - 1 + (int)0x0 * 5", "a"));
    bench.reuses(&["./t"]);
    bench.build("t", &source("0", "b"));
    bench.runs(&["./t"]);
}

fn library(used: &str, unused: &str) -> String {
    format!("int used(void) {{ return {used}; }}\nint unused(void) {{ return {unused}; }}")
}

const USES_LIBRARY: &str =
    "#include <stdio.h>\nint used(void);\nint main(void) { printf(\"%d\\n\", used()); }";

#[test]
fn project_libraries_count_atom_by_atom() {
    let bench = Bench::new();
    let build = |used: &str, unused: &str| {
        bench.compile(
            &["-shared", "-fPIC", "-o", "libx.so", "-x", "c", "-"],
            &library(used, unused),
        );
    };
    build("1", "1");
    bench.compile(
        &["-o", "t", "-x", "c", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
        USES_LIBRARY,
    );
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    build("1", "2");
    bench.reuses(&["./t"]);
    build("2", "2");
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
    build("1", "3");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn a_library_that_is_found_by_a_variable() {
    let bench = Bench::new();
    for (folder, value) in [("a", "1"), ("b", "2")] {
        bench.write(&format!("{folder}/x"), "");
        let output = format!("{folder}/libx.so");
        bench.compile(&["-shared", "-fPIC", "-o", &output, "-x", "c", "-"], &library(value, "0"));
    }
    bench.compile(&["-o", "t", "-x", "c", "-", "-x", "none", "-La", "-lx"], USES_LIBRARY);
    bench.script("one", "#!/bin/sh\nLD_LIBRARY_PATH=a ./t\n");
    bench.script("other", "#!/bin/sh\nLD_LIBRARY_PATH=b:a ./t\n");
    assert_eq!(bench.settles(&["./one"]).text(), "1\n");
    assert_eq!(bench.settles(&["./other"]).text(), "2\n");
    fs::remove_file(bench.path("b/libx.so")).unwrap();
    assert_eq!(bench.settles(&["./other"]).text(), "1\n");
    bench.compile(&["-shared", "-fPIC", "-o", "a/libx.so", "-x", "c", "-"], &library("1", "7"));
    assert_eq!(bench.reuses(&["./one"]).text(), "1\n");
    bench.compile(&["-shared", "-fPIC", "-o", "a/libx.so", "-x", "c", "-"], &library("3", "7"));
    assert_eq!(bench.runs(&["./one"]).text(), "3\n");
}

#[test]
fn a_library_that_is_opened_at_run_time() {
    let bench = Bench::new();
    let build = |used: &str| {
        bench
            .compile(&["-shared", "-fPIC", "-o", "plugin.so", "-x", "c", "-"], &library(used, "0"));
    };
    build("1");
    bench.build(
        "t",
        "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void *x = dlopen(\"./plugin.so\", RTLD_NOW);\n\
         int (*f)(void) = x ? (int (*)(void))dlsym(x, \"used\") : 0; printf(\"%d\\n\", f ? f() : -1); }",
    );
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    build("2");
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
    fs::remove_file(bench.path("plugin.so")).unwrap();
    assert_eq!(bench.settles(&["./t"]).text(), "-1\n");
    build("1");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn library_functions_used_by_plugins_count() {
    let bench = Bench::new();
    let base = |value: &str| {
        let source = format!(
            "int linked(void) {{ return 0; }}\nint for_plugins(void) {{ return {value}; }}"
        );
        bench.compile(&["-shared", "-fPIC", "-o", "libbase.so", "-x", "c", "-"], &source);
    };
    base("1");
    bench.compile(
        &["-shared", "-fPIC", "-o", "plugin.so", "-x", "c", "-"],
        "int for_plugins(void);\nint run(void) { return for_plugins(); }",
    );
    bench.compile(
        &["-o", "t", "-x", "c", "-", "-x", "none", "libbase.so", "-Wl,-rpath,$ORIGIN"],
        "#include <dlfcn.h>\n#include <stdio.h>\nint linked(void);\nint main(void) { void *x = dlopen(\"./plugin.so\", RTLD_NOW);\n\
         printf(\"%d\\n\", linked() + ((int (*)(void))dlsym(x, \"run\"))()); }",
    );
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    base("2");
    assert_eq!(bench.runs(&["./t"]).text(), "2\n");
}

#[test]
fn a_preloaded_library_counts() {
    let bench = Bench::with(
        "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", abs(-1)); }",
    );
    bench.compile(
        &["-fno-builtin", "-o", "t", "-x", "c", "-"],
        "#include <stdio.h>\nint abs(int);\nint main(void) { printf(\"%d\\n\", abs(-1)); }",
    );
    let build = |value: &str| {
        let source = format!("int abs(int x) {{ return x * 0 + {value}; }}");
        bench.compile(
            &["-shared", "-fPIC", "-fno-builtin", "-o", "pre.so", "-x", "c", "-"],
            &source,
        );
    };
    build("7");
    let words = ["sh", "-c", "LD_PRELOAD=./pre.so ./t"];
    assert_eq!(bench.settles(&words).text(), "7\n");
    build("8");
    assert_eq!(bench.runs(&words).text(), "8\n");
}

#[test]
fn eight_variants_run_once_for_each_behaviour() {
    let bench = Bench::new();
    let source = "#include <stdio.h>\nstatic int unused(void) { return VARIANT; }\nint (*keep)(void);\n\
                  int main(int argc, char **argv) { (void)unused; printf(\"%d\\n\", VARIANT % 2); }";
    let build = |variant: usize| {
        let define = format!("-DVARIANT={variant}");
        bench.compile(&[&define, "-o", "t", "-x", "c", "-"], source);
    };
    let mut executed = 0;
    for variant in 0..8 {
        build(variant);
        let ran = bench.run(&["./t"]);
        assert_eq!(ran.text(), format!("{}\n", variant % 2));
        executed += usize::from(ran.decision.decision == tasting::model::Verdict::Executed);
    }
    assert_eq!(executed, 2);
}

#[test]
fn library_search_paths_count() {
    let bench = Bench::new();
    for (folder, value) in [("a", "1"), ("b", "2")] {
        bench.write(&format!("{folder}/x"), "");
        let output = format!("{folder}/libx.so");
        bench.compile(&["-shared", "-fPIC", "-o", &output, "-x", "c", "-"], &library(value, "0"));
    }
    let build = |path: &str| {
        let path = format!("-Wl,-rpath,{path}");
        bench
            .compile(&["-o", "t", "-x", "c", "-", "-x", "none", "-La", "-lx", &path], USES_LIBRARY);
    };
    build("$ORIGIN/a");
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
    build("$ORIGIN/b:$ORIGIN/a");
    assert_eq!(bench.settles(&["./t"]).text(), "2\n");
    build("$ORIGIN/a");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn a_function_that_is_entered_past_its_front() {
    let source = |value: &str| {
        format!(
            "#include <stdio.h>\n__attribute__((noipa, patchable_function_entry(8, 0))) int f(void) {{ return {value}; }}\n\
             int main(void) {{ int (*volatile p)(void) = (int (*)(void))((char *)f + 8); printf(\"%d\\n\", p()); }}"
        )
    };
    let bench = Bench::new();
    let build = |value: &str| {
        bench.compile(&["-O1", "-fcf-protection=none", "-o", "t", "-x", "c", "-"], &source(value));
    };
    let run = || bench.run(&["./t"]).text();
    build("1");
    assert_eq!(run(), "1\n");
    build("2");
    assert_eq!(run(), "2\n");
}
