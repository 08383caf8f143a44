//! `tasting history` on generated repositories: known edits, and what each granularity must come
//! to, cell by cell.

mod odd;
mod projects;

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SETTINGS: &str = "[history]\nbuild = 'make -s CC=tasting-cc'\n\
    test = 'for test in one two; do tasting run -- ./$test; done'\n";

const MAKEFILE: &str = "all: one two\nCFLAGS = -O0 -g\none: one.o lib.o\n\t$(CC) -o $@ $^\n\
    two: two.o lib.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $<\n";

const ONE: &str = "int common(void); int rarely(void);\n\
    int main(int n, char **a) { return n > 5 ? rarely() : common(); }\n";

const TWO: &str = "int common(void);\nint main(void) { return common(); }\n";

fn library(common: &str, rarely: &str, lonely: &str) -> String {
    format!(
        "int common(void) {{ return {common}; }}\nint rarely(void) {{ return {rarely}; }}\nint lonely(void) {{ return {lonely}; }}\n"
    )
}

/// A repository, its commits, and what must be decided about the tests at each: reused or not, by
/// whole binary, by file, by what can be reached, by what is executed; and the exit code.
struct Story {
    bench: Bench,
    expected: Vec<Expected>,
}

type Expected = Option<[([bool; 4], i64); 2]>;

impl Story {
    fn new(settings: &str) -> Story {
        let story = Story { bench: Bench::new(), expected: Vec::new() };
        story.git(&["init", "-q", "-b", "main"]);
        story.bench.write("tasting.toml", settings);
        story.bench.write(".gitignore", "*.o\none\ntwo\n*.tasting\n");
        story.bench.write("Makefile", MAKEFILE);
        story.bench.write("one.c", ONE);
        story.bench.write("two.c", TWO);
        story
    }

    fn git(&self, words: &[&str]) {
        let identity =
            ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"];
        succeed(self.bench.command("git").args(identity).args(words))
            .unwrap_or_else(|error| panic!("{error}"));
    }

    fn commit(&mut self, subject: &str, expected: Expected) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
        self.expected.push(expected);
    }

    fn history(&self, words: &[&str]) -> Command {
        let mut command = self.bench.command(TASTING);
        command.arg("history").args(words);
        command
    }

    /// All kinds of edits.
    fn of_all_edits() -> Story {
        let [none, executed, reachable, all] =
            [[false; 4], [false, false, false, true], [false, false, true, true], [true; 4]];
        let mut story = Story::new(SETTINGS);
        story.bench.write("lib.c", library("0", "1", "1"));
        story.commit("Start", Some([(none, 0), (none, 0)]));
        story.bench.write("README", "Nothing that is built.\n");
        story.commit("Words", Some([(all, 0), (all, 0)]));
        story.bench.write("lib.c", library("0", "1", "2"));
        story.commit("A function that nobody calls", Some([(reachable, 0), (reachable, 0)]));
        story.bench.write("lib.c", library("0", "2", "2"));
        story.commit(
            "A function that one can call and does not",
            Some([(executed, 0), (reachable, 0)]),
        );
        story.bench.write(
            "lib.c",
            library("1 - 1 * argc0()", "2", "2")
                .replace("int common", "int argc0(void) { return 1; }\nint common"),
        );
        story.commit("A function that both call", Some([(none, 0), (none, 0)]));
        story.bench.write("two.c", TWO.replace("return common()", "return common() + 3"));
        story.commit("A failure", Some([(all, 0), (none, 3)]));
        story.bench.write("two.c", "int main(void) { return\n");
        story.commit("It does not build", None);
        story.bench.write("two.c", TWO);
        story.commit("As before the failure", Some([(all, 0), (all, 0)]));
        story
    }

    #[track_caller]
    fn check(&self, shown: &Value) {
        let commits = shown["commits"].as_array().unwrap();
        assert_eq!(commits.len(), self.expected.len(), "{shown:#}");
        for (number, (commit, expected)) in commits.iter().zip(&self.expected).enumerate() {
            assert_eq!(commit["built"], expected.is_some(), "commit {number}: {commit:#}");
            let found: Vec<([bool; 4], i64)> =
                commit["tests"].as_array().unwrap().iter().map(cell).collect();
            assert_eq!(
                found,
                expected.map(Vec::from).unwrap_or_default(),
                "commit {number}: {commit:#}"
            );
        }
    }
}

