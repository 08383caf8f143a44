//! Where two versions of an object differ, by `tasting explain --old`.

use std::process::Command;

const BEFORE: &str = "int g(int);\nint f(int x) {\n    if (x == 7) {\n        g(11);\n    } else {\n        g(x);\n    }\n    return x;\n}\nint same(int x) { return g(x); }\n";

#[test]
fn a_changed_branch_is_reported_by_line() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let at = |name: &str| folder.path().join(name);
    for (name, text) in [("old", BEFORE.to_owned()), ("new", BEFORE.replace("g(11)", "g(12345)"))] {
        let source = at(&format!("{name}.c"));
        std::fs::write(&source, text).expect("a file can be written");
        let options = ["-g", "-O0", "-ffunction-sections", "-c", "-o"];
        let status =
            Command::new("gcc").args(options).arg(at(&format!("{name}.o"))).arg(&source).status();
        assert!(status.expect("gcc is there").success());
    }
    let explain = |old: &str, new: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasting"));
        let output =
            command.args(["explain", "--old"]).arg(at(old)).arg(at(new)).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    assert_eq!(explain("old.o", "new.o"), "in `f`, the change is in line 4 (1 of 4 blocks)\n");
    assert_eq!(explain("old.o", "old.o"), "no function differs\n");
}
