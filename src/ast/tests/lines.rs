//! Positions count for objects with debug information, and only there.

use super::*;

const TEXT: &str = "# 1 \"a.c\"\nstruct s { int a; };\nint unused(int);\n# 1 \"b.h\" 1\nint g(struct s *);\n# 5 \"a.c\" 2\nint f(struct s *s)\n{\n  return g(s);\n}\n";

#[test]
fn debug_information_tells_of_positions() {
    for (before, after) in [
        ("struct s {", "\nstruct s {"),
        ("  return", "\n  return"),
        ("  return", "   return"),
        ("# 5 \"a.c\" 2", "# 6 \"a.c\" 2"),
        ("\"b.h\"", "\"c.h\""),
        // gcc numbers what it tells of by all declarations.
        ("int unused(int)", "int unused(long)"),
    ] {
        let edited = TEXT.replacen(before, after, 1);
        same(TEXT, &edited);
        assert_ne!(unit(&edited).with_lines, unit(TEXT).with_lines, "{edited}");
    }
    assert_eq!(unit(TEXT).with_lines, unit(TEXT).with_lines);
}

#[test]
fn functions_that_ask_for_their_line() {
    let text = |blank: &str| {
        format!("{blank}int f(void) {{ return __builtin_LINE(); }} int g(void) {{ return 1; }}")
    };
    differ(&text(""), &text("\n"), &["f"]);
}
