//! `tasting push` and `tasting pull`: archives, filling a store, growth.

use super::machine::{Machine, files_below};
use super::servers;
use std::fs::FileTimes;
use std::time::{Duration, SystemTime};

#[test]
fn one_archive_for_a_job() {
    let alice = Machine::new("alice", "");
    alice.runs(&["./t", "one"]);
    alice.runs(&["./t", "two"]);
    let archive = alice.checkout().join("../results.tasting");
    let archive = archive.to_str().unwrap();
    assert!(alice.does(&["push", archive]).starts_with("sent 2 results and 2 tests"));
    let bob = Machine::new("bob", "");
    assert!(bob.does(&["pull", archive]).starts_with("fetched 2 results and 2 tests"));
    let reused = bob.reuses(&["./t", "one"]);
    assert!(reused.decision.shared);
    bob.runs(&["./t", "three"]);
    // Added to what is there.
    bob.does(&["push", "--used-within", "1h", archive]);
    let carol = Machine::new("carol", "");
    let told = carol.does(&["pull", "--json", archive]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap()["outcomes"], 3);
    carol.reuses(&["./t", "three"]);
    // What was only fetched is not handed on for ever.
    let next = format!("{archive}.next");
    let told = carol.does(&["push", "--used-within", "1d", &next]);
    assert!(told.starts_with("sent 1 result and 1 test"), "{told}");
    std::fs::write(archive, "no archive").unwrap();
    let refused = carol.tasting(&["pull", archive]).output().unwrap();
    assert!(
        !refused.status.success()
            && String::from_utf8_lossy(&refused.stderr).contains("no archive"),
        "{refused:?}"
    );
}

/// Servers limit how often they may be asked.
#[test]
#[ignore = "needs moto"]
fn many_results_cost_one_request() {
    let (server, key, secret) = servers::s3();
    let place = format!(
        "s3://results/packed archive endpoint=http://127.0.0.1:{} user={key} password={secret}",
        server.port
    );
    let with = |command: &'static str| -> Vec<&str> {
        [command].into_iter().chain(place.split(' ')).collect()
    };
    let requests = || {
        let log = std::fs::read_to_string(server.path("log")).expect("moto writes a log");
        log.lines().filter(|line| line.contains("/results/packed")).count()
    };
    let alice = Machine::new("alice", "");
    (0..20).for_each(|test| _ = alice.runs(&["./t", &test.to_string()]));
    let told = alice.does(&with("push"));
    assert!(told.starts_with("sent 20 results and 20 tests"), "{told}");
    assert_eq!(requests(), 2, "what is there is read, and written anew");
    let bob = Machine::new("bob", "");
    let told = bob.does(&with("pull"));
    assert!(told.starts_with("fetched 20 results and 20 tests"), "{told}");
    assert_eq!(requests(), 3);
    bob.reuses(&["./t", "7"]);
    bob.runs(&["./t", "more"]);
    bob.does(&with("push"));
    let carol = Machine::new("carol", &place);
    carol.does(&with("pull"));
    carol.reuses(&["./t", "more"]);
    let before = requests();
    carol.runs(&["./t", "unknown"]);
    let refused = carol.tasting(&["push"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("the attribute archive"),
        "{refused:?}"
    );
    assert_eq!(requests(), before, "tests do not ask for all results");
}

#[test]
#[ignore = "needs nginx"]
fn an_archive_behind_http_can_be_pulled() {
    let server = servers::nginx(None, None);
    let place = format!("http://127.0.0.1:{}/packed", server.port);
    let alice = Machine::new("alice", "");
    alice.runs(&["./t", "one"]);
    alice.does(&["push", &place, "archive"]);
    let bob = Machine::new("bob", "");
    assert!(bob.does(&["pull", &place, "archive"]).starts_with("fetched 1 result and 1 test"));
    bob.reuses(&["./t", "one"]);
}

