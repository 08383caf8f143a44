//! `tasting init`, and the mistakes that newcomers make.

use super::contains;
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, TASTING_CC, shims, succeed, tool};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project with these files, and nothing else.
fn project(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    files.iter().for_each(|(name, text)| _ = bench.write(name, text));
    bench
}

fn systems(bench: &Bench) -> Vec<(String, String, String)> {
    let shown = bench.json(&["init", "--json"]);
    let lines = |value: &Value| {
        let lines = value.as_array().unwrap().iter().map(|line| line.as_str().unwrap());
        lines.collect::<Vec<_>>().join("\n")
    };
    let systems = shown["systems"].as_array().unwrap().iter();
    systems
        .map(|one| {
            (one["system"].as_str().unwrap().to_owned(), lines(&one["build"]), lines(&one["test"]))
        })
        .collect()
}

/// Files of a project, and parts of what is said of it: the system, a line to build and one to
/// test.
type Case = (&'static [(&'static str, &'static str)], &'static str, &'static str, &'static str);

const CASES: [Case; 9] = [
    (&[("CMakeLists.txt", ""), ("Makefile", "")], "CMake", "TOP_LEVEL_INCLUDES=", "ctest"),
    (
        &[("meson.build", "project('x', 'c')")],
        "Meson",
        "--native-file",
        "--wrapper 'tasting run --'",
    ),
    (
        &[
            ("configure.ac", ""),
            ("Makefile.am", "TEST_EXTENSIONS = .pl .sh\nPL_LOG_COMPILER = $(PERL)\n"),
        ],
        "autotools",
        "./configure CC=tasting-cc",
        "LOG_COMPILER='tasting run --' PL_LOG_COMPILER='tasting run -- $(PERL)' SH_LOG_COMPILER='tasting run --'",
    ),
    (&[("Cargo.toml", "")], "cargo", "_LINKER=tasting-cc", "cargo nextest run"),
    (
        &[("MODULE.bazel", "")],
        "Bazel",
        "bazel build --config=tasting",
        "bazel test --config=tasting",
    ),
    (
        &[("configure", ""), ("Makefile.in", "test:\n")],
        "configure",
        "CC=tasting-cc",
        "tasting run -- make test",
    ),
    (
        &[("Makefile", "test: all\n\t$(RUNNER) ./t\n")],
        "make",
        "make CC=tasting-cc",
        "make test RUNNER='tasting run --'",
    ),
    (&[("build.ninja", "")], "Ninja", "lib/tasting:$PATH ninja", "tasting run --"),
    (&[("run-tests", "")], "scripts", "lib/tasting:$PATH", "tasting run -- ./test"),
];

