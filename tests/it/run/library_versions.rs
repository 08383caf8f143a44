//! Libraries whose files carry a version behind a link by which they are opened, as CMake and
//! libtool make them.

use super::Bench;
use crate::workshop::TASTING;
use std::fs;
use std::os::unix::fs::symlink;

const TEST: &[&str] = &["./t"];

const USES_LIBRARY: &str =
    "#include <stdio.h>\nint used(void);\nint main(void) { printf(\"%d\\n\", used()); }";

/// A library's file of this version, and the links to it.
fn install(bench: &Bench, version: &str, value: &str) {
    let source = format!("int used(void) {{ return {value}; }}");
    let file = format!("lib/libx.so.{version}");
    bench.write("lib/x", "");
    bench.compile(
        &["-shared", "-fPIC", "-Wl,-soname,libx.so.5", "-o", &file, "-x", "c", "-"],
        &source,
    );
    link(bench, version);
}

/// Lets both links lead to the file of this version, and removes the other files.
fn link(bench: &Bench, version: &str) {
    for (name, target) in
        [("libx.so.5", format!("libx.so.{version}")), ("libx.so", "libx.so.5".to_owned())]
    {
        _ = fs::remove_file(bench.path("lib").join(name));
        symlink(target, bench.path("lib").join(name)).unwrap();
    }
    for old in fs::read_dir(bench.path("lib")).unwrap().flatten() {
        let name = old.file_name().into_string().unwrap();
        if name.starts_with("libx.so.5.") && !name.starts_with(&format!("libx.so.{version}")) {
            fs::remove_file(old.path()).unwrap();
        }
    }
}

fn program(bench: &Bench) {
    bench.compile(
        &["-o", "t", "-x", "c", "-", "-Llib", "-lx", "-Wl,-rpath,$ORIGIN/lib"],
        USES_LIBRARY,
    );
}

fn explanation(bench: &Bench, words: &[&str]) -> String {
    let mut command = bench.command(TASTING);
    command.args(["explain", "--"]).args(words);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn an_equal_library_under_a_new_version_reuses() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    program(&bench);
    assert_eq!(bench.settles(TEST).text(), "1\n");
    install(&bench, "5.5.0", "1");
    bench.reuses(TEST);
    program(&bench);
    bench.reuses(TEST);
    install(&bench, "5.6.0", "2");
    assert_eq!(bench.settles(TEST).text(), "2\n");
    install(&bench, "5.4.0", "1");
    assert_eq!(bench.reuses(TEST).text(), "1\n");
}

#[test]
fn another_version_with_other_code_is_named() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    program(&bench);
    bench.settles(TEST);
    install(&bench, "5.5.0", "2");
    let text = explanation(&bench, TEST);
    assert!(text.contains("used") && text.contains("libx.so.5"), "{text}");
    assert!(!text.contains("not found") && !text.contains("not there"), "{text}");
    assert_eq!(bench.runs(TEST).text(), "2\n");
}

#[test]
fn a_missing_library_is_said_to_be_missing() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    program(&bench);
    bench.settles(TEST);
    fs::remove_file(bench.path("lib/libx.so.5.4.0")).unwrap();
    let text = explanation(&bench, TEST);
    assert!(text.contains("libx.so.5"), "{text}");
    assert!(text.contains("gone") || text.contains("not there"), "{text}");
    let ran = bench.runs(TEST);
    assert_eq!(ran.outcome.code, Some(127), "{ran:?}");
}

#[test]
fn foreign_libraries_count_by_content() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    program(&bench);
    fs::remove_file(bench.path("lib/libx.so.5.4.0.tasting")).unwrap();
    bench.settles(TEST);
    fs::rename(bench.path("lib/libx.so.5.4.0"), bench.path("lib/libx.so.5.5.0")).unwrap();
    link(&bench, "5.5.0");
    bench.reuses(TEST);
    install(&bench, "5.6.0", "2");
    fs::remove_file(bench.path("lib/libx.so.5.6.0.tasting")).unwrap();
    let text = explanation(&bench, TEST);
    assert!(text.contains("libx.so.5") && text.contains("changed"), "{text}");
    assert_eq!(bench.settles(TEST).text(), "2\n");
}

#[test]
fn a_test_that_sees_the_link_runs() {
    for script in [
        "./t; readlink lib/libx.so.5",
        "./t; ls -l lib/libx.so.5",
        "./t; cat lib/libx.so.5 >/dev/null",
    ] {
        let bench = Bench::new();
        install(&bench, "5.4.0", "1");
        program(&bench);
        let words = ["sh", "-c", script];
        bench.runs(&words);
        install(&bench, "5.5.0", "1");
        bench.runs(&words);
    }
}

#[test]
fn a_test_that_sees_mapped_files_runs() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    let source = "#include <stdio.h>\n#include <string.h>\nint used(void);\nint main(void) { used(); FILE *maps = \
                  fopen(\"/proc/self/maps\", \"r\"); char line[4096]; while (fgets(line, sizeof line, maps)) { char \
                  *name = strstr(line, \"libx.so\"); if (name) { fputs(name, stdout); break; } } }";
    bench.compile(&["-o", "t", "-x", "c", "-", "-Llib", "-lx", "-Wl,-rpath,$ORIGIN/lib"], source);
    assert_eq!(bench.settles(TEST).text(), "libx.so.5.4.0\n");
    install(&bench, "5.5.0", "1");
    assert_eq!(bench.runs(TEST).text(), "libx.so.5.5.0\n");
}

#[test]
fn a_library_that_shadows_another_version_runs() {
    let bench = Bench::new();
    install(&bench, "5.4.0", "1");
    bench.write("first/x", "");
    let words = ["-o", "t", "-x", "c", "-", "-Llib", "-lx", "-Wl,-rpath,$ORIGIN/first:$ORIGIN/lib"];
    bench.compile(&words, USES_LIBRARY);
    bench.settles(TEST);
    bench.compile(
        &["-shared", "-fPIC", "-o", "first/libx.so.5", "-x", "c", "-"],
        "int used(void) { return 3; }",
    );
    assert_eq!(bench.runs(TEST).text(), "3\n");
}
