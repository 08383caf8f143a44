//! Who may write, who is believed, and what nobody gets to see.

use super::machine::{Machine, files_below};
use super::servers;
use std::path::Path;
use std::process::Command;

fn new_key(folder: &Path, name: &str) -> (String, String) {
    let path = folder.join(name);
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "ed25519", "-out"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let public =
        Command::new("openssl").args(["pkey", "-pubout", "-in"]).arg(&path).output().unwrap();
    let public = String::from_utf8(public.stdout).unwrap().lines().nth(1).unwrap().to_owned();
    (path.display().to_string(), public)
}

#[test]
#[ignore = "needs openssl"]
fn only_what_named_keys_have_signed_is_believed() {
    let place = tempfile::tempdir().unwrap();
    let ((ci, ci_public), (other, _)) =
        (new_key(place.path(), "ci.pem"), new_key(place.path(), "other.pem"));
    let remote = format!("file:{}/store", place.path().display());
    let trusting = |name: &str, remote: &str| {
        let machine = Machine::new(name, remote);
        machine.write("tasting.toml", format!("[sharing]\ntrusted-keys = ['{ci_public}']"));
        machine
    };
    let unsigned = Machine::new("unsigned", &remote);
    unsigned.runs_and_sends(&["./t", "one"]);
    let stranger = Machine::new("stranger", &format!("{remote} sign-key={other}"));
    stranger.runs_and_sends(&["./t", "two"]);
    let server = trusting("server", &format!("{remote} sign-key={ci}"));
    server.runs_and_sends(&["./t", "three"]);
    let developer = trusting("developer", &remote);
    assert!(developer.runs(&["./t", "one"]).decision.reason.contains("nobody has signed it"));
    assert!(developer.runs(&["./t", "two"]).decision.reason.contains("none of the keys"));
    developer.reuses(&["./t", "three"]);
    // The server finds what strangers wrote, does not believe it, and puts its own in place.
    server.runs_and_sends(&["./t", "one"]);
    trusting("another", &remote).reuses(&["./t", "one"]);
}

#[test]
fn read_only_is_only_read() {
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{}", place.path().display());
    let alice = Machine::new("alice", &remote);
    alice.runs_and_sends(&["./t", "one"]);
    let before = files_below(place.path()).len();
    let reader = Machine::new("reader", &format!("{remote} read-only"));
    assert!(reader.reuses(&["./t", "one"]).decision.shared);
    reader.runs(&["./t", "two"]);
    assert_eq!((reader.upload_jobs(), files_below(place.path()).len()), (0, before));
    let refused = reader.tasting(&["push", "--all"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("read-only asks for it"),
        "{refused:?}"
    );
    // And where nothing is written to this machine's store either.
    let guest = Machine::new("guest", &remote);
    for _ in 0..2 {
        let output = guest
            .tasting(&["run", "--", "./t", "one"])
            .env("TASTING_READONLY", "1")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "one: the data\n");
        assert!(!guest.store_folder().join("results-1").exists());
    }
}

#[test]
fn jobs_for_forks_only_read() {
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{}/store", place.path().display());
    let event = place.path().join("event.json");
    let described = |from: &str| {
        format!(
            r#"{{"pull_request":{{"head":{{"repo":{{"full_name":"{from}"}}}}}},"repository":{{"full_name":"us/it"}}}}"#
        )
    };
    let github = |from: &str, remote: &str| {
        std::fs::write(&event, described(from)).unwrap();
        let machine = Machine::new("runner", remote);
        let mut command = machine.tasting(&["run", "--", "./t", "one"]);
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", "pull_request")
            .env("GITHUB_EVENT_PATH", &event);
        machine.finish(&mut command);
        machine.upload_jobs() + usize::from(!files_below(&place.path().join("store")).is_empty())
    };
    assert_eq!(github("them/it", &remote), 0);
    assert!(
        github("them/it", &format!("{remote} namespace=forks read-only=false")) > 0,
        "if whoever runs the job wants it"
    );
    assert!(github("us/it", &remote) > 0);
    let machine = Machine::new("gitlab", "");
    machine.write("tasting.toml", format!("remote = '{remote} namespace=gitlab read-only=false'"));
    let mut command = machine.tasting(&["run", "--", "./t", "one"]);
    command.env("GITLAB_CI", "true").env("CI_MERGE_REQUEST_IID", "7");
    command
        .env("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "them/it")
        .env("CI_MERGE_REQUEST_PROJECT_PATH", "us/it");
    machine.finish(&mut command);
    assert_eq!(machine.upload_jobs(), 0, "what the stranger's tasting.toml says does not count");
}

#[test]
fn namespaces_are_apart() {
    let place = tempfile::tempdir().unwrap();
    let remote = |name: &str| format!("file:{} namespace={name}", place.path().display());
    Machine::new("alice", &remote("a")).runs_and_sends(&["./t", "one"]);
    Machine::new("bob", &remote("b")).runs(&["./t", "one"]);
    Machine::new("carol", &remote("a")).reuses(&["./t", "one"]);
    // What the processor can do is a part of it, unless the project does not care.
    let careless = Machine::new("dave", &remote("a"));
    careless.write("tasting.toml", "[sharing]\nprocessors = 'any'");
    careless.runs_and_sends(&["./t", "one"]);
    let folders: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let starts = |start: &str| {
        folders.iter().filter(|name| name.to_string_lossy().starts_with(start)).count()
    };
    assert!(folders.iter().any(|name| name == "a") && starts("a-") == 1, "{folders:?}");
}

#[test]
#[ignore = "needs redis"]
fn secrets_stay_hidden() {
    let server = servers::redis(&["--requirepass", "other"]);
    let remotes = [
        format!("redis://:hush-hush@127.0.0.1:{}", server.port),
        format!("redis://127.0.0.1:{} user=me password=hush-hush", server.port),
        format!("redis://127.0.0.1:{} password-env=TASTING_PASSWORD", server.port),
        format!("http://me:hush-hush@127.0.0.1:{}/x", server.port),
        format!("http://127.0.0.1:{} bearer-token=hush-hush header=X-Key=hush-hush", server.port),
        format!(
            "s3://hush/x endpoint=http://127.0.0.1:{} user=AKIA password=hush-hush",
            server.port
        ),
        "nonsense://me:hush-hush@host password=hush-hush".to_owned(),
        "redis://me:hush-hush@host nonsense=hush-hush".to_owned(),
    ];
    for remote in remotes {
        let machine = Machine::new("alice", &remote);
        let log = machine.checkout().join("../log");
        let mut told = Vec::new();
        let commands: [&[&str]; 8] = [
            &["run", "--", "./t", "one"],
            &["push"],
            &["pull"],
            &["log", "--json"],
            &["explain", "--", "./t", "two"],
            &["stats", "--remote"],
            &["config"],
            &["doctor"],
        ];
        for words in commands {
            let mut command = machine.tasting(words);
            command.env("TASTING_LOGFILE", &log).env("TASTING_PASSWORD", "hush-hush");
            let output = command.output().unwrap();
            told.extend([output.stdout, output.stderr]);
        }
        told.extend(
            files_below(&machine.store_folder())
                .into_iter()
                .map(|path| std::fs::read(path).unwrap()),
        );
        told.push(std::fs::read(&log).unwrap_or_default());
        for text in told {
            assert!(
                !String::from_utf8_lossy(&text).contains("hush-hush"),
                "{remote}: {}",
                String::from_utf8_lossy(&text)
            );
        }
    }
}
