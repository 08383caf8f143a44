//! Finds out which commit a release is built from, and what unwinding is linked with.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    link_unwinder();
    println!(
        "cargo::rustc-env=TASTING_COMMIT_SUFFIX={}",
        commit().map_or(String::new(), |commit| format!(" ({commit})"))
    );
    let target = env::var("TARGET").expect("cargo sets it");
    println!("cargo::rustc-env=TASTING_PROCESSOR={target}");
}

/// Links what unwinding takes into our programs, where the compiler has it in an archive: a library
/// less to be loaded by each of them, which start for every test, compilation and link.
fn link_unwinder() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_ENV") != "gnu" || variable("HOST") != variable("TARGET") {
        return;
    }
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let Ok(output) = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let archive = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // Just the name where there is none.
    if let Some(folder) = archive.parent().filter(|_| archive.is_absolute()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The commit, of releases only: a build for development would be made anew after each commit.
/// `TASTING_COMMIT` names it where there is no repository.
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

/// What git says of this repository; nothing where this is an archive, or a folder in somebody
/// else's repository.
fn git(words: &[&str]) -> Option<String> {
    let is_own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join(".git").exists();
    let output = Command::new("git")
        .args(words)
        .output()
        .ok()
        .filter(|output| is_own && output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
