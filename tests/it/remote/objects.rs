//! Compiled objects that machines share: one compiles, the other takes the object. The build is the
//! same, whatever the server does.

mod trust;

use super::machine::{Machine, files_below};
use super::servers;
use crate::edits::matrix::compilers;
use crate::workshop::{Outcome, TASTING, TASTING_CC, TASTING_CXX, TASTING_LD, tool};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SOURCE: &str = "#include \"part.h\"\nint part(int x) { return x * FACTOR; }\n";
const HEADER: &str = "#define FACTOR 3\nint part(int x);\n";

/// Compilers that note when they are asked for code: all calls but those that preprocess or check.
const COMPILER: &str = "#!/bin/sh\nfor word; do case $word in -E|-fsyntax-only|-print-*|--version|-dump*|-\\#\\#\\#) exec REAL \"$@\";; esac; done\n\
    echo \"$@\" >>\"$HOME/compiled\"\nexec REAL \"$@\"\n";

/// A compiler of this name that all machines have, in the same place.
struct Compiler {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Compiler {
    fn new(name: &'static str) -> Compiler {
        let folder = tempfile::tempdir().unwrap();
        let real = tool(name);
        let path = folder.path().join(name);
        std::fs::write(&path, COMPILER.replace("REAL", real.to_str().unwrap())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Compiler { folder, name }
    }

    fn all() -> Vec<Compiler> {
        compilers().map(|compiler| Compiler::new(compiler.c)).collect()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }
}

/// A machine with a source in its checkout.
fn machine(name: &str, remote: &str) -> Machine {
    let machine = Machine::bare(name, remote);
    machine.write("part.c", SOURCE);
    machine.write("part.h", HEADER);
    machine
}

/// Compiles the source with these options; what it printed.
fn compile(machine: &Machine, compiler: &Compiler, options: &[&str]) -> Outcome {
    let mut command = machine.command(TASTING_CC);
    command.arg(compiler.path()).args(["-O2", "-Wall", "-MD", "-c", "part.c"]).args(options);
    command
        .env("TASTING_REUSE_OBJECTS", "1")
        .env("TASTING_LEVEL", "ast")
        .env("TASTING_LOGFILE", log_file(machine));
    Outcome::of(&mut command)
}

#[track_caller]
fn compiles(machine: &Machine, compiler: &Compiler, options: &[&str]) {
    let outcome = compile(machine, compiler, options);
    assert!(
        outcome.success() && outcome.stdout.is_empty() && outcome.stderr.is_empty(),
        "{outcome:?}"
    );
}

fn log_file(machine: &Machine) -> PathBuf {
    machine.home().join("log")
}

fn log(machine: &Machine) -> String {
    std::fs::read_to_string(log_file(machine)).unwrap_or_default()
}

/// How often a compiler was asked for code on a machine.
fn made(machine: &Machine) -> usize {
    std::fs::read_to_string(machine.home().join("compiled")).unwrap_or_default().lines().count()
}

fn object(machine: &Machine) -> Vec<u8> {
    std::fs::read(machine.checkout().join("part.o")).unwrap()
}

/// The objects in a shared folder.
fn shared(place: &Path) -> Vec<PathBuf> {
    let mut found = files_below(place);
    found.retain(|path| path.extension().is_some_and(|ending| ending == "c1"));
    found
}

/// What waits to be sent.
fn waiting(machine: &Machine) -> usize {
    let spools = files_below(&machine.store_folder().join("objects-1/remote"));
    spools
        .iter()
        .filter(|path| path.parent().is_some_and(|folder| folder.ends_with("spool")))
        .count()
}

/// One machine compiles, and the other one, whose checkout lies elsewhere, does not; then the other
/// way round.
#[track_caller]
fn both_ways(remote: &str) {
    for compiler in Compiler::all() {
        let (alice, bob) = (machine("alice", remote), machine("bob", remote));
        compiles(&alice, &compiler, &[]);
        alice.does(&["push"]);
        // What means the same, with a header more, and a comment.
        bob.write(
            "part.h",
            "#include \"more.h\"\n#define FACTOR 3 /* three */\nint part(int x);\n",
        );
        bob.write("more.h", "extern int more;\n");
        compiles(&bob, &compiler, &[]);
        assert_eq!((made(&alice), made(&bob)), (1, 0), "{}: {}", compiler.name, log(&bob));
        assert_eq!(object(&alice), object(&bob), "{}", compiler.name);
        assert!(bob.read("part.d").contains("more.h") && !alice.read("part.d").contains("more.h"));
        assert!(log(&bob).contains("reused, from another machine"), "{}", log(&bob));
        let told = bob.does(&["stats"]);
        assert!(told.contains("1 reused of 1 (100.0%), 1 of other machines"), "{told}");
        // From its own cache now.
        compiles(&bob, &compiler, &[]);
        assert!(
            bob.does(&["stats", "--json"]).contains("\"shared\": 1"),
            "{}",
            bob.does(&["stats", "--json"])
        );
        compiles(&bob, &compiler, &["-DOTHER", "-O1"]);
        bob.does(&["push"]);
        compiles(&alice, &compiler, &["-O1"]);
        assert_eq!((made(&alice), made(&bob)), (1, 1), "{}: {}", compiler.name, log(&alice));
    }
}

#[test]
fn over_a_folder() {
    let place = tempfile::tempdir().unwrap();
    both_ways(&format!("file:{} objects namespace=team", place.path().display()));
}

#[test]
#[ignore = "needs redis"]
fn over_redis_with_an_end_of_their_own() {
    let server = servers::redis(&[]);
    let port = server.port;
    both_ways(&format!("redis://127.0.0.1:{port} objects=2M expire=9d expire-objects=1d"));
    let key = servers::redis_cli(port, &["--raw", "randomkey"]);
    let time = servers::redis_cli(port, &["ttl", key.trim()]);
    assert!((80_000..=86_400).contains(&time.trim().parse::<u32>().unwrap()), "{key}: {time}");
}

#[test]
#[ignore = "needs nginx"]
fn over_http() {
    let server = servers::nginx(Some("hush"), None);
    both_ways(&format!("http://127.0.0.1:{}/o bearer-token=hush objects", server.port));
}

#[test]
#[ignore = "needs moto"]
fn over_s3() {
    let (server, key, secret) = servers::s3();
    let place = format!("s3://results/o endpoint=http://127.0.0.1:{}", server.port);
    both_ways(&format!("{place} user={key} password={secret} operation-timeout=10s objects"));
}

/// Nobody has to say `tasting push`: what was made is sent by a process that the build does not
/// wait for.
#[test]
fn objects_are_uploaded_in_the_background() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let alice = machine("alice", &format!("file:{} objects", place.path().display()));
    // `Outcome::of` reads both pipes to their end: a process that held them would be waited for.
    compiles(&alice, &compiler, &[]);
    let start = Instant::now();
    while shared(place.path()).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing is sent: {}", log(&alice));
        std::thread::sleep(Duration::from_millis(20));
    }
    alice.does(&["push"]);
    assert_eq!(waiting(&alice), 0);
    let told = alice.does(&["stats", "--remote"]);
    assert!(told.contains("1 object,") && told.contains("0 objects to be sent"), "{told}");
    assert!(alice.does(&["pull"]).contains("fetched 0 results"), "results and objects are apart");
}

