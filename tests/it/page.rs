//! The page of `tasting report`, in a real browser: Debian's chromium, driven by playwright-core
//! (`scripts/install-test-tools.sh`).

use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, TASTING_CC, succeed, tool};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A replay with names that mean harm, a failure and its chain.
fn history() -> Value {
    let hostile = [
        "<script>alert(1)</script>".to_owned(),
        "plain".to_owned(),
        "line\nbreak \u{2028} \u{1f9ea} ' \" &amp; </script><img src=x onerror=window.harmed=1>"
            .to_owned(),
        format!("long {}", "x".repeat(10_000)),
    ];
    let decide = |executed: &str| json!({"whole": "executed", "file": "executed", "static": executed, "executed": executed});
    let change = json!({"what": "changed", "name": "leaf", "source": "src/a.c:7", "chain": ["main", "middle", "leaf"]});
    let test = |name: &String, commit: usize| {
        let fails = commit == 1 && name == "plain";
        json!({
            "name": name, "exit_code": if fails { 3 } else { 0 }, "sort": if fails { "program-changed" } else { "audit" },
            "decision": decide(if commit == 1 && !fails { "reused" } else { "executed" }), "duration_ms": 40 * (commit + 1),
            "reason": format!("because of <b>{name}</b>"), "changed": if fails { vec![change.clone()] } else { vec![] },
            // Told by its output.
            "failed": (commit == 1 && name.starts_with("long")).then_some(true),
            "disturbed": if name == "plain" { Some("<i>it</i>") } else { None },
        })
    };
    let commits = (0..2).map(|number| {
        let tests: Vec<Value> = hostile.iter().map(|name| test(name, number)).collect();
        json!({"sha": format!("bbbb{number}"), "subject": "<u>S</u>", "built": true, "tests": tests})
    });
    let mut commits: Vec<Value> = commits.collect();
    commits.push(json!({"sha": "cccc", "subject": "broken", "built": false, "error": "no\n<script>", "tests": []}));
    json!({"project": "/p/<script>", "commits": commits, "summary": {"commits": 0, "not_built": 0, "executions": 0, "failures": 0,
        "reused": {"whole": 0, "file": 0, "static": 0, "executed": 0}, "total_ms": 0,
        "saved_ms": {"whole": 0, "file": 0, "static": 0, "executed": 0}, "missed": 0, "misses": [], "unstable": 0}})
}

fn browse(script: &str, arguments: &[&Path]) -> Outcome {
    let target = Path::new(TASTING)
        .parent()
        .and_then(Path::parent)
        .expect("binaries lie in a folder of the target");
    let playwright = target.join("test-tools/playwright");
    let browser = which("chromium").expect("scripts/install-test-tools.sh installs a browser");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/page").join(script);
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg(arguments[0])
        .arg(playwright)
        .arg(browser)
        .args(&arguments[1..])
        .env("HOME", home.path());
    Outcome::of(&mut command)
}

fn which(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}

#[test]
#[ignore = "needs a browser"]
fn a_browser_shows_cells_and_takes_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (from, page) = (folder.path().join("history.json"), folder.path().join("page.html"));
    fs::write(&from, history().to_string()).unwrap();
    let mut command = Command::new(TASTING);
    command
        .args(["report", "--history"])
        .arg(&from)
        .arg("-o")
        .arg(&page)
        .env("TASTING_DIR", folder.path().join("s"));
    let ran = Outcome::of(&mut command);
    assert!(ran.success(), "{ran:?}");
    let kept = std::env::var_os("TASTING_PICTURES").map_or(folder.path().to_owned(), PathBuf::from);
    let seen = browse("check.mjs", &[&page, &kept]);
    assert!(
        seen.success() && seen.stdout_text() == "checked\n",
        "{}{}",
        seen.stdout_text(),
        seen.stderr_text()
    );
}

#[test]
fn malformed_histories_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("history.json");
    fs::write(&from, "{\"commits\": 7}").unwrap();
    let mut command = Command::new(TASTING);
    command
        .args(["report", "--markdown", "--history"])
        .arg(&from)
        .env("TASTING_DIR", folder.path());
    let ran = Outcome::of(&mut command);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr_text().contains("is not what tasting history --json prints"), "{ran:?}");
}

