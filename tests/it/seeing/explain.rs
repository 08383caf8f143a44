//! `tasting explain`: the reason, the changed atom with its place and its chain, the run that would
//! be reused.

mod inputs;

use super::contains;
use crate::run::Bench;
use crate::workshop::{TASTING_CC, succeed};
use serde_json::{Value, json};

const SOURCE: &str = r#"#include <stdio.h>
int table[3] = {1, 2, 3};
__attribute__((noinline)) int lookup(int x) { return table[x % 3]; }
__attribute__((noinline)) int parse(int x) { return lookup(x) + 1; }
int unused(int x) { return x; }
int main(int argc, char **argv)
{
    (void)argv;
    printf("parsed %d\n", parse(argc));
    return 0;
}
"#;

/// A project with the program `t`, compiled from `t.c` and linked.
fn project(source: &str) -> Bench {
    let bench = Bench::new();
    edit(&bench, source);
    bench
}

fn edit(bench: &Bench, source: &str) {
    bench.write("t.c", source);
    build(bench, &["-c", "-g", "-O1", "t.c"]);
    build(bench, &["-o", "t", "t.o"]);
}

fn build(bench: &Bench, arguments: &[&str]) {
    succeed(bench.command(TASTING_CC).args(arguments)).unwrap_or_else(|error| panic!("{error}"));
}

fn explained(bench: &Bench, command: &[&str]) -> Value {
    bench.json(&[&["explain", "--json", "--"], command].concat())
}

/// The only atom that has changed in the only program that has.
#[track_caller]
fn only_change(explained: &Value) -> &Value {
    let [difference] = &explained["differences"].as_array().unwrap()[..] else {
        panic!("{explained:#}")
    };
    let [atom] = &difference["program"]["atoms"].as_array().unwrap()[..] else {
        panic!("{explained:#}")
    };
    atom
}

#[test]
fn a_changed_function_has_line_and_chain() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    edit(&bench, &SOURCE.replace("table[x % 3]", "table[x % 3] * 5"));
    let found = explained(&bench, &["./t"]);
    assert_eq!(
        (&found["decision"], &found["sort"]),
        (&json!("executed"), &json!("program-changed"))
    );
    let atom = only_change(&found);
    assert_eq!(
        (&atom["name"], &atom["kind"], &atom["what"]),
        (&json!("lookup"), &json!("function"), &json!("changed"))
    );
    assert_eq!((&atom["source"], &atom["object"]), (&json!("t.c:3"), &json!("t.o")));
    assert_eq!(atom["chain"], json!(["_start", "main", "parse", "lookup"]));
    let text = bench.says(&["explain", "--", "./t"]);
    contains(
        &text,
        &[
            "./t would run: the program t has changed\n",
            "lookup (t.c:3): function is different\n",
            "main → parse → lookup\n",
        ],
    );
    assert!(!text.contains('\x1b'), "no colours where there is no terminal");
    edit(&bench, SOURCE);
    assert_eq!(explained(&bench, &["./t"])["decision"], "reused");
}

#[test]
fn the_nearest_execution_is_compared_not_the_latest() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    let other = SOURCE.replace("lookup(x) + 1", "lookup(x) + 7").replace("{1, 2, 3}", "{4, 5, 6}");
    edit(&bench, &other);
    bench.settles(&["./t"]);
    edit(&bench, &SOURCE.replace("table[x % 3]", "table[x % 3] * 5"));
    let found = explained(&bench, &["./t"]);
    assert_eq!(
        only_change(&found)["name"],
        "lookup",
        "the first version is nearer than the second"
    );
    assert!(found["nearer"]["time"].as_u64() < found["latest"]["time"].as_u64(), "{found:#}");
    contains(&bench.says(&["explain", "--", "./t"]), &["compared with the nearest run, "]);
    edit(&bench, &other.replace("table[x % 3]", "table[x % 3] * 5"));
    let found = explained(&bench, &["./t"]);
    assert_eq!((&only_change(&found)["name"], &found["nearer"]), (&json!("lookup"), &Value::Null));
}

