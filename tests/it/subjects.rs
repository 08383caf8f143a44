//! Real projects that nobody here wrote, by their own build systems and with their own tests:
//! plainly and with Tasting, with the same results; reused when nothing has changed, and run when
//! something has. These are the quick ones; `make subjects` has more.

use std::path::Path;
use std::process::Command;

fn subject(name: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built =
        Path::new(env!("CARGO_BIN_EXE_tasting")).parent().expect("the program lies in a folder");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("cargo's folder for tests lies in another one");
    let output = Command::new(here.join("scripts/subjects.py"))
        .arg(name)
        .current_dir(here)
        .env("BUILT", built)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("scripts/subjects.py runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        text(&output.stdout).contains(" reused, after an edit "),
        "{name}: {}",
        text(&output.stdout)
    );
}

/// make, and all tests as one.
#[test]
#[ignore = "needs the network, and takes minutes"]
fn zlib() {
    subject("zlib");
}

/// make, and each test by itself.
#[test]
#[ignore = "needs the network, and takes minutes"]
fn lua() {
    subject("lua");
}

/// CMake and CTest.
#[test]
#[ignore = "needs the network, and takes minutes"]
fn jansson() {
    subject("jansson");
}

/// Meson, C++, a shared library, and tests that Python drives.
#[test]
#[ignore = "needs the network, and takes minutes"]
fn jsoncpp() {
    subject("jsoncpp");
}

/// Tests that perl drives.
#[test]
#[ignore = "needs the network, and takes minutes"]
fn dos2unix() {
    subject("dos2unix");
}
