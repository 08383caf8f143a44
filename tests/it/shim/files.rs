//! The files that the tools write: modes, times, links, and what a step of ours that fails leaves
//! behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use super::cases::ONE;
use super::twins::{Scene, files_in, record_section, shell};
use crate::edits::matrix::{COMPILERS, compilers};
use crate::workshop::{Outcome, Workshop};

#[test]
fn modes_are_kept() {
    for compiler in compilers() {
        let twins = Scene::new(compiler).file("one.c", ONE).run(&[
            "umask 077 && $CC -c one.c -o private.o && $CC private.o -Wl,--build-id=none -o private",
            "umask 002 && $CC -c one.c -o group.o && $CC group.o -Wl,--build-id=none -o group",
            "touch old.o && chmod 600 old.o && $CC -c one.c -o old.o",
            "touch wide.o && chmod 666 wide.o && $CC -c one.c -o wide.o",
        ]);
        // `same` compares the modes.
        let twins = twins.same_and_well();
        assert_eq!(
            twins.with_record(),
            ["group.o", "old.o", "private.o", "wide.o"],
            "{}",
            compiler.name
        );
        assert_eq!(twins.shim.files[Path::new("private.o")].mode & 0o777, 0o600);
    }
}

#[test]
fn links_stay_links() {
    for compiler in compilers() {
        let twins = Scene::new(compiler).file("one.c", ONE).run(&[
            "touch real.o && ln -s real.o link.o && $CC -c one.c -o link.o",
            "mkdir elsewhere && ln -s elsewhere/prog prog && $CC link.o -Wl,--build-id=none -o prog",
        ]);
        twins.same();
    }
}

/// The state of files in the shims' folder, by a compiler that is a script of ours.
fn with_script(script: &str) -> (Workshop, std::path::PathBuf) {
    let workshop = Workshop::new();
    workshop.write("work/one.c", ONE);
    let path = workshop.write("compiler", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))
        .expect("a script can be made executable");
    (workshop, path)
}

fn run_scripted(workshop: &Workshop, script: &Path, line: &str) -> Outcome {
    let mut command = shell(workshop, COMPILERS[0]);
    command.env("TASTING_CC", script);
    Outcome::of(command.arg(line))
}

fn modified(path: &Path) -> SystemTime {
    std::fs::metadata(path).and_then(|file| file.modified()).expect("a file with a time")
}

/// `make` compares times: an object that looks newer than it is hides a change to its source.
#[test]
fn the_time_of_an_object_is_the_compilers() {
    let (workshop, script) = with_script(
        "gcc \"$@\" && touch -d '2001-02-03 04:05:06.789' x.o && touch -d '2001-02-03 04:05:07' x.d",
    );
    let outcome = run_scripted(&workshop, &script, "$CC -MMD -c one.c -o x.o");
    assert!(outcome.success(), "{outcome:?}");
    let object = workshop.path("work/x.o");
    assert!(record_section(&std::fs::read(&object).expect("an object")).is_some());
    assert!(modified(&object) < modified(&workshop.path("work/x.d")));
    let seconds = modified(&object).duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    assert_eq!(seconds.subsec_millis(), 789);
}

/// A cache may hand out hard links to its store.
#[test]
fn hard_linked_objects_are_not_edited_in_place() {
    let (workshop, script) =
        with_script("gcc -c one.c -o store.o && cp store.o copy.o && ln -f store.o x.o");
    let outcome = run_scripted(&workshop, &script, "$CC -c one.c -o x.o");
    assert!(outcome.success(), "{outcome:?}");
    let read = |name: &str| std::fs::read(workshop.path("work").join(name)).expect("an object");
    assert_eq!(read("store.o"), read("copy.o"), "the stored file was edited");
    assert!(record_section(&read("x.o")).is_some(), "the object got no record");
}

/// What the compiler did not write is not ours to touch.
#[test]
fn unwritten_objects_are_not_touched() {
    let (workshop, script) = with_script("exit 0");
    let object = workshop.path("work/x.o");
    assert!(
        run_scripted(&workshop, Path::new("gcc"), "TASTING_DISABLE=1 $CC -c one.c -o x.o")
            .success()
    );
    let before = (std::fs::read(&object).expect("an object"), modified(&object));
    assert!(run_scripted(&workshop, &script, "$CC -c one.c -o x.o").success());
    assert_eq!(before, (std::fs::read(&object).expect("an object"), modified(&object)));
}

#[test]
fn files_that_are_no_objects_stay_unchanged() {
    for content in ["printf 'not an object'", "printf ''", "printf '\\177ELF'", "head -c 300 prog"]
    {
        let (workshop, script) = with_script(&format!("{content} > x.o"));
        assert!(run_scripted(&workshop, Path::new("gcc"), "$CC one.c -o prog").success());
        let outcome = run_scripted(&workshop, &script, "$CC -c one.c -o x.o");
        assert!(outcome.success() && outcome.stderr.is_empty(), "{content}: {outcome:?}");
        let length = std::fs::metadata(workshop.path("work/x.o")).expect("it stays").len();
        assert!(length <= 300, "{content}: something was added");
        let left = files_in(&workshop.path("work"));
        assert_eq!(left.len(), 4, "{content}: {:?}", left.keys());
    }
}

/// As on a full disk: a record that cannot be written fails no build.
#[test]
fn a_record_without_room_is_left_out() {
    let workshop = Workshop::new();
    workshop.write("work/one.c", ONE);
    // The largest file that may be written holds the object, or the binary, and no more.
    let limited = |plain: &str, line: &str| {
        format!("ulimit -f $(( ($(stat -c %s {plain}) + 511) / 512 )) && {line}")
    };
    let run = |line: &str| Outcome::of(shell(&workshop, COMPILERS[0]).arg(line));
    assert!(
        run("TASTING_DISABLE=1 $CC -ffunction-sections -fdata-sections -c one.c -o plain.o")
            .success()
    );
    let outcome = run(&limited("plain.o", "$CC -c one.c -o x.o && cmp x.o plain.o"));
    assert!(outcome.success() && outcome.stderr.is_empty(), "{outcome:?}");
    let left: Vec<_> = files_in(&workshop.path("work")).into_keys().collect();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains(".tmp")), "{left:?}");
}

/// A manifest of an earlier link must not stay beside a binary that it does not describe.
#[test]
fn a_link_without_manifest_removes_the_old_one() {
    let workshop = Workshop::new();
    workshop.write("work/one.c", ONE);
    let run = |line: &str| Outcome::of(shell(&workshop, COMPILERS[0]).arg(line));
    assert!(run("$CC one.c -o prog && test -e prog.tasting").success());
    assert!(
        run("TASTING_DISABLE=1 $CC -O2 one.c -o prog && tasting fingerprint prog").code == Some(1)
    );
    assert!(run("$CC one.c -o prog && tasting fingerprint prog").success());
    assert!(run("$CC missing.o -o prog; ! test -e prog.tasting").success());
}