#[test]
fn changed_data_and_a_changed_string() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    edit(&bench, &SOURCE.replace("{1, 2, 3}", "{1, 2, 4}"));
    let found = explained(&bench, &["./t"]);
    let atom = only_change(&found);
    assert_eq!((&atom["name"], &atom["kind"]), (&json!("table"), &json!("data")));
    assert_eq!(atom["chain"], json!(["_start", "main", "parse", "lookup", "table"]));
    edit(&bench, &SOURCE.replace("parsed", "passed"));
    let text = bench.says(&["explain", "--", "./t"]);
    contains(&text, &[r#"main (t.c:7): function uses "passed %d\n" in place of "parsed %d\n""#]);
}

#[test]
fn unreached_changes_are_ignored() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    edit(&bench, &SOURCE.replace("return x;", "return x + 7;"));
    let found = explained(&bench, &["./t"]);
    assert_eq!((&found["decision"], &found["differences"]), (&json!("reused"), &json!([])));
}

#[test]
fn a_moved_assertion_is_told_as_such() {
    let source = SOURCE.replace("return lookup(x)", "assert(x < 9); return lookup(x)");
    let source = format!("#include <assert.h>\n{source}");
    let bench = project(&source);
    bench.settles(&["./t"]);
    edit(&bench, &format!("\n{source}"));
    let found = explained(&bench, &["./t"]);
    let atom = only_change(&found);
    assert_eq!(
        (&atom["name"], &atom["source"], &atom["moved_from"]),
        (&json!("parse"), &json!("t.c:6"), &json!(5))
    );
    contains(&bench.says(&["explain", "--", "./t"]), &["was in line 5", "__LINE__"]);
    // Moved, and really changed.
    edit(&bench, &format!("\n{}", source.replace("lookup(x) + 1", "lookup(x) * 1000 + 77777")));
    assert!(only_change(&explained(&bench, &["./t"]))["moved_from"].is_null());
}

#[test]
fn an_added_and_a_removed_function() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    let more = SOURCE.replace(
        "int unused(",
        "__attribute__((noinline)) int extra(int x) { return x * 9; }\nint unused(",
    );
    edit(&bench, &more.replace("parse(argc)", "parse(argc) + extra(argc)"));
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &["main (t.c:8): function is different", "extra (t.c:5): function is new"],
    );
    let other = |source: &str| {
        source.replace("{1, 2, 3}", "{1, 2, 4}").replace("lookup(x) + 1", "lookup(x) + 2")
    };
    edit(&bench, &other(&more.replace("parse(argc)", "parse(argc) + extra(argc)")));
    bench.runs(&["./t"]);
    edit(&bench, &other(SOURCE));
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &["extra (t.c:5): function is gone", "main → extra"],
    );
}

#[test]
fn a_library_of_the_project_is_looked_into() {
    let bench = Bench::new();
    let library = |factor: &str| {
        let source = "__attribute__((noinline)) static int inner(int x) { return x * FACTOR; }\n\
                      int outer(int x) { return inner(x) + 1; }\nint other(int x) { return x * FACTOR; }\n";
        bench.write("l.c", source.replace("FACTOR", factor));
        build(&bench, &["-g", "-O1", "-fPIC", "-shared", "-o", "libl.so", "l.c"]);
    };
    library("3");
    bench.write(
        "t.c",
        "int outer(int);\nint main(int c, char **v) { (void)v; return outer(c) > 100; }\n",
    );
    build(&bench, &["-g", "-O1", "-o", "t", "t.c", "-L.", "-ll", "-Wl,-rpath,$ORIGIN"]);
    bench.settles(&["./t"]);
    library("4");
    let found = explained(&bench, &["./t"]);
    let atom = only_change(&found);
    assert_eq!((&atom["name"], &atom["source"]), (&json!("inner"), &json!("l.c:1")));
    assert_eq!(atom["chain"], json!(["_start", "main", "outer", "inner"]));
    let text = bench.says(&["explain", "libl.so"]);
    contains(&text, &["last used by ./t, ", "changed since then (t)", "main → outer → inner"]);
}

