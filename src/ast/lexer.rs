//! Preprocessed text → tokens, pragmas and the places that linemarkers name.
//!
//! White space, comments and layout end here. A pragma stands beside the tokens, with the number of
//! the token that follows it: no grammar has to know where one may stand.

use super::kinds::{TokenKind, WORDS};
use super::names::{FIRST_GIVEN, Name, Names};
use super::problem::Problem;
pub use super::tokens::{Pragma, Source, Token, Tokens, readable};

/// Reads a whole unit.
pub fn tokens(text: &[u8]) -> Result<Tokens<'_>, Problem> {
    if text.len() > i32::MAX as usize {
        return Err(Problem {
            file: String::new(),
            line: 0,
            reason: "it has more than 2 GB".to_owned(),
        });
    }
    let all = Tokens {
        text,
        tokens: Vec::with_capacity(text.len() / 3 + 1),
        pragmas: Vec::new(),
        sources: Vec::new(),
        names: Names::new(),
    };
    Lexer { all, at: 0, line: 1 }.run()
}

/// The attributes that name another symbol by a literal.
const NAMING_A_SYMBOL: [&[u8]; 6] =
    [b"alias", b"__alias__", b"ifunc", b"__ifunc__", b"weakref", b"__weakref__"];

// What a byte may begin or go on with.
const NAME: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        classes[byte] = match value {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => NAME,
            b'0'..=b'9' => DIGIT,
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

struct Lexer<'a> {
    all: Tokens<'a>,
    at: usize,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn run(mut self) -> Result<Tokens<'a>, Problem> {
        let text = self.all.text;
        let mut line_begins = true;
        while let Some(&byte) = text.get(self.at) {
            if is(byte, SPACE) {
                self.at += 1;
                continue;
            }
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    line_begins = true;
                    continue;
                }
                b'#' if line_begins => {
                    self.directive()?;
                    continue;
                }
                b'/' if matches!(self.byte(1), b'*' | b'/') => {
                    self.comment()?;
                    continue;
                }
                _ => {}
            }
            line_begins = false;
            if is(byte, NAME) || byte == b'\\' {
                self.name()?;
            } else if is(byte, DIGIT) || byte == b'.' && is(self.byte(1), DIGIT) {
                self.number();
            } else if byte == b'"' || byte == b'\'' {
                self.literal(self.at)?;
            } else {
                self.punctuation(byte)?;
            }
        }
        self.push(TokenKind::End, self.at, 0);
        Ok(self.all)
    }

    #[inline]
    fn byte(&self, ahead: usize) -> u8 {
        self.all.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    #[inline]
    fn push(&mut self, kind: TokenKind, start: usize, name: Name) {
        let length = (self.at - start) as u32;
        self.all.tokens.push(Token { start: start as u32, length, name, line: self.line, kind });
    }

    fn fail<T>(&self, reason: &str) -> Result<T, Problem> {
        let file = self.all.sources.last().map_or(String::new(), |source| readable(source.file));
        Err(Problem { file, line: self.line, reason: reason.to_owned() })
    }

    #[inline]
    fn name(&mut self) -> Result<(), Problem> {
        let text = self.all.text;
        let start = self.at;
        loop {
            let rest = &text[self.at..];
            self.at += rest.iter().position(|&byte| !is(byte, NAME | DIGIT)).unwrap_or(rest.len());
            if self.byte(0) != b'\\' {
                break;
            }
            // A universal character name is the only use of a backslash outside of literals.
            let digits = match self.byte(1) {
                b'u' => 4,
                b'U' => 8,
                _ => return self.fail("a backslash outside of a literal"),
            };
            self.at = (self.at + 2 + digits).min(text.len());
        }
        let spelling = &text[start..self.at];
        let next = self.byte(0);
        if (next == b'"' || next == b'\'') && spelling.len() <= 3 && self.is_prefix(spelling)? {
            return self.literal(start);
        }
        let name = self.all.names.number(spelling);
        let kind = if name < FIRST_GIVEN { WORDS[name as usize].1 } else { TokenKind::Identifier };
        self.push(kind, start, name);
        Ok(())
    }

    /// Whether a name right before a quote belongs to the literal.
    fn is_prefix(&self, spelling: &[u8]) -> Result<bool, Problem> {
        match spelling {
            b"L" | b"u" | b"U" | b"u8" => Ok(true),
            b"R" | b"LR" | b"uR" | b"UR" | b"u8R" if self.byte(0) == b'"' => {
                self.fail("a raw string")
            }
            _ => Ok(false),
        }
    }

    /// From the quote at `self.at`; the token begins at `start`.
    fn literal(&mut self, start: usize) -> Result<(), Problem> {
        let text = self.all.text;
        let quote = text[self.at];
        self.at += 1;
        loop {
            let rest = &text[self.at..];
            let stop = memchr::memchr3(quote, b'\\', b'\n', rest);
            let Some(stop) = stop.filter(|&stop| rest[stop] != b'\n') else {
                return self.fail("a literal that does not end on its line");
            };
            self.at += stop + 1;
            if rest[stop] == quote {
                break;
            }
            if matches!(self.byte(0), 0 | b'\n') {
                return self.fail("a literal that does not end on its line");
            }
            self.at += 1;
        }
        if quote == b'\'' {
            self.push(TokenKind::Character, start, 0);
        } else {
            let name = if self.is_symbol() {
                self.all.names.number(&text[start + 1..self.at - 1])
            } else {
                0
            };
            self.push(TokenKind::Text, start, name);
        }
        Ok(())
    }

    /// Whether a literal stands behind `alias(` or the like.
    fn is_symbol(&self) -> bool {
        let [.., attribute, bracket] = &self.all.tokens[..] else { return false };
        bracket.kind == TokenKind::OpenParen
            && attribute.kind == TokenKind::Identifier
            && NAMING_A_SYMBOL.contains(&self.all.spelling(attribute))
    }

    fn number(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            let byte = self.byte(0);
            let before = self.all.text[self.at - 1];
            let is_sign =
                matches!(byte, b'+' | b'-') && matches!(before, b'e' | b'E' | b'p' | b'P');
            let is_separator =
                byte == b'\'' && (self.byte(1).is_ascii_alphanumeric() || self.byte(1) == b'_');
            if !(is(byte, NAME | DIGIT) || byte == b'.' || is_sign || is_separator) {
                break;
            }
            self.at += 1;
        }
        self.push(TokenKind::Number, start, 0);
    }

    fn comment(&mut self) -> Result<(), Problem> {
        let rest = &self.all.text[self.at + 2..];
        if self.byte(1) == b'/' {
            self.at += 2 + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            return Ok(());
        }
        let Some(end) = memchr::memmem::find(rest, b"*/") else {
            return self.fail("a comment that does not end");
        };
        self.line += memchr::memchr_iter(b'\n', &rest[..end]).count() as u32;
        self.at += 2 + end + 2;
        Ok(())
    }

    #[inline]
    fn punctuation(&mut self, byte: u8) -> Result<(), Problem> {
        let start = self.at;
        let (kind, length) = match (byte, self.byte(1)) {
            (b'(', _) => (TokenKind::OpenParen, 1),
            (b')', _) => (TokenKind::CloseParen, 1),
            (b'[', _) => (TokenKind::OpenBracket, 1),
            (b']', _) => (TokenKind::CloseBracket, 1),
            (b'{', _) => (TokenKind::OpenBrace, 1),
            (b'}', _) => (TokenKind::CloseBrace, 1),
            (b';', _) => (TokenKind::Semicolon, 1),
            (b',', _) => (TokenKind::Comma, 1),
            (b'?', _) => (TokenKind::Question, 1),
            (b'<', b':') => (TokenKind::OpenBracket, 2),
            (b':', b'>') => (TokenKind::CloseBracket, 2),
            (b'<', b'%') => (TokenKind::OpenBrace, 2),
            (b'%', b'>') => (TokenKind::CloseBrace, 2),
            (b':', _) => (TokenKind::Colon, 1),
            (b'.', b'.') if self.byte(2) == b'.' => (TokenKind::Ellipsis, 3),
            (b'.', _) => (TokenKind::Dot, 1),
            (b'-', b'>') => (TokenKind::Arrow, 2),
            (b'=', b'=') => (TokenKind::Operator, 2),
            (b'=', _) => (TokenKind::Assign, 1),
            (b'&', b'&') => (TokenKind::AndAnd, 2),
            (b'+', b'+') | (b'-', b'-') => (TokenKind::Step, 2),
            (b'<', b'<') | (b'>', b'>') => {
                (TokenKind::Operator, if self.byte(2) == b'=' { 3 } else { 2 })
            }
            (b'|', b'|') => (TokenKind::Operator, 2),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'!' | b'<' | b'>', b'=') => {
                (TokenKind::Operator, 2)
            }
            (b'*', _) => (TokenKind::Star, 1),
            (b'^', _) => (TokenKind::Caret, 1),
            (b'+' | b'-' | b'/' | b'%' | b'&' | b'|' | b'!' | b'~' | b'<' | b'>', _) => {
                (TokenKind::Operator, 1)
            }
            _ => return self.fail("a character that C does not have"),
        };
        self.at += length;
        self.push(kind, start, 0);
        Ok(())
    }

    /// A line that begins with `#`.
    fn directive(&mut self) -> Result<(), Problem> {
        let rest = &self.all.text[self.at + 1..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest[..end].trim_ascii();
        let word_end = line.iter().position(|&byte| !is(byte, NAME)).unwrap_or(line.len());
        match &line[..word_end] {
            b"" if line.is_empty() => {}
            b"" => return self.linemarker(line, end),
            b"line" => return self.linemarker(line[word_end..].trim_ascii(), end),
            b"pragma" if memchr::memmem::find(line, b"pch_preprocess").is_some() => {
                return self.fail("a precompiled header");
            }
            b"pragma" | b"ident" | b"sccs" => {
                let before = self.all.tokens.len() as u32;
                let is_system = self.all.sources.last().is_some_and(|source| source.is_system);
                self.all.pragmas.push(Pragma { before, text: line, is_system });
            }
            _ => return self.fail("a directive that the preprocessor should have carried out"),
        }
        self.at += 1 + end;
        Ok(())
    }

    /// `12 "file.h" 1 3`: the next line is line 12 of that file.
    fn linemarker(&mut self, marker: &'a [u8], end: usize) -> Result<(), Problem> {
        let digits = marker.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(marker.len());
        let number = std::str::from_utf8(&marker[..digits])
            .ok()
            .and_then(|digits| digits.parse::<u32>().ok());
        let Some(number) = number else { return self.fail("a linemarker without a number") };
        let quoted = marker[digits..].trim_ascii();
        if let Some(quoted) = quoted.strip_prefix(b"\"") {
            let Some(end) = memchr::memrchr(b'"', quoted) else {
                return self.fail("a linemarker whose file name does not end");
            };
            let (file, is_system) = (&quoted[..end], quoted[end..].contains(&b'3'));
            let from = self.all.tokens.len() as u32;
            self.all.sources.push(Source { from, file, is_system });
        }
        self.at = (self.at + 1 + end + 1).min(self.all.text.len());
        self.line = number;
        Ok(())
    }
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
