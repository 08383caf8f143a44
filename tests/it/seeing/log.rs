//! `tasting log`, `stats`, `gc` and `clear`.

use super::contains;
use crate::run::Bench;
use crate::workshop::{TASTING, succeed};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tasting::model::{Hash, Mark};
use tasting::store::{Quarantine, Store};

fn log(bench: &Bench, more: &[&str]) -> Vec<Value> {
    let text = bench.says(&[&["log", "--json"], more].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

#[test]
fn the_log_has_the_names_of_the_contract() {
    let bench = Bench::new();
    assert_eq!(bench.says(&["log"]), "");
    bench.settles(&["sh", "-c", "sleep 0.1", "a b"]);
    bench.runs(&["sh", "-c", "exit 3"]);
    let [first, second, third] = &log(&bench, &[])[..] else { panic!("three decisions") };
    assert_eq!(
        (&first["decision"], &first["step"], &first["saved_ms"]),
        (&json!("executed"), &Value::Null, &json!(0))
    );
    assert_eq!(
        (&second["decision"], &second["step"], &second["exit_code"]),
        (&json!("reused"), &json!("static"), &json!(0))
    );
    assert!(
        second["saved_ms"].as_u64() <= first["duration_ms"].as_u64()
            && first["duration_ms"].as_u64() >= Some(100),
        "{first} {second}"
    );
    assert_eq!((&third["exit_code"], &third["argv"]), (&json!(3), &json!(["sh", "-c", "exit 3"])));
    let folder = std::fs::canonicalize(bench.path("")).unwrap();
    assert_eq!(
        (third["cwd"].as_str(), third["reason"].as_str()),
        (folder.to_str(), Some("it has not run before"))
    );
    assert!(third["time"].as_u64() >= second["time"].as_u64(), "the newest is the last");
    assert_eq!(log(&bench, &["-n", "1"]), std::slice::from_ref(third));
    let text = bench.says(&["log"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    contains(
        lines[1],
        &["Z  reused  ", "  sh -c 'sleep 0.1' 'a b'  nothing that it uses has changed"],
    );
    contains(lines[2], &["Z  executed  ", " ms  sh -c 'exit 3' (exit 3)", "it has not run before"]);
    assert!(!text.contains('\x1b'), "no colours where there is no terminal");
}

#[test]
fn colours_are_for_terminals() {
    let bench = Bench::new();
    bench.runs(&["true"]);
    let on_terminal = |plain: &str| {
        let mut command = bench.command("script");
        command.args(["-qec", &format!("{TASTING} log"), "/dev/null"]).env("NO_COLOR", plain);
        succeed(&mut command).unwrap().stdout_text()
    };
    assert!(on_terminal("").contains("\x1b[33mexecuted"));
    assert!(!on_terminal("1").contains('\x1b'));
}

#[test]
fn statistics_are_right_and_can_be_zeroed() {
    let bench = Bench::new();
    bench.write("data", "1");
    let command = ["sh", "-c", "read x < data; sleep 0.05"];
    bench.settles(&command);
    bench.reuses(&command);
    bench.write("data", "2");
    bench.runs(&command);
    let stats = bench.json(&["stats", "--json"]);
    assert_eq!(
        (&stats["reused"], &stats["executed"], &stats["share"]),
        (&json!(2), &json!(2), &json!(0.5))
    );
    assert_eq!(stats["reasons"], json!({"new": 1, "file-changed": 1}));
    assert!(
        stats["saved_ms"].as_u64() > Some(50) && stats["executed_ms"].as_u64() >= Some(100),
        "{stats}"
    );
    assert_eq!(
        (&stats["audits"], &stats["miss_rate"], &stats["quarantine"]),
        (&json!(0), &Value::Null, &json!([]))
    );
    let store = &stats["store"];
    assert_eq!((&store["results"], &store["limit"]), (&json!(2), &json!(5u64 << 30)));
    assert_eq!(store["bytes"], bench.store().volume().unwrap().bytes);
    contains(
        &bench.says(&["stats"]),
        &[
            "reused      2 of 4 runs (50.0%)",
            "1 file-changed",
            "none, so no miss rate is known",
            "quarantine  empty",
            " of 5.0 GiB",
        ],
    );
    bench.says(&["stats", "--zero"]);
    let stats = bench.json(&["stats", "--json"]);
    assert_eq!(
        (&stats["reused"], &stats["executed"], &stats["share"]),
        (&json!(0), &json!(0), &Value::Null)
    );
    assert_eq!(log(&bench, &[]).len(), 4, "the log stays");
    bench.reuses(&command);
}

#[test]
fn audits_and_quarantine_are_shown() {
    let bench = Bench::new();
    bench.settles(&["true"]);
    for _ in 0..2 {
        bench.runs(&["--audit", "100%", "true"]);
    }
    let (argv, reason) = (vec!["./flaky".to_owned()], "it ends differently".to_owned());
    bench
        .store()
        .mark(&Mark { test: Hash::of(b"t"), since: 0, reason, argv, passes_left: 4 })
        .unwrap();
    let stats = bench.json(&["stats", "--json"]);
    assert_eq!((&stats["audits"], &stats["miss_rate"]), (&json!(2), &json!(0.0)));
    assert_eq!(stats["quarantine"][0]["passes_left"], 4);
    contains(
        &bench.says(&["stats"]),
        &[
            "2: 2 same, 0 unstable, 0 missed; measured miss rate 0.0% (0 of 2)",
            "./flaky: it ends differently; 4 more passes needed",
        ],
    );
}

#[test]
fn gc_keeps_what_was_used_last() {
    let bench = Bench::new();
    let print = |word: &str| {
        bench.runs(&["sh", "-c", &format!("echo {word}; head -c 200000 /dev/urandom | base64")])
    };
    print("old");
    // What comes later is newer by far more than the clock's grain.
    let old = SystemTime::now() - Duration::from_secs(7200);
    let entries = glob::glob(&format!(
        "{}/results-1/??/*",
        bench.says(&["stats", "--json"]).lines().find_map(store_path).unwrap()
    ));
    for entry in entries.unwrap().flatten() {
        std::fs::File::options().append(true).open(entry).unwrap().set_modified(old).unwrap();
    }
    print("new");
    let before = bench.store().volume().unwrap();
    assert_eq!(before.outcomes, 2);
    let mut command = bench.command(TASTING);
    let text = succeed(command.arg("gc").env("TASTING_MAXSIZE", "400k")).unwrap().stdout_text();
    let after = bench.store().volume().unwrap();
    assert_eq!(after.outcomes, 1);
    assert!(after.bytes <= 400 << 10 && text.starts_with("Freed 2"), "{text} {before:?} {after:?}");
    contains(&text, &[" of 400.0 KiB are in use."]);
    contains(&bench.says(&["gc"]), &["Freed 0 B; "]);
}

fn store_path(line: &str) -> Option<String> {
    Some(line.trim().strip_prefix("\"path\": \"")?.strip_suffix("\",")?.to_owned())
}

#[test]
fn clear_forgets_results_and_nothing_else() {
    let bench = Bench::new();
    bench.settles(&["true"]);
    bench.settles(&["sh", "-c", "echo x"]);
    contains(&bench.says(&["clear"]), &["Removed 2 results (", "log and sums stay"]);
    assert_eq!(bench.json(&["stats", "--json"])["store"]["results"], 0);
    assert_eq!(log(&bench, &[]).len(), 4);
    bench.runs(&["true"]);
    contains(&bench.says(&["clear"]), &["Removed 1 result ("]);
    contains(&bench.says(&["clear"]), &["Removed 0 results (0 B)"]);
}

#[test]
fn answers_and_records_are_counted_and_cleaned() {
    let bench = Bench::new();
    bench.runs(&["true"]);
    let folder = bench.json(&["stats", "--json"])["store"]["path"].as_str().unwrap().to_owned();
    let bytes = || bench.json(&["stats", "--json"])["store"]["bytes"].as_u64().unwrap();
    let before = bytes();
    let file = |name: &str| Path::new(&folder).join(name);
    for name in ["answers", "records"] {
        std::fs::create_dir_all(file(name)).unwrap();
        ["old", "new"].iter().for_each(|age| std::fs::write(file(name).join(age), "1234").unwrap());
        let old = std::fs::File::options().append(true).open(file(name).join("old")).unwrap();
        old.set_modified(SystemTime::now() - Duration::from_secs(40 * 24 * 3600)).unwrap();
    }
    assert_eq!(bytes(), before + 16);
    contains(&bench.says(&["gc"]), &["Freed 8 B; "]);
    assert!(
        !file("answers/old").exists()
            && file("answers/new").exists()
            && file("records/new").exists()
    );
    bench.says(&["clear"]);
    assert!(!file("answers/new").exists() && !file("records/new").exists());
}

#[test]
fn a_read_only_store_is_not_written() {
    let bench = Bench::new();
    bench.settles(&["true"]);
    for words in [&["clear"][..], &["gc"], &["stats", "--zero"]] {
        let mut command = bench.command(TASTING);
        let outcome =
            crate::workshop::Outcome::of(command.args(words).env("TASTING_READONLY", "1"));
        assert_eq!(outcome.code, Some(1), "{words:?}");
        contains(&outcome.stderr_text(), &["tasting: the store is not to be written"]);
    }
    bench.reuses(&["true"]);
}
