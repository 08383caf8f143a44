//! What definitions refer to, also where no expression names it.

use super::*;
use crate::ast::{DefinitionKind, Linkage};

#[test]
fn attributes_that_name_others() {
    assert_eq!(
        references(
            "int real(void) { return 1; } int second(void) __attribute__((alias(\"real\")));",
            "second"
        ),
        ["real"]
    );
    assert_eq!(
        definition("int real; extern int second __attribute__((alias(\"real\")));", "second").kind,
        DefinitionKind::Alias
    );
    let text =
        "static void *pick(void) { return 0; } int chosen(int) __attribute__((ifunc(\"pick\")));";
    assert_eq!(references(text, "chosen"), ["pick"]);
    let text =
        "static int weak(void) __attribute__((weakref(\"other\"))); int f(void) { return weak(); }";
    assert_eq!(references(text, "f"), ["other"]);
    assert!(unit(text).definitions.iter().all(|found| found.name != "weak"));
    let text =
        "void done(int *); int f(void) { __attribute__((cleanup(done))) int x = 1; return x; }";
    assert_eq!(references(text, "f"), ["done"]);
}

#[test]
fn symbols() {
    let text = "int other(void) asm(\"real_name\"); int f(void) { return other(); } int named(void) asm(\"label\"); int named(void) { return 1; }";
    assert_eq!(references(text, "f"), ["real_name"]);
    assert_eq!(definition(text, "label").kind, DefinitionKind::Function);
}

#[test]
fn assembler_that_names_others() {
    let text = "static int helper(void) { return 1; } int f(void) { asm(\"\\n\\tcall helper\\n\"); return 0; } asm(\"jmp f\");";
    assert_eq!(references(text, "f"), ["helper"]);
    assert_eq!(references(text, ""), ["f"]);
}

#[test]
fn builtin_functions_are_known() {
    assert_eq!(
        references("int f(char *a) { return __builtin_strlen(a) + __builtin_popcount(3); }", "f"),
        ["strlen"]
    );
    assert_eq!(
        references("int f(int *a) { return __sync_fetch_and_add(a, 1); }", "f"),
        ["__sync_fetch_and_add"]
    );
}

#[test]
fn initialisers_and_tables() {
    let text = "int a(void), b(void); int (*table[])(void) = { a, [3] = &b }; struct { const char *n; void *p; } v = { \"x\", &table };";
    assert_eq!(references(text, "table"), ["a", "b"]);
    assert_eq!(references(text, "v"), ["table"]);
}

#[test]
fn linkage() {
    let text = "static int s; int e; inline int i(void) { return s + e; } static int t(void) { return i(); }";
    let linkages: Vec<_> =
        unit(text).definitions.into_iter().map(|found| (found.name, found.linkage)).collect();
    let expected = [
        ("s", Linkage::Static),
        ("e", Linkage::Extern),
        ("i", Linkage::Inline),
        ("t", Linkage::Static),
    ];
    assert_eq!(linkages, expected.map(|(name, linkage)| (name.to_owned(), linkage)));
    assert_eq!(definition(text, "i").references[0].linkage, Linkage::Static);
    // `extern` behind `static` changes nothing.
    assert_eq!(
        definition("static int s(void); extern int s(void) { return 1; }", "s").linkage,
        Linkage::Static
    );
}

#[test]
fn places() {
    let found =
        definition("# 1 \"a.c\"\nint x;\n# 30 \"b.h\" 1\nstatic int\nf(void) { return x; }\n", "f");
    assert_eq!((found.file.as_str(), found.line), ("b.h", 30));
}
