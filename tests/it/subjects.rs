//! Real projects that nobody here wrote, built by their own build systems: plainly and with the shims, with the same
//! results of their own tests, and a manifest that holds beside everything that was linked.

use std::path::Path;
use std::process::Command;

fn subject(name: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Path::new(env!("CARGO_BIN_EXE_tasting")).parent().expect("the program lies in a folder");
    let output = Command::new(here.join("scripts/subjects.sh"))
        .arg(name)
        .current_dir(here)
        .env("BUILT", built)
        .output()
        .expect("scripts/subjects.sh runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("have a manifest"), "{name}: {}", text(&output.stdout));
}

#[test]
fn zlib() {
    subject("zlib");
}

#[test]
fn lua() {
    subject("lua");
}

#[test]
fn sqlite() {
    subject("sqlite");
}

#[test]
fn pugixml() {
    subject("pugixml");
}

#[test]
fn jsoncpp() {
    subject("jsoncpp");
}
