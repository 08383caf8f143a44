//! Two machines share results both ways, whatever the server.

use super::machine::{Machine, files_below};
use super::servers::{self, Certificates};
use std::time::{Duration, Instant};

/// One runs a test and the other need not, then the other way round; and what was fetched stays
/// when the server is gone.
#[track_caller]
fn both_ways(remote: &str, stop: impl FnOnce()) {
    let (alice, bob) = (Machine::new("alice", remote), Machine::new("bob", remote));
    let first = alice.runs_and_sends(&["./t", "one"]);
    let there = bob.reuses(&["./t", "one"]);
    assert_eq!(first.outcome, there.outcome);
    assert_eq!(bob.read("report"), "report of one\n");
    assert!(there.decision.shared && !there.decision.reason.contains("alice"), "{there:?}");
    let second = bob.runs_and_sends(&["./t", "two"]);
    assert_eq!(alice.reuses(&["./t", "two"]).outcome, second.outcome);
    bob.write("data", "other data");
    bob.runs_and_sends(&["./t", "one"]);
    alice.write("data", "other data");
    let known = alice.reuses(&["./t", "one"]);
    assert!(known.decision.shared, "a known dependency set with other values is asked for as well");
    alice.write("data", "new data");
    alice.runs(&["./t", "one"]);
    stop();
    assert_eq!(bob.reuses(&["./t", "one"]).outcome.stdout_text(), "one: other data\n");
}

#[test]
fn over_a_folder() {
    let place = tempfile::tempdir().unwrap();
    for (name, attributes) in [("one", ""), ("two", " layout=flat namespace=team umask=002")] {
        let folder = place.path().join(name);
        let remote = format!("file:{}/store{attributes}", folder.display());
        // Somebody may be about to write there.
        both_ways(&remote, || std::fs::rename(&folder, folder.with_extension("gone")).unwrap());
    }
}

#[test]
#[ignore = "needs redis"]
fn over_redis() {
    let mut server = servers::redis(&["--requirepass", "hush", "--unixsocket", "redis.sock"]);
    let socket = server.path("redis.sock").display().to_string();
    both_ways(&format!("redis+unix:{socket}?db=3 password=hush"), || {});
    let remote = format!("redis://:hush@127.0.0.1:{}/1 namespace=a expire=1d", server.port);
    let port = server.port;
    both_ways(&remote, || {
        let time = servers::redis_cli(
            port,
            &["-a", "hush", "-n", "1", "--no-auth-warning", "--raw", "randomkey"],
        );
        let time = servers::redis_cli(
            port,
            &["-a", "hush", "-n", "1", "--no-auth-warning", "ttl", time.trim()],
        );
        assert!(
            (80_000..=86_400).contains(&time.trim().parse::<u32>().unwrap()),
            "values expire: {time}"
        );
        server.stop();
    });
}

