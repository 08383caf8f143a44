//! By-products of calls that compile and link at once: at the AST level, too, they have the names
//! and places that the driver gives them.

use super::twins::Scene;
use crate::edits::matrix::{COMPILERS, compilers};

const MAIN: &str = "int part(int);\nint main(void) { return part(1) - 2; }\n";
const PART: &str =
    "int part(int x) { int sum = 0; for (int i = 0; i <= x; i++) sum += i + x; return sum - 1; }\n";

fn scene(number: usize) -> Scene {
    let scene = Scene::bare(COMPILERS[number]).env("TASTING_LEVEL", "ast");
    scene.file("main.c", MAIN).file("part.c", PART)
}

#[test]
fn files_beside_the_binary_are_the_drivers() {
    for (number, compiler) in compilers().enumerate() {
        let options: &[&str] = match compiler.name {
            "gcc" => &[
                "-fstack-usage",
                "-fcallgraph-info=su",
                "-fopt-info-all=notes",
                "-fdump-tree-original",
            ],
            _ => &["-fsave-optimization-record", "-fstack-usage"],
        };
        for option in options {
            let line =
                format!("$CC -O2 -Wl,--build-id=none {option} main.c part.c -o prog && ./prog");
            let twins = scene(number).run(&[line]).same_and_well();
            assert!(
                twins.plain.files.len() > 3,
                "{} {option}: there is nothing but the binary",
                compiler.name
            );
        }
    }
}

/// Its content has times in it.
#[test]
#[ignore = "needs clang"]
fn time_traces_lie_where_the_driver_puts_them() {
    for (number, _) in compilers().enumerate().filter(|(_, compiler)| compiler.name == "clang") {
        let line = "mkdir -p out && $CC -O2 -ftime-trace main.c part.c -o out/prog; ls out | grep -v tasting";
        scene(number).run(&[line, "rm -r out; rm -f *.json"]).same_and_well();
    }
}
