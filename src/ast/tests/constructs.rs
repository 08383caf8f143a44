//! One test for each construct that decides what is compiled: what changes with it, and what does
//! not.

use super::*;

/// Each with a second function that has nothing to do with it.
fn pairs(cases: &[(&str, &str, &[&str])]) {
    for (before, after, names) in cases {
        let around = |text: &str| format!("{text}\nint bystander(int a) {{ return a; }}");
        differ(&around(before), &around(after), names);
    }
}

#[test]
fn attributes() {
    pairs(&[
        (
            "int f(void) { return 1; }",
            "__attribute__((noinline)) int f(void) { return 1; }",
            &["f"],
        ),
        ("int v;", "int v __attribute__((section(\"s\")));", &["v"]),
        ("int v;", "int v __attribute__((aligned(64)));", &["v"]),
        ("int v;", "[[gnu::aligned(64)]] int v;", &["v"]),
        (
            "struct s { int a; }; struct s v;",
            "struct s { int a; } __attribute__((packed)); struct s v;",
            &["v"],
        ),
        (
            "void die(void); int f(void) { die(); }",
            "void die(void) __attribute__((noreturn)); int f(void) { die(); }",
            &["f"],
        ),
        (
            "int w(void); int f(void) { return w(); }",
            "int w(void); int f(void) { return w(); } int w(void) __attribute__((weak));",
            &["f"],
        ),
        (
            "int w(void); int f(void) { return w(); }",
            "int w(void) asm(\"v\"); int f(void) { return w(); }",
            &["f"],
        ),
        (
            "int f(int a) { switch (a) { case 1: a++; case 2: return a; } return 0; }",
            "int f(int a) { switch (a) { case 1: a++; __attribute__((fallthrough)); case 2: return a; } return 0; }",
            &["f"],
        ),
        (
            "int f(void) { int i __attribute__((unused)) = 1; return 2; }",
            "int f(void) { int i = 1; return 2; }",
            &["f"],
        ),
    ]);
}

#[test]
fn pragmas() {
    pairs(&[
        (
            "struct s { char c; int i; }; struct s v;",
            "#pragma pack(push, 1)\nstruct s { char c; int i; };\n#pragma pack(pop)\nstruct s v;",
            &["v"],
        ),
        (
            "int f(void) { return 1; }\nint g(void) { return 2; }",
            "#pragma GCC push_options\n#pragma GCC optimize (\"O0\")\nint f(void) { return 1; }\n#pragma GCC pop_options\nint g(void) { return 2; }",
            &["f"],
        ),
        (
            "int e(void); int f(void) { return e(); }",
            "#pragma GCC visibility push(hidden)\nint e(void);\n#pragma GCC visibility pop\nint f(void) { return e(); }",
            &["f"],
        ),
        (
            "int f(int *p) { for (int i = 0; i < 9; i++) p[i]++; return 0; }",
            "int f(int *p) {\n#pragma GCC unroll 4\nfor (int i = 0; i < 9; i++) p[i]++; return 0; }",
            &["f"],
        ),
    ]);
    differ(
        "int e(void); int f(void) { return e(); }",
        "#pragma weak e\nint e(void); int f(void) { return e(); }",
        &["f"],
    );
    differ(
        "int e(void); int f(void) { return e(); }",
        "int e(void); int f(void) { return e(); }\n#pragma weak e\n",
        &["f"],
    );
    same(
        "struct s { char c; int i; }; int v;",
        "#pragma pack(push, 1)\nstruct s { char c; int i; };\n#pragma pack(pop)\nint v;",
    );
    same(
        "int v;",
        "#pragma once\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wall\"\n#pragma GCC diagnostic pop\nint v;",
    );
}

#[test]
fn pragmas_about_warnings_count_for_the_unit_only() {
    let (before, after) = ("int v;", "#pragma GCC diagnostic error \"-Wall\"\nint v;");
    assert_eq!(changed(before, after), [""; 0]);
    assert_ne!(unit(before).meaning, unit(after).meaning);
}

