//! Machines with other libraries of the system: they do not share by mistake, unless the project
//! says that they may.

use super::machine::Machine;
use crate::workshop::TASTING;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "#include <stdio.h>\n#include <zlib.h>\nint main(void) { printf(\"%lu\\n\", crc32(0, (const Bytef *)\"x\", 1)); return 0; }";

/// The zlib that programs are linked with, and a copy that differs in a text that nobody reads.
fn other_zlib(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let told = Command::new("gcc").arg("-print-file-name=libz.so.1").output().ok()?;
    let library = std::fs::canonicalize(String::from_utf8(told.stdout).ok()?.trim()).ok()?;
    let mut bytes = std::fs::read(&library).ok()?;
    let at = bytes.windows(9).position(|part| part == b"Copyright")?;
    bytes[at] = b'K';
    let copy = folder.join("libz");
    std::fs::write(&copy, bytes).ok()?;
    Some((library, copy))
}

/// A machine with the other library in its place.
fn runs_with(machine: &Machine, library: &Path, copy: &Path) -> super::machine::Ran {
    let mut command = machine.command("unshare");
    let script = "mount --bind \"$1\" \"$2\" && exec \"$0\" run -- ./z";
    machine.finish(command.args(["-rm", "sh", "-c", script, TASTING]).arg(copy).arg(library))
}

#[test]
fn foreign_libraries_count_unless_compared_by_name() {
    let place = tempfile::tempdir().unwrap();
    let allowed = Command::new("unshare")
        .args(["-rm", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    let Some((library, copy)) = other_zlib(place.path()).filter(|_| allowed) else {
        eprintln!("not tested: there is no zlib, or mounting is not possible here");
        return;
    };
    for (settings, expected) in [("", false), ("[sharing]\nsystem-libraries = 'name'", true)] {
        let remote = format!("file:{}/store", place.path().display());
        let machine = |name: &str| {
            let machine = Machine::bare(name, &remote);
            machine.write("tasting.toml", settings);
            machine.build("z", PROGRAM, &["-lz"]);
            machine
        };
        let (alice, bob) = (machine("alice"), machine("bob"));
        // In a namespace of its own as well: who runs the test counts.
        runs_with(&alice, &library, &library);
        alice.does(&["push"]);
        let there = runs_with(&bob, &library, &copy);
        assert_eq!(there.outcome.stdout_text(), "2363233923\n");
        assert_eq!(there.is_reused(), expected, "{settings:?}: {there:?}");
    }
}
