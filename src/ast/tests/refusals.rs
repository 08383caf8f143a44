//! What is not understood is refused, with the place and the reason; and nothing ends otherwise
//! than with a result.

use super::*;
use proptest::prelude::*;

fn reason(text: &str) -> String {
    read(text.as_bytes()).expect_err("the text is refused").to_string()
}

#[test]
fn places_and_reasons() {
    assert_eq!(
        reason("# 7 \"a.c\"\nint f(void) {\n  return nothing here;\n}"),
        "a.c:8: `here` is not expected here"
    );
    assert_eq!(reason("int f(void) { return ^{ return 1; }(); }"), ":1: a block literal");
    assert_eq!(reason("unknown_type x;"), ":1: `x` is not expected here");
    assert_eq!(reason("int f(unknown_type *x);"), ":1: `*` is not expected here");
    assert_eq!(reason("int f(void) { return 1;"), ":1: the text ends within a declaration");
    assert_eq!(reason(&format!("int x = {}1;", "(".repeat(5_000))), ":1: it is nested too deeply");
    assert_eq!(
        reason(&format!("int f(void) {}", "{".repeat(5_000))),
        ":1: it is nested too deeply"
    );
    assert_eq!(reason(&format!("int {}x;", "(".repeat(5_000))), ":1: it is nested too deeply");
    assert_eq!(reason(&"struct s { ".repeat(5_000)), ":1: it is nested too deeply");
    assert_eq!(
        reason("int f(void) { return __builtin_COLUMN(); }"),
        ":1: a question for the column"
    );
    assert_eq!(reason("#pragma GCC pch_preprocess \"x\"\n"), ":1: a precompiled header");
    let problem = read(b"# 7 \"a.c\"\nint x = @;").expect_err("the text is refused");
    assert_eq!(
        problem.refusal().to_string(),
        "a.c:7: its syntax is not understood: a character that C does not have"
    );
}

#[test]
fn long_chains_are_no_nesting() {
    let chain = "if (a) b(); else ".repeat(20_000);
    unit(&format!("void b(void); void f(int a) {{ {chain} b(); }}"));
    let sum = "a + ".repeat(50_000);
    unit(&format!("int f(int a) {{ return {sum} a; }}"));
    let choices = "a ? 1 : ".repeat(50_000);
    unit(&format!("int f(int a) {{ return {choices} a; }}"));
    let types: String = (1..20_000)
        .map(|index| format!("typedef struct s{index} {{ t{} *p; }} t{index};\n", index - 1))
        .collect();
    unit(&format!("typedef int t0; {types} int f(t19999 *p) {{ return !p; }}"));
}

proptest! {
    #[test]
    fn any_bytes_give_a_result(bytes: Vec<u8>) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_tokens_give_a_result(
        words in prop::collection::vec(
            prop::sample::select(vec!["int", "x", "t", "(", ")", "[", "]", "{", "}", ";", ",", "*", "=", "typedef", "struct", "enum", ":",
                "1", "\"s\"", "return", "if", "else", "typeof", "__attribute__", "((", "))", "static", "inline", "extern", "asm", "sizeof",
                ".", "->", "&&", "?", "...", "_Generic", "case", "goto", "for", "\n#pragma pack(1)\n", "\n# 1 \"a\"\n", "__builtin_offsetof"]),
            0..60,
        ),
    ) {
        let _ = read(words.join(" ").as_bytes());
    }
}