#[test]
fn a_suite_has_its_page_and_its_trace() {
    let bench = Bench::new();
    for _ in 0..2 {
        let ran = Outcome::of(bench.command(TASTING).args(["run", "--", "sh", "-c", "exit 0"]));
        assert!(ran.success(), "{ran:?}");
    }
    let report = ["report", "--suite", "-o", "page.html", "--trace", "trace.json", "--json"];
    let ran = Outcome::of(bench.command(TASTING).args(report));
    assert!(ran.success(), "{ran:?}");
    let shown: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(shown["commits"][0]["tests"].as_array().map(Vec::len), Some(1), "{shown:#}");
    let page = fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("Slowest tests") && !page.contains("would still have been made"));
    assert!(page.contains("Reused results") && page.contains("the latest run of tests"), "{page}");
    let markdown =
        Outcome::of(bench.command(TASTING).args(["report", "--suite", "--markdown"])).stdout_text();
    assert!(markdown.starts_with("### Tasting: 1 of 1 test reused\n"), "{markdown}");
    let trace: Value =
        serde_json::from_slice(&fs::read(bench.path("trace.json")).unwrap()).unwrap();
    let sorts = [0, 1].map(|number| trace["traceEvents"][number]["cat"].as_str());
    assert_eq!(sorts, [Some("executed"), Some("reused")], "{trace:#}");
    assert!(
        trace["traceEvents"][1]["name"].as_str().is_some_and(|name| name.contains("exit 0")),
        "{trace:#}"
    );
}

#[test]
#[ignore = "needs node"]
fn what_cells_say_needs_no_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(tool("node"));
    command.arg(root.join("tests/it/page/matrix.mjs")).arg(root.join("src/report/page/matrix.js"));
    let ran = Outcome::of(&mut command);
    assert!(ran.success() && ran.stdout_text() == "checked\n", "{}", ran.stderr_text());
}

#[test]
fn shadow_runs_are_reported_with_what_has_changed() {
    let bench = Bench::new();
    let source = "__attribute__((noinline)) int leaf(int x) { return x * 3; }\nint main(int n, char **a) { return leaf(n) > 100; }\n";
    for source in [source.to_owned(), source.replace("* 3", "* 5")] {
        bench.write("t.c", source);
        succeed(bench.command(TASTING_CC).args(["-g", "-O1", "-o", "t", "t.c"])).unwrap();
        for _ in 0..2 {
            let run = ["run", "--", "./t"];
            let ran = Outcome::of(bench.command(TASTING).args(run).env("TASTING_SHADOW", "1"));
            assert!(ran.success(), "{ran:?}");
        }
    }
    let report = |words: &[&str]| {
        let ran = Outcome::of(bench.command(TASTING).arg("report").args(words));
        serde_json::from_slice::<Value>(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let shown = report(&["--json"]);
    let test = &shown["commits"][0]["tests"][0];
    assert_eq!(test["decision"]["executed"], "reused", "the latest one: {shown:#}");
    assert!(
        test["reason"].as_str().is_some_and(|why| why.starts_with("unchanged since")),
        "{shown:#}"
    );
    bench.write("t.c", source.replace("* 3", "* 7"));
    succeed(bench.command(TASTING_CC).args(["-g", "-O1", "-o", "t", "t.c"])).unwrap();
    let ran =
        Outcome::of(bench.command(TASTING).args(["run", "--", "./t"]).env("TASTING_SHADOW", "1"));
    assert!(ran.success(), "{ran:?}");
    let shown = report(&["--json"]);
    let change = &shown["commits"][0]["tests"][0]["changed"][0];
    assert_eq!(
        (&change["name"], &change["source"]),
        (&json!("leaf"), &json!("t.c:1")),
        "{shown:#}"
    );
    assert_eq!(change["chain"], json!(["_start", "main", "leaf"]), "{shown:#}");
}

#[test]
fn a_miss_in_shadow_mode_is_in_every_form() {
    let bench = Bench::new();
    bench.write("tasting.toml", "shadow = true\n[environment]\nignore = ['HOLE']\n");
    for hole in ["0", "0", "3"] {
        let run = ["run", "--", "sh", "-c", "exit $HOLE"];
        Outcome::of(bench.command(TASTING).args(run).env("HOLE", hole));
    }
    let report = ["report", "--suite", "--markdown", "-o", "page.html"];
    let markdown = Outcome::of(bench.command(TASTING).args(report)).stdout_text();
    assert!(
        markdown.starts_with("### Tasting: 1 of 1 test would have been reused\n"),
        "{markdown}"
    );
    assert!(
        markdown.contains("**1 failure would have been missed**") && markdown.contains("(exit 3)")
    );
    let page = fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("Missed failures") && page.contains("would have been reused"), "{page}");
    let stats = Outcome::of(bench.command(TASTING).arg("stats")).stdout_text();
    assert!(stats.contains("1 would have been wrong"), "{stats}");
}
