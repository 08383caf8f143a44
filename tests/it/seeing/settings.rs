//! `tasting config`.

use super::contains;
use crate::run::Bench;
use crate::workshop::{Outcome, TASTING, succeed};
use serde_json::{Value, json};

fn setting(shown: &Value, name: &str) -> (Value, String) {
    let settings = shown["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {shown:#}"));
    (found["value"].clone(), found["source"].as_str().unwrap().to_owned())
}

#[test]
fn every_setting_has_a_value_and_a_source() {
    let bench = Bench::new();
    bench.write(
        "tasting.toml",
        "never-reuse = ['*stress*']\naudit = '5%'\n[limits]\noutput = 1024\n",
    );
    let mut command = bench.command(TASTING);
    command.args(["config", "--json"]).env("TASTING_MAXSIZE", "2M").env("TASTING_READONLY", "1");
    let shown: Value = serde_json::from_slice(&succeed(&mut command).unwrap().stdout).unwrap();
    let root = std::fs::canonicalize(bench.path("")).unwrap();
    assert_eq!(shown["root"].as_str(), root.to_str());
    for (name, value, source) in [
        ("TASTING_MAXSIZE", json!(2 << 20), "variable"),
        ("TASTING_READONLY", json!(true), "variable"),
        ("TASTING_NOSPLIT", json!(false), "default"),
        ("TASTING_LEVEL", json!("code"), "default"),
        ("TASTING_ROOT", json!(root), "default"),
        ("never-reuse", json!(["*stress*"]), "tasting.toml"),
        ("audit", json!("5%"), "tasting.toml"),
        ("limits.output", json!(1024), "tasting.toml"),
        ("limits.files", json!(32 << 20), "default"),
        ("quarantine-passes", json!(5), "default"),
        ("environment.ignore", json!([]), "default"),
        ("unknown-programs", json!("content"), "default"),
    ] {
        assert_eq!(setting(&shown, name), (value, source.to_owned()), "{name}");
    }
    let ignored = shown["ignored"].as_array().unwrap();
    assert!(
        ignored
            .iter()
            .any(|list| list["patterns"].as_array().unwrap().contains(&json!("MALLOC_PERTURB_")))
    );
    assert_eq!(shown["problems"], json!([]));
    contains(
        &bench.says(&["config"]),
        &[
            "limits.output",
            "1.0 KiB",
            "tasting.toml",
            "MALLOC_PERTURB_",
            "unless the test writes to a terminal: TERM",
        ],
    );
}

#[test]
fn unusable_tools_are_problems() {
    let bench = Bench::new();
    let mut command = bench.command(TASTING);
    command
        .args(["config"])
        .env("TASTING_MAXSIZE", "much")
        .env("TASTING_LEVEL", "deep")
        .env("TASTING_DRI", "/x");
    let text = succeed(&mut command).unwrap().stdout_text();
    contains(
        &text,
        &[
            "problem: TASTING_DRI is set, but there is no such setting",
            "problem: TASTING_MAXSIZE=much is not a size",
            "problem: TASTING_LEVEL=deep is none of",
            "TASTING_MAXSIZE           5.0 GiB",
        ],
    );
    bench.write("tasting.toml", "nonsense = 1");
    let outcome = Outcome::of(bench.command(TASTING).arg("config"));
    assert_eq!(outcome.code, Some(1));
    contains(&outcome.stdout_text(), &["problem: ", "unknown field `nonsense`", "TASTING_DIR"]);
}
