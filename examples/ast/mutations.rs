//! Random changes of a unit: of single tokens, and of whole declarations.

use crate::random::Random;
use crate::text::{Item, is_word, items, tokens};
use std::ops::Range;

/// Declarations that nobody uses; `@` becomes a number.
const UNUSED: &[&str] = &[
    "int unused_@(int a, char *b);",
    "typedef struct unused_@ { int a; struct unused_@ *next; } unused_type_@;",
    "enum { UNUSED_A_@ = 3, UNUSED_B_@ };",
    "static inline int unused_@(int a) { int b = a * 3; return b - 7; }",
    "static inline __attribute__((always_inline)) const char *unused_@(int a) { return a ? \"unused text\" : \"other\"; }",
    "static inline double unused_@(double a) { struct { double x[9]; } v = { { a, 2.5 } }; return v.x[1] * 1e9; }",
    "static inline void unused_@(void (*f)(int)) { for (int i = 0; i < 9; i++) { f(i); } }",
    "static inline int unused_@(int a) { static int n; n += a; return n; }",
    "static inline const char *unused_@(void) { return __func__; }",
    "static inline int unused_@(int a) { extern int other_@(int) __attribute__((weak)); return other_@(a); }",
    "static inline int unused_@(int a) { switch (a) { case 1: return 9; case 2: return 4; case 3: return 77; case 4: return 5; case 5: return 0; } return 3; }",
    "static inline int unused_@(int a) { asm volatile(\"nop\" : \"+r\"(a)); return a; }",
    "static inline const int *unused_@(int a) { const int *p = (const int[]){ 1, 2, 3 }; return p + a; }",
    "extern __inline __attribute__((__gnu_inline__)) int unused_@(int a) { return a; }",
    "extern int unused_@ __attribute__((weak));",
    "extern int unused_@(void) __attribute__((visibility(\"hidden\"), noreturn));",
    "extern const char *const unused_@[];",
    "struct unused_@;",
    "struct unused_@ { unsigned a : 3; union { int b; float c; }; char d[]; };",
    "_Static_assert(sizeof(int) == 4, \"size\");",
    "char *stpcpy(char *, const char *);",
    "int puts(const char *) __asm__(\"other_puts\");",
    "static int unused_@(int a) { return a; }",
    "static int unused_@;",
    "static const int unused_@[] = { 1, 2 };",
    "int unused_@;",
    "register long unused_@ __asm__(\"r15\");",
    "typedef int unused_@ __attribute__((aligned(32)));",
    "\n#pragma GCC diagnostic push\n",
    "\n#pragma pack(push, 2)\nstruct unused_@ { char a; int b; };\n#pragma pack(pop)\n",
    "\n#pragma GCC poison unused_word_@\n",
    "\n# 77 \"unused.h\" 1 3\n",
    "/* a comment */",
    "\n\n",
];

const WORDS: &[(&str, &[&str])] = &[
    ("int", &["long", "unsigned", "short"]),
    ("char", &["signed char", "short"]),
    ("long", &["int", "char"]),
    ("unsigned", &["signed", "const unsigned"]),
    ("static", &["", "static inline"]),
    ("extern", &["", "static"]),
    ("const", &["", "volatile"]),
    ("struct", &["union"]),
    ("inline", &["", "__attribute__((noinline))"]),
    ("+", &["-"]),
    ("-", &["+"]),
    ("*", &["**", "/"]),
    ("<", &["<=", ">"]),
    ("==", &["!="]),
    ("&&", &["||"]),
    (">>", &["<<"]),
    (
        ";",
        &[
            " __attribute__((weak));",
            " __attribute__((unused));",
            " __attribute__((aligned(32)));",
            ";;",
        ],
    ),
    (")", &[", int)", ") __attribute__((const))"]),
    ("}", &["int extra_member; }", ", EXTRA_ENUMERATOR }"]),
];

