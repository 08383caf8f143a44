//! With ccache and sccache, in every order: objects come out of the store as they went in, the
//! second build hits, and the fingerprint is the same. With programs that only pass the call on,
//! such as distcc's and icecream's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::cases::{MAIN, PART, PART_H};
use super::twins::{FileState, files_in, record_section, shell};
use crate::edits::matrix::COMPILERS;
use crate::workshop::{Outcome, Workshop, tool};

/// One way to put both together.
struct Order {
    cc: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const ORDERS: [Order; 5] = [
    Order { cc: "tasting-cc ccache gcc", environment: &[] },
    Order { cc: "ccache tasting-cc gcc", environment: &[("CCACHE_COMPILERCHECK", "content")] },
    Order { cc: "ccache tasting-cc", environment: &[] },
    Order { cc: "ccache gcc", environment: &[("CCACHE_PREFIX", "tasting-cc")] },
    Order { cc: "tasting-cc", environment: &[("TASTING_CC", "ccache gcc")] },
];

const BUILD: &str = "for f in main part; do $CC -O1 -MMD -c $f.c -o $f.o || exit; done; tasting-cc gcc main.o part.o -o prog && ./prog";

/// With hard links into the store, whose files must then not be edited, and without.
const LINKS: [&[(&str, &str)]; 2] = [&[], &[("CCACHE_HARDLINK", "1"), ("CCACHE_NOCOMPRESS", "1")]];

fn run(workshop: &Workshop, order: &Order, line: &str) -> Outcome {
    run_with(workshop, order, &[], line)
}

fn run_with(workshop: &Workshop, order: &Order, links: &[(&str, &str)], line: &str) -> Outcome {
    let mut command = shell(workshop, COMPILERS[0]);
    command.env_remove("TASTING_CC").env("CC", order.cc).env("CCACHE_DIR", workshop.path("cache"));
    command.envs(order.environment.iter().copied()).envs(links.iter().copied());
    Outcome::of(command.arg(line))
}

fn hits(workshop: &Workshop, order: &Order) -> usize {
    let statistics = run(workshop, order, "ccache --print-stats").stdout_text();
    let count = |name: &str| -> usize {
        let line = statistics.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |number| number.trim().parse().expect("a number"))
    };
    count("direct_cache_hit") + count("preprocessed_cache_hit")
}

/// The store's objects, whatever ccache calls them.
fn stored(workshop: &Workshop) -> BTreeMap<PathBuf, FileState> {
    let mut files = files_in(&workshop.path("cache"));
    files.retain(|path, _| {
        path.file_name().is_some_and(|name| !["stats", "ccache.conf"].iter().any(|no| name == *no))
    });
    files.retain(|_, file| file.content.len() > 200);
    files
}

#[test]
#[ignore = "needs ccache"]
fn ccache_hits_in_every_order() {
    tool("ccache");
    let mut fingerprints = Vec::new();
    for (order, links) in ORDERS.iter().flat_map(|order| LINKS.map(|links| (order, links))) {
        let name = format!("{} {:?} {links:?}", order.cc, order.environment);
        let workshop = Workshop::new();
        for (file, text) in [("main.c", MAIN), ("part.c", PART), ("part.h", PART_H)] {
            workshop.write(format!("work/{file}"), text);
        }
        let first = run_with(&workshop, order, links, BUILD);
        assert!(first.success() && first.stderr.is_empty(), "{name}: {first:?}");
        let before = stored(&workshop);
        assert!(!before.is_empty(), "{name}: nothing was stored");
        fingerprints.push(run(&workshop, order, "tasting fingerprint prog").stdout_text());
        assert_eq!(hits(&workshop, order), 0, "{name}");
        let second =
            run_with(&workshop, order, links, &format!("rm *.o prog prog.tasting; {BUILD}"));
        assert_eq!(first, second, "{name}");
        assert_eq!(hits(&workshop, order), 2, "{name}: the second build does not hit");
        fingerprints.push(run(&workshop, order, "tasting fingerprint prog").stdout_text());
        assert!(before == stored(&workshop), "{name}: a stored file was changed");
        for object in ["main.o", "part.o"] {
            let bytes = std::fs::read(workshop.path("work").join(object)).expect("an object");
            assert!(record_section(&bytes).is_some(), "{name}: {object} has no record");
        }
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
    assert!(fingerprints[0].ends_with("  prog\n"), "{fingerprints:?}");
}

/// What a cache stores must not depend on whether the shims were there, where they stand outside.
#[test]
#[ignore = "needs ccache"]
fn cached_objects_work_without_the_shims() {
    tool("ccache");
    let workshop = Workshop::new();
    for (file, text) in [("main.c", MAIN), ("part.c", PART), ("part.h", PART_H)] {
        workshop.write(format!("work/{file}"), text);
    }
    let plain = Order { cc: "ccache gcc -ffunction-sections -fdata-sections", environment: &[] };
    assert!(run(&workshop, &plain, BUILD).success());
    let without = run(&workshop, &plain, "tasting fingerprint prog").stdout_text();
    let with = &ORDERS[0];
    assert!(run(&workshop, with, &format!("rm *.o prog; {BUILD}")).success());
    assert_eq!(hits(&workshop, with), 2, "the shim changes what ccache looks for");
    assert_eq!(run(&workshop, with, "tasting fingerprint prog").stdout_text(), without);
}

/// A server that ends with the test, and keeps what it stores in the test's folder.
struct Sccache<'a> {
    workshop: &'a Workshop,
    port: String,
}