fn cell(test: &Value) -> ([bool; 4], i64) {
    let is_reused = |name: &str| test["decision"][name] == "reused";
    (["whole", "file", "static", "executed"].map(is_reused), test["exit_code"].as_i64().unwrap())
}

fn json(ran: &Outcome) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// All files below a folder, with what is in them.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(contents(&path)),
            false => _ = found.insert(path.clone(), fs::read(&path).unwrap()),
        }
    }
    found
}

#[test]
fn every_cell_is_as_the_edits_demand() {
    let story = Story::of_all_edits();
    let before = contents(&story.bench.path(""));
    let ran = Outcome::of(&mut story.history(&["-n", "50", "--json", "-j", "2"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = json(&ran);
    story.check(&shown);
    let summary = &shown["summary"];
    assert_eq!(
        (&summary["executions"], &summary["missed"], &summary["failures"]),
        (&14.into(), &0.into(), &1.into())
    );
    assert_eq!(summary["reused"]["executed"], 9, "{summary:#}");
    assert!(summary["overhead"]["plain_build_ms"].as_u64() > Some(0), "{summary:#}");
    let changed = &shown["commits"][4]["tests"][0]["changed"];
    let names: Vec<&str> =
        changed.as_array().unwrap().iter().filter_map(|change| change["name"].as_str()).collect();
    assert!(names.contains(&"common") && !names.contains(&"rarely"), "{changed:#}");
    assert!(
        changed[0]["source"].as_str().is_some_and(|source| source.contains("lib.c:")),
        "{changed:#}"
    );
    assert!(
        shown["commits"][6]["error"].as_str().is_some_and(|error| error.contains("two.c")),
        "{shown:#}"
    );
    assert!(
        before == contents(&story.bench.path("")),
        "the checkout or its repository has changed"
    );
    assert!(
        fs::read_dir(story.bench.store_path().join("history"))
            .unwrap()
            .all(|left| left.unwrap().path().is_file())
    );
}

#[test]
fn an_interrupted_replay_goes_on_where_it_was() {
    let story = Story::of_all_edits();
    let before = contents(&story.bench.path(""));
    let mut command = story.history(&["-n", "50", "--json", "--no-overhead"]);
    let mut child =
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = || {
        let folders =
            fs::read_dir(story.bench.store_path().join("history")).into_iter().flatten().flatten();
        let texts =
            folders.filter_map(|folder| fs::read_to_string(folder.path().join("done.jsonl")).ok());
        texts.map(|text| text.lines().count()).sum::<usize>()
    };
    let started = Instant::now();
    while done() < 2 {
        assert!(
            started.elapsed() < Duration::from_secs(300) && child.try_wait().unwrap().is_none()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    succeed(Command::new("sh").args(["-c", &format!("kill -TERM -{}", child.id())])).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(
        before == contents(&story.bench.path("")),
        "the checkout or its repository has changed"
    );
    assert!(done() >= 2);
    let ran = Outcome::of(&mut story.history(&["-n", "50", "--json", "--no-overhead"]));
    story.check(&json(&ran));
}

#[test]
fn a_hole_is_a_miss_with_its_commit() {
    let mut story = Story::new(
        "[environment]\nignore = ['HOLE']\n[history]\nbuild = 'true'\n\
         test = 'HOLE=$(cat hole) tasting run -- sh -c \"exit \\$HOLE\"'\n",
    );
    for value in ["0", "0", "3"] {
        story.bench.write("hole", value);
        story.bench.write("count", format!("{}", story.expected.len()));
        story.commit("Another one", None);
    }
    let ran = Outcome::of(&mut story.history(&["HEAD~2..HEAD~1", "--json"]));
    assert_eq!(ran.code, Some(0), "nothing to compare with yet: {ran:?}");
    let ran = Outcome::of(&mut story.history(&["-n", "3", "--json"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let shown = json(&ran);
    assert_eq!(shown["summary"]["missed"], 1, "{shown:#}");
    assert_eq!(shown["summary"]["misses"][0]["sha"], shown["commits"][2]["sha"]);
    let text = Outcome::of(&mut story.history(&["-n", "3", "--no-overhead"])).stdout_text();
    assert!(
        text.contains("1 failure would have been missed") && text.contains("(exit 3)"),
        "{text}"
    );
}

#[test]
fn the_ast_level_has_its_own_column() {
    let mut story = Story::new(SETTINGS);
    story.bench.write("lib.c", library("0", "1", "1"));
    story.commit("Start", None);
    story.bench.write("lib.c", library("1 - 1", "1", "1"));
    story.commit("The same code from another text", None);
    story.bench.write("lib.c", library("0 * 7 + (1 - 1)", "2", "1"));
    story.commit("Another text, and what is not called", None);
    story.bench.write("lib.c", format!("/* Words. */\n\n{}", library("0 * 7 + (1 - 1)", "2", "1")));
    story.commit("Words", None);
    let ran = Outcome::of(&mut story.history(&["-n", "9", "--json", "--ast", "--no-overhead"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = json(&ran);
    let column = |name: &str, level: &str| -> Vec<bool> {
        let commits = shown["commits"].as_array().unwrap().iter();
        let tests = commits.map(|commit| &commit["tests"][usize::from(name == "two")]);
        tests.map(|test| test.pointer(level).unwrap_or(&Value::Null) == "reused").collect()
    };
    for name in ["one", "two"] {
        assert_eq!(column(name, "/decision/executed"), [false, true, true, true], "{shown:#}");
        assert_eq!(column(name, "/ast/decision"), [false, false, false, true], "{shown:#}");
    }
    assert_eq!(
        (&shown["summary"]["ast"]["executions"], &shown["summary"]["ast"]["reused"]),
        (&8.into(), &2.into())
    );
}

#[test]
fn testing_is_timed_plainly_and_by_suite() {
    let mut story = Story::new(
        "[history]\nbuild = 'make -s CC=tasting-cc'\ntest = 'ctest --output-log ../ctest.log'\n",
    );
    story.bench.write(".gitignore", "*.o\none\ntwo\n*.tasting\nTesting\n");
    story.bench.write(
        "CTestTestfile.cmake",
        "add_test(one tasting run -- ./one)\nadd_test(two tasting run -- ./two)\nadd_test(wait tasting run -- sleep 1.5)\n",
    );
    for lonely in ["1", "2"] {
        story.bench.write("lib.c", library("0", "1", lonely));
        story.commit("A function that nobody calls", None);
    }
    let ran = Outcome::of(&mut story.history(&["-n", "9", "--json", "--suite", "--no-overhead"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = json(&ran);
    for (number, commit) in shown["commits"].as_array().unwrap().iter().enumerate() {
        let [plain, with] =
            ["plain_ms", "reusing_ms"].map(|name| commit["times"][name].as_u64().unwrap());
        assert!(plain >= 1500, "{commit:#}");
        assert_eq!(with >= 1500, number == 0, "only the first has nothing to reuse: {commit:#}");
        assert_eq!(commit["times"]["other_ends"], 0, "{commit:#}");
    }
    assert!(shown["summary"]["times"]["plain_ms"].as_u64() >= Some(3000), "{shown:#}");
}

#[test]
fn no_repository_is_an_error() {
    let bench = Bench::new();
    let ran =
        Outcome::of(bench.command(TASTING).args(["history"]).env("GIT_CEILING_DIRECTORIES", "/"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr_text().contains("in no git repository"), "{ran:?}");
}
