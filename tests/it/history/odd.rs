//! Repositories as they are found: merges, submodules, names that are no text, shallow clones,
//! dirty checkouts.

use super::{Story, contents, json};
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed, tool};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Its test ends as the file `end` says, and sees nothing else of a commit.
const ENDS: &str =
    "[history]\nbuild = 'true'\ntest = 'tasting run -- sh -c \"exit \\$(cat end)\"'\n";

fn git(bench: &Bench, folder: &Path, words: &[&str]) {
    let settings =
        ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always"];
    let mut command = bench.command("git");
    succeed(command.current_dir(folder).args(settings).args(words))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A repository in a folder, with a commit for each end.
pub fn repository(bench: &Bench, folder: &Path, options: &[&str], ends: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    git(bench, folder, &[&["init", "-q", "-b", "main"], options].concat());
    fs::write(folder.join("tasting.toml"), ENDS).unwrap();
    ends.iter().for_each(|end| commit(bench, folder, end));
}

fn commit(bench: &Bench, folder: &Path, end: &str) {
    fs::write(folder.join("end"), end).unwrap();
    git(bench, folder, &["add", "-A"]);
    git(bench, folder, &["commit", "-q", "-m", &format!("It ends with {end}")]);
}

/// What `tasting history` says there.
pub fn history(bench: &Bench, folder: &Path, words: &[&str]) -> Value {
    let mut command = bench.command(TASTING);
    command.current_dir(folder).args(["history", "--json", "--no-overhead"]).args(words);
    json(&Outcome::of(&mut command))
}

/// How the tests ended, commit by commit.
pub fn ends(shown: &Value) -> Vec<Vec<i64>> {
    let commits = shown["commits"].as_array().unwrap_or_else(|| panic!("{shown:#}")).iter();
    let tests = commits.map(|commit| commit["tests"].as_array().unwrap().iter());
    tests.map(|tests| tests.map(|test| test["exit_code"].as_i64().unwrap()).collect()).collect()
}

#[test]
fn names_need_not_be_text_nor_objects_sha1() {
    let bench = Bench::new();
    let folder = bench.path("").join(OsStr::from_bytes(b"sp ace \xff"));
    repository(&bench, &folder, &["--object-format=sha256"], &["0", "3"]);
    let below = folder.join(OsStr::from_bytes(b"b \xe9 'q'"));
    fs::create_dir(&below).unwrap();
    fs::rename(folder.join("tasting.toml"), below.join("tasting.toml")).unwrap();
    commit(&bench, &folder, "4");
    fs::rename(folder.join("end"), below.join("end")).unwrap();
    git(&bench, &folder, &["add", "-A"]);
    git(&bench, &folder, &["commit", "-q", "-m", "A file has another name"]);
    assert_eq!(ends(&history(&bench, &below, &["-n", "1"])), [[4]]);
}

#[test]
fn merges_detached_heads_and_dirty_checkouts() {
    let bench = Bench::new();
    let folder = bench.path("project");
    repository(&bench, &folder, &[], &["0", "1"]);
    git(&bench, &folder, &["checkout", "-q", "-b", "side", "HEAD~1"]);
    fs::write(folder.join("other"), "").unwrap();
    git(&bench, &folder, &["add", "-A"]);
    git(&bench, &folder, &["commit", "-q", "-m", "Beside"]);
    git(&bench, &folder, &["merge", "-q", "-m", "Both", "main"]);
    git(&bench, &folder, &["checkout", "-q", "--detach"]);
    fs::write(folder.join("end"), "7").unwrap();
    fs::write(folder.join("untracked"), "").unwrap();
    let before = contents(&folder);
    let mut all = ends(&history(&bench, &folder, &["-n", "9"]));
    all.sort();
    assert_eq!(all, [[0], [0], [1], [1]]);
    assert_eq!(ends(&history(&bench, &folder, &["-n", "9", "--first-parent"])), [[0], [0], [1]]);
    assert_eq!(ends(&history(&bench, &folder, &["HEAD~1..HEAD"])).len(), 2);
    assert!(before == contents(&folder), "the checkout or its repository has changed");
    let clone = bench.path("clone");
    let address = format!("file://{}", folder.display());
    git(
        &bench,
        &bench.path(""),
        &["clone", "-q", "--depth", "1", &address, clone.to_str().unwrap()],
    );
    assert_eq!(
        ends(&history(&bench, &clone, &["-n", "9"])),
        [[1]],
        "of a shallow clone, what is there"
    );
}

#[test]
fn submodules_follow_each_commit() {
    let bench = Bench::new();
    let (part, folder) = (bench.path("part"), bench.path("project"));
    repository(&bench, &part, &[], &["0"]);
    repository(&bench, &folder, &[], &["0"]);
    git(
        &bench,
        &folder,
        &["submodule", "--quiet", "add", "--name", "a part", part.to_str().unwrap(), "in/part"],
    );
    fs::write(folder.join("tasting.toml"), ENDS.replace("cat end", "cat in/part/end")).unwrap();
    commit(&bench, &folder, "0");
    commit(&bench, &part, "5");
    git(&bench, &folder.join("in/part"), &["pull", "-q"]);
    commit(&bench, &folder, "1");
    let before = contents(&folder);
    let shown = history(&bench, &folder, &["HEAD~2..HEAD", "--clean"]);
    assert_eq!(ends(&shown), [[0], [5]], "{shown:#}");
    assert!(before == contents(&folder), "the checkout or its repository has changed");
}

/// The exit status of such a test says nothing.
#[test]
fn a_failure_told_in_tap_is_one() {
    let bench = Bench::new();
    let folder = bench.path("project");
    repository(&bench, &folder, &[], &[]);
    let tap = ENDS.replace("exit \\$(cat end)", "echo 1..1; echo \\$(cat end) 1");
    fs::write(folder.join("tasting.toml"), tap).unwrap();
    ["ok", "not ok"].iter().for_each(|end| commit(&bench, &folder, end));
    let shown = history(&bench, &folder, &["-n", "2"]);
    assert_eq!(ends(&shown), [[0], [0]], "{shown:#}");
    let test = &shown["commits"][1]["tests"][0];
    assert_eq!((&shown["summary"]["failures"], &test["failed"]), (&1.into(), &true.into()));
    assert_eq!(
        test["changed"][0]["name"], "end",
        "files that tests read have costs as well: {test:#}"
    );
}

#[test]
fn files_of_commits_replace_built_ones() {
    let bench = Bench::new();
    let folder = bench.path("project");
    repository(&bench, &folder, &[], &["0"]);
    fs::write(folder.join("out"), "").unwrap();
    commit(&bench, &folder, "2");
    fs::remove_file(folder.join("out")).unwrap();
    let build = ENDS.replace("'true'", "'[ -e out ] || { mkdir out && touch out/made; }'");
    fs::write(folder.join("tasting.toml"), build).unwrap();
    assert_eq!(ends(&history(&bench, &folder, &["-n", "2"])), [[0], [2]]);
}

#[test]
fn one_command_in_two_environments_is_two_tests() {
    let mut story = Story::new(
        "[environment]\nignore = ['HOLE']\n[history]\nbuild = 'true'\n\
         test = 'for n in 1 2; do PART=$n HOLE=$(cat hole$n) tasting run -- sh -c \"exit \\$HOLE\"; done'\n",
    );
    for value in ["0", "0", "3"] {
        story.bench.write("hole1", "0");
        story.bench.write("hole2", value);
        story.bench.write("count", format!("{}", story.expected.len()));
        story.commit("Another one", None);
    }
    let shown = json(&Outcome::of(&mut story.history(&["-n", "3", "--json", "--no-overhead"])));
    assert_eq!(shown["summary"]["executions"], 6, "{shown:#}");
    assert_eq!(shown["summary"]["missed"], 1, "{shown:#}");
    let names = |commit: usize| {
        let tests = shown["commits"][commit]["tests"].as_array().unwrap().iter();
        tests.map(|test| test["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), names(2));
    assert!(names(0).iter().any(|name| name.ends_with(" (2)")), "{:?}", names(0));
}

#[test]
fn interrupted_runs_leave_no_inputs() {
    let bench = Bench::new();
    let (folder, started, go) = (bench.path("project"), bench.path("started"), bench.path("go"));
    repository(&bench, &folder, &[], &["0"]);
    let waits =
        format!("[ -e {} ] || {{ touch {}; sleep 600; }}; exit", go.display(), started.display());
    let settings =
        ENDS.replace("'true'", "'[ -e made ] || cp end made'").replace("cat end", "cat made");
    fs::write(folder.join("tasting.toml"), settings.replace("exit", &waits)).unwrap();
    let mut command = bench.command(TASTING);
    command.current_dir(&folder).args(["history", "-n", "1", "--no-overhead"]).process_group(0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while !started.exists() {
        assert!(since.elapsed() < Duration::from_secs(300) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    succeed(Command::new("sh").args(["-c", &format!("kill -TERM -{}", child.id())])).unwrap();
    assert!(!child.wait().unwrap().success());
    // A build and a checkout that were interrupted leave such things.
    let kept = fs::read_dir(bench.store_path().join("history")).unwrap().flatten();
    let tree = kept.map(|entry| entry.path().join("tree")).find(|tree| tree.exists()).unwrap();
    fs::write(tree.join("made"), "9").unwrap();
    fs::write(tree.join(".git/index.lock"), "").unwrap();
    fs::write(&go, "").unwrap();
    let shown = history(&bench, &folder, &["-n", "1"]);
    assert_eq!(ends(&shown), [[0]], "{shown:#}");
}

#[test]
fn a_terminal_shows_how_far_it_is() {
    let script = tool("script");
    let bench = Bench::new();
    let folder = bench.path("project");
    repository(&bench, &folder, &[], &["0", "1"]);
    let line = format!("{TASTING} history -n 2 --no-overhead");
    let mut command = bench.command(script);
    let shown =
        Outcome::of(command.current_dir(&folder).args(["-qec", &line, "/dev/null"])).stdout_text();
    for part in
        ["[1/2] ", " building", "[2/2] ", " testing, 0 of 1 tests, about ", " left  It ends with 1"]
    {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
}
