//! Declarations that a unit could do without.

use super::super::read_with_prototypes;

/// The declarations that the unit could do without, as they are written.
fn prototypes(text: &str) -> Vec<String> {
    let unit = read_with_prototypes(text.as_bytes())
        .unwrap_or_else(|problem| panic!("{problem} in:\n{text}"));
    unit.removable_prototypes
        .iter()
        .map(|prototype| text[prototype.place.clone()].to_owned())
        .collect()
}

const TYPES: &str = "# 1 \"x.c\"\ntypedef struct pair pair;\nstruct tag { int x; };\nint y1;\n";

#[test]
fn plain_prototypes() {
    for declaration in [
        "int f(int);\n",
        "extern const char *f(void);\n",
        "  void f(pair *it, const pair *other, ...);\n",
        "pair *f(struct tag it,\n    unsigned long how);\n",
        "int f(int (*call)(pair *));\n",
        "int f();\n",
        "int f(void);\n#pragma GCC diagnostic ignored \"-Wshadow\"\n",
    ] {
        let text = format!("{TYPES}{declaration}int z;\n");
        assert_eq!(prototypes(&text).concat(), declaration.split('#').next().unwrap_or_default());
        super::same(&text, &text.replace(&prototypes(&text).concat(), ""));
    }
}

#[test]
fn prototypes_that_may_cause_diagnostics() {
    for text in [
        // More than a prototype, or more than one.
        "static int f(int);\n",
        "int f(int), g(int);\n",
        "int f(int); int g(int);\n",
        "int f(int) __attribute__((const));\n",
        "int f(int) { return 1; }\n",
        "int f(int a[3]);\n",
        "enum e { A }; int g(enum e);\nint f(enum e);\n",
        "__extension__ int f(int);\n",
        "void g(void) {\n extern int f(int);\n }\n",
        // The name stands elsewhere.
        "int f(int);\nint f(int);\n",
        "int f(int);\nvoid g(void) { int f = 1; }\n",
        "int f(int);\nstruct f;\n",
        // Types that it would be the first to name, or that come later.
        "int f(struct unknown *);\n",
        "struct unknown *f(void);\n",
        "struct later *f(void);\nstruct later { int x; };\n",
        "int f(struct later *);\nstruct later { int x; };\n",
        // Something else is called like a parameter.
        "int f(int y1);\n",
        "int f(int pair);\n",
        // The compiler knows it, or its maker does.
        "int puts(const char *);\n",
        "int _f(int);\n",
        // Who warns, and of what, is said elsewhere.
        "#pragma GCC diagnostic ignored \"-Wstrict-prototypes\"\nint f();\n",
        "int f(int);\n#pragma weak f\n",
        "# 1 \"/usr/include/x.h\" 1 3 4\nint f(int);\n# 1 \"x.c\" 2\n",
        "int f(int *);\nextern int *_Nonnull g;\n",
        "int\n# 1 \"y.h\" 1\nf(int);\n",
    ] {
        assert_eq!(prototypes(&format!("{TYPES}{text}")), [""; 0], "{text}");
    }
}

#[test]
fn its_hash_covers_its_types() {
    let hash =
        |text: &str| read_with_prototypes(text.as_bytes()).unwrap().removable_prototypes[0].hash;
    let plain = hash("typedef int T;\nint f(T);\n");
    assert_eq!(plain, hash("int g;\n\ntypedef int T;\n  int  f( T ) ;\n"));
    assert_ne!(plain, hash("typedef long T;\nint f(T);\n"));
    assert_ne!(plain, hash("typedef int T __attribute__((deprecated));\nint f(T);\n"));
    assert_ne!(plain, hash("typedef int T;\nint f(int T2);\n"));
}
