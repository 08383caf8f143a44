//! What newcomers met: the words that they were told have to lead on.

use super::contains;
use crate::run::Bench;
use crate::workshop::{TASTING, TASTING_CC, succeed, tool};
use serde_json::json;

/// The names of the table in docs/comparison.md.
#[test]
fn every_wish_has_its_test() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("docs/comparison.md")).unwrap();
    let rows = page.split_once("| wish |").expect("the table is there").1.lines().skip(2);
    let rows: Vec<&str> = rows.take_while(|row| row.starts_with('|')).collect();
    assert!(rows.len() >= 7, "{rows:?}");
    for row in rows {
        let named =
            row.trim_end_matches(" |").rsplit('|').next().unwrap().split('`').skip(1).step_by(2);
        assert!(named.clone().next().is_some(), "{row} names no test");
        for name in named {
            assert!(is_test(&here.join("tests/it"), name), "{name} is no test");
        }
    }
}

/// Whether a path leads to a function in a file of tests, or to such a file.
fn is_test(folder: &std::path::Path, name: &str) -> bool {
    let file =
        |path: &str| std::fs::read_to_string(folder.join(path.replace("::", "/") + ".rs")).ok();
    let Some((module, function)) = name.rsplit_once("::") else { return file(name).is_some() };
    file(name).is_some()
        || file(module).is_some_and(|text| text.contains(&format!("fn {function}(")))
}

#[test]
fn own_leftovers_are_named_as_such() {
    let bench = Bench::new();
    let words = ["sh", "-c", "rm -rf work; mkdir work; echo 1 >work/file"];
    bench.runs(&words);
    let second = bench.runs(&words);
    assert_eq!(second.decision.sort, "own-files", "{second:?}");
    contains(&second.decision.reason, &["work", "the next run is reused"]);
    bench.reuses(&words);
}

/// A change of something else is told before what the test left itself.
#[test]
fn other_changes_come_before_leftovers() {
    let bench = Bench::new();
    bench.write("data", "1");
    let words = ["sh", "-c", "rm -rf work; mkdir work; cat data >work/file"];
    bench.runs(&words);
    bench.write("data", "2");
    assert_eq!(bench.runs(&words).decision.sort, "file-changed");
}

#[test]
fn variables_of_the_harness_are_assumed() {
    let bench = Bench::new();
    bench.finish(bench.tasting(&["true"]).env("CTEST_ONLY_HERE", "1"));
    let found = bench.json(&["explain", "--json", "--", "true"]);
    assert_eq!(found["decision"], "reused", "{found:#}");
    assert!(found["assumed"].to_string().contains("variables that are not set here"), "{found:#}");
    let mut other = bench.command(TASTING);
    other.args(["explain", "--json", "--", "true"]).env("CTEST_ONLY_HERE", "2");
    let found = succeed(&mut other).unwrap().stdout_text();
    contains(&found, &["CTEST_ONLY_HERE is different"]);
}

#[test]
fn a_changed_library_is_named() {
    let bench = Bench::new();
    let build = |words: &[&str]| _ = succeed(bench.command(TASTING_CC).args(words)).unwrap();
    let library = |value: &str| {
        bench.write(
            "l.c",
            format!("int f(void) {{ return {value} - {value}; }}\nint g = {value};\nint h(void) {{ return g; }}\n"),
        );
        build(&["-shared", "-fPIC", "-o", "libl.so", "l.c"]);
    };
    library("1");
    bench.write("t.c", "int h(void); int main(void) { return h() == 99; }\n");
    build(&["-o", "t", "t.c", "-L.", "-ll", "-Wl,-rpath,$ORIGIN"]);
    bench.settles(&["./t"]);
    library("2");
    let ran = bench.runs(&["./t"]);
    contains(&ran.decision.reason, &["the library libl.so, which the program t uses, has changed"]);
}

#[test]
#[ignore = "needs valgrind"]
fn valgrind_is_no_riddle() {
    tool("valgrind");
    let source = |value: u32| {
        format!("int unused(void) {{ return {value}; }}\nint main(void) {{ return 0; }}\n")
    };
    let bench = Bench::with(&source(1));
    let words = ["valgrind", "-q", "./t"];
    bench.settles(&words);
    bench.build("t", &source(2));
    contains(&bench.runs(&words).decision.reason, &["read as data", "valgrind"]);
}

#[test]
fn doctor_leaves_the_store_alone() {
    let bench = Bench::with("int main(void) { return 0; }\n");
    let store = bench.path("store");
    succeed(bench.tasting(&["./t"]).env("TASTING_DIR", &store)).unwrap();
    let has_agent = std::fs::read_dir(&store).unwrap().flatten().any(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("agent-")
    });
    assert!(has_agent, "the agent lies in the store");
    let mut doctor = bench.command(TASTING);
    let said =
        crate::workshop::Outcome::of(doctor.arg("doctor").env("TASTING_DIR", &store)).stdout_text();
    assert!(!said.contains("agent-"), "{said}");
}

