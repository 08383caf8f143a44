//! A preprocessed unit as tokens, with its pragmas and the files that it comes from.

use super::kinds::TokenKind;
use super::names::{Name, Names};
use super::problem::Problem;
use crate::model::{Hash, Hasher};

/// One token. Sizes and places fit into 32 bits: larger texts are refused.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub start: u32,
    pub length: u32,
    /// Of identifiers and words, and of literals that are the names of symbols in attributes.
    pub name: Name,
    /// In the file that the last linemarker names.
    pub line: u32,
    pub kind: TokenKind,
}

/// A line `#pragma` or `#ident`.
#[derive(Clone, Copy, Debug)]
pub struct Pragma<'a> {
    /// The number of the token behind it.
    pub before: u32,
    /// What stands behind the `#`.
    pub text: &'a [u8],
    /// It stands in a header of the system's.
    pub is_system: bool,
}

/// From the token with this number on, the text comes from this file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub from: u32,
    pub file: &'a [u8],
    /// It is a header of the system's, or what comes from a macro of one.
    pub is_system: bool,
}

/// A unit as tokens. The last one is of the kind `End`.
pub struct Tokens<'a> {
    pub text: &'a [u8],
    pub tokens: Vec<Token>,
    pub pragmas: Vec<Pragma<'a>>,
    pub sources: Vec<Source<'a>>,
    pub names: Names<'a>,
}

impl<'a> Tokens<'a> {
    /// How a token is written.
    #[inline]
    pub fn spelling(&self, token: &Token) -> &'a [u8] {
        &self.text[token.start as usize..(token.start + token.length) as usize]
    }

    /// The pragmas behind the first and before the last of some tokens, or right behind it.
    pub fn pragmas_within(&self, (from, to): (u32, u32)) -> impl Iterator<Item = &Pragma<'a>> {
        let first = self.pragmas.partition_point(|pragma| pragma.before <= from);
        self.pragmas[first..].iter().take_while(move |pragma| pragma.before <= to)
    }

    /// The hash of what is written, whatever it means.
    pub fn hash_of_text(&self, (from, to): (u32, u32)) -> Hash {
        let mut hasher = Hasher::new("text");
        for token in &self.tokens[from as usize..to as usize] {
            hasher.bytes(self.spelling(token));
        }
        hasher.finish()
    }

    /// The file that a token comes from.
    pub fn file(&self, index: usize) -> &'a [u8] {
        let next = self.sources.partition_point(|source| source.from as usize <= index);
        next.checked_sub(1).map_or(b"", |at| self.sources[at].file)
    }

    /// Whether a token comes from a header of the system's.
    pub fn is_system(&self, index: usize) -> bool {
        let next = self.sources.partition_point(|source| source.from as usize <= index);
        next.checked_sub(1).is_some_and(|at| self.sources[at].is_system)
    }

    /// A problem with a token.
    pub fn problem(&self, index: usize, reason: impl Into<String>) -> Problem {
        let line = self.tokens.get(index).map_or(0, |token| token.line);
        Problem { file: readable(self.file(index)), line, reason: reason.into() }
    }
}

/// Text for people.
pub fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
