//! The build systems: how they are told, and the lines for each.

use super::{CMAKE_FILE, ProjectFolder};
use crate::report::setup::{Commandlines, SetupState, System, WrittenFile};
use std::fs;
use std::path::Path;

/// A build system: its name, the files that tell it (any of them), and its lines.
struct Known {
    name: &'static str,
    marks: &'static [&'static str],
    lines: fn(&Path, &ProjectFolder) -> Lines,
}

/// What to type, and what could be written.
struct Lines {
    build: Vec<String>,
    test: Vec<String>,
    files: Vec<WrittenFile>,
}

/// In the order in which they are looked for. Makefiles and Ninja's files are the work of the
/// others, where there are others.
const KNOWN: [Known; 5] = [
    Known { name: "CMake", marks: &["CMakeLists.txt"], lines: cmake },
    Known { name: "Meson", marks: &["meson.build"], lines: meson },
    Known {
        name: "autotools",
        marks: &["configure.ac", "configure.in", "Makefile.am"],
        lines: autotools,
    },
    Known { name: "cargo", marks: &["Cargo.toml"], lines: cargo },
    Known { name: "Bazel", marks: &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"], lines: bazel },
];
const PLAIN: [Known; 3] = [
    Known { name: "configure", marks: &["configure"], lines: configure },
    Known { name: "make", marks: &MAKEFILES, lines: make },
    Known { name: "Ninja", marks: &["build.ninja"], lines: ninja },
];
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Variables by which makefiles let their tests be run through something.
const RUNNERS: [&str; 8] = [
    "TEST_RUNNER",
    "RUNNER",
    "TEST_WRAPPER",
    "WRAPPER",
    "EMULATOR",
    "TEST_LAUNCHER",
    "RUN_TEST",
    "VALGRIND",
];

/// The build systems of a folder; the masquerade folder where there is none that we know.
pub fn all(folder: &Path, place: &ProjectFolder) -> Vec<System> {
    let found = |known: &[Known]| {
        known.iter().filter_map(|known| known.system(folder, place)).collect::<Vec<_>>()
    };
    let mut systems = found(&KNOWN);
    if systems.is_empty() {
        systems = found(&PLAIN);
        systems.truncate(1);
    }
    if systems.is_empty() {
        let Lines { build, test, files } = scripts(place);
        systems.push(System {
            system: "scripts",
            because: "no build system was recognised".to_owned(),
            build,
            test,
            files,
        });
    }
    systems
}

impl Known {
    fn system(&self, folder: &Path, place: &ProjectFolder) -> Option<System> {
        let mark = self.marks.iter().find(|mark| folder.join(mark).is_file())?;
        let Lines { build, test, files } = (self.lines)(folder, place);
        Some(System { system: self.name, because: format!("{mark} is there"), build, test, files })
    }
}

fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).to_vec()
}

fn file(path: &str, text: String, knows: &'static str) -> WrittenFile {
    let state = SetupState::Suggested;
    WrittenFile { path: path.to_owned(), lines: text, knows, state, commands: None }
}

fn with_commands(file: WrittenFile, build: Vec<String>, test: Vec<String>) -> WrittenFile {
    WrittenFile { commands: Some(Commandlines { build, test }), ..file }
}

fn cmake(_: &Path, place: &ProjectFolder) -> Lines {
    let module = place.file(CMAKE_FILE);
    let presets = format!(
        r#"{{
  "version": 3,
  "configurePresets": [
    {{
      "name": "tasting",
      "binaryDir": "${{sourceDir}}/build-tasting",
      "cacheVariables": {{ "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": "{module}" }}
    }}
  ],
  "buildPresets": [{{ "name": "tasting", "configurePreset": "tasting" }}],
  "testPresets": [{{ "name": "tasting", "configurePreset": "tasting" }}]
}}
"#
    );
    Lines {
        build: vec![
            format!("cmake -B build -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={module}"),
            "cmake --build build".to_owned(),
        ],
        test: lines(["ctest --test-dir build"]),
        files: vec![with_commands(
            file("CMakeUserPresets.json", presets, "\"tasting\""),
            lines(["cmake --preset tasting", "cmake --build --preset tasting"]),
            lines(["ctest --preset tasting"]),
        )],
    }
}

fn meson(folder: &Path, place: &ProjectFolder) -> Lines {
    let text = fs::read_to_string(folder.join("meson.build")).unwrap_or_default();
    let added = "# `meson test --setup PROJECT:tasting` reuses results.\n\
        if find_program('tasting', required: false).found()\n  \
        add_test_setup('tasting', exe_wrapper: ['tasting', 'run', '--'])\nendif\n";
    let build = vec![
        format!(
            "meson setup --native-file {} build",
            place.file("share/tasting/meson/tasting.ini")
        ),
        "ninja -C build".to_owned(),
    ];
    let mut added = file("meson.build", added.to_owned(), "add_test_setup('tasting'");
    if let Some(name) = project_name(&text) {
        let test = vec![format!("meson test -C build --setup {name}:tasting")];
        added = with_commands(added, build.clone(), test);
    }
    Lines {
        build,
        test: lines(["meson test -C build --wrapper 'tasting run --'"]),
        files: vec![added],
    }
}

/// What `project('name', …)` says.
fn project_name(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("project(")?;
    rest.trim_start().strip_prefix('\'')?.split('\'').next()
}

