//! Suites of many cases in one program: each case has its own executed functions, and is reused by
//! them.

use super::{Bench, Ran};
use crate::workshop::{TASTING_CXX, succeed};
use std::path::Path;
use tasting::model::Step;

const CODE: &str = r#"
#include <stdexcept>
#include <string>
std::string repeated(std::string text, int times) { std::string all; while (times-- > 0) all += text; return all; }
int checked(int x) { if (x < 0) throw std::invalid_argument("negative"); return x * 2; }
struct DependencySet { virtual ~DependencySet() = default; virtual int area() const { return 0; } };
struct Square : DependencySet { int side; explicit Square(int side) : side(side) {} int area() const override { return side * side; } };
DependencySet *dependency_set(int side) { return new Square(side); }
"#;

/// Whatever the framework calls them: three cases, one for each function.
const CASES: &str = r#"
#include <memory>
CASE(repeats) { EXPECT(repeated("ab", 3) == "ababab"); }
CASE(throws) { bool thrown = false; try { checked(-1); } catch (const std::invalid_argument &) { thrown = true; } EXPECT(thrown && checked(2) == 4); }
CASE(has_an_area) { EXPECT(std::unique_ptr<DependencySet>(dependency_set(3))->area() == 9); }
"#;

struct Suite {
    bench: Bench,
    head: &'static str,
    /// What makes the program execute one case only.
    filter: fn(&str) -> String,
    /// An edit leaves the order in memory of what the cases refer to by address as it was.
    keeps_order: bool,
}

impl Suite {
    fn build(&self, code: &str, cases: &str) {
        let source = self.bench.write("suite.cc", format!("{}\n{code}\n{cases}", self.head));
        let objects: &[&str] =
            if self.bench.path("framework.o").exists() { &["framework.o"] } else { &[] };
        let mut command = self.bench.command(TASTING_CXX);
        succeed(command.args(["-O1", "-pthread", "-o", "suite"]).arg(source).args(objects))
            .unwrap();
    }

    fn run(&self, case: &str) -> Ran {
        let ran = self.bench.run(&["./suite", &(self.filter)(case)]);
        assert_eq!(ran.outcome.code, Some(0), "{ran:?}");
        ran
    }

    #[track_caller]
    fn decides(&self, expected: [Option<Step>; 3]) {
        let steps = ["repeats", "throws", "has_an_area"].map(|case| self.run(case).decision.step);
        match self.keeps_order {
            true => assert_eq!(steps, expected),
            // What has to run runs; what need not may run.
            false => assert!(
                steps.iter().zip(&expected).all(|(step, it)| it.is_some() || step.is_none()),
                "{steps:?}"
            ),
        }
    }

    fn goes_round(&self) {
        let [executed, reused] = [Some(Step::Executed), Some(Step::Static)];
        self.build(CODE, CASES);
        self.decides([None; 3]);
        self.decides([reused; 3]);
        // Each case by what it executes.
        self.build(&CODE.replace("all += text", "all.insert(0, text)"), CASES);
        self.decides([None, executed, executed]);
        self.build(
            &CODE
                .replace("x * 2", "x * 3 - x % 1000")
                .replace("\"negative\"", "\"less than zero\""),
            CASES,
        );
        self.decides([executed, None, executed]);
        self.build(&CODE.replace("side * side; }", "side * side + (side > 1000); }"), CASES);
        self.decides([executed, executed, None]);
        self.build(CODE, &CASES.replace("checked(2) == 4", "checked(3) == 6"));
        self.decides([executed, None, executed]);
    }
}

#[test]
#[ignore = "needs googletest"]
fn googletest() {
    let source = Path::new("/usr/src/googletest/googletest");
    if !source.exists() {
        return;
    }
    let bench = Bench::new();
    let mut command = bench.command(TASTING_CXX);
    command.args(["-O1", "-c", "-o", "framework.o", "-I"]).arg(source);
    succeed(command.arg("-I").arg(source.join("include")).arg(source.join("src/gtest-all.cc")))
        .unwrap();
    let head = "#include <gtest/gtest.h>\n#define CASE(name) TEST(Suite, name)\n#define EXPECT(x) EXPECT_TRUE(x)\n\
                int main(int argc, char **argv) { testing::InitGoogleTest(&argc, argv); return RUN_ALL_TESTS(); }";
    Suite { bench, head, filter: |case| format!("--gtest_filter=Suite.{case}"), keeps_order: true }
        .goes_round();
}

#[test]
#[ignore = "needs doctest"]
fn doctest() {
    if !Path::new("/usr/include/doctest/doctest.h").exists() {
        return;
    }
    let bench = Bench::new();
    let framework = bench.write(
        "framework.cc",
        "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n",
    );
    succeed(bench.command(TASTING_CXX).args(["-O1", "-c", "-o", "framework.o"]).arg(framework))
        .unwrap();
    let head = "#include <doctest/doctest.h>\n#define CASE(name) TEST_CASE(#name)\n#define EXPECT(x) CHECK((x))";
    Suite { bench, head, filter: |case| format!("--test-case={case}"), keeps_order: false }
        .goes_round();
}
