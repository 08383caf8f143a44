//! Builds the agent (`agent/agent.rs`): a shared library without dependencies, which `tasting` carries inside. Finds out
//! which commit a release is built from.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// No unwinding, no C library, initialised before all others.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "--crate-type=cdylib",
    "--crate-name=tasting_agent",
    "-Cpanic=abort",
    "-Copt-level=2",
    // Symbols of assembler are local, and weak, within a unit only.
    "-Ccodegen-units=1",
    "-Cstrip=symbols",
    "-Crelro-level=off",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-Wl,-z,initfirst",
    "-Clink-arg=-Wl,-z,lazy",
    "-Clink-arg=-Wl,--build-id=none",
];

fn main() {
    println!("cargo::rerun-if-changed=agent");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!(
        "cargo::rustc-env=TASTING_COMMIT_SUFFIX={}",
        commit().map_or(String::new(), |commit| format!(" ({commit})"))
    );
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    println!("cargo::rustc-env=TASTING_PROCESSOR={}", variable("TARGET"));
    let output = PathBuf::from(variable("OUT_DIR")).join("agent.so");
    let mut command = Command::new(variable("RUSTC"));
    command.args(FLAGS).arg("--target").arg(variable("TARGET")).arg("-o").arg(&output).arg("agent/agent.rs");
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg(format!("-Clinker={linker}"));
    }
    let status = command.status().expect("the compiler that builds us can be started");
    assert!(status.success(), "the agent (agent/agent.rs) does not compile");
}

/// The commit, of releases only: a build for development would be made anew after each commit. `TASTING_COMMIT` names it where
/// there is no repository.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=TASTING_COMMIT");
    let given = env::var("TASTING_COMMIT").ok().filter(|commit| !commit.is_empty());
    if given.is_some() || env::var("PROFILE").as_deref() != Ok("release") {
        return given;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What git says of this repository; nothing where this is an archive, or a folder in somebody else's repository.
fn git(words: &[&str]) -> Option<String> {
    let is_own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join(".git").exists();
    let output = Command::new("git").args(words).output().ok().filter(|output| is_own && output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