impl Sccache<'_> {
    /// Somebody else may take a port that was free: another one is tried then.
    fn start(workshop: &Workshop) -> Sccache<'_> {
        for _ in 0..5 {
            let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
            let port = free.local_addr().expect("a socket has an address").port().to_string();
            drop(free);
            let server = Sccache { workshop, port };
            if server.run("", "sccache --start-server").success() {
                return server;
            }
        }
        panic!("sccache does not start");
    }

    fn run(&self, cc: &str, line: &str) -> Outcome {
        let mut command = shell(self.workshop, COMPILERS[0]);
        command
            .env_remove("TASTING_CC")
            .env("CC", cc)
            .env("SCCACHE_DIR", self.workshop.path("cache"));
        command.env("SCCACHE_SERVER_PORT", &self.port).env("SCCACHE_IDLE_TIMEOUT", "120");
        Outcome::of(command.arg(line))
    }

    fn hits(&self) -> u64 {
        let shown = self.run("", "sccache --show-stats --stats-format json").stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
        let counts = shown["stats"]["cache_hits"]["counts"].as_object().expect("counts");
        counts.values().filter_map(serde_json::Value::as_u64).sum()
    }
}

impl Drop for Sccache<'_> {
    fn drop(&mut self) {
        self.run("", "sccache --stop-server");
    }
}

#[test]
#[ignore = "needs sccache"]
fn sccache_hits_in_every_order() {
    tool("sccache");
    let mut fingerprints = Vec::new();
    for cc in ["tasting-cc sccache gcc", "sccache tasting-cc"] {
        let workshop = Workshop::new();
        for (file, text) in [("main.c", MAIN), ("part.c", PART), ("part.h", PART_H)] {
            workshop.write(format!("work/{file}"), text);
        }
        let server = Sccache::start(&workshop);
        for hits in [0, 2] {
            let built = server.run(cc, &format!("rm -f *.o prog prog.tasting; {BUILD}"));
            assert!(built.success(), "{cc}: {built:?}");
            assert_eq!(server.hits(), hits, "{cc}");
            fingerprints.push(server.run(cc, "tasting fingerprint prog").stdout_text());
            for object in ["main.o", "part.o"] {
                let bytes = std::fs::read(workshop.path("work").join(object)).expect("an object");
                assert!(record_section(&bytes).is_some(), "{cc}: {object} has no record");
            }
        }
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
}

/// What stands before a compiler and passes the call on, before and after the shim, by its name and
/// by its path.
#[test]
fn prefixes_that_pass_the_call_on() {
    let mut fingerprints = Vec::new();
    for cc in [
        "tasting-cc gcc",
        "tasting-cc distcc gcc",
        "distcc tasting-cc gcc",
        "tasting-cc ../bin/icecc gcc",
        "tasting-cc our-own-prefix gcc",
        "our-own-prefix tasting-cc gcc",
    ] {
        let workshop = Workshop::new();
        for (file, text) in [("main.c", MAIN), ("part.c", PART), ("part.h", PART_H)] {
            workshop.write(format!("work/{file}"), text);
        }
        for name in ["distcc", "icecc", "our-own-prefix"] {
            let path = workshop
                .write(format!("bin/{name}"), "#!/bin/sh\necho \"$0\" >>../calls\nexec \"$@\"\n");
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, executable).expect("a file of ours can be changed");
        }
        let order = Order { cc, environment: &[] };
        let built = run(&workshop, &order, &format!("PATH=$PWD/../bin:$PATH; {BUILD}"));
        assert!(built.success(), "{cc}: {built:?}");
        assert_eq!(workshop.path("calls").exists(), cc != "tasting-cc gcc", "{cc}");
        for object in ["main.o", "part.o"] {
            let bytes = std::fs::read(workshop.path("work").join(object)).expect("an object");
            assert!(record_section(&bytes).is_some(), "{cc}: {object} has no record");
        }
        fingerprints.push(run(&workshop, &order, "tasting fingerprint prog").stdout_text());
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
}
