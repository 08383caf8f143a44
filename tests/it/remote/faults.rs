//! Servers that fail in every way: the tests' outcomes stay as they are, and the delay is bounded,
//! once and not for each test.

use super::machine::Machine;
use super::servers;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How many tests are run against each server.
const TESTS: usize = 8;

/// A server that does something with each connection.
fn server(act: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || act(stream));
        }
    });
    port
}

/// Reads what was asked, or some of it.
fn hear(stream: &mut TcpStream) {
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked);
}

/// Runs tests on a machine with this server, and on one without; how much longer it took than twice
/// the time.
#[track_caller]
fn delay(remote: &str, reason: &str) -> Duration {
    let (machine, plain) = (Machine::new("alice", remote), Machine::new("bob", ""));
    let mut took = [Duration::ZERO; 2];
    for test in 0..TESTS {
        let name = format!("test-{test}");
        let mut outcomes = Vec::new();
        for (machine, took) in [&machine, &plain].into_iter().zip(&mut took) {
            let start = Instant::now();
            let ran = machine.runs(&["./t", &name]);
            *took += start.elapsed();
            outcomes.push(ran.outcome);
        }
        assert_eq!(outcomes[0], outcomes[1]);
    }
    let told: Vec<String> = machine.store_decisions();
    assert!(told[0].contains(reason), "{reason:?} is not in {told:?}");
    assert!(
        told[1..].iter().all(|told| !told.contains("remote")),
        "only the first one has waited: {told:?}"
    );
    for test in 0..TESTS {
        machine.reuses(&["./t", &format!("test-{test}")]);
    }
    println!("{reason}: {TESTS} tests took {:?}, without a remote store {:?}", took[0], took[1]);
    // What else the machine does meets both.
    took[0].saturating_sub(took[1] * 2)
}

impl Machine {
    fn store_decisions(&self) -> Vec<String> {
        use tasting::store::Journal;
        self.store().decisions(TESTS).unwrap().into_iter().map(|decision| decision.reason).collect()
    }
}

/// What a busy machine may add; a server that is waited for would take longer.
const NOISE: Duration = Duration::from_secs(20);

#[test]
fn no_server_listens() {
    let port = servers::free_port();
    assert!(delay(&format!("redis://127.0.0.1:{port}"), "refused") < NOISE);
    assert!(delay(&format!("http://127.0.0.1:{port}"), "refused") < NOISE);
}

#[test]
fn a_server_that_hangs() {
    // Two reads, so that the connection stays open.
    let port = server(|mut stream| {
        hear(&mut stream);
        std::thread::sleep(Duration::from_secs(60));
    });
    for scheme in ["redis", "http", "s3"] {
        let remote = match scheme {
            "s3" => format!("s3://b endpoint=http://127.0.0.1:{port} operation-timeout=500ms"),
            scheme => format!("{scheme}://127.0.0.1:{port} operation-timeout=500ms"),
        };
        let delay = delay(&remote, "is left alone");
        assert!(delay < Duration::from_millis(500) + NOISE, "{scheme}: {delay:?}");
    }
}

#[test]
fn a_server_that_accepts_no_connections() {
    // An address that nothing comes back from (TEST-NET-1); where it is refused at once, so much
    // the better.
    let delay = delay(
        "redis://192.0.2.1:6379 connect-timeout=300ms operation-timeout=600ms",
        "is left alone",
    );
    assert!(delay < Duration::from_millis(600) + NOISE, "{delay:?}");
}

#[test]
fn a_server_slower_than_the_timeout() {
    let port = server(|mut stream| {
        hear(&mut stream);
        std::thread::sleep(Duration::from_secs(2));
        let _ = stream.write_all(b"$-1\r\n");
    });
    // The socket's own limit and that of the whole question are the same: either may be met first.
    let delay = delay(&format!("redis://127.0.0.1:{port}"), "is left alone for a while: no answer");
    assert!(delay < Duration::from_millis(1500) + NOISE, "{delay:?}");
}

