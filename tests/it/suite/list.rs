//! Suites of a file with one JSON object a line.

use super::{field, json, tasting};
use crate::run::Bench;
use crate::workshop::Outcome;
use tasting::store::Journal;

const TESTS: &str = r#"{"name": "good", "argv": ["./t", "0"]}

{"name": "bad", "argv": ["./t", "1"], "env": {"SOME": "thing", "HOME": null}}
{"name": "elsewhere", "argv": ["../t", "0"], "cwd": "sub"}
"#;
const PROGRAM: &str = "#include <stdlib.h>\n#include <stdio.h>\n\
    int main(int c, char **v) { printf(\"%s says %s\\n\", v[0], v[1]); return atoi(v[1]); }\n";

fn bench() -> Bench {
    let bench = Bench::with(PROGRAM);
    bench.write("tests.jsonl", TESTS);
    bench.write("sub/file", "");
    bench
}

#[test]
fn passed_tests_are_reused_and_failures_run() {
    let bench = bench();
    let run =
        || Outcome::of(&mut tasting(&bench, &["suite", "--json", "--list", "tests.jsonl", "-j2"]));
    let decisions = |[bad, elsewhere, good]: [&str; 3]| {
        [("bad", bad), ("elsewhere", elsewhere), ("good", good)]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
    };
    let first = run();
    assert_eq!(
        (first.code, field(&json(&first), "decision")),
        (Some(1), decisions(["executed"; 3]).to_vec())
    );
    assert!(first.stderr_text().contains("./t says 1\nbad failed"), "{first:?}");
    let second = run();
    let suite = json(&second);
    assert_eq!(field(&suite, "decision"), decisions(["executed", "reused", "reused"]));
    assert_eq!(field(&suite, "end"), decisions(["failed", "passed", "passed"]));
    assert_eq!(field(&suite, "exit_code"), decisions(["1", "0", "0"]));
    let sums =
        ["total", "reused", "executed", "failed"].map(|name| suite["summary"][name].as_u64());
    assert_eq!((second.code, sums), (Some(1), [3, 2, 1, 1].map(Some)));
    let selected = Outcome::of(&mut tasting(&bench, &["select", "--list", "tests.jsonl"]));
    assert_eq!((selected.code, selected.stdout_text().as_str()), (Some(0), "bad\n"));
}

#[test]
fn a_dry_run_runs_nothing() {
    let bench = bench();
    let outcome =
        Outcome::of(&mut tasting(&bench, &["suite", "--dry-run", "--list", "tests.jsonl"]));
    assert!(
        outcome.stdout_text().starts_with("3 tests: 0 reused, 3 would run, 0 failed\n"),
        "{outcome:?}"
    );
    assert_eq!((outcome.code, bench.store().decisions(9).unwrap().len()), (Some(0), 0));
}

#[test]
fn a_store_that_is_away_changes_no_end() {
    let bench = bench();
    for store in ["/dev/null/store", "/proc/store"] {
        for _ in 0..2 {
            let mut command = tasting(&bench, &["suite", "--json", "--list", "tests.jsonl"]);
            let outcome = Outcome::of(command.env("TASTING_DIR", store));
            let suite = json(&outcome);
            assert_eq!(
                (outcome.code, &suite["summary"]["executed"]),
                (Some(1), &3.into()),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn a_bad_list_is_an_error() {
    let bench = bench();
    bench.write("tests.jsonl", "{\"name\": \"x\"}\n");
    let outcome = Outcome::of(&mut tasting(&bench, &["suite", "--list", "tests.jsonl"]));
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr_text().contains("tests.jsonl: line 1"), "{outcome:?}");
}