#[test]
fn refusals_have_codes() {
    let bench = Bench::new();
    let ran = bench.runs(&["sh", "-c", "sleep 5 > /dev/null 2>&1 & exit 0"]);
    assert_eq!(ran.decision.not_kept.as_deref(), Some("still-running"), "{ran:?}");
    ran.not_kept("[still-running]");
    let stats = bench.json(&["stats", "--json"]);
    assert_eq!(stats["not_kept"], json!({"still-running": 1}));
    contains(
        &bench.says(&["stats", "--prometheus"]),
        &["tasting_not_kept_total{code=\"still-running\"} 1\n"],
    );
    contains(&bench.says(&["stats", "--markdown"]), &["| still-running | 1 |"]);
}

/// make ignores two signals for what it starts, a shell none.
#[test]
fn signals_of_the_harness_are_assumed() {
    let bench = Bench::new();
    // No shell: dash drops variables whose names are none of its own, as cargo sets them for tests.
    succeed(bench.command("env").args(["--ignore-signal=USR1", TASTING, "run", "--", "true"]))
        .unwrap();
    let found = bench.json(&["explain", "--json", "--", "true"]);
    assert_eq!(found["decision"], "reused", "{found:#}");
    assert!(found["assumed"].to_string().contains("signals are ignored"), "{found:#}");
    assert_eq!(
        bench.runs(&["true"]).decision.sort,
        "circumstances",
        "the test itself counts as another one"
    );
}

/// CTest starts a test in the build folder, by its whole path.
#[test]
fn a_test_is_found_by_its_program() {
    let bench = Bench::with("int main(int n, char **words) { return n == 9; }\n");
    succeed(bench.command("mkdir").arg("build")).unwrap();
    let program = bench.path("t");
    let mut run = bench.tasting(&[program.to_str().unwrap(), "word"]);
    succeed(run.current_dir(bench.path("build"))).unwrap();
    let found = bench.json(&["explain", "--json", "--", "./t", "word"]);
    assert_eq!(found["decision"], "reused", "{found:#}");
    contains(&found["hints"].to_string(), &["this is how it ran: in ", "/build"]);
    let other = bench.json(&["explain", "--json", "--", "./t", "another"]);
    assert_eq!(
        (&other["sort"], &other["hints"]),
        (&json!("new"), &json!([])),
        "another argument is another test"
    );
}

/// CTest and Meson start a script by the interpreter's whole path, with whole paths as arguments.
#[test]
fn a_test_is_found_by_the_files_it_names() {
    let bench = Bench::new();
    bench.write("tests/cli.sh", "test -d \"$1\"\n");
    succeed(bench.command("mkdir").args(["build", "other", "other/tests"])).unwrap();
    bench.write("other/tests/cli.sh", "true\n");
    let script = bench.path("tests/cli.sh");
    let mut run = bench.tasting(&["/bin/sh", script.to_str().unwrap(), "."]);
    succeed(run.current_dir(bench.path("build"))).unwrap();
    let asked = ["explain", "--json", "--", "sh", "tests/cli.sh", "build"];
    let found = bench.json(&asked);
    assert_eq!(found["decision"], "reused", "{found:#}");
    contains(&found["hints"].to_string(), &["this is how it ran: in ", "/build"]);
    let mut elsewhere = bench.command(TASTING);
    elsewhere.args(asked).current_dir(bench.path("other"));
    let found = succeed(&mut elsewhere).unwrap().stdout_text();
    contains(&found, &["\"sort\": \"new\"", "\"hints\": []"]);
}

/// A terminal of an editor leaves descriptors open, which tests see.
#[test]
fn descriptors_of_the_terminal_are_assumed() {
    let bench = Bench::new();
    bench.runs(&["true"]);
    bench.write("data", "1");
    let mut shell = bench.command("sh");
    shell.args(["-c", "exec 7<data; exec \"$0\" explain --json -- true", TASTING]);
    let found = succeed(&mut shell).unwrap().stdout_text();
    contains(
        &found,
        &["\"decision\": \"reused\"", "descriptors that are open are those of the last time"],
    );
}

/// Programs that ever had a second thread start others with these signals as libc has left them.
#[cfg(target_arch = "x86_64")]
#[test]
fn signals_that_libc_keeps_do_not_count() {
    let bench = Bench::new();
    let with = |handler: u64| {
        // The kernel's own call: libc refuses these signals.
        let script = format!(
            "import ctypes, os, sys\naction = (ctypes.c_uint64 * 4)({handler}, 0, 0, 0)\n\
             for signal in 32, 33: assert ctypes.CDLL(None).syscall(13, signal, action, None, 8) == 0\n\
             os.execv(sys.argv[1], [sys.argv[1], 'run', '--', 'true'])"
        );
        succeed(bench.command("python3").args(["-c", &script, TASTING])).unwrap();
        bench.json(&["log", "--json", "-n", "1"])["decision"].clone()
    };
    assert_eq!([with(0), with(1)], ["executed", "reused"]);
}
