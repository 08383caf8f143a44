//! Positions count for objects with debug information, and only there.

use super::*;

fn with_lines(text: &str) -> crate::model::Hash {
    unit(text).with_lines
}

const TEXT: &str = "# 1 \"a.c\"\nstruct s { int a; };\nint unused(int);\n# 1 \"b.h\" 1\nint g(struct s *);\nint late(int);\n# 5 \"a.c\" 2\nint f(struct s *s)\n{\n  return g(s);\n}\n";

#[test]
fn positions_of_what_counts() {
    for (before, after) in [
        ("struct s {", "\nstruct s {"),
        ("  return", "\n  return"),
        ("  return", "   return"),
        ("# 5 \"a.c\" 2", "# 6 \"a.c\" 2"),
        ("\"b.h\"", "\"c.h\""),
        ("int unused", "\nint unused"),
    ] {
        let edited = TEXT.replacen(before, after, 1);
        same(TEXT, &edited);
        let moves = before != "int unused";
        assert_eq!(with_lines(&edited) != with_lines(TEXT), moves, "{edited}");
    }
}

#[test]
fn what_does_not_count_has_no_position() {
    for (before, after) in [("int late(int);", "int late(long);"), ("int unused(int);", "int unused ( int ) ;")] {
        assert_eq!(with_lines(&TEXT.replacen(before, after, 1)), with_lines(TEXT));
    }
}

#[test]
fn functions_that_ask_for_their_line() {
    let text = |blank: &str| format!("{blank}int f(void) {{ return __builtin_LINE(); }} int g(void) {{ return 1; }}");
    differ(&text(""), &text("\n"), &["f"]);
}
