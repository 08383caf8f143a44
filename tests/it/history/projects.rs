//! Whole projects: the commands that `tasting init` finds, headers and what their changes cost,
//! commits of which nothing is tested.

use super::{MAKEFILE, ONE, SETTINGS, Story, TWO, contents, json, library};
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, tools};
use serde_json::Value;

const LIBRARY: &str = "#include \"limit.h\"\nint common(void) { volatile int limit = LIMIT; return limit > 100; }\n\
    int rarely(void) { return 1; }\n";

/// The files whose changes made tests run, by name: runs, share of the tests at once.
fn files(shown: &Value) -> Vec<(&str, u64, f64)> {
    let files = shown["costs"]["files"].as_array().unwrap_or_else(|| panic!("{shown:#}")).iter();
    let mut found = Vec::new();
    for file in files {
        let (runs, share) = (file["runs"].as_u64().unwrap(), file["share"].as_f64().unwrap());
        found.push((file["name"].as_str().unwrap(), runs, share));
    }
    // Not by cost, which is another one each time.
    found.sort_by(|one, other| one.0.cmp(other.0));
    found
}

#[test]
fn a_header_is_named_with_the_share_of_tests_that_it_runs() {
    for flags in ["-O0 -g", "-O0"] {
        let mut story = Story::new(SETTINGS);
        let makefile = MAKEFILE.replace("-O0 -g", flags).replace("%.o: %.c", "%.o: %.c limit.h");
        story.bench.write("Makefile", makefile);
        story.bench.write("lib.c", LIBRARY);
        story.bench.write("limit.h", "#define LIMIT 1\n");
        story.commit("Start", None);
        story.bench.write("limit.h", "#define LIMIT 2\n");
        story.bench.write("README", "Words.\n");
        story.commit("Another limit", None);
        story.bench.write("two.c", TWO.replace("common()", "2 * common()"));
        story.bench.write("limit.h", "#define LIMIT 2\n#define UNUSED 1\n");
        story.commit("Another test", None);
        let ran = Outcome::of(&mut story.history(&["-n", "9", "--json", "--no-overhead"]));
        let shown = json(&ran);
        assert_eq!(files(&shown), [("limit.h", 2, 1.0), ("two.c", 1, 0.5)], "{flags}: {shown:#}");
        assert_eq!(shown["commits"][1]["files"], serde_json::json!(["README", "limit.h"]));
        story.bench.write("h.json", &ran.stdout);
        let report = ["report", "--history", "h.json", "--markdown", "-o", "page.html"];
        let markdown = Outcome::of(story.bench.command(TASTING).args(report)).stdout_text();
        assert!(
            markdown.contains("| `limit.h` | ") && markdown.contains(" | 2 | 100% |"),
            "{markdown}"
        );
        let page = std::fs::read_to_string(story.bench.path("page.html")).unwrap();
        assert!(page.contains("<div>limit.h</div>") && page.contains(">100%<"), "{page}");
    }
}

#[test]
fn commits_without_tests_prove_nothing() {
    let mut story = Story::new("[history]\nbuild = 'make -s CC=tasting-cc'\ntest = 'true'\n");
    story.bench.write("lib.c", "no C\n");
    story.commit("It does not build", None);
    story.bench.write("lib.c", library("0", "1", "1"));
    story.commit("It builds, and nothing is tested through tasting run", None);
    let ran = Outcome::of(&mut story.history(&["-n", "9", "--no-overhead"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr_text().contains("no test ran at any of these commits"), "{ran:?}");
    assert!(ran.stdout_text().contains("no test went through tasting run"), "{ran:?}");
}

#[test]
fn a_folder_with_a_line_end_in_its_name() {
    let bench = Bench::new();
    let folder = bench.path("a \"b\\\nc");
    super::odd::repository(&bench, &folder, &[], &["0", "3"]);
    let before = contents(&folder);
    let shown = super::odd::history(&bench, &folder, &["-n", "2"]);
    assert_eq!(super::odd::ends(&shown), [[0], [3]], "{shown:#}");
    assert!(before == contents(&folder), "the checkout or its repository has changed");
}

#[test]
#[ignore = "needs cmake"]
fn a_project_is_built_as_init_finds_it() {
    tools(&["cmake", "ctest"]);
    let mut story = Story::new("");
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(p C)\nenable_testing()\n\
        foreach(test one two)\n  add_executable(${test} ${test}.c lib.c)\n  add_test(NAME ${test} COMMAND ${test})\nendforeach()\n";
    story.bench.write("CMakeLists.txt", lists);
    story.bench.write(".gitignore", "build\n");
    story.bench.write("one.c", ONE);
    story.bench.write("lib.c", library("0", "1", "1"));
    let [none, reachable] = [[false; 4], [false, false, true, true]];
    story.commit("Start", Some([(none, 0), (none, 0)]));
    story.bench.write("lib.c", library("0", "1", "2"));
    story.commit("A function that nobody calls", Some([(reachable, 0), (reachable, 0)]));
    let before = contents(&story.bench.path(""));
    let ran = Outcome::of(&mut story.history(&["-n", "9", "--json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    story.check(&json(&ran));
    assert!(before == contents(&story.bench.path("")), "the checkout has changed");
}