/// The kind of a change, and the changed text.
pub fn mutate(text: &str, random: &mut Random) -> (&'static str, String) {
    let tokens = tokens(text);
    let items = items(text, &tokens);
    // Most tokens of a unit are those of declarations that count: half of the changes are made to
    // whole declarations.
    loop {
        let changed = match random.below(12) {
            0 | 1 => ("a word exchanged", exchange_word(text, &tokens, random)),
            2 => ("a name exchanged", exchange_name(text, &tokens, random)),
            3 => ("a token left out", leave_out(text, &tokens[random.below(tokens.len())].clone())),
            4 => ("a token twice", twice(text, &tokens[random.below(tokens.len())].clone())),
            5 => ("a number changed", change_number(text, &tokens, random)),
            6 => ("a declaration left out", leave_out(text, &span(&tokens, random.choice(&items)))),
            7 => ("a declaration twice", twice(text, &span(&tokens, random.choice(&items)))),
            8 => ("declarations exchanged", exchange_items(text, &tokens, &items, random)),
            9 => ("a declaration moved", move_item(text, &tokens, &items, random)),
            _ => ("a declaration added", add(text, &tokens, &items, random)),
        };
        if let (kind, Some(changed)) = changed {
            return (kind, changed);
        }
    }
}

fn span(tokens: &[Range<usize>], item: &Item) -> Range<usize> {
    tokens[item.tokens.start].start..tokens[item.tokens.end - 1].end
}

fn replaced(text: &str, range: &Range<usize>, new: &str) -> String {
    format!("{} {new} {}", &text[..range.start], &text[range.end..])
}

fn leave_out(text: &str, range: &Range<usize>) -> Option<String> {
    Some(replaced(text, range, ""))
}

fn twice(text: &str, range: &Range<usize>) -> Option<String> {
    Some(replaced(text, range, &format!("{0}\n{0}", &text[range.clone()])))
}

fn exchange_word(text: &str, tokens: &[Range<usize>], random: &mut Random) -> Option<String> {
    let range = random.choice(tokens);
    let others = WORDS.iter().find(|(word, _)| *word == &text[range.clone()])?.1;
    let other: &&str = random.choice(others);
    Some(replaced(text, range, other))
}

fn exchange_name(text: &str, tokens: &[Range<usize>], random: &mut Random) -> Option<String> {
    let is_name = |range: &Range<usize>| {
        is_word(text.as_bytes()[range.start]) && !text.as_bytes()[range.start].is_ascii_digit()
    };
    let (one, other) = (random.choice(tokens), random.choice(tokens));
    (is_name(one) && is_name(other)).then(|| replaced(text, one, &text[other.clone()]))
}

fn change_number(text: &str, tokens: &[Range<usize>], random: &mut Random) -> Option<String> {
    let range = random.choice(tokens);
    let number: u64 = text[range.clone()].parse().ok()?;
    Some(replaced(text, range, &(number + 1).to_string()))
}

fn exchange_items(
    text: &str,
    tokens: &[Range<usize>],
    items: &[Item],
    random: &mut Random,
) -> Option<String> {
    let first = random.below(items.len().saturating_sub(1));
    let (one, other) = (span(tokens, items.get(first)?), span(tokens, items.get(first + 1)?));
    // What stands between them (linemarkers, pragmas) keeps its place.
    let parts = [
        &text[..one.start],
        &text[other.clone()],
        &text[one.end..other.start],
        &text[one.clone()],
        &text[other.end..],
    ];
    Some(parts.concat())
}

fn move_item(
    text: &str,
    tokens: &[Range<usize>],
    items: &[Item],
    random: &mut Random,
) -> Option<String> {
    let (from, to) = (span(tokens, random.choice(items)), span(tokens, random.choice(items)));
    let moved = &text[from.clone()];
    (from.end <= to.start)
        .then(|| {
            format!(
                "{}{}\n{moved}\n{}",
                &text[..from.start],
                &text[from.end..to.start],
                &text[to.start..]
            )
        })
        .or_else(|| {
            (to.end <= from.start).then(|| {
                format!(
                    "{}\n{moved}\n{}{}",
                    &text[..to.start],
                    &text[to.start..from.start],
                    &text[from.end..]
                )
            })
        })
}

fn add(text: &str, tokens: &[Range<usize>], items: &[Item], random: &mut Random) -> Option<String> {
    let at = span(tokens, random.choice(items)).start;
    let new = random.choice(UNUSED).replace('@', &random.below(1000).to_string());
    Some(format!("{}\n{new}\n{}", &text[..at], &text[at..]))
}
