//! How the agent gets into programs: nobody sees it in the environment, and it is there for every
//! user and below every root.

use super::{BRANCHES, is_unnoticed};
use crate::run::Bench;
use crate::workshop::Outcome;
use tasting::model::Step;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.compile(&["-O1", "-o", "t", "-"], BRANCHES);
    bench
}

/// Whether tests may become others here.
fn is_root() -> bool {
    Outcome::of(std::process::Command::new("id").arg("-u")).stdout_text() == "0\n"
}

#[test]
fn the_environment_is_as_without() {
    let bench = bench();
    let prints =
        "env; cat /proc/self/environ; printenv LD_PRELOAD; test -e /etc/ld.so.preload; echo $?";
    let plain = Outcome::of(bench.command("sh").args(["-c", prints]));
    let watched = bench.run(&["sh", "-c", prints]).outcome;
    assert_eq!(watched.stdout_text(), plain.stdout_text());
    is_unnoticed(&bench, &["sh", "-c", "cat /etc/ld.so.preload"]);
}

#[test]
fn programs_with_an_empty_environment_are_traced() {
    let bench = bench();
    let words = ["env", "-i", "./t"];
    bench.settles(&words);
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 20", "x + 21"));
    assert_eq!(bench.reuses(&words).decision.step, Some(Step::Executed));
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 10", "x + 12"));
    assert_eq!(bench.runs(&words).text(), "13\n");
}

#[test]
fn libraries_that_others_preload_come_first() {
    let bench = bench();
    let library =
        "int puts(const char *text);\nint printf(const char *text, ...) { return puts(\"mine\"); }";
    bench.compile(&["-shared", "-fPIC", "-fno-builtin", "-o", "mine.so", "-"], library);
    let plain = is_unnoticed(&bench, &["env", "LD_PRELOAD=./mine.so", "./t"]);
    assert_eq!(plain.stdout_text(), "mine\n");
}

#[test]
fn loader_debug_output_hides_the_agent() {
    let bench = bench();
    let addresses = "sed 's/0x[0-9a-f]*//;s/^ *[0-9]*://'";
    let shown = format!("ldd ./t | {addresses}; LD_TRACE_LOADED_OBJECTS=1 ./t | {addresses}");
    is_unnoticed(&bench, &["sh", "-c", &shown]);
    is_unnoticed(&bench, &["sh", "-c", "LD_DEBUG=libs ./t 2>&1 | grep -c agent"]);
}

#[test]
fn limited_address_space_is_left_alone() {
    let bench = bench();
    is_unnoticed(&bench, &["sh", "-c", "ulimit -v 20000; ./t; ./t other"]);
    is_unnoticed(&bench, &["sh", "-c", "ulimit -n 4; ./t; ./t other"]);
}

/// The store of a user is nobody else's business, and not there below another root.
#[test]
fn dropped_privileges_do_not_disturb() {
    if !is_root() {
        return;
    }
    let bench = bench();
    let folder = bench.path("");
    let open = Outcome::of(std::process::Command::new("chmod").args(["-R", "a+rX"]).arg(&folder));
    assert!(open.success(), "{open:?}");
    for words in [
        &["setpriv", "--reuid=65534", "--clear-groups", "./t"][..],
        &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "sh",
            "-c",
            "./t; ./t other",
        ],
        &["runuser", "-u", "nobody", "--", "./t"],
    ] {
        let plain = is_unnoticed(&bench, words);
        assert_eq!(plain.code, Some(0), "{plain:?}");
    }
}

#[test]
fn other_roots_and_mounts_do_not_disturb() {
    if !is_root() {
        return;
    }
    let bench = bench();
    bench.script(
        "root.sh",
        "#!/bin/sh\nmkdir -p root/etc && for file in ./t $(ldd ./t | grep -o '/[^ ]*'); do\n\
         mkdir -p root/$(dirname $file) && cp $file root/$file || exit; done\n",
    );
    assert!(Outcome::of(&mut bench.command("./root.sh")).success());
    bench.script(
        "hide.sh",
        "#!/bin/sh\ncp ./t /dev/shm/tasting-t && mount -t tmpfs none /tmp && /dev/shm/tasting-t\n",
    );
    for words in [
        &["chroot", "root", "/t"][..],
        &["unshare", "--mount", "./hide.sh"],
        &["unshare", "--user", "./t"],
    ] {
        let plain = is_unnoticed(&bench, words);
        assert_eq!(
            (plain.code, plain.stdout_text().as_str()),
            (Some(0), "11\n"),
            "{words:?}: {plain:?}"
        );
    }
    let _ = std::fs::remove_file("/dev/shm/tasting-t");
}
