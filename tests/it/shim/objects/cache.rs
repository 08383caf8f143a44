//! The cache of objects itself: with ccache in front and behind, shown, kept small and cleared.

use super::{HARMLESS, log, reused, scene};
use crate::edits::matrix::COMPILERS;
use crate::workshop::tool;

#[test]
#[ignore = "needs ccache"]
fn with_ccache_in_front_and_behind() {
    tool("ccache");
    for cc in ["tasting-cc ccache gcc", "ccache tasting-cc gcc"] {
        let compile = format!("CCACHE_DIR=$PWD/../cache {cc} -O2 -c main.c -o main.o");
        let lines = [&compile, HARMLESS[1].1, &compile];
        let twins = scene(COMPILERS[0]).run(&lines);
        assert!(
            twins
                .shim
                .outcomes
                .iter()
                .all(|outcome| outcome.success() && outcome.stderr.is_empty()),
            "{cc}"
        );
        assert!(reused(&twins) >= 1, "{cc}: {}", log(&twins));
    }
}

#[test]
fn the_cache_is_shown_kept_small_and_cleared() {
    let compile = "$CC -O2 -c main.c && rm main.o && $CC -O2 -c main.c";
    let twins = scene(COMPILERS[0]).run(&[compile]).same_and_well();
    let say = |words: &str| {
        let outcome = twins.line(words);
        assert!(outcome.success(), "{words}: {outcome:?}");
        outcome.stdout_text()
    };
    // The real tools' run, without a shim, left nothing; the shims' compiled once and reused once.
    let shown = say("tasting stats");
    assert!(shown.contains("1 reused of 2 (50.0%)") && shown.contains(", 1 object"), "{shown}");
    assert!(say("tasting stats --json").contains("\"objects\""));
    assert!(say("TASTING_OBJECTS_MAXSIZE=1M tasting gc").contains("of objects"));
    assert!(say("TASTING_REUSE_OBJECTS=1 tasting config").contains("TASTING_REUSE_OBJECTS"));
    assert!(say("tasting clear").contains("1 object"));
    assert!(say("tasting stats").contains("0 objects"));
}
