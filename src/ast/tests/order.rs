//! The order of definitions counts, that of declarations does not.

use super::*;

#[test]
fn declarations_may_change_places() {
    let types = "typedef struct a { int x; } a;\n";
    let more = "struct b { long y; };\n";
    let functions = "int g(a *, struct b *);\n";
    let rest = "int f(a *p, struct b *q) { return g(p, q); }";
    same(&format!("{types}{more}{functions}{rest}"), &format!("{more}{types}{functions}{rest}"));
    same(
        &format!("{types}extern int v;\nint h(void);\nint f(a *p) {{ return v + h(); }}"),
        &format!("int h(void);\nextern int v;\n{types}int f(a *p) {{ return v + h(); }}"),
    );
    // The same type named twice, in headers that do not know of each other.
    same(
        "typedef struct a a; int g(a *); typedef struct a a; int h(a *); int f(a *p) { return g(p) + h(p); }",
        "typedef struct a a; int h(a *); typedef struct a a; int g(a *); int f(a *p) { return g(p) + h(p); }",
    );
}

#[test]
fn pragmas_that_are_gone_do_not_part_declarations() {
    same(
        "int g(int); int f(void) { return g(1); }",
        "int g(int);\n#pragma pack(push, 1)\n#pragma pack(pop)\nint g(int); int f(void) { return g(1); }",
    );
}

#[test]
fn definitions_may_not() {
    let [one, two] = ["int f(void) { return 1; }\n", "int g(void) { return 2; }\n"];
    assert_ne!(unit(&format!("{one}{two}")).meaning, unit(&format!("{two}{one}")).meaning);
    assert_eq!(changed(&format!("{one}{two}"), &format!("{two}{one}")), [""; 0]);
    assert_ne!(unit("int a; int b;").meaning, unit("int b; int a;").meaning);
    assert_ne!(unit("asm(\"a\"); int b;").meaning, unit("int b; asm(\"a\");").meaning);
    let [one, two] =
        ["static inline int i(void) { return 1; }\n", "static inline int j(void) { return 2; }\n"];
    let rest = "int f(void) { return i() + j(); }";
    assert_ne!(
        unit(&format!("{one}{two}{rest}")).meaning,
        unit(&format!("{two}{one}{rest}")).meaning
    );
}

#[test]
fn later_declarations_are_other_entities() {
    let early = "struct s { int a; }; int h(struct s *); int f(struct s *s) { return h(s); }";
    let late =
        "struct s; int h(struct s *); int f(struct s *s) { return h(s); } struct s { int a; };";
    // Nothing in it needs the members.
    same(early, late);
    let early = "int h(void) __attribute__((const)); int f(void) { return h(); }";
    let late = "int h(void); int f(void) { return h(); } int h(void) __attribute__((const));";
    differ(early, late, &["f"]);
}

#[test]
fn the_name_of_the_file_counts() {
    assert_ne!(unit("# 1 \"a.c\"\nint x;").meaning, unit("# 1 \"b.c\"\nint x;").meaning);
    same("# 1 \"/here/a.c\"\nint x;", "# 1 \"/there/a.c\"\nint x;");
}
