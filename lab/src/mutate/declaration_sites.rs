//! Where the declarations of a text can be changed: attributes, qualifiers, macros, includes. Each
//! function lists all places of its kind.

use super::Edits;
use super::lexer::{TokenKind, tokens};
use super::sites::{numbers, other_number};
use super::source::Source;
use crate::dice::Dice;

const ATTRIBUTES: [&str; 9] = [
    "noinline",
    "cold",
    "weak",
    "used",
    "aligned(64)",
    "always_inline",
    "hot",
    "visibility(\"hidden\")",
    "flatten",
];

pub fn attributes(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in 1..source.tokens.len() {
        let begins = source.tokens[at].depth == 0
            && [";", "}"].contains(&source.word(at - 1))
            && source.tokens[at].kind == TokenKind::Word;
        if begins {
            let start = source.tokens[at].range.start;
            found.push(vec![(
                start..start,
                format!("__attribute__(({})) ", dice.pick(&ATTRIBUTES)),
            )]);
        }
        if source.word(at) == "__attribute__"
            && let Some(close) = source.closing(at + 1)
        {
            found.push(vec![(
                source.tokens[at].range.start..source.tokens[close].range.end,
                String::new(),
            )]);
        }
    }
    found
}

pub fn qualifiers(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in 0..source.tokens.len() {
        match source.word(at) {
            "static" | "const" | "inline" | "volatile" | "noexcept" | "virtual" | "override" => {
                found.push(source.replace(at, ""))
            }
            "unsigned"
                if source.tokens[at].depth > 0
                    && at > 0
                    && [";", "{", "}"].contains(&source.word(at - 1)) =>
            {
                found.push(source.replace(at, "volatile unsigned"));
                // Others start with what is not known before the program runs.
                if source.word(at + 2) == "[" {
                    found.push(source.replace(at, "static unsigned"));
                }
            }
            "mutable" => found.push(source.replace(at, "")),
            _ => {}
        }
    }
    found
}

/// Numbers and signs in definitions of macros and enumerators.
pub fn macros(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in source.of_kind(TokenKind::Directive) {
        let (line, start) = (source.word(at), source.tokens[at].range.start);
        let Some(behind) = line.strip_prefix("#define ") else { continue };
        let offset = start + line.len() - behind.len();
        for token in tokens(behind).into_iter().skip(1) {
            let range = token.range.start + offset..token.range.end + offset;
            let word = &behind[token.range.clone()];
            let other = match word {
                "*" => Some("+".to_owned()),
                "^" => Some("|".to_owned()),
                _ if token.kind == TokenKind::Number => other_number(word, dice),
                _ if token.kind == TokenKind::Text => Some("\"changed\"".to_owned()),
                _ => None,
            };
            found.extend(other.map(|other| vec![(range, other)]));
        }
    }
    let enumerators = source
        .of_kind(TokenKind::Number)
        .filter(|at| *at > 1 && source.tokens[*at].depth > 0 && source.word(at - 1) == "=");
    let places = enumerators.filter(|at| [",", "}"].contains(&source.word(at + 1))).collect();
    found.extend(numbers(source, dice, places));
    found
}

pub fn includes(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let is_knobs = |at: &usize| source.word(*at) == "#include \"knobs.h\"";
    source
        .of_kind(TokenKind::Directive)
        .filter(is_knobs)
        .map(|at| source.replace(at, "#include \"knobs_other.h\""))
        .collect()
}