#[test]
fn assembler() {
    pairs(&[
        ("asm(\".globl x\");", "asm(\".globl y\");", &[""]),
        (
            "int f(void) { asm(\"nop\"); return 0; }",
            "int f(void) { asm(\"nop; nop\"); return 0; }",
            &["f"],
        ),
        (
            "int f(int a) { asm volatile(\"\" : \"+r\"(a) : : \"memory\"); return a; }",
            "int f(int a) { asm volatile(\"\" : \"+m\"(a) : : \"memory\"); return a; }",
            &["f"],
        ),
        (
            "int f(int a) { asm goto(\"\" : : [a] \"r\"(a) : : out); return 1; out: return a; }",
            "int f(int a) { asm goto(\"\" : : [a] \"r\"(a) : \"cc\" : out); return 1; out: return a; }",
            &["f"],
        ),
    ]);
    assert!(definition("int f(void) { asm(\"nop\"); return 0; }", "f").has_assembler);
    // A register that is taken is taken from every function behind.
    differ(
        "int f(void) { return 1; }",
        "register long sp asm(\"r15\"); int f(void) { return 1; }",
        &["f", "r15"],
    );
}

#[test]
fn bit_fields_and_flexible_arrays() {
    pairs(&[
        (
            "struct s { unsigned a : 3, : 2, b : 1; }; int f(struct s *s) { return s->b; }",
            "struct s { unsigned a : 3, : 3, b : 1; }; int f(struct s *s) { return s->b; }",
            &["f"],
        ),
        (
            "struct s { int n; char data[]; }; int f(struct s *s) { return s->data[0]; }",
            "struct s { int n; char data[1]; }; int f(struct s *s) { return s->data[0]; }",
            &["f"],
        ),
        (
            "enum e { A }; struct s { enum e a : 4; }; int f(struct s *s) { return s->a; }",
            "enum e { A }; struct s { enum e a : 5; }; int f(struct s *s) { return s->a; }",
            &["f"],
        ),
    ]);
}

#[test]
fn selections_and_types_of_expressions() {
    pairs(&[
        (
            "long x; int f(void) { return _Generic(x, int: 1, long: 2, default: 3); }",
            "int x; int f(void) { return _Generic(x, int: 1, long: 2, default: 3); }",
            &["f", "x"],
        ),
        (
            "extern long x; int f(void) { typeof(x) y; return sizeof(y); }",
            "extern char x; int f(void) { typeof(x) y; return sizeof(y); }",
            &["f"],
        ),
        (
            "extern long x; int f(void) { __auto_type y = x; return sizeof y; }",
            "extern char x; int f(void) { __auto_type y = x; return sizeof y; }",
            &["f"],
        ),
        (
            "typedef int t; int f(void) { return __builtin_types_compatible_p(t, int); }",
            "typedef long t; int f(void) { return __builtin_types_compatible_p(t, int); }",
            &["f"],
        ),
        (
            "struct s { int a, b; }; int f(void) { return __builtin_offsetof(struct s, b); }",
            "struct s { char a, b; }; int f(void) { return __builtin_offsetof(struct s, b); }",
            &["f"],
        ),
        (
            "struct s { int a; }; int f(void) { return ((struct s){ 1 }).a; }",
            "struct s { long a; }; int f(void) { return ((struct s){ 1 }).a; }",
            &["f"],
        ),
    ]);
}

#[test]
fn old_functions_and_implicit_declarations() {
    pairs(&[
        (
            "int f(a, b) int a; char b; { return a + b; }",
            "int f(a, b) int a; long b; { return a + b; }",
            &["f"],
        ),
        ("f(a) { return a; }", "static f(a) { return a; }", &["f"]),
        ("int f(void) { return g(1.0); }", "int g(int); int f(void) { return g(1.0); }", &["f"]),
        // The declaration comes too late for this use.
        (
            "int g(double); int f(void) { return g(1); }",
            "int f(void) { return g(1); } int g(double);",
            &["f"],
        ),
    ]);
    assert_eq!(references("int f(void) { return g(1); }", "f"), ["g"]);
}

#[test]
fn tentative_definitions() {
    pairs(&[
        ("int x; int f(void) { return x; }", "int x; int f(void) { return x; } int x = 5;", &["x"]),
        (
            "extern int x; int f(void) { return x; }",
            "int x; int f(void) { return x; }",
            &["f", "x"],
        ),
        (
            "int a[]; int f(void) { return a[0]; }",
            "int a[]; int f(void) { return a[0]; } int a[5];",
            &["a", "f"],
        ),
    ]);
    let text = "int x; int x = 5; int x;";
    assert_eq!(unit(text).definitions.len(), 1);
    differ(text, "int x; int x = 6; int x;", &["x"]);
}

