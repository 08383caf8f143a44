//! What a replay must leave as a plain run would: permissions of files that are there, times of
//! links.

use super::Bench;
use crate::workshop::tool;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use tasting::model::Verdict;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Sets the time of a link to one in 2001.
fn set_old(path: &Path) {
    set_time(path, 981_173_106);
}

#[test]
fn an_existing_file_keeps_its_permissions() {
    tool("perl");
    let create =
        "use Fcntl; sysopen(F, 'out', O_CREAT | O_TRUNC | O_WRONLY, 0600) or die; print F 'x'";
    let append =
        "use Fcntl; sysopen(F, 'out', O_CREAT | O_APPEND | O_WRONLY, 0600) or die; print F 'x'";
    let truncate = "truncate('out', 1) or exit 3";
    let shell = "echo x > out";
    let mut wrong = Vec::new();
    for words in [
        ["perl", "-e", create],
        ["perl", "-e", append],
        ["perl", "-e", truncate],
        ["sh", "-c", shell],
    ] {
        for modes in [
            [None, Some(0o644)],
            [Some(0o755), Some(0o644)],
            [Some(0o600), Some(0o640)],
            [Some(0o644), None],
        ] {
            let bench = Bench::new();
            let out = bench.path("out");
            let ends = modes.map(|before| {
                let _ = fs::remove_file(&out);
                if let Some(before) = before {
                    bench.write("out", "content");
                    set_mode(&out, before);
                }
                let ran = bench.run(&words);
                (out.exists().then(|| mode(&out)), ran.outcome.code)
            });
            let _ = fs::remove_file(&out);
            if let Some(before) = modes[1] {
                bench.write("out", "content");
                set_mode(&out, before);
            }
            let plain = bench.command(words[0]).args(&words[1..]).status().unwrap().code();
            let plain = (out.exists().then(|| mode(&out)), plain);
            if plain != ends[1] {
                wrong.push(format!("{words:?} {modes:?}: {plain:?} {:?}", ends[1]));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_renamed_link_keeps_its_time() {
    let bench = Bench::new();
    let link = bench.path("link");
    let renamed = bench.path("renamed");
    for _ in 0..2 {
        let _ = fs::remove_file(&renamed);
        symlink("target", &link).unwrap();
        set_old(&link);
        bench.run(&["mv", "link", "renamed"]);
        assert_eq!(fs::symlink_metadata(&renamed).unwrap().mtime(), 981_173_106);
    }
}

#[test]
fn a_link_made_anew_is_new() {
    let bench = Bench::new();
    let link = bench.path("link");
    for _ in 0..2 {
        let _ = fs::remove_file(&link);
        symlink("target", &link).unwrap();
        set_old(&link);
        bench.run(&["ln", "-sfn", "target", "link"]);
        assert!(fs::symlink_metadata(&link).unwrap().mtime() > 1_700_000_000);
    }
}

/// Sets the time of a file that is not followed if it is a link.
fn set_time(path: &Path, seconds: i64) {
    let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .unwrap();
}

#[test]
fn times_that_are_copied_count() {
    for script in
        ["cp -p in out", "touch out; touch -r in out", "mv in out", "chmod 700 in; ln -sf in out"]
    {
        let bench = Bench::new();
        for (round, time) in [981_173_106, 981_173_106, 981_173_999].into_iter().enumerate() {
            let _ = fs::remove_file(bench.path("out"));
            let _ = fs::remove_file(bench.path("in"));
            bench.write("in", "x");
            set_time(&bench.path("in"), time);
            let ran = bench.run(&["sh", "-c", script]);
            assert_eq!(fs::metadata(bench.path("out")).unwrap().mtime(), time, "{script}");
            let expected = if round == 1 { Verdict::Reused } else { Verdict::Executed };
            assert_eq!(ran.decision.decision, expected, "{script}, {round}: {ran:?}");
        }
    }
}

#[test]
fn attributes_of_an_overwritten_file_stay() {
    let bench = Bench::new();
    let words = ["sh", "-c", "echo x > out"];
    bench.settles(&words);
    let out = bench.write("out", "other");
    if rustix::fs::setxattr(&out, "user.test", b"1", rustix::fs::XattrFlags::empty()).is_err() {
        return; // The file system has none.
    }
    bench.runs(&words).not_kept("extended attributes");
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(&out, "user.test", &mut value[..]), Ok(1));
}

#[test]
fn attributes_of_existing_files_are_restored() {
    for script in ["touch -d 2001-09-09 out", "chmod 600 out", "cat out > copy; cat copy > out"] {
        let bench = Bench::new();
        let ends = [0, 1].map(|_| {
            let out = bench.write("out", "x");
            set_mode(&out, 0o644);
            set_old(&out);
            bench.run(&["sh", "-c", script]);
            let found = fs::metadata(&out).unwrap();
            (found.mode(), if found.mtime() < 1_700_000_000 { found.mtime() } else { 0 })
        });
        assert_eq!(ends[0], ends[1], "{script}");
    }
}

#[test]
fn extended_attributes_of_a_renamed_file_count() {
    let bench = Bench::new();
    let words = ["mv", "old", "new"];
    let start_anew = |bench: &Bench| {
        let _ = fs::remove_file(bench.path("new"));
        bench.write("old", "x");
        set_old(&bench.path("old"));
    };
    start_anew(&bench);
    bench.runs(&words);
    start_anew(&bench);
    bench.reuses(&words);
    start_anew(&bench);
    if rustix::fs::setxattr(bench.path("old"), "user.test", b"1", rustix::fs::XattrFlags::empty())
        .is_err()
    {
        return; // The file system has none.
    }
    bench.runs(&words);
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(bench.path("new"), "user.test", &mut value[..]), Ok(1));
}
