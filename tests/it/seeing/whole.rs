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