#[test]
fn a_library_of_somebody_else_is_named() {
    let bench = Bench::new();
    let library = |value: &str| {
        bench.write("l.c", format!("int outer(void) {{ return {value}; }}\n"));
        succeed(bench.command("cc").args(["-fPIC", "-shared", "-o", "libl.so", "l.c"])).unwrap();
    };
    library("0");
    bench.write("t.c", "int outer(void);\nint main(void) { return outer() > 1; }\n");
    build(&bench, &["-o", "t", "t.c", "-L.", "-ll", "-Wl,-rpath,$ORIGIN"]);
    bench.settles(&["./t"]);
    library("1");
    let found = explained(&bench, &["./t"]);
    let named =
        found["differences"].as_array().unwrap().iter().map(|difference| &difference["subject"]);
    assert!(named.into_iter().any(|subject| subject == "libl.so"), "{found:#}");
    contains(&bench.says(&["explain", "--", "./t"]), &["the library libl.so has changed"]);
}

#[test]
fn a_reuse_tells_its_origin() {
    let bench = project(SOURCE);
    let commit = "0123456789abcdef0123456789abcdef01234567";
    bench.write(".git/HEAD", format!("{commit}\n"));
    bench.settles(&["./t"]);
    let found = explained(&bench, &["./t"]);
    let run = &found["reused"];
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let root = std::fs::canonicalize(bench.path("")).unwrap();
    assert_eq!((&run["commit"], &run["exit_code"]), (&json!(commit), &json!(0)));
    assert_eq!(
        (run["host"].as_str(), run["root"].as_str()),
        (Some(host.trim_end()), root.to_str())
    );
    assert!(run["time"].as_u64() > Some(1_600_000_000_000) && run["duration_ms"].is_u64(), "{run}");
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &[
            "./t would be reused: nothing that it uses has changed\n",
            "since it ran 2",
            "(just now)",
            ", commit 0123456789ab\n",
        ],
    );
}

#[test]
fn programs_without_manifest_are_compared_by_content() {
    let bench = Bench::new();
    let build = |value: &str| {
        bench.write("t.c", format!("int main(void) {{ return {value}; }}\n"));
        succeed(bench.command("cc").args(["-o", "t", "t.c"])).unwrap();
    };
    build("0");
    bench.settles(&["./t"]);
    build("2");
    let found = explained(&bench, &["./t"]);
    assert_eq!(found["differences"][0]["program"]["note"], "it has no manifest", "{found:#}");
    let text = bench.says(&["explain", "t"]);
    contains(
        &text,
        &[
            "t: no fingerprint: ",
            "last used by ./t",
            "it was compared as a whole: it has no manifest",
        ],
    );
}

#[test]
fn a_binary_with_its_levels_and_refusals() {
    let bench = project(SOURCE);
    let text = bench.says(&["explain", "t"]);
    let fingerprint = bench.says(&["fingerprint", "t"]);
    contains(
        &text,
        &[
            &format!("t: fingerprint {}\n", &fingerprint[..32]),
            " by code",
            "no test of this project has run it",
        ],
    );
    bench.settles(&["./t"]);
    contains(&bench.says(&["explain", "t"]), &["last used by ./t, 2", "unchanged since then"]);
    edit(&bench, &SOURCE.replace("table[x % 3]", "table[x % 3] * 5"));
    contains(
        &bench.says(&["explain", "t"]),
        &["changed since then (t)", "lookup (t.c:3)", "main → parse → lookup"],
    );
    let found = bench.json(&["explain", "--json", "t"]);
    assert_eq!(found["used_by"]["changed"]["atoms"][0]["name"], "lookup");
    assert_eq!(found["used_by"]["argv"], json!(["./t"]));
    bench.write("t.c", SOURCE);
    build(&bench, &["-O1", "-flto", "-o", "t", "t.c"]);
    let text = bench.says(&["explain", "t"]);
    contains(&text, &[" by file\n", "not more finely: the whole binary: "]);
    bench.write("script", "#!/bin/sh\n");
    assert_eq!(bench.asks(&["explain", "script"]).code, Some(1));
}

#[test]
fn names_of_another_language_are_readable() {
    let bench = Bench::new();
    let edit = |value: &str| {
        bench.write("t.cc", format!("namespace space {{ __attribute__((noinline)) int helper(int x) {{ return x * {value}; }} }}\nint main(int c, char **) {{ return space::helper(c) > 100; }}\n"));
        let mut command = bench.command(crate::workshop::TASTING_CXX);
        succeed(command.args(["-g", "-O1", "-o", "t", "t.cc"])).unwrap();
    };
    edit("3");
    bench.settles(&["./t"]);
    edit("5");
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &["space::helper(int) (t.cc:1): function is different", "main → space::helper(int)"],
    );
}
