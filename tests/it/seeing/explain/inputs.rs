//! `tasting explain` about what is no code: files, variables, standard input, commands that never
//! ran, other reasons to run.

use super::{SOURCE, explained, project};
use crate::run::Bench;
use crate::seeing::contains;
use crate::workshop::{TASTING, succeed};
use serde_json::json;

#[test]
fn files_folders_links_and_what_was_absent() {
    let bench = Bench::new();
    bench.write("data", "one");
    bench.write("gone", "here");
    bench.write("folder/a", "");
    std::os::unix::fs::symlink("data", bench.path("link")).unwrap();
    let command = [
        "sh",
        "-c",
        "read x < data; read x < gone; read x < link; ls folder > /dev/null; test ! -e optional",
    ];
    bench.settles(&command);
    assert_eq!(explained(&bench, &command)["decision"], "reused");
    bench.write("data", "two");
    bench.write("optional", "");
    bench.write("folder/b", "");
    std::fs::remove_file(bench.path("gone")).unwrap();
    std::fs::remove_file(bench.path("link")).unwrap();
    std::os::unix::fs::symlink("folder/a", bench.path("link")).unwrap();
    let found = explained(&bench, &command);
    let mut texts: Vec<&str> = found["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["text"].as_str().unwrap())
        .collect();
    texts.sort_unstable();
    let expected = [
        "data has changed",
        "gone is gone",
        "optional was not there before",
        "the folder folder has other entries",
        "the link link leads elsewhere",
    ];
    assert_eq!(texts, expected);
    assert!(texts.contains(&found["reason"].as_str().unwrap()));
}

#[test]
fn variables_that_differ_come_and_go() {
    let bench = project(SOURCE);
    let run = |variables: &[(&str, &str)]| {
        let mut command = bench.tasting(&["./t"]);
        command.env_remove("SEEN_A").env_remove("SEEN_B").envs(variables.iter().copied());
        bench.finish(&mut command)
    };
    run(&[("SEEN_A", "1"), ("SEEN_B", "1")]);
    let mut command = bench.command(TASTING);
    command
        .args(["explain", "--", "./t"])
        .env("SEEN_A", "2")
        .env_remove("SEEN_B")
        .env("SEEN_C", "1");
    let text = succeed(&mut command).unwrap().stdout_text();
    contains(
        &text,
        &[
            "the variable SEEN_A is different",
            "the variable SEEN_B is not set any more",
            "the variable SEEN_C was not set",
        ],
    );
    assert!(!text.contains("has changed"), "{text}");
}

#[test]
fn standard_input_counts_if_it_is_a_file() {
    let bench = Bench::new();
    let (one, two) = (bench.write("one", "1"), bench.write("two", "2"));
    let open = |path| std::fs::File::open(path).unwrap();
    let ran = bench.finish(bench.tasting(&["cat"]).stdin(open(&one)));
    assert_eq!(ran.text(), "1");
    let explain = |path| {
        let mut command = bench.command(TASTING);
        succeed(command.args(["explain", "--", "cat"]).stdin(open(path))).unwrap().stdout_text()
    };
    contains(&explain(&one), &["cat would be reused"]);
    contains(&explain(&two), &["cat would run: its standard input is different"]);
    // From a pipe nobody can tell: then it is taken to be what it was.
    let mut command = bench.command(TASTING);
    let text = succeed(command.args(["explain", "--", "cat"]).stdin(std::process::Stdio::piped()))
        .unwrap()
        .stdout_text();
    contains(
        &text,
        &["cat would be reused", "assumed: its standard input is that of the last time"],
    );
}

#[test]
fn the_output_of_explain_does_not_count() {
    let bench = project(SOURCE);
    // Both into one pipe, which is another invocation context for the test itself.
    let mut shell = bench.command("sh");
    shell.args(["-c", "\"$0\" run -- ./t && \"$0\" explain -- ./t 2>&1", TASTING]);
    let text = succeed(&mut shell).unwrap().stdout_text();
    contains(
        &text,
        &["./t would be reused", "assumed: its output goes where it went the last time"],
    );
}

#[test]
fn new_commands_are_compared_with_similar_ones() {
    let bench = project(SOURCE);
    assert_eq!(explained(&bench, &["./t"])["nearest"], json!([]));
    bench.runs(&["./t", "--all", "a"]);
    bench.runs(&["true"]);
    let found = explained(&bench, &["./t", "--all", "b"]);
    assert_eq!(
        (&found["sort"], &found["reason"]),
        (&json!("new"), &json!("it has not run before"))
    );
    let near = found["nearest"].as_array().unwrap();
    assert!(
        near.len() == 1 && near[0].as_str().unwrap().starts_with("./t --all a (in /"),
        "{found:#}"
    );
}

#[test]
fn a_run_that_was_refused_says_so() {
    let bench = Bench::new();
    let mut command = bench.tasting(&["cat"]);
    bench.finish(command.stdin(std::process::Stdio::piped()));
    let found = explained(&bench, &["cat"]);
    assert_eq!(found["sort"], "refused");
    assert!(found["refusals"][0].as_str().unwrap().contains("standard input"), "{found:#}");
}

#[test]
fn other_reasons_to_run() {
    let bench = project(SOURCE);
    bench.settles(&["./t"]);
    let with = |name: &str| {
        let mut command = bench.command(TASTING);
        succeed(command.args(["explain", "--", "./t"]).env(name, "1")).unwrap().stdout_text()
    };
    contains(&with("TASTING_DISABLE"), &["./t would run: TASTING_DISABLE is set"]);
    contains(&with("TASTING_RECACHE"), &["./t would run: TASTING_RECACHE asks for it"]);
    bench.write("tasting.toml", "never-reuse = ['t']");
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &["./t would run: tasting.toml has it under never-reuse (t)"],
    );
    bench.write("tasting.toml", "nonsense = 1");
    contains(
        &bench.says(&["explain", "--", "./t"]),
        &["./t would run: ", "unknown field `nonsense`"],
    );
    bench.write("tasting.toml", "");
    bench.says(&["clear"]);
    contains(&bench.says(&["explain", "--", "./t"]), &["./t would run: it has not run before"]);
}

#[test]
fn failures_run_again_by_default() {
    let bench = project(&SOURCE.replace("return 0", "return 3"));
    bench.runs(&["./t"]);
    assert_eq!(explained(&bench, &["./t"])["sort"], "failed-before");
    let found = bench.json(&["explain", "--json", "--reuse-failures", "--", "./t"]);
    assert_eq!((&found["decision"], &found["reused"]["exit_code"]), (&json!("reused"), &json!(3)));
}