#[test]
#[ignore = "needs redis"]
fn a_nightly_job_fills_a_store() {
    let server = servers::redis(&[]);
    let url = format!("redis://127.0.0.1:{}", server.port);
    let nightly = Machine::new("nightly", "");
    (0..100).for_each(|test| _ = nightly.runs(&["./t", &test.to_string()]));
    nightly.does(&["push", &url, "namespace=main"]);
    let remote = format!("{url} namespace=main");
    let told = Machine::bare("ops", &remote).does(&["stats", "--remote"]);
    assert!(told.contains("100 results of 100 tests"), "{told}");
    let laptop = Machine::new("laptop", &remote);
    laptop.does(&["pull"]);
    drop(server);
    (0..100).step_by(9).for_each(|test| _ = laptop.reuses(&["./t", &test.to_string()]));
    let none = Machine::bare("none", "").tasting(&["push"]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("TASTING_REMOTE"), "{none:?}");
}

#[test]
fn unused_results_expire() {
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{} expire=10d", place.path().display());
    let alice = Machine::new("alice", &remote);
    alice.runs_and_sends(&["./t", "old"]);
    alice.runs_and_sends(&["./t", "used"]);
    let age = |folder: &std::path::Path, days: u64| {
        for file in files_below(folder) {
            let time = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
            let file = std::fs::File::options().append(true).open(file).unwrap();
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        }
    };
    age(place.path(), 11);
    // A use on this machine is told to the store of the team, though it was not asked.
    for file in files_below(&alice.store_folder()) {
        let time = SystemTime::now() - Duration::from_secs(2 * 3600);
        if file.extension().is_some_and(|ending| ending == "o") {
            let file = std::fs::File::options().append(true).open(file).unwrap();
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        }
    }
    alice.reuses(&["./t", "used"]);
    alice.does(&["push"]);
    assert!(alice.does(&["gc", "--remote"]).starts_with("Removed 2 values"));
    let bob = Machine::new("bob", &remote);
    bob.runs(&["./t", "old"]);
    bob.reuses(&["./t", "used"]);
}

#[test]
fn a_wrong_result_is_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::bare("alice", &format!("file:{}", place.path().display()));
    // It depends on something that cannot be seen.
    let source = "#include <time.h>\n#include <sys/stat.h>\nint main(void) { struct stat s; return stat(\"data\", &s) || s.st_mtime > 99; }";
    alice.build("t", source, &[]);
    alice.write("data", "x");
    let aged = |seconds| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file =
            std::fs::File::options().append(true).open(alice.checkout().join("data")).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    };
    aged(1);
    alice.runs_and_sends(&["./t"]);
    assert_eq!(files_below(place.path()).len(), 2);
    aged(200);
    let audited = alice.finish(&mut alice.tasting(&["run", "--audit", "100%", "--", "./t"]));
    assert_eq!(audited.decision.audit, Some(tasting::model::Audit::Missed), "{audited:?}");
    alice.does(&["push"]);
    assert_eq!(files_below(place.path()).len(), 1, "the outcome is gone, the dependency sets stay");
}

#[test]
fn queued_uploads_survive_and_are_sent_once() {
    let place = tempfile::tempdir().unwrap();
    let machine = |remote: &str| {
        let machine = Machine::bare("somebody", remote);
        machine.build("t", "int main(void) { return 0; }", &[]);
        machine
    };
    let alice = machine(&format!("file:{}", place.path().display()));
    alice.runs_and_sends(&["./t", "one"]);
    let value = files_below(place.path())
        .into_iter()
        .find(|path| path.extension().is_some_and(|own| own == "o1"))
        .unwrap();
    let before = std::fs::read(&value).unwrap();
    // Somebody who could not ask runs the same test, and sends it.
    let bob = machine("");
    bob.runs(&["./t", "one"]);
    let destination = alice.remote.clone();
    bob.does(&["push", &destination]);
    assert_eq!(std::fs::read(&value).unwrap(), before);
    let recached =
        alice.finish(alice.tasting(&["run", "--", "./t", "one"]).env("TASTING_RECACHE", "1"));
    assert!(!recached.is_reused());
    alice.does(&["push"]);
    assert_ne!(std::fs::read(&value).unwrap(), before, "unless it is to be stored anew");
}
