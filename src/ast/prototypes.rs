//! Plain prototypes that a unit does not need: whether a compiler warns about one, or about
//! anything else because of one, does not depend on the rest of the unit.
//!
//! Diagnostics about a prototype follow from its words, from the types that it names, from the
//! options, and from the rest of the unit only by way of names, pragmas and the words for
//! nullability. So a removable prototype has nothing but plain words, stands outside of system
//! headers and before all pragmas, its types were declared before it, its own name occurs nowhere
//! else, and its parameters share no name with anything at file scope. Functions that compilers
//! know as built-ins are compared with each other, and are left out.

use super::closure::Closure;
use super::declarations::{EntityId, NOTHING, Piece, Role, Traits};
use super::hashing::Hashing;
use super::kinds::TokenKind;
use super::lexer::{Pragma, Tokens};
use super::library;
use super::names::FIRST_OWN;
use crate::model::Hash;
use std::ops::Range;

/// A declaration that the unit could do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovablePrototype {
    /// The whole lines of the text that it takes.
    pub place: Range<usize>,
    /// It, and the types that it uses.
    pub hash: Hash,
    /// Where it begins.
    pub file: String,
    pub line: u32,
}

/// Clang expects all pointers of a file to have one of them as soon as one has.
const NULLABILITY: [&[u8]; 4] =
    [b"_Nonnull", b"_Nullable", b"_Null_unspecified", b"_Nullable_result"];

/// All of a unit, in the order of the text.
pub fn find(hashing: &mut Hashing, closure: &mut Closure) -> Vec<RemovablePrototype> {
    let all = hashing.all;
    let Some(finder) = Finder::new(hashing) else { return Vec::new() };
    let mut found: Vec<RemovablePrototype> = Vec::new();
    for id in 0..hashing.declarations().entities.len() as EntityId {
        if let Some((first, place)) = finder.place(hashing, id) {
            let (file, line) = (super::lexer::readable(all.file(first)), all.tokens[first].line);
            found.push(RemovablePrototype { place, hash: closure.of(hashing, id), file, line });
        }
    }
    found.sort_unstable_by_key(|prototype| prototype.place.start);
    found
}

struct Finder {
    /// By name: how often it stands in the text, two for more.
    times: Vec<u8>,
    /// By name: something at file scope is called so.
    is_taken: Vec<bool>,
    /// The tokens with which declarations at file scope begin.
    starts: Vec<u32>,
}

impl Finder {
    /// `None` for a unit with words for nullability.
    fn new(hashing: &Hashing) -> Option<Self> {
        let all = hashing.all;
        let count = all.names.len();
        let mut finder =
            Finder { times: vec![0; count], is_taken: vec![false; count], starts: Vec::new() };
        let (mut depth, mut is_start) = (0u32, true);
        for (index, token) in (0..).zip(&all.tokens) {
            if depth == 0 && is_start {
                finder.starts.push(index);
            }
            is_start = matches!(token.kind, TokenKind::Semicolon | TokenKind::CloseBrace);
            match token.kind {
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth = depth.saturating_sub(1),
                TokenKind::Qualifier if NULLABILITY.contains(&all.spelling(token)) => return None,
                _ if token.name >= FIRST_OWN => {
                    let times = &mut finder.times[token.name as usize];
                    *times = (*times + 1).min(2);
                }
                _ => {}
            }
        }
        for entity in &hashing.declarations().entities {
            finder.is_taken[entity.name as usize] = true;
        }
        Some(finder)
    }

