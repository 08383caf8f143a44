//! Declarations count where they are used, with all that they use.

use super::*;

const USES: &str = "# 1 \"first.c\"
    enum color { RED, GREEN = 5, BLUE };
    typedef struct node { struct node *next; int value; } node;
    struct other { long a; node *n; };
    extern int shared; extern int (*table[4])(node *);
    int helper(const node *n);
    static inline int twice(int a) { return a + a; }
    int f(node *n) { return helper(n) + GREEN; }
    int g(int a) { return twice(a) + shared; }
";

#[test]
fn unused_declarations_do_not_count() {
    for (before, after) in [
        ("int helper", "int unused(double); int helper"),
        ("int helper", "typedef struct { int z; } unused; int helper"),
        ("int helper", "static inline int unused(int a) { return a * 3; } int helper"),
        ("int helper", "enum { UNUSED = 7 }; int helper"),
        ("int helper", "extern long unused; int helper"),
        ("int helper", "struct node; int helper"),
        ("int helper(const node *n);", "int helper(const node *n); int helper(const node *n);"),
        ("BLUE", "BLUE, BLACK"),
        ("struct other { long a;", "struct other { long a, b;"),
        ("extern int (*table[4])", "extern int (*table[5])"),
        (" int f", "\n\n/* comment */ int\tf"),
        ("{ return helper", "{ // comment\n return helper"),
        (
            "    extern int shared;",
            "# 7 \"other.h\" 1 3 4\n    extern int shared;\n# 9 \"first.c\" 2\n",
        ),
    ] {
        let changed = USES.replacen(before, after, 1);
        assert_ne!(changed, USES);
        same(USES, &changed);
    }
}

#[test]
fn declarations_count_for_their_users() {
    for (before, after, names) in [
        ("int value", "long value", &["f"][..]),
        ("struct node *next;", "struct node *next, *last;", &["f"]),
        ("GREEN = 5", "GREEN = 6", &["f"]),
        ("RED, GREEN = 5", "RED, GREEN", &["f"]),
        ("int helper(const", "long helper(const", &["f"]),
        ("int helper(const", "__attribute__((pure)) int helper(const", &["f"]),
        ("extern int shared", "extern unsigned shared", &["g"]),
        ("extern int shared", "extern volatile int shared", &["g"]),
        ("return helper(n)", "return 1 + helper(n)", &["f"]),
        ("return a + a", "return a - a", &["twice"]),
        ("static inline int twice(int a)", "static inline int twice(long a)", &["g", "twice"]),
    ] {
        differ(USES, &USES.replacen(before, after, 1), names);
    }
}

#[test]
fn recursion_among_types_is_followed_to_its_end() {
    let text = "struct c { int x; }; struct b; struct a { struct b *b; }; struct b { struct a *a; struct c c; };
        int f(struct a *a) { return a != 0; } int g(struct c *c) { return c != 0; }";
    differ(text, &text.replacen("int x", "long x", 1), &["f", "g"]);
    differ(text, &text.replacen("struct a *a;", "struct a *a, *z;", 1), &["f"]);
}

#[test]
fn enumerators_count_by_value() {
    let text =
        |list: &str, more: &str| format!("enum e {{ {list} }} {more}; int f(void) {{ return B; }}");
    same(&text("A = 1, B = A + 1", ""), &text("A = 1, B = 2, C", ""));
    same(&text("Z, A, B", ""), &text("X, Y, B, C = 9", ""));
    // One that does not fit into an int can change the type of all; so can attributes.
    differ(&text("A, B", ""), &text("A, B, C = 0x80000000", ""), &["f"]);
    differ(&text("A, B", ""), &text("A, B", "__attribute__((packed))"), &["f"]);
    differ(&text("A, B = sizeof(int)", ""), &text("A, B = sizeof(long)", ""), &["f"]);
    let typed = |list: &str| format!("enum e {{ {list} }}; int f(enum e e) {{ return e == B; }}");
    differ(&typed("A, B"), &typed("A, B, C"), &["f"]);
    let fixed = |base: &str| {
        format!("enum e : {base} {{ A, B }}; unsigned long f(void) {{ return sizeof(B); }}")
    };
    differ(&fixed("int"), &fixed("long"), &["f"]);
}

#[test]
fn identity_counts() {
    let text = "static int a, b; int f(void) { return ++a; } int g(void) { return ++b; }";
    differ(text, &text.replacen("++a", "++b", 1), &["f"]);
    let text = "int h(int), k(int); int f(void) { return h(1); }";
    differ(text, &text.replacen("return h", "return k", 1), &["f"]);
}

#[test]
fn types_that_depend_on_tables_count_with_them() {
    let text = "static const int table[] = { 1, 2, 3 }; typedef char buffer[sizeof table]; int f(buffer *b) { return sizeof *b; }";
    differ(text, &text.replacen("2, 3", "2, 3, 4", 1), &["f", "table"]);
}

#[test]
fn each_declarator_stands_for_itself() {
    let text = "int a = 1, b = 2, *c = &b, f(int), d[3]; int g(void) { return a; }";
    differ(text, &text.replacen("= 2", "= 3", 1), &["b"]);
    differ(text, &text.replacen("d[3]", "d[4]", 1), &["d"]);
    assert_eq!(references(text, "c"), ["b"]);
}

#[test]
fn functions_of_the_library_always_count() {
    // gcc calls `stpcpy` for `strcpy` where it has been declared, and copies structures by the
    // symbol that `memcpy` has.
    let text = "char *strcpy(char *, const char *); int f(char *a) { strcpy(a, \"x\"); return 0; }";
    differ(text, &format!("char *stpcpy(char *, const char *); {text}"), &["f"]);
    differ(
        text,
        &format!("void *memcpy(void *, const void *, unsigned long) asm(\"copy\"); {text}"),
        &["f"],
    );
    same(text, &format!("char *other(char *, const char *); {text}"));
}