#[test]
#[ignore = "needs redis"]
fn over_a_redis_cluster() {
    let cluster = servers::redis_cluster();
    let port = cluster[1].port;
    both_ways(&format!("redis://127.0.0.1:{port}"), || {});
    let sizes: Vec<String> =
        cluster.iter().map(|server| servers::redis_cli(server.port, &["dbsize"])).collect();
    let total: u32 = sizes.iter().map(|size| size.trim().parse::<u32>().unwrap()).sum();
    let shown = Machine::bare("carol", &format!("redis://127.0.0.1:{port}"))
        .does(&["stats", "--remote", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown["results"].as_u64().unwrap() + shown["tests"].as_u64().unwrap(),
        u64::from(total),
        "{sizes:?} {shown}"
    );
}

#[test]
#[ignore = "needs redis and openssl"]
fn over_redis_with_tls() {
    let certificates = Certificates::new();
    let at = |name: &str| certificates.path(name).display().to_string();
    let (certificate, key, authority) = (at("server.pem"), at("server.key"), at("ca.pem"));
    let options = [
        "--port",
        "0",
        "--tls-port",
        "PORT",
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
    ];
    let server = servers::redis(&options);
    let remote = format!("rediss://localhost:{} ca-file={authority}", server.port);
    both_ways(&remote, || {});
    let stranger = Machine::new("stranger", &format!("rediss://localhost:{}", server.port));
    let ran = stranger.runs(&["./t", "one"]);
    assert!(
        ran.decision.reason.contains("certificate"),
        "an authority that nobody has named: {ran:?}"
    );
}

#[test]
fn over_http() {
    let mut server = servers::nginx(None, None);
    let url = format!("http://127.0.0.1:{}/some/path", server.port);
    both_ways(&format!("{url} layout=bazel namespace=b"), || {});
    both_ways(&format!("{url} layout=flat namespace=f"), || {});
    both_ways(&url, || {
        assert!(!files_below(&server.path("files/some/path/ac")).is_empty());
        server.stop();
    });
}

#[test]
#[ignore = "needs nginx and openssl"]
fn over_https_with_a_token() {
    let certificates = Certificates::new();
    let server = servers::nginx(Some("hush-hush"), Some(&certificates));
    let token = certificates.path("token");
    std::fs::write(&token, "hush-hush\n").unwrap();
    let authority = certificates.path("ca.pem").display().to_string();
    let url = format!("https://127.0.0.1:{}/x ca-file={authority}", server.port);
    both_ways(&format!("{url} bearer-token-file={}", token.display()), || {});
    let stranger = Machine::new("stranger", &format!("{url} bearer-token=guess-work"));
    let ran = stranger.runs(&["./t", "one"]);
    assert!(ran.decision.reason.contains("401"), "{ran:?}");
    let careless = Machine::new(
        "careless",
        &format!("https://127.0.0.1:{}/x bearer-token=hush-hush", server.port),
    );
    assert!(
        careless.runs(&["./t", "one"]).decision.reason.contains("is left alone"),
        "an authority that nobody has named"
    );
}

#[test]
#[ignore = "needs moto"]
fn over_s3() {
    let (mut server, key, secret) = servers::s3();
    let attributes =
        format!("endpoint=http://127.0.0.1:{} operation-timeout=10s user={key}", server.port);
    let stranger =
        Machine::new("stranger", &format!("s3://results/tasting {attributes} password=guess-work"));
    let ran = stranger.runs(&["./t", "one"]);
    assert!(ran.decision.reason.contains("status 403"), "signatures are checked: {ran:?}");
    // At the top of the bucket, for some versions of moto do not get signatures right where a
    // listing has slashes.
    let at_top = |name: &str| {
        let machine = Machine::new(name, &format!("s3://results {attributes} password={secret}"));
        machine.write("tasting.toml", "[sharing]\nprocessors = 'any'");
        machine
    };
    at_top("nightly").runs_and_sends(&["./t", "one"]);
    let told = at_top("laptop").does(&["pull"]);
    assert!(told.starts_with("fetched 1 result and 1 test"), "{told}");
    both_ways(&format!("s3://results/some/prefix {attributes} password={secret}"), || {
        server.stop()
    });
}

#[test]
fn no_path_of_the_machine_is_shared() {
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{}", place.path().display());
    let alice = Machine::new("alice", &remote);
    alice.runs_and_sends(&["./t", "one"]);
    alice.build(
        "where",
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) { char p[999]; puts(getcwd(p, 999)); return 0; }",
        &[],
    );
    alice.runs(&["./where"]);
    assert!(alice.does(&["push"]).contains("sent 0 results"), "what names its folder stays here");
    let values = files_below(place.path());
    assert_eq!(values.len(), 2);
    for value in values {
        let bytes = std::fs::read(&value).unwrap();
        let path = alice.checkout().display().to_string();
        assert!(
            !bytes.windows(path.len()).any(|part| part == path.as_bytes()),
            "{}",
            value.display()
        );
        assert!(!bytes.windows(13).any(|part| part == b"home-of-alice"));
    }
    alice.write("tasting.toml", "[sharing]\nsame-path = true");
    alice.finish(alice.tasting(&["run", "--", "./where"]).env("TASTING_RECACHE", "1"));
    alice.does(&["push"]);
    assert_eq!(
        files_below(place.path()).len(),
        4,
        "unless all checkouts are said to lie in the same place"
    );
}

#[test]
fn explain_tells_the_machine_and_the_commit() {
    let place = tempfile::tempdir().unwrap();
    let alice = Machine::new("alice", &format!("file:{}", place.path().display()));
    let commit = "0123456789abcdef0123456789abcdef01234567";
    std::fs::create_dir(alice.checkout().join(".git")).unwrap();
    alice.write(".git/HEAD", format!("{commit}\n"));
    alice.runs_and_sends(&["./t", "one"]);
    let bob = Machine::new("bob", &alice.remote);
    let told = bob.does(&["explain", "--", "./t", "one"]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(told.contains(&format!("on {} (shared), commit 0123456789ab", host.trim())), "{told}");
    assert!(bob.reuses(&["./t", "one"]).decision.reason.contains("commit 0123456789ab"));
    let json: serde_json::Value =
        serde_json::from_str(&bob.does(&["explain", "--json", "--", "./t", "one"])).unwrap();
    assert_eq!(
        (&json["reused"]["shared"], json["reused"]["commit"].as_str()),
        (&true.into(), Some(commit))
    );
    bob.write("data", "other");
    let told = bob.does(&["explain", "--", "./t", "three"]);
    assert!(told.contains("would run"), "{told}");
}

#[test]
fn uploads_run_in_the_background_without_pipes() {
    // A server that takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let remote = format!("redis://127.0.0.1:{port} operation-timeout=300ms");
    let machine = Machine::new("alice", &remote);
    let mut command = machine.command("sh");
    // A pipe that the test does not know of, as some harnesses have them.
    command.args(["-c", "\"$0\" run -- ./t one 9>&1 | cat", crate::workshop::TASTING]);
    let start = Instant::now();
    let output = command.output().unwrap();
    let took = start.elapsed();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one: the data\n");
    assert!(took < Duration::from_secs(3), "pipes were held for {took:?}");
    assert_eq!(machine.upload_jobs(), 1, "the process behind is still at it");
    drop(silent);
    // And with a server that answers, it is there soon after.
    let place = tempfile::tempdir().unwrap();
    let machine = Machine::new("bob", &format!("file:{}", place.path().display()));
    machine.runs(&["./t", "one"]);
    let start = Instant::now();
    while files_below(place.path()).len() < 2 || machine.upload_jobs() > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "it is not sent");
        std::thread::sleep(Duration::from_millis(20));
    }
}
