//! Cargo: the shim as its linker, `tasting run` as its runner, for all tests at once and for each
//! of them.

use super::Bench;
use crate::workshop::{Outcome, TASTING, TASTING_CC, succeed};
use std::process::Command;
use tasting::model::Verdict;
use tasting::store::Journal;

const LIBRARY: &str = "pub fn one() -> u32 {
    1
}
pub fn shout(words: &[&str]) -> String {
    words.iter().map(|word| word.to_uppercase()).collect::<Vec<_>>().join(\"-\")
}
#[cfg(test)]
mod tests {
    #[test]
    fn one() {
        assert_eq!(super::one(), 1);
    }
    #[test]
    fn shouts() {
        assert_eq!(super::shout(&[\"a\", \"b\"]), \"A-B\");
    }
    #[test]
    #[should_panic]
    fn panics() {
        assert_eq!(super::one(), 2);
    }
}
";
const CASES: [&str; 3] = ["tests::one", "tests::panics", "tests::shouts"];

fn crate_of(library: &str) -> Bench {
    let bench = Bench::new();
    bench.write(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    bench.write("src/lib.rs", library);
    bench
}

/// A cargo of its own: nothing of the one that runs this test is passed on.
pub fn cargo(bench: &Bench) -> Command {
    let mut command = bench.command("cargo");
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for name in names.filter(|name| {
        name.starts_with("CARGO_") || name.starts_with("NEXTEST") || name.starts_with("RUST")
    }) {
        if !["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"].contains(&name.as_str()) {
            command.env_remove(name);
        }
    }
    let target =
        format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU", std::env::consts::ARCH.to_uppercase());
    command
        .env(format!("{target}_LINKER"), TASTING_CC)
        .env(format!("{target}_RUNNER"), format!("{TASTING} run --"));
    command.env("CARGO_TARGET_DIR", bench.path("target")).env("CARGO_NET_OFFLINE", "true");
    command
}

/// The verdicts of what was decided since, with the last word but one of each command: the case.
fn decided(bench: &Bench, since: usize) -> Vec<(String, Verdict)> {
    let decisions = bench.store().decisions(999).unwrap().split_off(since);
    let case =
        |argv: &[String]| argv.get(argv.len().saturating_sub(2)).cloned().unwrap_or_default();
    let mut decided: Vec<_> =
        decisions.into_iter().map(|one| (case(&one.argv), one.decision)).collect();
    decided.sort_by(|one, other| one.0.cmp(&other.0));
    decided
}

#[test]
fn all_tests_at_once() {
    let bench = crate_of(LIBRARY);
    let run = || {
        let since = bench.store().decisions(999).unwrap().len();
        let outcome = Outcome::of(cargo(&bench).args(["test", "--lib"]));
        let verdicts: Vec<_> =
            decided(&bench, since).into_iter().map(|(_, verdict)| verdict).collect();
        (outcome.success(), verdicts)
    };
    assert_eq!(run(), (true, vec![Verdict::Executed]));
    assert_eq!(run(), (true, vec![Verdict::Reused]));
    bench.write("src/lib.rs", LIBRARY.replace("join(\"-\")", "join(\"+\")"));
    assert_eq!(run(), (false, vec![Verdict::Executed]));
    bench.write("src/lib.rs", LIBRARY);
    assert_eq!(run(), (true, vec![Verdict::Reused]));
}

/// A process for each test, as nextest has it: by nextest where it is installed, else by the
/// commands that it would use.
#[test]
fn one_test_at_a_time() {
    let bench = crate_of(LIBRARY);
    let with_nextest = succeed(cargo(&bench).args(["nextest", "--version"])).is_ok();
    let run = || {
        let since = bench.store().decisions(999).unwrap().len();
        if with_nextest {
            Outcome::of(cargo(&bench).args(["nextest", "run", "--no-fail-fast"]));
        } else {
            succeed(cargo(&bench).args(["test", "--lib", "--no-run"])).unwrap();
            for (attempt, case) in CASES.iter().enumerate() {
                let mut command = cargo(&bench);
                command.env("NEXTEST_RUN_ID", attempt.to_string());
                Outcome::of(command.args(["test", "--lib", "--", "--exact", case, "--nocapture"]));
            }
        }
        decided(&bench, since)
    };
    let all = |verdicts: [Verdict; 3]| {
        CASES.into_iter().map(str::to_owned).zip(verdicts).collect::<Vec<_>>()
    };
    let (executed, reused) = (Verdict::Executed, Verdict::Reused);
    assert_eq!(run(), all([executed; 3]));
    assert_eq!(run(), all([reused; 3]));
    // Only the tests that executed what has changed.
    bench.write("src/lib.rs", LIBRARY.replace("join(\"-\")", "join(\"+\")"));
    assert_eq!(run(), all([reused, reused, executed]));
    bench.write("src/lib.rs", LIBRARY.replace("    1\n", "    3\n"));
    assert_eq!(run(), all([executed, executed, reused]));
    bench.write("src/lib.rs", LIBRARY);
    assert_eq!(run(), all([reused; 3]));
}
