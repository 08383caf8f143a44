//! What a suite leaves for machines and people: JUnit files, pages, the retry of failures; and
//! stores that are not as they should be.

use super::{field, json, tasting};
use crate::run::Bench;
use crate::workshop::Outcome;

const TESTS: &str = r#"{"name": "good", "argv": ["./t", "0"]}
{"name": "bad <&>", "argv": ["./t", "1"]}
{"name": "flag", "argv": ["grep", "good", "flag"]}
"#;
const PROGRAM: &str = "#include <stdlib.h>\n#include <stdio.h>\n\
    int main(int c, char **v) { printf(\"<says> %s\\n\", v[1]); return atoi(v[1]); }\n";

fn bench() -> Bench {
    let bench = Bench::with(PROGRAM);
    bench.write("tests.jsonl", TESTS);
    bench.write("flag", "bad");
    bench
}

fn suite(bench: &Bench, words: &[&str]) -> Outcome {
    Outcome::of(&mut tasting(bench, &[&["suite", "--list", "tests.jsonl"], words].concat()))
}

#[test]
fn junit_has_reused_and_executed_tests() {
    let bench = bench();
    for is_again in [false, true] {
        let outcome = suite(&bench, &["--junit", "junit.xml"]);
        assert_eq!(outcome.code, Some(1));
        let text = std::fs::read_to_string(bench.path("junit.xml")).unwrap();
        let cases: Vec<&str> = text.split("<testcase ").skip(1).collect();
        let reused =
            |case: &&str| case.contains("<property name=\"tasting.reused\" value=\"true\"/>");
        assert_eq!(
            cases.iter().map(reused).collect::<Vec<_>>(),
            [is_again, false, false],
            "{text}"
        );
        assert!(
            text.contains(
                "<testsuite name=\"list\" tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""
            ),
            "{text}"
        );
        assert!(
            cases[1].contains("bad &lt;&amp;&gt;")
                && cases[1].contains("<failure message=\"exit status 1\"/>")
        );
        assert_eq!(
            cases[0].contains("<system-out>&lt;says&gt; 0&#10;</system-out>"),
            is_again,
            "{text}"
        );
    }
}

#[test]
fn a_page_shows_the_suite() {
    let bench = bench();
    let outcome = suite(&bench, &["--report", "page.html"]);
    assert_eq!(outcome.code, Some(1));
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("the suite of list")
            && page.contains("flag")
    );
}

#[test]
fn failures_alone_are_retried() {
    let bench = bench();
    let unknown = suite(&bench, &["--failed"]);
    assert!(
        unknown.code == Some(1) && unknown.stderr_text().contains("no earlier run"),
        "{unknown:?}"
    );
    assert_eq!(suite(&bench, &[]).code, Some(1));
    let ends = |outcome: &Outcome| field(&json(outcome), "end");
    let pair = |name: &str, end: &str| (name.to_owned(), end.to_owned());
    let again = suite(&bench, &["--failed", "--json"]);
    assert_eq!(ends(&again), [pair("bad <&>", "failed"), pair("flag", "failed")]);
    bench.write("flag", "good");
    let better = suite(&bench, &["--failed", "--json"]);
    assert_eq!(ends(&better), [pair("bad <&>", "failed"), pair("flag", "passed")]);
    assert_eq!((better.code, ends(&suite(&bench, &["--failed", "--json"])).len()), (Some(1), 1));
}

#[test]
fn a_line_about_progress_is_for_terminals() {
    let bench = bench();
    let plain = suite(&bench, &[]);
    assert!(
        !plain.stderr_text().contains('\r') && !plain.stdout_text().contains('\r'),
        "{plain:?}"
    );
    let command = format!("{} suite --list tests.jsonl", crate::workshop::TASTING);
    let shown = Outcome::of(
        bench.command("script").args(["-qec", &command, "/dev/null"]).env("TERM", "xterm"),
    );
    let text = shown.stdout_text();
    assert!(
        text.contains("deciding about 3 tests") && text.contains("0 of 2 ran; bad"),
        "{text:?}"
    );
}

#[test]
fn an_unwritable_store_changes_no_test_result() {
    let bench = bench();
    let ended = |outcome: &Outcome| (outcome.code, field(&json(outcome), "end"));
    let expected = ended(&suite(&bench, &["--json"]));
    let readonly = |bench: &Bench| {
        Outcome::of(
            tasting(bench, &["suite", "--list", "tests.jsonl", "--json"])
                .env("TASTING_READONLY", "1"),
        )
    };
    bench.write("flag", "good");
    let changed = readonly(&bench);
    assert_eq!(field(&json(&changed), "decision")[2].1, "reused", "{changed:?}");
    assert_eq!(changed.code, Some(1));
    bench.write("flag", "bad");
    assert_eq!(ended(&readonly(&bench)), expected);
    // A store that is full: files cannot grow.
    let full = bench.script("full.sh", "#!/bin/sh\nulimit -f 0\nexec \"$@\"\n");
    let mut command = bench.command(full);
    command.args([crate::workshop::TASTING, "suite", "--list", "tests.jsonl", "--json"]);
    assert_eq!(ended(&Outcome::of(&mut command)), expected);
}

#[test]
fn two_suites_at_once_end_alike() {
    let bench = bench();
    bench.write("flag", "good");
    let lines: String = (0..20)
        .map(|number| {
            format!("{{\"name\": \"n{number}\", \"argv\": [\"./t\", \"0\", \"{number}\"]}}\n")
        })
        .collect();
    bench.write("tests.jsonl", lines);
    let all = |bench: &Bench| {
        let outcome = suite(bench, &["--json", "-j4"]);
        let suite = json(&outcome);
        let sums = ["total", "failed"].map(|name| suite["summary"][name].as_u64().unwrap());
        (outcome.code, sums)
    };
    for _ in 0..2 {
        let ends = std::thread::scope(|scope| {
            let runs = [(), ()].map(|()| scope.spawn(|| all(&bench)));
            runs.map(|run| run.join().unwrap())
        });
        assert_eq!(ends, [(Some(0), [20, 0]); 2]);
    }
    assert_eq!(json(&suite(&bench, &["--json"]))["summary"]["reused"], 20);
}
