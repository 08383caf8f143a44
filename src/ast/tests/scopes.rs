//! What a name means follows from its scope and name space.

use super::*;

const GLOBAL: &str = "extern int x; extern struct s { int m; } g;\n";

#[test]
fn shadowing_names_are_no_references() {
    for body in [
        "int f(int x) { return x; }",
        "int f(void) { int x = 1; return x; }",
        "int f(void) { for (int x = 0; x < 3; x++) x; return 0; }",
        "int f(void) { enum { x = 3 }; return x; }",
        "int f(void) { static int x; return x; }",
        "int f(x) int x; { return x; }",
        "int f(void) { typedef int x; x y = 0; return (x)y; }",
        "int f(void) { return ({ int x = 2; x; }); }",
        "int f(void) { int x(int a) { return a; } return x(1); }",
        "int f(struct s *p) { return p->m; } struct t { int x; }; int h(struct t *t) { return t->x; }",
        "int f(void) { goto x; x: return 0; }",
        "int f(void) { struct x { int a; } v = { .a = 1 }; return v.a; }",
        "int f(void) { __label__ x; void *p = &&x; goto *p; x: return 0; }",
        "struct t { int x; }; int f(void) { struct t v = { .x = 1 }, w = { x: 2 }; return v.x + w.x; }",
        "struct t { int x; }; int f(void) { return __builtin_offsetof(struct t, x); }",
        "int f(int (*p)(int x)) { return p(1); }",
    ] {
        let text = format!("{GLOBAL}{body}");
        assert!(!references(&text, "f").contains(&"x".to_owned()), "{text}");
        // A change of the global's declaration is none of its business either.
        same(&text, &text.replacen("extern int x", "extern long x", 1));
    }
}

#[test]
fn a_use_is_a_reference() {
    for body in [
        "int f(void) { return x; }",
        "int *f(void) { return &x; }",
        "int f(void) { { int x; x = 1; } return x; }",
        "int f(int a) { if (a) { enum { x }; } return x; }",
        "int f(void) { int y = x, x = y; return x; }",
        "int f(void) { return sizeof x; }",
        "int f(void) { typeof(x) y = 1; return y; }",
        "int f(void) { int a[] = { [2] = x }; return a[2]; }",
        "int f(void) { extern int x; return x; }",
        "int f(void) { int x = 1; { extern int x; return x; } }",
        "int f(int a) { return a ? x : 1; }",
        "int f(void) { for (int x = 0; x < 3; x++) ; return x; }",
        "int f(void) { return _Generic(x, int: 1, default: 2); }",
        "int f(int a[sizeof x]) { return sizeof a; }",
        "int f(void) { struct { int x; } v = { x }; return v.x; }",
        "int f(int a) { switch (a) { case 1: return x; } return 0; }",
        "int f(void) { asm(\"\" : : \"r\"(x)); return 0; }",
    ] {
        let text = format!("{GLOBAL}{body}");
        assert!(references(&text, "f").contains(&"x".to_owned()), "{text}");
        differ(&text, &text.replacen("extern int x", "extern long x", 1), &["f"]);
    }
}

#[test]
fn a_type_or_a_variable() {
    let with = |declaration: &str| format!("int x, y; {declaration} void f(void) {{ t * y; }}");
    // A declaration of a pointer in one, a product in the other.
    assert_eq!(references(&with("typedef int t;"), "f"), [""; 0]);
    assert_eq!(references(&with("int t;"), "f"), ["t", "y"]);
    assert_eq!(references("typedef int t; int u; int f(int t) { return t * u; }", "f"), ["u"]);
    assert_eq!(references("typedef int t; int u; int f(void) { t (u); return u; }", "f"), [""; 0]);
    assert_eq!(references("typedef int t; int u; int f(void) { return (t)-u; }", "f"), ["u"]);
    assert_eq!(references("int t, u; int f(void) { return (t)-u; }", "f"), ["t", "u"]);
    assert_eq!(references("typedef int t; int f(int (t)) { return 0; }", "f"), [""; 0]);
}

#[test]
fn tags_are_names_of_their_own() {
    let text =
        "struct x { int a; }; int x; int f(struct x *p) { return p->a; } int g(void) { return x; }";
    differ(text, &text.replacen("int a", "long a", 1), &["f"]);
    differ(text, &text.replacen("int x;", "long x;", 1), &["g", "x"]);
}

#[test]
fn a_structure_in_a_block_shadows_outer_ones() {
    let text = "struct s { int a; }; int f(void) { struct s { long b; } v = { 1 }; return v.b; } int g(struct s *s) { return s->a; }";
    differ(text, &text.replacen("int a", "char a", 1), &["g"]);
    let text = "struct s { int a; }; int f(void) { struct s; struct s *p = 0; return !p; }";
    same(text, &text.replacen("int a", "char a", 1));
    let text = "struct s { int a; }; int f(void) { struct s *p = 0; return !p; }";
    differ(text, &text.replacen("int a", "char a", 1), &["f"]);
}

#[test]
fn functions_declared_in_blocks_are_references() {
    assert_eq!(references("int f(void) { int g(int); return g(1); }", "f"), ["g"]);
    assert_eq!(references("typedef int t(int); int f(void) { t g; return g(1); }", "f"), ["g"]);
    assert_eq!(
        references("int h(int); int f(void) { typeof(h) g; return g(1); }", "f"),
        ["h", "g"]
    );
    assert_eq!(references("int f(int (*p)(int)) { typeof(*p) g; return g(1); }", "f"), ["g"]);
}
