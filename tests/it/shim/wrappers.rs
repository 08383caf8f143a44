//! Compilers behind wrappers: what really runs decides whether an object is reused, through links
//! of compiler caches and scripts that call scripts.

use super::twins::{Scene, Twins};
use crate::edits::matrix::{COMPILERS, compilers};
use crate::workshop::tool;

const MAIN: &str = "int f(int x) { char c = (char)x; return c < 0; }\n";

fn reused(twins: &Twins) -> usize {
    let log =
        std::fs::read_to_string(twins.workshop.path("log")).expect("the shims wrote their log");
    log.matches(": reused").count()
}

/// Compiles three times by a compiler that is found first on the search path: twice with the same
/// one behind it, and then with another one, of which `change` makes it.
fn changed_behind(number: usize, prepare: &str, change: &str) -> Twins {
    let compiler = COMPILERS[number];
    let compile = "PATH=$PWD/front:$PWD/behind:$PATH CCACHE_DISABLE=1 $CC -O2 -c main.c";
    let lines = ["mkdir front behind", prepare, compile, compile, change, compile];
    let scene =
        Scene::bare(compiler).env("TASTING_REUSE_OBJECTS", "1").env("TASTING_LOGFILE", "../log");
    scene.env("TASTING_LEVEL", "ast").file("main.c", MAIN).run(&lines).same_and_well()
}

fn script(place: &str, text: &str) -> String {
    format!("printf '#!/bin/sh\\n{text}\\n' > {place} && chmod +x {place}")
}

#[test]
#[ignore = "needs ccache"]
fn a_changed_compiler_behind_a_cache_is_seen() {
    let ccache = tool("ccache");
    for (number, compiler) in compilers().enumerate() {
        let real = tool(compiler.c);
        let behind = |flags: &str| {
            script(
                &format!("behind/{}", compiler.c),
                &format!("exec {} {flags} \"$@\"", real.display()),
            )
        };
        let prepare = format!("ln -s {} front/{} && {}", ccache.display(), compiler.c, behind(""));
        let twins = changed_behind(number, &prepare, &behind("-funsigned-char"));
        assert_eq!(reused(&twins), 1, "{}", compiler.name);
    }
}

#[test]
fn a_changed_script_behind_a_script_is_seen() {
    for (number, compiler) in compilers().enumerate() {
        let real = tool(compiler.c);
        let inner =
            |flags: &str| script("front/inner", &format!("exec {} {flags} \"$@\"", real.display()));
        let outer = script(&format!("front/{}", compiler.c), "exec \"${0%%/*}/inner\" \"$@\"");
        let twins =
            changed_behind(number, &format!("{outer} && {}", inner("")), &inner("-funsigned-char"));
        assert_eq!(reused(&twins), 1, "{}", compiler.name);
    }
}