    /// The first token and the lines of an entity's declaration, if it is one that the unit could
    /// do without.
    fn place(&self, hashing: &Hashing, id: EntityId) -> Option<(usize, Range<usize>)> {
        let (all, declarations) = (hashing.all, hashing.declarations());
        let entity = &declarations.entities[id as usize];
        let name = all.names.spelling(entity.name);
        let is_ours = entity.role == Role::Function && self.times[entity.name as usize] == 1;
        if !is_ours || name.starts_with(b"_") || library::is_known(name) {
            return None;
        }
        let mut pieces = declarations.pieces_of(id);
        let piece = pieces.next().filter(|_| pieces.next().is_none())?;
        let (first, last) = (piece.specifiers.tokens.0, piece.own.tokens.1);
        let is_whole = piece.specifiers.tokens.1 == piece.own.tokens.0
            && self.starts.binary_search(&first).is_ok();
        let traits = Traits { is_extern: entity.traits.is_extern, ..Traits::default() };
        let is_plain = is_whole && entity.traits == traits && entity.label == NOTHING;
        if !is_plain
            || all.is_system(first as usize)
            || all.tokens[last as usize].kind != TokenKind::Semicolon
        {
            return None;
        }
        // Those behind it say something of names at the most.
        let is_meant = |pragma: &Pragma| {
            pragma.before <= last || memchr::memmem::find(pragma.text, name).is_some()
        };
        if all.pragmas.iter().any(is_meant) {
            return None;
        }
        let is_settled = |index: u32| self.is_settled(hashing, id, piece, index as usize);
        if !(first..last).all(is_settled) {
            return None;
        }
        Some((first as usize, lines(all, first as usize, last as usize)?))
    }

    /// A word of a declaration is plain, and means the same in every unit in which the declaration
    /// uses the same types.
    fn is_settled(&self, hashing: &Hashing, id: EntityId, piece: &Piece, index: usize) -> bool {
        let (all, declarations) = (hashing.all, hashing.declarations());
        let token = all.tokens[index];
        match token.kind {
            TokenKind::Extern
            | TokenKind::Qualifier
            | TokenKind::BasicType
            | TokenKind::Struct
            | TokenKind::Union => {
                return true;
            }
            TokenKind::Star
            | TokenKind::OpenParen
            | TokenKind::CloseParen
            | TokenKind::Comma
            | TokenKind::Ellipsis => {
                return true;
            }
            TokenKind::Identifier => {}
            _ => return false,
        }
        let before =
            (index > piece.specifiers.tokens.0 as usize).then(|| all.tokens[index - 1].kind);
        let is_tag = matches!(before, Some(TokenKind::Struct | TokenKind::Union));
        if !self.is_taken[token.name as usize] {
            return !is_tag;
        }
        if token.name == declarations.entities[id as usize].name {
            return true;
        }
        let role = if is_tag { Role::Structure } else { Role::Type };
        // Behind another type it would be a parameter's name.
        let is_type = is_tag
            || matches!(
                before,
                None | Some(
                    TokenKind::OpenParen
                        | TokenKind::Comma
                        | TokenKind::Qualifier
                        | TokenKind::Extern
                )
            );
        let is_such = |used: EntityId| {
            let used = &declarations.entities[used as usize];
            let first = declarations.pieces.get(used.first as usize);
            let is_before =
                first.is_some_and(|first| first.own.tokens.1 <= piece.specifiers.tokens.0);
            used.name == token.name && used.role == role && is_before
        };
        let mut uses =
            [piece.specifiers, piece.own].into_iter().flat_map(|part| declarations.uses_of(part));
        is_type && uses.any(|used| is_such(used.entity))
    }
}

/// The lines from one token to another, if there is nothing else on them.
fn lines(all: &Tokens, first: usize, last: usize) -> Option<Range<usize>> {
    let (first, last) = (all.tokens[first].start as usize, all.tokens[last].start as usize);
    let start = memchr::memrchr(b'\n', &all.text[..first]).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', &all.text[last..]).map_or(all.text.len(), |end| last + end + 1);
    let is_blank = |text: &[u8]| text.iter().all(u8::is_ascii_whitespace);
    let has_others = memchr::memchr(b'#', &all.text[first..last]).is_some();
    let is_alone =
        is_blank(&all.text[start..first]) && is_blank(&all.text[last + 1..end]) && !has_others;
    is_alone.then_some(start..end)
}
