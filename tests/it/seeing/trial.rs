//! `tasting init --try`: a project is built and tested in a temporary folder, and the last line
//! says what is reused.

use super::contains;
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed, tool, wait_for};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tasting::store::Journal;

/// A project, and a folder for what is temporary.
struct Tried {
    bench: Bench,
    temporary: tempfile::TempDir,
}

impl Tried {
    fn new(files: &[(&str, &str)]) -> Tried {
        let bench = Bench::new();
        files.iter().for_each(|(name, text)| _ = bench.write(name, text));
        Tried { bench, temporary: tempfile::tempdir().unwrap() }
    }

    fn command(&self) -> Command {
        let mut command = self.bench.command(TASTING);
        command.args(["init", "--try"]).env("TMPDIR", self.temporary.path());
        command
    }

    /// The trial changes nothing in the project and leaves nothing behind.
    #[track_caller]
    fn outcome(&self) -> Outcome {
        let before = self.files();
        let outcome = Outcome::of(&mut self.command());
        assert_eq!(self.files(), before, "{outcome:?}");
        self.left_nothing();
        outcome
    }

    fn files(&self) -> Vec<PathBuf> {
        let found = succeed(self.bench.command("find").arg(".")).unwrap().stdout_text();
        let mut found: Vec<PathBuf> = found.lines().map(PathBuf::from).collect();
        found.sort();
        found
    }

    #[track_caller]
    fn left_nothing(&self) {
        let left: Vec<_> = std::fs::read_dir(self.temporary.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// One test that can be reused at once, one that clears what its last run left, and one that leaves
/// a process behind.
const CMAKE: &str = r#"cmake_minimum_required(VERSION 3.10)
project(x C)
enable_testing()
add_executable(a a.c)
add_test(NAME a COMMAND a)
add_test(NAME clears COMMAND sh -c "rm -rf work && mkdir work && echo 1 >work/file")
add_test(NAME leaves COMMAND sh -c "sleep 5 >/dev/null 2>&1 & exit 0")
"#;

#[test]
#[ignore = "needs cmake"]
fn a_cmake_project_is_tried() {
    tool("cmake");
    let stale = "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n";
    let files = [
        ("CMakeLists.txt", CMAKE),
        ("a.c", "int main(void) { return 0; }\n"),
        ("build/CMakeCache.txt", stale),
        // The lines of `init --write`, of which a copy or an earlier commit need know nothing.
        ("CMakeUserPresets.json", "\"tasting\": not what CMake takes"),
    ];
    let tried = Tried::new(&files);
    let outcome = tried.outcome();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = outcome.stdout_text();
    let last = text.lines().last().unwrap();
    contains(
        last,
        &[
            "2 of 3 tests reused; 1 cannot be: ",
            "sh -c ",
            "(in build), because sleep: ",
            "(`tasting help still-running`)",
        ],
    );
    assert!(
        tried.bench.store().decisions(1).unwrap().is_empty(),
        "the user's store is not for trials"
    );
}

#[test]
fn a_checkout_is_tried_without_what_git_ignores() {
    let makefile = "all: t\nt: t.c\n\t$(CC) -o t t.c\ncheck: t\n\t$(RUNNER) ./t\n";
    let source = "int main(void) { return 0; }\n";
    let tried = Tried::new(&[
        ("Makefile", makefile),
        ("t.c", source),
        (".gitignore", "t\n"),
        ("t", "not a program"),
    ]);
    succeed(tried.bench.command("git").args(["init", "-q"])).unwrap();
    let outcome = tried.outcome();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout_text().lines().last(), Some("1 of 1 test reused"));
}

#[test]
fn failures_are_told_apart_from_our_own() {
    let makefile = "all: t\nt: t.c\n\t$(CC) -o t t.c\ncheck: t\n\t$(RUNNER) ./t\n";
    let tried = Tried::new(&[("Makefile", makefile), ("t.c", "int main(void) { return 3; }\n")]);
    let outcome = tried.outcome();
    contains(
        &outcome.stdout_text(),
        &["fail, without Tasting as well", "0 of 1 test reused; 1 cannot be: ./t, because"],
    );
}

#[test]
fn build_failures_are_reported() {
    let tried = Tried::new(&[("Makefile", "all:\n\techo the reason; false\n")]);
    let outcome = tried.outcome();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    contains(
        &outcome.stdout_text(),
        &["it does not build: make CC=tasting-cc", "    the reason\n"],
    );
    let tried = Tried::new(&[("Makefile", "all:\ncheck:\n\t# $(RUNNER)\n")]);
    let outcome = tried.outcome();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    contains(
        &outcome.stdout_text(),
        &["no test went through tasting run: make check RUNNER='tasting run --'"],
    );
}

#[test]
fn an_interrupted_trial_leaves_nothing() {
    let tried = Tried::new(&[("Makefile", "all:\n\ttouch $(BEGUN)\n\texec sleep 100\n")]);
    let begun = tried.temporary.path().join("begun");
    let mut command = tried.command();
    command.env("BEGUN", &begun).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for(&begun);
    succeed(Command::new("kill").arg(child.id().to_string())).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    std::fs::remove_file(begun).unwrap();
    tried.left_nothing();
}
