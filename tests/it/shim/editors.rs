//! clangd reads builds that call the shims, under each name that they have there.

use crate::workshop::{Outcome, Workshop, shims, tool};
use serde_json::json;
use std::os::unix::fs::symlink;

/// The compiler of an entry of `compile_commands.json`, and whether clangd may start it.
fn check(shop: &Workshop, compiler: &str, may_ask: bool) -> String {
    let command = format!("{compiler} -Iinclude -DVALUE=7 -O1 -o a.o -c a.c");
    let entry = json!([{ "directory": shop.path(""), "command": command, "file": "a.c" }]);
    shop.write("compile_commands.json", entry.to_string());
    let mut clangd = shop.command("clangd");
    clangd.arg("--check=a.c").env("HOME", shop.path("home"));
    if may_ask {
        clangd.arg(format!("--query-driver={}", compiler.split(' ').next().unwrap_or_default()));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let outcome = Outcome::of(clangd.env("PATH", format!("{}:{path}", shims().display())));
    let text = outcome.stderr_text();
    assert!(
        outcome.success() && text.contains("All checks completed, 0 errors"),
        "{compiler}: {text}"
    );
    text
}

#[test]
#[ignore = "needs clangd"]
fn clangd_understands_builds_with_shims() {
    tool("clangd");
    let shop = Workshop::new();
    shop.write("include/own.h", "#define OWN (VALUE + 1)\n");
    shop.write("a.c", "#include <stdio.h>\n#include \"own.h\"\nint main(void) { return printf(\"%d\\n\", OWN); }\n");
    for compiler in ["tasting-cc", "tasting-cc gcc", "tasting-cc clang"] {
        check(&shop, compiler, false);
    }
    // A compiler's name that leads to a shim, which passes on what it is asked.
    let masquerade = shop.path("gcc");
    symlink(shims().join("tasting-cc"), &masquerade).expect("a link can be made");
    check(&shop, &masquerade.display().to_string(), false);
    let asked = check(&shop, &masquerade.display().to_string(), true);
    assert!(asked.contains("-isystem /usr/lib/gcc"), "{asked}");
}