fn autotools(folder: &Path, _: &ProjectFolder) -> Lines {
    let mut build = lines(["./configure CC=tasting-cc CXX=tasting-c++", "make"]);
    if !folder.join("configure").exists() {
        build.insert(0, "autoreconf -i".to_owned());
    }
    let makefile = fs::read_to_string(folder.join("Makefile.am")).unwrap_or_default();
    // Tests with an ending that the project declares have a variable of their own.
    let declared = makefile
        .lines()
        .filter_map(|line| line.split_once("TEST_EXTENSIONS"))
        .map(|(_, list)| list);
    let endings =
        declared.flat_map(|list| list.trim_start_matches([' ', '+', '=']).split_whitespace());
    let own: String = endings
        .map(|ending| ending.trim_start_matches('.').to_uppercase())
        .map(|name| {
            format!(" {name}_LOG_COMPILER='tasting run --{}'", interpreter(&makefile, &name))
        })
        .collect();
    Lines {
        build,
        test: vec![format!("make check LOG_COMPILER='tasting run --'{own}")],
        files: Vec::new(),
    }
}

/// What a project runs tests of an ending with, which has to stay.
fn interpreter(makefile: &str, name: &str) -> String {
    let variable = format!("{name}_LOG_COMPILER");
    let mut set = makefile.lines().filter_map(|line| {
        line.trim_start().strip_prefix(&variable)?.trim_start().strip_prefix('=')
    });
    set.next_back().map(|value| format!(" {}", value.trim())).unwrap_or_default()
}

fn configure(folder: &Path, place: &ProjectFolder) -> Lines {
    let build = lines(["CC=tasting-cc CXX=tasting-c++ ./configure", "make"]);
    Lines { build, ..make(folder, place) }
}

fn make(folder: &Path, _: &ProjectFolder) -> Lines {
    let names = MAKEFILES.iter().chain(&["Makefile.in"]);
    let text = names
        .filter_map(|name| fs::read_to_string(folder.join(name)).ok())
        .next()
        .unwrap_or_default();
    let is_target = |name: &&&str| text.lines().any(|line| line.starts_with(&format!("{name}:")));
    let target = ["check", "test", "tests"].iter().find(is_target).unwrap_or(&"check");
    let uses = |name: &&&str| {
        text.contains(&format!("$({name})")) || text.contains(&format!("${{{name}}}"))
    };
    let test = match RUNNERS.iter().find(uses) {
        Some(runner) => format!("make {target} {runner}='tasting run --'"),
        // As one test: everything that it uses, down to the sources, is seen.
        None => {
            format!(
                "tasting run -- make {target}     # as one; better, `tasting run --` before each test's command"
            )
        }
    };
    Lines {
        build: lines(["make CC=tasting-cc CXX=tasting-c++"]),
        test: vec![test],
        files: Vec::new(),
    }
}

fn cargo(_: &Path, _: &ProjectFolder) -> Lines {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let variable = format!("CARGO_TARGET_{}", triple.to_uppercase().replace('-', "_"));
    let text = format!(
        "[target.{triple}]\nlinker = \"tasting-cc\"\nrunner = [\"tasting\", \"run\", \"--\"]\n"
    );
    let test = lines([
        "cargo test",
        "cargo nextest run     # each test by itself, where cargo-nextest is installed",
    ]);
    Lines {
        build: vec![format!(
            "export {variable}_LINKER=tasting-cc {variable}_RUNNER='tasting run --'"
        )],
        files: vec![with_commands(
            file(".cargo/config.toml", text, "tasting"),
            lines(["cargo build"]),
            test.clone(),
        )],
        test,
    }
}

fn bazel(_: &Path, place: &ProjectFolder) -> Lines {
    // What is linked in a sandbox leaves its manifest outside of it, and tests keep their results
    // there.
    let manifests = "/var/tmp/tasting-manifests";
    let (compiler, tasting) = (place.file("bin/tasting-cc"), place.file("bin/tasting"));
    let store = place.store.display();
    let text = format!(
        "build:tasting --repo_env=CC={compiler} --action_env=TASTING_MANIFEST_DIR={manifests}\n\
         build:tasting --sandbox_writable_path={manifests} --sandbox_writable_path={store}\n\
         test:tasting --run_under='{tasting} run --' --test_env=TASTING_MANIFEST_DIR={manifests} --test_env=TASTING_DIR={store}\n"
    );
    Lines {
        build: vec![
            format!("mkdir -p {manifests} {store}"),
            "bazel build --config=tasting //...".to_owned(),
        ],
        test: lines(["bazel test --config=tasting //..."]),
        files: vec![file(".bazelrc", text, ":tasting")],
    }
}

fn ninja(_: &Path, place: &ProjectFolder) -> Lines {
    let Lines { test, files, .. } = scripts(place);
    Lines { build: vec![format!("PATH={}:$PATH ninja", place.file("lib/tasting"))], test, files }
}

fn scripts(place: &ProjectFolder) -> Lines {
    let masquerade = place.file("lib/tasting");
    Lines {
        build: vec![format!(
            "PATH={masquerade}:$PATH ./build     # cc, gcc, clang++, ld … are the shims there"
        )],
        test: lines(["tasting run -- ./test"]),
        files: Vec::new(),
    }
}