#[test]
fn every_build_system_is_recognised() {
    for (files, system, build, test) in CASES {
        let found = systems(&project(files));
        let [(name, builds, tests)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(name, system);
        contains(builds, &[build]);
        contains(tests, &[test]);
    }
    let both = systems(&project(&[("CMakeLists.txt", ""), ("Cargo.toml", "")]));
    assert_eq!(both.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["CMake", "cargo"]);
}

#[test]
fn lines_are_written_once_and_nothing_is_lost() {
    let config = (".cargo/config.toml", "[build]\njobs = 1");
    let bench = project(&[("Cargo.toml", ""), ("meson.build", "project('x', 'c')"), config]);
    let said = bench.says(&["init"]);
    contains(
        &said,
        &["lines for .cargo/config.toml (`tasting init --write` adds them)", "    linker = "],
    );
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(read("meson.build"), "project('x', 'c')", "nothing is written unasked");
    let said = bench.says(&["init", "--write"]);
    contains(
        &said,
        &[
            "written to .cargo/config.toml",
            "written to meson.build",
            "meson test -C build --setup x:tasting",
        ],
    );
    assert!(!said.contains("export CARGO"), "the file has it: {said}");
    let written = (read(".cargo/config.toml"), read("meson.build"));
    contains(
        &written.0,
        &["[build]\njobs = 1\n\n[target.", "runner = [\"tasting\", \"run\", \"--\"]"],
    );
    contains(&written.1, &["project('x', 'c')\n\n#", "add_test_setup('tasting'"]);
    let again = bench.says(&["init", "--write"]);
    contains(
        &again,
        &[".cargo/config.toml has the lines for it", "meson test -C build --setup x:tasting"],
    );
    assert_eq!(written, (read(".cargo/config.toml"), read("meson.build")));
}

#[test]
fn files_that_cannot_be_extended_stay() {
    let bench = project(&[("CMakeLists.txt", ""), ("CMakeUserPresets.json", "{\"version\": 3}")]);
    contains(
        &bench.says(&["init", "--write"]),
        &["by hand into CMakeUserPresets.json", "\"binaryDir\""],
    );
    assert_eq!(
        std::fs::read_to_string(bench.path("CMakeUserPresets.json")).unwrap(),
        "{\"version\": 3}"
    );
    let triple = format!("[target.{}-unknown-linux-gnu]", std::env::consts::ARCH);
    let bench = project(&[
        ("Cargo.toml", ""),
        (".cargo/config.toml", &format!("{triple}\nlinker = \"clang\"\n")),
    ]);
    contains(&bench.says(&["init", "--write"]), &["by hand into .cargo/config.toml"]);
    let outcome = bench.asks(&["init", "not-there"]);
    assert_eq!(
        (outcome.code, outcome.stderr_text().contains("cannot look at the folder not-there")),
        (Some(1), true)
    );
}

/// An installation in a folder of its own, as `make install` leaves it.
fn installed(bench: &Bench) -> PathBuf {
    let prefix = bench.path("prefix");
    let mut install = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/install.sh"));
    install.arg(&prefix).env("BUILT", Path::new(TASTING).parent().unwrap());
    succeed(&mut install).unwrap();
    prefix
}

/// What `init` writes for CMake is what CMake takes, and the installed files are found.
#[test]
#[ignore = "needs cmake"]
fn presets_that_cmake_takes() {
    tool("cmake");
    let top = "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()\nadd_executable(a a.c)\n\
        add_test(NAME a COMMAND a)\n";
    let bench = project(&[("CMakeLists.txt", top), ("a.c", "int main(void) { return 0; }\n")]);
    let prefix = installed(&bench);
    let path = format!("{}:{}", prefix.join("bin").display(), std::env::var("PATH").unwrap());
    let well = |program: &str, words: &[&str]| {
        let outcome = succeed(bench.command(program).env("PATH", &path).args(words));
        outcome.unwrap_or_else(|error| panic!("{error}")).stdout_text()
    };
    let said = well(prefix.join("bin/tasting").to_str().unwrap(), &["init", "--write"]);
    assert!(!said.contains("note"), "{said}");
    let commands = [
        ("cmake", ["--preset", "tasting"].as_slice()),
        ("cmake", &["--build", "--preset", "tasting"]),
        ("ctest", &["--preset", "tasting"]),
    ];
    for (program, words) in commands {
        contains(&said, &[&format!("    {program} {}\n", words.join(" "))]);
        well(program, words);
    }
    for verdict in ["executed", "reused"] {
        if verdict == "reused" {
            well("ctest", &["--preset", "tasting"]);
        }
        contains(&bench.says(&["log", "-n", "1"]), &[verdict]);
    }
}

/// What `doctor` says of a subject.
fn note(bench: &Bench, subject: &str, change: impl Fn(&mut Command)) -> Option<String> {
    let mut command = bench.command(TASTING);
    command.args(["doctor", "--json"]);
    change(&mut command);
    let found: Value = serde_json::from_slice(&Outcome::of(&mut command).stdout).unwrap();
    let mut findings = found["findings"].as_array().unwrap().iter();
    let one = findings.find(|one| one["subject"].as_str().unwrap().starts_with(subject))?;
    Some(format!("{}: {}", one["state"].as_str().unwrap(), one["text"].as_str().unwrap()))
}

#[test]
fn a_tool_that_is_not_in_path() {
    let bench = Bench::new();
    let without =
        note(&bench, "PATH: tasting", |command| _ = command.env("PATH", "/usr/bin:/bin")).unwrap();
    assert_eq!(without, "note: not there: call it, and the shims, by their whole paths");
    let path = format!("{}:/usr/bin:/bin", shims().display());
    assert_eq!(
        note(&bench, "PATH: tasting", |command| _ = command.env("PATH", &path)).unwrap(),
        "works: is this one"
    );
}

#[test]
fn a_compiler_that_is_not_there() {
    let bench = project(&[("a.c", "int main(void) { return 0; }\n")]);
    let named = |command: &mut Command| _ = command.env("TASTING_CC", "/nowhere/gcc");
    contains(
        &note(&bench, "tasting-cc", named).unwrap(),
        &["broken: ", "TASTING_CC names \"/nowhere/gcc\""],
    );
    let outcome = Outcome::of(bench.command(TASTING_CC).args(["sparc-linux-gnu-gcc", "-c", "a.c"]));
    let complaint = outcome.stderr_text();
    assert!(!outcome.success() && complaint.lines().count() == 1, "{outcome:?}");
    contains(&complaint, &["there is no program \"sparc-linux-gnu-gcc\""]);
}

#[test]
fn a_build_without_the_shims() {
    let bench = project(&[("a.c", "int main(void) { return 0; }\n")]);
    assert_eq!(note(&bench, "build", |_| ()), None);
    succeed(bench.command("cc").args(["a.c", "-o", "plain"])).unwrap();
    let found = note(&bench, "build", |_| ()).unwrap();
    contains(
        &found,
        &[
            "note: 1 of 1 programs and libraries here have no manifest (plain)",
            "`tasting init` says how",
        ],
    );
    // The test works all the same, and `explain` tells.
    let explained = || bench.says(&["explain", "--", "./plain"]);
    contains(
        &explained(),
        &["would run", "hint: ./plain has no manifest (./plain.tasting is missing)"],
    );
    bench.settles(&["./plain"]);
    contains(&explained(), &["would be reused", "hint: ./plain has no manifest"]);
    succeed(bench.command(TASTING_CC).args(["a.c", "-o", "plain"])).unwrap();
    assert_eq!(
        note(&bench, "build", |_| ()).unwrap(),
        "works: all 1 programs and libraries here have manifests"
    );
    assert!(!explained().contains("hint"));
    contains(
        &bench.says(&["explain", "--", "./planin"]),
        &["hint: there is no program ./planin: build it first"],
    );
}

#[test]
fn two_launchers_at_once() {
    let bench = Bench::with("int main(void) { return 0; }\n");
    let twice = [TASTING, "run", "--", "./t"];
    bench.settles(&twice);
    contains(
        &bench.says(&[&["explain", "--"][..], &twice].concat()),
        &["hint: tasting run is there twice"],
    );
    let cc =
        |value: &'static str| note(&bench, "launchers: CC", |command| _ = command.env("CC", value));
    contains(&cc("tasting-cc /opt/bin/tasting-cc gcc").unwrap(), &["has Tasting twice"]);
    contains(
        &cc("ccache tasting-cc").unwrap(),
        &["ccache takes the shim for the compiler", "put the shim first"],
    );
    assert_eq!(cc("tasting-cc ccache gcc"), None);
    bench.write("build/CMakeCache.txt", "CMAKE_C_COMPILER:FILEPATH=/usr/bin/tasting-cc\n");
    assert_eq!(note(&bench, "launchers: build", |_| ()), None);
    bench.write("build/CMakeFiles/tasting/ctest.cmake", "");
    contains(
        &note(&bench, "launchers: build", |_| ()).unwrap(),
        &["CMAKE_C_COMPILER names Tasting a second time"],
    );
}
