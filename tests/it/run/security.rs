//! What others on this machine can see and do: modes of the store, links in its place, secrets in
//! errors, mistaken options.

use super::Bench;
use crate::workshop::{Outcome, TASTING};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Everything below a folder, and the folder itself.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(all_below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn results(bench: &Bench) -> PathBuf {
    bench.store.path().join("results-1")
}

#[test]
fn store_is_readable_by_its_owner_only() {
    let bench = Bench::with("#include <stdio.h>\nint main() { puts(\"secret\"); return 0; }");
    let run = |umask: &str| {
        let script = format!("umask {umask}; exec \"$0\" run -- ./t");
        assert!(Outcome::of(bench.command("sh").args(["-c", &script, TASTING])).success());
    };
    run("022");
    run("000");
    let found = all_below(&results(&bench));
    assert!(
        found.iter().any(|path| path.extension().is_some_and(|ending| ending == "o")),
        "{found:?}"
    );
    for path in found {
        let status = path.metadata().unwrap();
        let expected = if status.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(status.permissions().mode() & 0o777, expected, "{}", path.display());
    }
}

#[test]
fn log_is_not_written_through_a_link() {
    let bench = Bench::new();
    bench.runs(&["true"]);
    let precious = bench.write("precious", "precious");
    let log = results(&bench).join("log/00000000.jsonl");
    fs::remove_file(&log).unwrap();
    symlink(&precious, &log).unwrap();
    assert!(Outcome::of(&mut bench.tasting(&["false"])).code == Some(1));
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn password_of_a_wrong_remote_is_not_logged() {
    for remote in [
        "redis://user:secret@host bogus",
        "redis://host|password=secret|bogus",
        "redis://user:secret@host:x",
    ] {
        let bench = Bench::new();
        bench.write("tasting.toml", format!("remote = '{remote}'\n"));
        let logfile = bench.path("logfile");
        let ran = Outcome::of(bench.tasting(&["true"]).env("TASTING_LOGFILE", &logfile));
        assert!(ran.success());
        let mut texts = vec![ran.stderr_text(), bench.last().reason];
        texts.extend(fs::read_to_string(&logfile));
        for words in [&["config"][..], &["doctor"], &["explain", "--", "true"]] {
            let said = Outcome::of(bench.command(TASTING).args(words));
            texts.extend([said.stdout_text(), said.stderr_text()]);
        }
        assert!(texts.iter().any(|text| text.contains("tasting.toml")), "{texts:?}");
        assert!(!texts.iter().any(|text| text.contains("secret")), "{texts:?}");
    }
}

#[test]
fn unknown_option_is_a_usage_error() {
    let bench = Bench::new();
    for (option, suggestion) in
        [("--bogus", "--bogus"), ("--reuse-failure", "--reuse-failures"), ("-z", "-z")]
    {
        for words in [&[option, "--", "true"][..], &[option, "true"]] {
            let ran = Outcome::of(&mut bench.tasting(words));
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr_text().contains(suggestion), "{ran:?}");
        }
    }
}

#[test]
fn options_of_the_command_are_its_own() {
    let bench = Bench::new();
    bench.script("-odd", "#!/bin/sh\necho odd \"$@\"\n");
    let path = format!("{}:{}", bench.path("").display(), std::env::var("PATH").unwrap());
    for (words, said) in [
        (&["--", "-odd", "--bogus"][..], "odd --bogus\n"),
        (&["echo", "--audit", "--", "-x"], "--audit -- -x\n"),
        (&["--", "echo", "--", "-x"], "-- -x\n"),
    ] {
        let ran = Outcome::of(bench.tasting(words).env("PATH", &path));
        assert_eq!((ran.code, ran.stdout_text().as_str()), (Some(0), said), "{ran:?}");
    }
}
