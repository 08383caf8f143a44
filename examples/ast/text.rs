//! Preprocessed text as tokens and declarations: a reader of its own, so that it does not share the
//! mistakes of what it tests.

use std::ops::Range;

/// Where the tokens stand. Directives are none.
pub fn tokens(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut line_begins = true;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                line_begins = true;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'#' if line_begins => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            byte if is_word(byte) => {
                let number = byte.is_ascii_digit();
                while at < bytes.len() && (is_word(bytes[at]) || number && bytes[at] == b'.') {
                    at += 1;
                }
            }
            _ => {
                let long = [
                    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                    "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
                ];
                at += long
                    .iter()
                    .find(|operator| text[at..].starts_with(**operator))
                    .map_or(1, |operator| operator.len());
            }
        }
        line_begins = false;
        found.push(start..at.min(bytes.len()));
    }
    found
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// A declaration at file scope, as a range of tokens.
pub struct Item {
    pub tokens: Range<usize>,
    /// The tokens between the braces of a function's body.
    pub body: Option<Range<usize>>,
}

/// The declarations of a unit.
pub fn items(text: &str, tokens: &[Range<usize>]) -> Vec<Item> {
    let word = |index: usize| &text[tokens[index].clone()];
    let mut found = Vec::new();
    let (mut start, mut depth, mut body) = (0, 0i32, None);
    for index in 0..tokens.len() {
        match word(index) {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "{" => {
                // Behind the declarations of parameters in the old style, which were taken for
                // items, nothing is left but the body.
                let is_old_style = index == start && index > 0;
                if depth == 0 && (is_old_style || index > start && word(index - 1) == ")") {
                    body = Some(index);
                }
                depth += 1;
            }
            "}" => {
                depth -= 1;
                if let (0, Some(first)) = (depth, body) {
                    found.push(Item { tokens: start..index + 1, body: Some(first + 1..index) });
                    (start, body) = (index + 1, None);
                }
            }
            ";" if depth == 0 => {
                found.push(Item { tokens: start..index + 1, body: None });
                start = index + 1;
            }
            _ => {}
        }
    }
    found
}
