//! Calls whose objects are not reused, and why.

use super::super::words::words;
use super::*;

fn refusal(line: &str) -> Option<&'static str> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    words(&arguments).iter().find_map(|word| match word.affects() {
        Affects::Opaque(reason) => Some(reason),
        _ => word.option.uncacheable,
    })
}

#[test]
fn each_refusal_has_a_reason() {
    for line in [
        "--coverage",
        "-fprofile-arcs",
        "-fprofile-use=x",
        "-save-temps=obj",
        "-gsplit-dwarf",
        "-fdump-tree-all",
        "-dA",
        "-march=native",
        "-g3",
        "-ggdb3",
        "-frecord-gcc-switches",
        "-v",
        "-H",
        "-fstack-usage",
        "-Wa,-al=x",
        "-Wdocumentation",
        "-Weverything",
    ] {
        assert!(refusal(&format!("-c x.c {line}")).is_some(), "{line}");
    }
    for line in [
        "-O3",
        "-g",
        "-g2",
        "-Wall",
        "-fvisibility=hidden",
        "-D X",
        "-fsanitize=address",
        "-march=x86-64-v3",
    ] {
        assert_eq!(refusal(&format!("-c x.c {line}")), None, "{line}");
    }
}
