//! The mutation check (`make lab`) on a small project: that it finds nothing there, and that it
//! would.

use crate::workshop::{Outcome, TASTING, Workshop, plain_environment, tools};
use std::path::Path;
use std::process::Command;

/// Five mutations of the small project.
fn mutate(options: &[&str]) -> Outcome {
    tools(&["python3", "cmake", "ninja", "gcov"]);
    let shop = Workshop::new();
    let built = Path::new(TASTING).parent().expect("the program lies in a folder");
    let has_lab = built.join("lab").is_file();
    assert!(has_lab, "the laboratory is not built: `cargo build --workspace --bins`");
    let mut command =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/lab/mutate.py"));
    plain_environment(&mut command);
    command.env("BUILT", built);
    // What Python compiles stays out of the checkout.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["--mutations", "5", "--folder"]).arg(shop.path("lab")).args(options).arg("tiny");
    Outcome::of(&mut command)
}

#[test]
#[ignore = "needs cmake, ninja and python3"]
fn mutations_of_a_small_project() {
    let outcome = mutate(&[]);
    assert!(outcome.success(), "{outcome:?}");
    assert!(outcome.stdout_text().contains("| tiny | 5 "), "{outcome:?}");
    // Of the five tests of each mutation one is selected: the one that gcov sees executing the
    // function. A mutation of which the compiler makes the same code selects none.
    let text = outcome.stdout_text();
    let row = text.lines().find(|line| line.starts_with("| tiny |")).expect("a row of the project");
    let share = |column: usize| -> f64 {
        let cell = row.split('|').nth(column).expect("a column");
        cell.trim().trim_end_matches(" %").parse().expect("a share")
    };
    let (selected, executing) = (share(5), share(6));
    assert!(0.0 < selected && selected <= executing, "{outcome:?}");
}

#[test]
#[ignore = "needs cmake, ninja and python3"]
fn wrong_reuse_is_detected() {
    let outcome = mutate(&["--blind"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout_text().contains("MISS: tiny, seed 1, mutation "), "{outcome:?}");
}