#[test]
fn objects_are_shared_only_on_request() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let plain = format!("file:{}", place.path().display());
    for remote in [plain.clone(), format!("{plain} objects=no")] {
        let alice = machine("alice", &remote);
        compiles(&alice, &compiler, &[]);
        alice.does(&["push", "--all"]);
        assert_eq!((waiting(&alice), shared(place.path())), (0, Vec::new()));
    }
    let sharing = machine("sharing", &format!("{plain} objects"));
    compiles(&sharing, &compiler, &[]);
    sharing.does(&["push"]);
    assert_eq!(shared(place.path()).len(), 1);
    let bob = machine("bob", &plain);
    compiles(&bob, &compiler, &[]);
    assert_eq!(made(&bob), 1);
    // The project's file cannot ask for it.
    let carol = machine("carol", "");
    carol.write("tasting.toml", format!("remote = '{plain} objects'"));
    compiles(&carol, &compiler, &[]);
    assert_eq!(made(&carol), 1);
    let told = Outcome::of(&mut carol.tasting(&["config"]));
    assert!(
        told.stdout_text().contains("the attribute objects is for TASTING_REMOTE only"),
        "{told:?}"
    );
}

#[test]
fn read_only_is_only_read() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{} objects", place.path().display());
    let alice = machine("alice", &remote);
    compiles(&alice, &compiler, &[]);
    alice.does(&["push"]);
    let before = files_below(place.path());
    let reader = machine("reader", &format!("{remote} read-only"));
    compiles(&reader, &compiler, &[]);
    compiles(&reader, &compiler, &["-O1"]);
    assert_eq!((made(&reader), waiting(&reader)), (1, 0), "{}", log(&reader));
    // A job for a fork only reads, although nobody has said so.
    let fork = machine("fork", &remote);
    let mut command = fork.command(TASTING_CC);
    command.arg(compiler.path()).args(["-O3", "-c", "part.c"]).env("TASTING_REUSE_OBJECTS", "1");
    command.env("GITLAB_CI", "true").env("CI_MERGE_REQUEST_IID", "7");
    assert!(Outcome::of(&mut command).success());
    assert_eq!((made(&fork), waiting(&fork)), (1, 0));
    // What cannot be written to this machine's cache is not fetched.
    let guest = machine("guest", &remote);
    let mut command = guest.command(TASTING_CC);
    command.arg(compiler.path()).args(["-O2", "-Wall", "-MD", "-c", "part.c"]);
    command
        .env("TASTING_REUSE_OBJECTS", "1")
        .env("TASTING_LEVEL", "ast")
        .env("TASTING_READONLY", "1");
    assert!(Outcome::of(&mut command).success());
    assert!(!guest.store_folder().join("objects-1").exists());
    assert_eq!((object(&guest), files_below(place.path())), (object(&alice), before));
}

