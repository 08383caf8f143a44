//! Binaries that are described as a whole are named, with the reason.

use super::contains;
use crate::run::Bench;
use crate::workshop::{TASTING_CC, succeed};

#[test]
fn whole_binaries_are_named_with_their_reason() {
    let bench = Bench::new();
    bench.write("a.c", "int main(void) { return 0; }\n");
    succeed(bench.command(TASTING_CC).args(["a.c", "-o", "fine"])).unwrap();
    assert_eq!(bench.json(&["stats", "--json"])["whole"].as_array().map(Vec::len), Some(0));

    let fixed = ["a.c", "-fno-pie", "-no-pie", "-Wl,-Ttext-segment=0x600000", "-o", "fixed"];
    succeed(bench.command(TASTING_CC).args(fixed)).unwrap();
    let whole = bench.json(&["stats", "--json"])["whole"].clone();
    assert_eq!(whole[0]["binary"], "fixed");
    contains(
        whole[0]["reason"].as_str().unwrap(),
        &["the option -Ttext-segment says at which address"],
    );
    contains(&bench.says(&["stats"]), &["whole       fixed: the option -Ttext-segment"]);
    let found = bench.asks(&["doctor"]).stdout_text();
    let line = found.lines().find(|line| line.contains("counts as a whole")).unwrap_or_default();
    contains(line, &["note", "fixed", "the option -Ttext-segment"]);
}

/// Whatever the reason, and whichever kind of binary.
#[test]
fn bitcode_libraries_and_changed_binaries_are_named() {
    let bench = Bench::new();
    bench.write("a.c", "const char *volatile word = \"before the link\";\nint main(void) { return *word == 'B'; }\n");
    succeed(bench.command(TASTING_CC).args(["-flto", "-c", "a.c", "-o", "bitcode.o"])).unwrap();
    succeed(bench.command(TASTING_CC).args(["-flto", "bitcode.o", "-o", "optimised"])).unwrap();
    succeed(bench.command(TASTING_CC).args([
        "-flto",
        "-fPIC",
        "-shared",
        "a.c",
        "-o",
        "libkit.so",
    ]))
    .unwrap();
    succeed(bench.command(TASTING_CC).args(["a.c", "-o", "changed"])).unwrap();
    let mut bytes = std::fs::read(bench.path("changed")).unwrap();
    let word = bytes.windows(6).position(|bytes| bytes == b"before").unwrap();
    bytes[word] = b'B';
    std::fs::write(bench.path("changed"), bytes).unwrap();

    let whole = bench.json(&["stats", "--json"])["whole"].clone();
    let found = bench.asks(&["doctor"]).stdout_text();
    let expected = [
        ("changed", "was changed after it was linked"),
        ("libkit.so", "bitcode for link-time optimisation"),
        ("optimised", "bitcode.o: it holds bitcode for link-time optimisation"),
    ];
    assert_eq!(whole.as_array().map(Vec::len), Some(expected.len()), "{whole}");
    for ((binary, reason), named) in expected.iter().zip(whole.as_array().unwrap()) {
        assert_eq!(named["binary"], *binary);
        contains(named["reason"].as_str().unwrap(), &[reason]);
        let is_meant = |line: &&str| {
            line.contains("counts as a whole") && line.split_whitespace().nth(1) == Some(binary)
        };
        contains(found.lines().find(is_meant).unwrap_or_default(), &["note", reason]);
    }
}