#[test]
fn a_server_that_trickles_bytes() {
    let port = server(|mut stream| {
        hear(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let delay = delay(&format!("http://127.0.0.1:{port} operation-timeout=500ms"), "is left alone");
    assert!(delay < Duration::from_millis(500) + NOISE, "{delay:?}");
}

#[test]
fn a_server_that_sends_garbage() {
    let port = server(|mut stream| {
        hear(&mut stream);
        let _ = stream.write_all(b"\x00\xff\x13 garbage, and more of it\r\n\r\n");
    });
    assert!(delay(&format!("redis://127.0.0.1:{port}"), "not in Redis's protocol") < NOISE);
    assert!(delay(&format!("http://127.0.0.1:{port}"), "is left alone") < NOISE);
}

#[test]
fn a_server_that_dies_within_a_reply() {
    let port = server(|mut stream| {
        hear(&mut stream);
        let _ = stream.write_all(b"$1000\r\nthe beginning");
    });
    assert!(delay(&format!("redis://127.0.0.1:{port}"), "closed in the middle") < NOISE);
    let port = server(|mut stream| {
        hear(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning");
    });
    assert!(delay(&format!("http://127.0.0.1:{port}"), "is left alone") < NOISE);
}

#[test]
#[ignore = "needs redis"]
fn a_real_one_dies_and_comes_back() {
    let mut server = servers::redis(&[]);
    let port = server.port;
    let remote = format!("redis://127.0.0.1:{port} retry=1s operation-timeout=500ms");
    let (alice, bob) = (Machine::new("alice", &remote), Machine::new("bob", &remote));
    alice.runs_and_sends(&["./t", "one"]);
    server.stop();
    assert!(bob.runs(&["./t", "one"]).decision.reason.contains("is left alone"));
    assert!(!bob.runs(&["./t", "two"]).decision.reason.contains("remote"));
    let told = bob.does(&["explain", "--", "./t", "three"]);
    assert!(told.contains("is left alone, has no result"), "{told}");
    let refused = bob.tasting(&["push"]).output().unwrap();
    assert!(!refused.status.success() && bob.upload_jobs() > 0, "what could not be sent waits");
    let listen = port.to_string();
    let again = std::process::Command::new("redis-server")
        .args(["--port", &listen, "--save", ""])
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut again = again.unwrap();
    // The server is asked again after a second, and takes a while to start.
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while bob.upload_jobs() > 0 && std::time::Instant::now() < end {
        bob.tasting(&["push"]).output().unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(bob.upload_jobs(), 0);
    alice.reuses(&["./t", "two"]);
    again.kill().unwrap();
    again.wait().unwrap();
}

#[test]
#[ignore = "needs redis"]
fn a_server_without_room() {
    let server = servers::redis(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]);
    let machine = Machine::new("alice", &format!("redis://127.0.0.1:{}", server.port));
    let ran = machine.runs(&["./t", "one"]);
    assert!(!ran.decision.reason.contains("remote"), "reading goes on: {ran:?}");
    let refused = machine.tasting(&["push"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("OOM"), "{refused:?}");
    machine.reuses(&["./t", "one"]);
    let told = machine.does(&["stats", "--remote"]);
    assert!(told.contains("sending has failed") && !told.contains("reading has failed"), "{told}");
}

#[test]
#[ignore = "needs redis"]
fn a_server_that_refuses_the_password() {
    let server = servers::redis(&["--requirepass", "hush-hush"]);
    assert!(
        delay(&format!("redis://:wrong-one@127.0.0.1:{}", server.port), "logging in failed")
            < NOISE
    );
    assert!(delay(&format!("redis://127.0.0.1:{}", server.port), "password is needed") < NOISE);
}

#[test]
fn empty_replies_and_errors_are_misses() {
    let server = servers::nginx(None, None);
    assert!(
        delay(&format!("http://127.0.0.1:{}/empty", server.port), "status 200 and nothing") < NOISE
    );
    assert!(delay(&format!("http://127.0.0.1:{}/broken", server.port), "status 500") < NOISE);
}
