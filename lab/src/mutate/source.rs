//! A source text with its tokens, and questions about them.

use super::Edits;
use super::lexer::{Token, TokenKind, tokens};

/// A text with its tokens.
pub struct Source<'s> {
    pub text: &'s str,
    pub tokens: Vec<Token>,
    /// Functions that can stand in each other's places.
    pub alike: &'s [String],
}

pub const TYPE_WORDS: [&str; 9] =
    ["unsigned", "int", "short", "char", "long", "float", "double", "signed", "auto"];
pub const NUMBER_TYPES: [&str; 8] = [
    "unsigned char",
    "short",
    "signed char",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
];
/// What a statement that can be left out does not start with.
pub const KEPT: [&str; 22] = [
    "return", "case", "default", "break", "goto", "if", "else", "for", "while", "do", "switch",
    "static", "struct", "const", "union", "throw", "try", "catch", "using", "typedef", "extern",
    "TICK",
];

impl<'s> Source<'s> {
    pub fn new(text: &'s str, alike: &'s [String]) -> Source<'s> {
        Source { text, tokens: tokens(text), alike }
    }

    /// Where the tokens start.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        self.tokens.iter().map(|token| token.range.start)
    }

    /// What stands outside of everything else, from its first word to its brace or semicolon.
    pub fn definitions(&self) -> Vec<std::ops::Range<usize>> {
        let (mut found, mut start) = (Vec::new(), 0);
        for at in 0..self.tokens.len() {
            let is_end = match self.word(at) {
                ";" => self.tokens[at].depth == 0,
                "}" => self.tokens[at].depth == 0 && ![";", ",", "="].contains(&self.word(at + 1)),
                _ => false,
            };
            if is_end {
                found.push(self.tokens[start].range.start..self.tokens[at].range.end);
                start = at + 1;
            }
        }
        found
    }

    /// Two parts change places.
    pub fn swap(&self, one: &std::ops::Range<usize>, other: &std::ops::Range<usize>) -> Edits {
        swapped(self, one, other)
    }

    pub fn word(&self, at: usize) -> &'s str {
        self.tokens.get(at).map_or("", |token| &self.text[token.range.clone()])
    }

    /// Whether an operator at a place has something before it that it works on.
    pub fn is_binary(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let ends = [")", "]"].contains(&self.word(before));
        ends || self.tokens[before].kind == TokenKind::Number
            || self.tokens[before].kind == TokenKind::Word
                && !["return", "case"].contains(&self.word(before))
                && !TYPE_WORDS.contains(&self.word(before))
    }

    pub fn replace(&self, at: usize, with: impl Into<String>) -> Edits {
        vec![(self.tokens[at].range.clone(), with.into())]
    }

    pub fn of_kind(&self, kind: TokenKind) -> impl Iterator<Item = usize> {
        (0..self.tokens.len()).filter(move |at| self.tokens[*at].kind == kind)
    }

    /// The place of the bracket that closes the one at `open`.
    pub fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.word(at) {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }

    /// The parts between the commas of a bracket, as ranges of text.
    pub fn parts(&self, open: usize) -> Vec<std::ops::Range<usize>> {
        let Some(close) = self.closing(open) else { return Vec::new() };
        let (mut parts, mut start, mut at) = (Vec::new(), open + 1, open + 1);
        while at <= close {
            match self.word(at) {
                "(" | "{" | "[" => at = self.closing(at).unwrap_or(close),
                "," | ")" | "}" | "]" => {
                    if start < at {
                        parts.push(self.tokens[start].range.start..self.tokens[at - 1].range.end);
                    }
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        parts
    }

    /// Simple statements that can be left out.
    pub fn statements(&self) -> Vec<std::ops::Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let is_start = at > 0
                && [";", "{", "}", ":"].contains(&self.word(at - 1))
                && self.tokens[at].depth > 0;
            let first = self.word(at);
            let fits = is_start
                && self.tokens[at].kind == TokenKind::Word
                && !KEPT.contains(&first)
                && !TYPE_WORDS.contains(&first);
            if fits
                && let Some(end) = (at..self.tokens.len())
                    .find(|end| [";", "{", "}", ":"].contains(&self.word(*end)))
            {
                if self.word(end) == ";" {
                    found.push(self.tokens[at].range.start..self.tokens[end].range.end);
                }
                at = end;
            }
            at += 1;
        }
        found
    }

    /// Names of functions that are defined here outside of everything else.
    pub fn defined(&self) -> Vec<&'s str> {
        let is_one = |at: &usize| {
            self.tokens[*at].depth == 0
                && self.word(at + 1) == "("
                && self.closing(at + 1).is_some_and(|close| self.word(close + 1) == "{")
        };
        self.of_kind(TokenKind::Word)
            .filter(is_one)
            .map(|at| self.word(at))
            .filter(|name| *name != "main" && *name != "note")
            .collect()
    }

    pub fn renamed(&self, from: &str, to: &str, also: bool) -> Edits {
        let word = |at: usize| match self.word(at) {
            word if word == from => Some((self.tokens[at].range.clone(), to.to_owned())),
            word if also && word == to => Some((self.tokens[at].range.clone(), from.to_owned())),
            _ => None,
        };
        self.of_kind(TokenKind::Word).filter_map(word).collect()
    }
}

pub fn swapped(
    source: &Source,
    one: &std::ops::Range<usize>,
    other: &std::ops::Range<usize>,
) -> Edits {
    vec![
        (one.clone(), source.text[other.clone()].to_owned()),
        (other.clone(), source.text[one.clone()].to_owned()),
    ]
}