/// A server that takes connections and never answers costs one operation's time, not one for each
/// compilation.
#[test]
fn a_server_that_is_away_costs_one_delay() {
    const SOURCES: usize = 6;
    let compiler = Compiler::new("gcc");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let hanging =
        machine("hanging", &format!("redis://127.0.0.1:{port} objects operation-timeout=2s"));
    let refusing =
        machine("refusing", &format!("redis://127.0.0.1:{} objects", servers::free_port()));
    let plain = machine("plain", "");
    let mut took = [Duration::ZERO; 3];
    for number in 0..SOURCES {
        for (machine, took) in [&hanging, &refusing, &plain].into_iter().zip(&mut took) {
            machine.write("part.c", format!("{SOURCE}int number = {number};\n"));
            let start = Instant::now();
            compiles(machine, &compiler, &[]);
            *took += start.elapsed();
        }
        assert!(object(&hanging) == object(&plain) && object(&refusing) == object(&plain));
    }
    println!(
        "{SOURCES} sources: {:?} with a server that hangs, {:?} that refuses, {:?} without",
        took[0], took[1], took[2]
    );
    for (machine, reason) in [(&hanging, "no answer"), (&refusing, "refused")] {
        let log = log(machine);
        assert_eq!(log.matches("is left alone for a while").count(), 1, "{log}");
        assert!(log.contains(reason), "{log}");
        assert_eq!((made(machine), waiting(machine)), (SOURCES, 0));
    }
    assert!(
        took[0] >= Duration::from_secs(2) && took[0] < took[2] * 2 + Duration::from_secs(4),
        "{took:?}"
    );
    assert!(took[1] < took[2] * 2 + Duration::from_secs(2), "{took:?}");
    let told = Outcome::of(&mut refusing.tasting(&["stats", "--remote"]));
    assert!(told.stdout_text().contains("reading objects has failed"), "{told:?}");
}

#[test]
fn recache_makes_them_anew_for_all() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let alice = machine("alice", &format!("file:{} objects", place.path().display()));
    compiles(&alice, &compiler, &[]);
    alice.does(&["push"]);
    let value = shared(place.path()).remove(0);
    std::fs::write(&value, "damaged").unwrap();
    let mut command = alice.command(TASTING_CC);
    command
        .arg(compiler.path())
        .args(["-O2", "-Wall", "-MD", "-c", "part.c"])
        .env("TASTING_RECACHE", "1");
    assert!(
        Outcome::of(command.env("TASTING_REUSE_OBJECTS", "1").env("TASTING_LEVEL", "ast"))
            .success()
    );
    alice.does(&["push"]);
    assert_ne!(std::fs::read(&value).unwrap(), b"damaged");
    assert_eq!(made(&alice), 2);
}

/// They run for each file of a build: whatever speaks to servers is in `tasting` alone.
#[test]
fn the_shims_speak_to_no_server() {
    let clients = |program: &str| {
        let output = std::process::Command::new("nm").arg(program).output().unwrap();
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        names
            .lines()
            .filter(|line| {
                ["rustls", "ureq", "Cluster", "clap_builder"].iter().any(|name| line.contains(name))
            })
            .count()
    };
    assert!(clients(TASTING) > 0);
    assert_eq!([TASTING_CC, TASTING_CXX, TASTING_LD].map(clients), [0; 3]);
}
