//! What a test leaves behind, beside the content of files.

use super::Bench;
use crate::workshop::{TASTING, tool};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tasting::model::Verdict;

#[test]
fn times_that_were_set_are_put_back() {
    let bench = Bench::new();
    let words = [
        "sh",
        "-c",
        "echo a > z; sleep 0.02; echo b > a; echo c > old; touch -d '2001-02-03 04:05:06 UTC' old",
    ];
    bench.runs(&words);
    for name in ["z", "a", "old"] {
        fs::remove_file(bench.path(name)).unwrap();
    }
    bench.reuses(&words);
    let time = |name: &str| {
        let found = fs::metadata(bench.path(name)).unwrap();
        (found.mtime(), found.mtime_nsec())
    };
    assert_eq!(time("old"), (981_173_106, 0));
    assert!(time("z") < time("a"), "the order in which they were written stays");
    assert!(time("z").0 > 1_700_000_000);
}

#[test]
fn hard_links_are_not_kept() {
    let bench = Bench::new();
    bench.runs(&["sh", "-c", "echo a > one; ln one two"]).not_kept("hard link");
}

#[test]
fn owners_and_attributes_are_not_kept() {
    let bench = Bench::new();
    let python = tool("python3");
    let attribute = "import os; open('a', 'w'); os.setxattr('a', 'user.x', b'1')";
    let ran = bench.runs(&[python.to_str().unwrap(), "-c", attribute]);
    if ran.outcome.code == Some(0) {
        ran.not_kept("extended attributes");
    }
    if fs::metadata(bench.path("tasting.toml")).unwrap().uid() == 0 {
        bench.runs(&["sh", "-c", "echo a > mine; chown 1234:1234 mine"]).not_kept("another user");
    }
}

const QUEUE: &str = r#"
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
int main(int count, char **words) {
    mqd_t queue = mq_open(words[1], O_CREAT | O_EXCL | O_RDWR, 0600, 0);
    if (queue < 0) return 3;
    if (count > 2) return 0;
    return mq_unlink(words[1]);
}
"#;

#[test]
fn message_queues_left_behind_are_not_kept() {
    let bench = Bench::new();
    bench.compile(&["-o", "t", "-x", "c", "-", "-lrt"], QUEUE);
    let name = format!("/tasting-it-{}", std::process::id());
    if bench.run(&["./t", &name]).outcome.code == Some(3) {
        return; // The kernel has none.
    }
    bench.reuses(&["./t", &name]);
    bench.runs(&["./t", &name, "stays"]).not_kept("left behind");
    let ran = bench.runs(&["./t", &name]);
    assert_eq!(ran.outcome.code, Some(3), "it is in the way of the next one");
    bench.compile(
        &["-o", "remove", "-x", "c", "-", "-lrt"],
        "#include <mqueue.h>\nint main(int c, char **v) { return mq_unlink(v[1]); }",
    );
    assert!(bench.command(bench.path("remove")).arg(&name).status().unwrap().success());
}

#[test]
fn a_folder_of_a_random_name_is_reused() {
    let bench = Bench::new();
    fs::create_dir(bench.path("tmp")).unwrap();
    for command in ["mktemp -d -p tmp", "mktemp -p tmp"] {
        let script = format!("d=$({command}) || exit 1; echo done");
        let words = ["sh", "-c", &script];
        bench.runs(&words);
        // The second one shows that the name is drawn anew.
        bench.runs(&words);
        bench.reuses(&words);
        bench.reuses(&words);
    }
}

#[test]
fn a_folder_that_must_not_be_there_counts() {
    let bench = Bench::new();
    bench.write("version", "1.0");
    let words = ["sh", "-c", "mkdir build-$(cat version) 2>/dev/null && echo made || echo there"];
    assert_eq!(bench.runs(&words).text(), "made\n");
    bench.write("version", "2.0");
    assert_eq!(bench.runs(&words).text(), "made\n");
    for _ in 0..2 {
        assert_eq!(bench.run(&words).text(), "there\n");
    }
    fs::remove_dir(bench.path("build-2.0")).unwrap();
    assert_eq!(bench.run(&words).text(), "made\n");
    // The first name that is free is no random one.
    let words =
        ["sh", "-c", "n=1; while ! mkdir out.$n 2>/dev/null; do n=$((n + 1)); done; echo $n"];
    for number in 1..5 {
        assert_eq!(bench.run(&words).text(), format!("{number}\n"));
    }
}

/// Root may write everywhere: then somebody else runs the test.
#[test]
fn folders_that_may_not_be_written_count() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    for folder in [bench.path(""), bench.store.path().to_owned()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let is_root = fs::metadata(bench.path("tasting.toml")).unwrap().uid() == 0;
    let another: &[&str] = if is_root {
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    } else {
        &[]
    };
    let test = "(echo a > out/tmp && rm out/tmp) 2>/dev/null && echo fine || echo failed";
    let words = [another, &[TASTING, "run", "--", "sh", "-c", test]].concat();
    let run = |mode: u32| {
        fs::set_permissions(bench.path("out"), PermissionsExt::from_mode(mode)).unwrap();
        let ran = bench.finish(bench.command(words[0]).args(&words[1..]));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(run(0o777), ("fine\n".to_owned(), Verdict::Executed));
    assert_eq!(run(0o777), ("fine\n".to_owned(), Verdict::Reused));
    assert_eq!(run(0o555), ("failed\n".to_owned(), Verdict::Executed));
    assert_eq!(run(0o777).0, "fine\n");
}

#[test]
fn the_longest_names_are_put_back() {
    let bench = Bench::new();
    let name = "n".repeat(255);
    let script = format!("mkdir folder && echo x > {name} && ls");
    let words = ["sh", "-c", &script];
    let ran = bench.runs(&words);
    fs::remove_file(bench.path(&name)).unwrap();
    fs::remove_dir(bench.path("folder")).unwrap();
    assert_eq!(bench.reuses(&words).outcome, ran.outcome);
    assert_eq!(fs::read_to_string(bench.path(&name)).unwrap(), "x\n");
}

/// The folder of the second file is gone: nothing of the first one may be there when the test runs.
#[test]
fn partial_restores_are_undone() {
    let bench = Bench::new();
    fs::create_dir(bench.path("sub")).unwrap();
    let script = "test -e first && echo there; echo x > first; echo x > sub/second";
    let words = ["sh", "-c", script];
    assert_eq!(bench.runs(&words).text(), "");
    fs::remove_file(bench.path("first")).unwrap();
    fs::remove_dir_all(bench.path("sub")).unwrap();
    let ran = bench.runs(&words);
    assert_eq!((ran.text().as_str(), ran.outcome.code), ("", Some(2)));
}
