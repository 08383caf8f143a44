//! Constructs whose result depends on inlining. In: the tokens of a unit, and which of them belong
//! to definitions that count. Out: the construct, if there is one.
//!
//! `__builtin_constant_p(x)` is true in a function that was inlined where `x` is known, and false
//! elsewhere; a product and a sum are rounded once if both end up in one function, on a processor
//! that fuses them. What is inlined depends on the whole unit, so a function may give another
//! result without any change of its own.

use super::kinds::TokenKind;
use super::lexer::{Tokens, readable};

/// Builtins that tell what the optimiser knows or where it has put the code, and types that are
/// computed with in a wider one.
const NAMES: [&str; 9] = [
    "__builtin_constant_p",
    "__builtin_dynamic_object_size",
    "__builtin_frame_address",
    "__builtin_object_size",
    "__builtin_return_address",
    "__builtin_stack_address",
    "_Float16",
    "__bf16",
    "__fp16",
];

/// Attributes that choose options for one function. A literal stands behind them.
const ATTRIBUTES: [&str; 5] = ["target", "__target__", "target_clones", "optimize", "__optimize__"];

/// Pragmas about options and floating-point arithmetic, as the words behind `pragma`.
const PRAGMAS: [&str; 7] = [
    "GCC target",
    "GCC optimize",
    "STDC FP_CONTRACT",
    "STDC FENV_ACCESS",
    "clang fp",
    "clang attribute",
    "float_control",
];

/// A construct of that kind in some of the unit's tokens.
pub fn construct(all: &Tokens, parts: impl Iterator<Item = (u32, u32)>) -> Option<String> {
    pragma(all).or_else(|| parts.into_iter().find_map(|part| name(all, part)))
}

/// Those of the system's headers are for the functions in them, which are inlined always or never.
fn pragma(all: &Tokens) -> Option<String> {
    let text =
        |text: &[u8]| readable(text).split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let is_such = |text: &String| {
        let is_parallel =
            text.starts_with("omp ") && (text.contains("simd") || text.contains("reduction"));
        is_parallel || PRAGMAS.iter().any(|start| text.starts_with(start))
    };
    let own = all.pragmas.iter().filter(|pragma| !pragma.is_system);
    own.map(|pragma| text(pragma.text)).find(is_such).map(|text| format!("#pragma {text}"))
}

fn name(all: &Tokens, (from, to): (u32, u32)) -> Option<String> {
    let tokens = &all.tokens[from as usize..to as usize];
    let named = tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Identifier);
    let mut spelled = named.map(|(index, token)| (index, all.spelling(token)));
    let found = spelled.find(|(index, spelling)| {
        let is_attribute = || {
            let behind = tokens.get(index + 1..index + 3).unwrap_or_default();
            matches!(behind, [open, text] if open.kind == TokenKind::OpenParen && text.kind == TokenKind::Text)
        };
        NAMES.iter().any(|name| name.as_bytes() == *spelling)
            || ATTRIBUTES.iter().any(|name| name.as_bytes() == *spelling) && is_attribute()
    });
    found.map(|(_, spelling)| readable(spelling))
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn found(text: &str) -> Option<String> {
        read(text.as_bytes())
            .unwrap_or_else(|problem| panic!("{problem}: {text}"))
            .depends_on_inlining
    }

    #[test]
    fn constructs_are_found_where_they_count() {
        assert_eq!(
            found("int f(int x) { return __builtin_constant_p(x); }").as_deref(),
            Some("__builtin_constant_p")
        );
        assert_eq!(
            found("static inline int f(int x) { return __builtin_constant_p(x); } int g;"),
            None
        );
        assert!(
            found("static inline int f(int x) { return __builtin_constant_p(x); } int g(void) { return f(1); }")
                .is_some()
        );
        assert!(found("__attribute__((target(\"fma\"))) int f(void) { return 1; }").is_some());
        assert!(found("int f(void) __attribute__((__optimize__(\"fast-math\"))); int f(void) { return 1; }").is_some());
        assert_eq!(found("int f(int target) { return target; }"), None);
        assert!(found("#pragma STDC FP_CONTRACT ON\nint x;").is_some());
        assert!(
            found(
                "int f(int *x) { int s = 0;\n#pragma omp simd reduction(+:s)\nfor (;;) s += *x; }"
            )
            .is_some()
        );
        assert_eq!(found("#pragma pack(1)\nint x;"), None);
        assert_eq!(
            found("# 1 \"i.h\" 1 3\n#pragma GCC target(\"fma\")\n# 2 \"a.c\" 2\nint x;"),
            None
        );
    }
}
