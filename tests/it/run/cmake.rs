//! CMake and CTest: Debian's and a current one, with every generator and every way in, and the
//! features of CTest that look at more than the end of a test.

mod exports;
mod features;
mod projects;

use super::Bench;
use crate::workshop::{Outcome, shims, succeed, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use tasting::model::{Decision, Verdict};
use tasting::store::Journal;

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cmake/tasting.cmake");

/// The folders with `cmake` and `ctest`: Debian's, and the one that scripts/install-test-tools.sh
/// puts beside the build.
pub fn cmakes() -> Vec<PathBuf> {
    let current = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("tools")
        .join("cmake/cmake/data/bin/cmake");
    let current = tool(current.to_str().expect("a path of ours is a text"));
    [tool("cmake"), current]
        .into_iter()
        .filter_map(|cmake| Some(cmake.parent()?.to_owned()))
        .collect()
}

/// A project with its build folder, seen through one CMake.
pub struct Site {
    pub bench: Bench,
    pub bin: PathBuf,
}

impl Site {
    pub fn new(bin: &Path, files: &[(&str, &str)]) -> Site {
        let site = Site { bench: Bench::new(), bin: bin.to_owned() };
        files.iter().for_each(|(name, text)| _ = site.bench.write(name, text));
        site
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = self.bench.command(self.bin.join(program));
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", shims().display()));
        command
    }

    pub fn configure(&self, words: &[&str]) {
        succeed(self.command("cmake").args(["-S", ".", "-B", "build"]).args(words)).unwrap();
    }

    pub fn build(&self, words: &[&str]) {
        succeed(self.command("cmake").args(["--build", "build", "-j2"]).args(words)).unwrap();
    }

    fn ctest(&self, words: &[&str]) -> Outcome {
        Outcome::of(self.command("ctest").args(["--test-dir", "build"]).args(words))
    }

    /// What a run of `ctest` said, test by test, and what was decided meanwhile.
    fn tests(&self, words: &[&str]) -> (Vec<(String, String)>, Vec<Decision>) {
        let before = self.decisions().len();
        let junit = self.bench.path("junit.xml");
        let outcome =
            self.ctest(&[&["--output-junit", junit.to_str().expect("a text")], words].concat());
        let text = std::fs::read_to_string(&junit).unwrap_or_else(|_| panic!("{outcome:?}"));
        (verdicts(&text), self.decisions().split_off(before))
    }

    fn decisions(&self) -> Vec<Decision> {
        self.bench.store().decisions(10_000).unwrap()
    }

    /// Runs all tests: they end as they should, and so many of them are run and reused.
    #[track_caller]
    fn expects(&self, words: &[&str], ends: &[(&str, &str)], executed: usize, reused: usize) {
        let (verdicts, decisions) = self.tests(words);
        let ends: Vec<_> =
            ends.iter().map(|(name, end)| ((*name).to_owned(), (*end).to_owned())).collect();
        assert_eq!(verdicts, ends);
        let count =
            |verdict| decisions.iter().filter(|decision| decision.decision == verdict).count();
        let counts = (count(Verdict::Executed), count(Verdict::Reused));
        assert_eq!(counts, (executed, reused), "{decisions:#?}");
    }
}

/// Names and ends of the tests in a JUnit file, by name.
pub fn verdicts(junit: &str) -> Vec<(String, String)> {
    let attribute = |text: &str, name: &str| {
        let start = text.find(&format!(" {name}=\"")).expect("an attribute") + name.len() + 3;
        text[start..].split('"').next().expect("a value").to_owned()
    };
    let cases = junit.split("<testcase").skip(1);
    let mut cases: Vec<_> =
        cases.map(|case| (attribute(case, "name"), attribute(case, "status"))).collect();
    cases.sort();
    cases
}

const SMALL: &str = r#"cmake_minimum_required(VERSION 3.10)
project(small C)
enable_testing()
add_subdirectory(tests)
"#;
/// A target, a path, a shell, the old form, and what a generator makes during the build.
const SMALL_TESTS: &str = r#"add_executable(generator generator.c)
add_custom_command(OUTPUT table.h COMMAND generator > table.h)
add_executable(a a.c answer.c table.h)
target_include_directories(a PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
add_test(NAME target COMMAND a)
add_test(NAME path COMMAND $<TARGET_FILE:a> "" "x;y" "q\"u o\te")
add_test(NAME shell COMMAND sh -c "\"$0\" && echo good" $<TARGET_FILE:a>)
add_test(NAME missing COMMAND ${CMAKE_CURRENT_BINARY_DIR}/not-there)
"#;
const SMALL_FILES: &[(&str, &str)] = &[
    ("CMakeLists.txt", SMALL),
    ("tests/CMakeLists.txt", SMALL_TESTS),
    (
        "tests/generator.c",
        "#include <stdio.h>\nint main(void) { puts(\"#define TABLE 7\"); return 0; }\n",
    ),
    (
        "tests/a.c",
        "#include <stdio.h>\n#include \"table.h\"\nint answer(void);\n\
         int main(int c, char **v) { while (*++v) printf(\"[%s]\", *v); return answer() - 42 + TABLE - 7; }\n",
    ),
    ("tests/answer.c", ANSWER),
];
const ANSWER: &str = "int answer(void) { return 42; }\nint unused(void) { return 1; }\n";
const MISSING: (&str, &str) = ("missing", "notrun");
const GOOD: [(&str, &str); 4] = [MISSING, ("path", "run"), ("shell", "run"), ("target", "run")];
const BAD: [(&str, &str); 4] = [MISSING, ("path", "fail"), ("shell", "fail"), ("target", "fail")];

/// All tests run, none need to; nor after an edit that they cannot see; they do after another one,
/// and fail.
fn goes_round(bin: &Path, generator: &str, way: &str, configuration: &[&str]) {
    let site = Site::new(bin, SMALL_FILES);
    let module = format!("-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={MODULE}");
    let folder =
        format!("-DTasting_DIR={}", Path::new(MODULE).parent().expect("a folder").display());
    let entry: &[&str] = match way {
        "toolchain" => &["--toolchain", MODULE],
        "include" => &[&module],
        _ => {
            let with =
                SMALL.replace("enable_testing", "find_package(Tasting REQUIRED)\nenable_testing");
            site.bench.write("CMakeLists.txt", with);
            &[&folder]
        }
    };
    site.configure(&[&["-G", generator][..], entry].concat());
    let built: Vec<&str> = configuration.first().map_or(vec![], |name| vec!["--config", name]);
    let tested: Vec<&str> =
        configuration.first().map_or(vec!["-j4"], |name| vec!["-j4", "-C", name]);
    site.build(&built);
    assert_eq!(site.decisions().len(), 0, "a generator is not a test");
    site.expects(&tested, &GOOD, 3, 0);
    site.expects(&tested, &GOOD, 0, 3);
    for (text, ends, executed, reused) in [
        (ANSWER.replace("return 1", "return 2"), &GOOD, 0, 3),
        (ANSWER.replace("42", "41"), &BAD, 3, 0),
        (ANSWER.to_owned(), &GOOD, 0, 3),
    ] {
        site.bench.write("tests/answer.c", text);
        site.build(&built);
        site.expects(&tested, ends, executed, reused);
    }
    // From a folder below, too.
    let below =
        Outcome::of(site.command("ctest").args(["--test-dir", "build/tests"]).args(&tested));
    assert!(
        below.stdout_text().contains("4 tests") || below.stdout_text().contains("out of 4"),
        "{below:?}"
    );
    assert_eq!(
        site.decisions().iter().rev().take(3).filter(|one| one.decision == Verdict::Reused).count(),
        3
    );
}

#[test]
#[ignore = "needs cmake"]
fn makefiles() {
    for (bin, way) in cmakes().iter().zip(["include", "toolchain"]) {
        goes_round(bin, "Unix Makefiles", way, &[]);
    }
}

#[test]
#[ignore = "needs cmake"]
fn ninja() {
    for bin in cmakes() {
        for way in ["toolchain", "include", "package"] {
            goes_round(&bin, "Ninja", way, &[]);
        }
    }
}

#[test]
#[ignore = "needs cmake"]
fn several_configurations() {
    for (bin, way) in cmakes().iter().zip(["toolchain", "include"]) {
        goes_round(bin, "Ninja Multi-Config", way, &["Release"]);
    }
}
/// CTest shows that a test was reused, as a measurement, and its output is what it always is.
#[test]
#[ignore = "needs cmake"]
fn reuse_is_shown() {
    for bin in cmakes() {
        let site = Site::new(&bin, SMALL_FILES);
        site.configure(&["-G", "Ninja", "--toolchain", MODULE, "-DDART_TESTING_TIMEOUT=60"]);
        site.build(&[]);
        let output = |round: &str| {
            let junit = site.bench.path(round);
            site.ctest(&["-R", "path", "--output-junit", junit.to_str().unwrap()]);
            let text = std::fs::read_to_string(junit).unwrap();
            text.split("<system-out>")
                .nth(1)
                .unwrap()
                .split("</system-out>")
                .next()
                .unwrap()
                .to_owned()
        };
        let (first, second) = (output("1.xml"), output("2.xml"));
        assert_eq!(first, second);
        assert!(first.contains("[x;y][q\"u o"), "{first}");
        let log = std::fs::read_to_string(site.bench.path("build/Testing/Temporary/LastTest.log"))
            .unwrap();
        assert!(log.contains(r#"name="Tasting">reused<"#), "{log}");
    }
}
