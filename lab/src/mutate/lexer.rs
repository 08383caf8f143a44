//! C and C++ as a sequence of tokens: just enough to change one of them and know what it is.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    Number,
    /// A string or a character.
    Text,
    Sign,
    /// A whole line for the preprocessor.
    Directive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
    /// How many braces are open before it.
    pub depth: usize,
}

const SIGNS: [&str; 26] = [
    "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=",
    "%=", "^=", "|=", "&=", "++", "--", "->", "::", "##", ".*", "?:",
];

/// The tokens of a text; comments and spaces lie between them.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut depth) = (Vec::new(), 0, 0usize);
    while at < bytes.len() {
        let start = at;
        let rest = &text[at..];
        let kind = match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                continue;
            }
            b'#' if text[..at].ends_with('\n') || at == 0 => {
                at += rest.find('\n').unwrap_or(rest.len());
                TokenKind::Directive
            }
            b'"' | b'\'' => {
                at += quoted(rest.as_bytes());
                TokenKind::Text
            }
            b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
                at += rest.bytes().take_while(is_part).count();
                TokenKind::Number
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                at += rest.bytes().take_while(is_part).count();
                TokenKind::Word
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                at += sign.map_or_else(
                    || rest.chars().next().map_or(1, char::len_utf8),
                    |sign| sign.len(),
                );
                TokenKind::Sign
            }
        };
        if &text[start..at] == "}" {
            depth = depth.saturating_sub(1);
        }
        found.push(Token { kind, range: start..at, depth });
        if &text[start..at] == "{" {
            depth += 1;
        }
    }
    found
}

/// The length of a quoted text.
fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_a_reader_would_say() {
        let text = "#include \"a.h\"\nint f(int a) { /* no */ return a<<=1u ? 'x' : \"q\\\"r\"[0]; } // end";
        let found: Vec<&str> =
            tokens(text).iter().map(|token| &text[token.range.clone()]).collect();
        let expected = [
            "#include \"a.h\"",
            "int",
            "f",
            "(",
            "int",
            "a",
            ")",
            "{",
            "return",
            "a",
            "<<=",
            "1u",
            "?",
            "'x'",
            ":",
            "\"q\\\"r\"",
            "[",
            "0",
            "]",
            ";",
            "}",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            tokens("a { b } c").iter().map(|token| token.depth).collect::<Vec<_>>(),
            [0, 0, 1, 0, 0]
        );
    }
}
