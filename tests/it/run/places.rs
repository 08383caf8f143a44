//! Checkouts, users, branches and build folders share results.

use super::{Bench, Ran};
use crate::workshop::{TASTING, TASTING_CC, succeed, tool};
use std::fs;
use std::path::Path;
use std::process::Command;
use tasting::model::Verdict;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    char text[99] = "none", path[999];
    snprintf(path, sizeof path, "%s/data", getenv("srcdir"));
    FILE *file = fopen(path, "r");
    if (file) fgets(text, 99, file);
    puts(text);
}
"#;

/// A checkout in which a program reads a file by its absolute path.
fn checkout(bench: &Bench, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tasting.toml"), "").unwrap();
    fs::write(folder.join("data"), "hello").unwrap();
    fs::write(folder.join("t.c"), SOURCE).unwrap();
    succeed(bench.command(TASTING_CC).args(["t.c", "-o", "t"]).current_dir(folder)).unwrap();
}

fn run_in(bench: &Bench, folder: &Path) -> Ran {
    let mut command = bench.command(TASTING);
    let program = folder.join("t");
    command
        .arg("run")
        .arg(program)
        .env("srcdir", folder)
        .env("HOME", folder.parent().unwrap())
        .current_dir(folder);
    bench.finish(&mut command)
}

#[test]
fn checkouts_and_homes_share_results() {
    let bench = Bench::new();
    let (one, other) = (bench.path("home/ann/checkout"), bench.path("users/bob/work/tree"));
    checkout(&bench, &one);
    checkout(&bench, &other);
    assert_eq!(run_in(&bench, &one).decision.decision, Verdict::Executed);
    let ran = run_in(&bench, &other);
    assert_eq!((ran.decision.decision, ran.text().as_str()), (Verdict::Reused, "hello\n"));
    let moved = bench.path("moved");
    fs::rename(&one, &moved).unwrap();
    assert_eq!(run_in(&bench, &moved).decision.decision, Verdict::Reused);
    fs::write(moved.join("data"), "other").unwrap();
    assert_eq!(run_in(&bench, &moved).decision.decision, Verdict::Executed);
    assert_eq!(run_in(&bench, &other).decision.decision, Verdict::Reused);
}

#[test]
fn output_that_names_its_folder_is_not_shared() {
    let bench = Bench::new();
    let folders = [bench.path("one"), bench.path("other")];
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("tasting.toml"), "").unwrap();
    }
    let run = |folder: &Path| bench.finish(bench.tasting(&["pwd"]).current_dir(folder));
    for folder in &folders {
        let expected = format!("{}\n", folder.canonicalize().unwrap().display());
        assert_eq!(
            (run(folder).text(), run(folder).decision.decision),
            (expected, Verdict::Reused)
        );
    }
    assert_eq!(run(&folders[0]).decision.decision, Verdict::Reused);
}

#[test]
fn branches_that_are_switched_back_and_forth() {
    let git = tool("git");
    let bench = Bench::new();
    let git = |words: &[&str]| {
        let mut command: Command = bench.command(&git);
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
        succeed(command.args(identity).args(words)).unwrap();
    };
    git(&["init", "-q"]);
    for (branch, value) in [("main", "1"), ("other", "2")] {
        if branch == "other" {
            git(&["checkout", "-q", "-b", branch]);
        }
        bench.write("t.c", format!("#include <stdio.h>\nint main(void) {{ puts(\"{value}\"); }}"));
        git(&["add", "t.c", "tasting.toml"]);
        git(&["commit", "-q", "-m", branch]);
    }
    let build_and_run = |branch: &str| {
        git(&["checkout", "-q", branch]);
        succeed(bench.command(TASTING_CC).args(["t.c", "-o", "t"])).unwrap();
        let ran = bench.run(&["./t"]);
        (ran.text(), ran.decision.decision)
    };
    for verdict in [Verdict::Executed, Verdict::Reused, Verdict::Reused] {
        assert_eq!(build_and_run("main"), ("1\n".to_owned(), verdict));
        assert_eq!(build_and_run("other"), ("2\n".to_owned(), verdict));
    }
}

#[test]
fn build_folders_share_results() {
    let bench = Bench::new();
    bench.write("tasting.toml", "build-folders = ['out-*']");
    let source = "#include <stdio.h>\nint main(void) { puts(\"x\"); }";
    let run = |folder: &str| {
        bench.write(&format!("{folder}/.keep"), "");
        bench.compile(&["-o", &format!("{folder}/t"), "-x", "c", "-"], source);
        bench.finish(bench.tasting(&["./t"]).current_dir(bench.path(folder))).decision.decision
    };
    assert_eq!(run("out-debug"), Verdict::Executed);
    assert_eq!(run("out-release"), Verdict::Reused);
    assert_eq!(run("elsewhere"), Verdict::Executed);
    bench.write("cmake-one/CMakeCache.txt", "");
    bench.write("cmake-two/CMakeCache.txt", "");
    assert_eq!(run("cmake-one"), Verdict::Reused);
    assert_eq!(run("cmake-two"), Verdict::Reused);
}

#[test]
fn files_of_another_home_count() {
    let bench = Bench::new();
    for (home, text) in [("ann", "1"), ("bob", "1"), ("eve", "2")] {
        bench.write(&format!("{home}/.testrc"), text);
    }
    let run = |home: &str| {
        let mut command = bench.tasting(&["sh", "-c", "cat $HOME/.testrc"]);
        bench.finish(command.env("HOME", bench.path(home))).decision.decision
    };
    assert_eq!(run("ann"), Verdict::Executed);
    assert_eq!(run("bob"), Verdict::Reused);
    assert_eq!(run("eve"), Verdict::Executed);
}
