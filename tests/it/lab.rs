//! The mutation check (`make lab`) on a small project: that it works, and that it finds nothing there.

use crate::workshop::{TASTING, Workshop, plain_environment, tool};
use std::path::Path;
use std::process::Command;

#[test]
fn mutations_of_a_small_project() {
    if ["python3", "cmake", "ninja", "gcov"].iter().any(|name| tool(name).is_none()) {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shop = Workshop::new();
    let mut command = Command::new(here.join("scripts/lab/mutate.py"));
    plain_environment(&mut command);
    command.env("BUILT", Path::new(TASTING).parent().expect("the program lies in a folder"));
    // What Python compiles stays out of the checkout.
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["--mutations", "5", "--folder"])
        .arg(shop.path("lab"))
        .arg("tiny");
    let output = command.output().expect("scripts/lab/mutate.py runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    // Of the five tests of each mutation one is selected, and none is missed.
    let table = text(&output.stdout);
    assert!(table.contains("| tiny | 5 "), "{table}{}", text(&output.stderr));
    assert!(table.contains("| 20.0 % | 20.0 % |"), "{table}{}", text(&output.stderr));
}