#[test]
fn inline_functions() {
    let used = |head: &str, body: &str| {
        format!("{head} int i(int a) {{ {body} }} int f(void) {{ return i(1); }}")
    };
    let unused = |head: &str, body: &str| {
        format!("{head} int i(int a) {{ {body} }} int f(void) {{ return 1; }}")
    };
    for head in [
        "static inline",
        "extern inline __attribute__((gnu_inline))",
        "static __inline__ __attribute__((always_inline))",
    ] {
        differ(&used(head, "return a;"), &used(head, "return a + 1;"), &["i"]);
        same(&unused(head, "return a;"), &unused(head, "return a + 1;"));
        same(&unused(head, "return a;"), "int f(void) { return 1; }");
        assert_eq!(references(&used(head, "return a;"), "f"), ["i"]);
    }
    // Those may be emitted though nobody here uses them.
    for head in [
        "inline",
        "extern inline",
        "static",
        "static inline __attribute__((used))",
        "static inline __attribute__((constructor))",
    ] {
        differ(&unused(head, "return a;"), &unused(head, "return a + 1;"), &["i"]);
    }
    // Local names are numbered through the unit.
    differ(
        &unused("static inline", "return a;"),
        &unused("static inline", "static int n; return n;"),
        &["i"],
    );
}

#[test]
fn nested_functions_and_statement_expressions() {
    pairs(&[
        (
            "int f(int a) { int n(int b) { return a + b; } return n(1); }",
            "int f(int a) { int n(int b) { return a - b; } return n(1); }",
            &["f"],
        ),
        (
            "int f(int a) { return ({ int b = a; b * 2; }); }",
            "int f(int a) { return ({ int b = a; b * 3; }); }",
            &["f"],
        ),
        (
            "int f(int a) { auto int n(int); int n(int b) { return a + b; } return n(1); }",
            "int f(int a) { auto int n(int); int n(int b) { return b; } return n(1); }",
            &["f"],
        ),
    ]);
}

#[test]
fn newer_and_older_standards() {
    same(
        "typedef unsigned char bool; bool f(bool true) { return true; }",
        "typedef unsigned char bool;\nbool f(bool true) { return true; }",
    );
    differ("bool f(void) { return true; }", "bool f(void) { return false; }", &["f"]);
    differ(
        "constexpr int n = 3; int f(void) { return n; }",
        "constexpr int n = 4; int f(void) { return n; }",
        &["n"],
    );
    differ("_BitInt(12) f(void) { return 1; }", "_BitInt(13) f(void) { return 1; }", &["f"]);
    differ(
        "_Complex _Float32 f(void) { return 1; }",
        "_Complex _Float64 f(void) { return 1; }",
        &["f"],
    );
    same("typedef float _Float32; _Float32 x;", "typedef float _Float32;\n_Float32 x;");
    differ("thread_local int x;", "int x;", &["x"]);
    differ(
        "int f(void) { [[maybe_unused]] int x = 1; return 2; }",
        "int f(void) { int x = 1; return 2; }",
        &["f"],
    );
    differ("alignas(16) int x;", "alignas(32) int x;", &["x"]);
    differ("int f(void) { return alignof(int); }", "int f(void) { return alignof(long); }", &["f"]);
    differ("_Atomic(int) x; _Atomic int y;", "_Atomic(long) x; _Atomic int y;", &["x"]);
    differ(
        "int f(int n, int a[static n]) { return a[0]; }",
        "int f(int n, int a[n]) { return a[0]; }",
        &["f"],
    );
}

#[test]
fn assertions_count_for_the_unit() {
    let text = |size: u32| {
        format!(
            "struct s {{ int a; }}; _Static_assert(sizeof(struct s) == {size}, \"size\"); int f(void) {{ return 1; }}"
        )
    };
    assert_eq!(changed(&text(4), &text(8)), [""; 0]);
    assert_ne!(unit(&text(4)).meaning, unit(&text(8)).meaning);
    assert_ne!(unit(&text(4)).meaning, unit(&text(4).replace("int a", "long a")).meaning);
}
