//! Builds the agent itself: this crate once more, as a shared library without dependencies, which
//! the crate carries inside.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// No unwinding, no C library, initialised before all others.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "--crate-type=cdylib",
    "--crate-name=tasting_agent",
    "--cfg=tasting_agent",
    "--check-cfg=cfg(tasting_agent)",
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
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let output = PathBuf::from(variable("OUT_DIR")).join("agent.so");
    let mut command = Command::new(variable("RUSTC"));
    // It has no C library, and the programs that it is loaded into have another one than a
    // `tasting` that is linked statically.
    let target = variable("TARGET").replace("-musl", "-gnu");
    command.args(FLAGS).arg("--target").arg(target).arg("-o").arg(&output).arg("src/lib.rs");
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg(format!("-Clinker={linker}"));
    }
    let status = command.status().expect("the compiler that builds us can be started");
    assert!(status.success(), "the agent does not compile");
}
