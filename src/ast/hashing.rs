//! Parts of the text → hashes.
//!
//! What is hashed of a part is how its tokens are written, the pragmas between them, and what its
//! names refer to.

use super::declarations::{Declarations, EntityId, Part, Piece, Role};
use super::kinds::TokenKind;
use super::lexer::{Pragma, Token, Tokens};
use super::parser::Parsed;
use crate::model::Hash;

/// Tokens up to this length are copied at once.
const SHORT: usize = 16;
const ROOM: usize = 16;

/// Hashes what was parsed.
pub struct Hashing<'t, 'a> {
    pub all: &'t Tokens<'a>,
    pub parsed: &'t Parsed,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// The hashes of entities, without their values.
    entities: Vec<Option<Hash>>,
}

impl<'t, 'a> Hashing<'t, 'a> {
    pub fn new(all: &'t Tokens<'a>, parsed: &'t Parsed) -> Self {
        let entities = vec![None; parsed.declarations.entities.len()];
        Hashing { all, parsed, buffer: Vec::new(), scratch: Vec::new(), entities }
    }

    pub fn declarations(&self) -> &'t Declarations {
        &self.parsed.declarations
    }

    /// A part by itself: what it refers to counts by name and kind only.
    pub fn part(&mut self, part: Part) -> Hash {
        let mut end = self.write_tokens(part.tokens);
        let declarations = self.declarations();
        for used in declarations.uses_of(part) {
            let entity = &declarations.entities[used.entity as usize];
            self.buffer[end] = entity.role as u8;
            self.buffer[end + 1..end + 5].copy_from_slice(&used.seen.to_le_bytes());
            end = self.write(end + 5, self.all.names.spelling(entity.name));
        }
        Hash::of(&self.buffer[..end])
    }

    /// The tokens, each with the end of a line behind it, which no token has within. Where it ends
    /// in the buffer.
    fn write_tokens(&mut self, (from, to): (u32, u32)) -> usize {
        let all = self.all;
        let mut pragmas = all.pragmas_within((from, to)).peekable();
        let mut end = self.room_for(0, 0);
        for (index, token) in (from..to).zip(&all.tokens[from as usize..to as usize]) {
            while let Some(pragma) = pragmas.next_if(|pragma| pragma.before == index) {
                end = self.write_pragma(end, pragma);
            }
            end = self.write_token(end, token);
            if token.kind == TokenKind::Position {
                end = self.write(end, all.file(index as usize));
                end = self.write(end, &token.line.to_le_bytes());
            }
        }
        for pragma in pragmas {
            end = self.write_pragma(end, pragma);
        }
        self.write(end, b"\0")
    }

    #[inline]
    fn write_token(&mut self, end: usize, token: &Token) -> usize {
        let (start, length) = (token.start as usize, token.length as usize);
        // A copy of a fixed length needs no call. What is behind the token is overwritten.
        let short = self.all.text.get(start..start + SHORT).filter(|_| length <= SHORT);
        let (Some(short), Some(place)) = (short, self.buffer.get_mut(end..end + SHORT + ROOM))
        else {
            return self.write(end, &self.all.text[start..start + length]);
        };
        place[..SHORT].copy_from_slice(short);
        place[length] = b'\n';
        end + length + 1
    }

    fn write_pragma(&mut self, end: usize, pragma: &Pragma) -> usize {
        let end = self.write(end, b"#");
        self.write(end, pragma.text)
    }

    /// Some bytes and the end of a line.
    fn write(&mut self, end: usize, bytes: &[u8]) -> usize {
        self.room_for(end, bytes.len() + ROOM);
        self.buffer[end..end + bytes.len()].copy_from_slice(bytes);
        self.buffer[end + bytes.len()] = b'\n';
        end + bytes.len() + 1
    }

    /// Makes room behind the end for so many bytes, and a few more.
    fn room_for(&mut self, end: usize, bytes: usize) -> usize {
        if self.buffer.len() < end + bytes + 2 * ROOM {
            self.buffer.resize((end + bytes + 2 * ROOM) * 2, 0);
        }
        end
    }

    /// One declaration.
    fn piece(&mut self, scratch: &mut Vec<u8>, piece: &Piece) {
        scratch.extend(self.parsed.pragmas.states[piece.state as usize].0.0);
        scratch.extend(self.part(piece.specifiers).0);
        scratch.extend(self.part(piece.own).0);
    }

    /// All declarations of an entity, without what they refer to. With the initialiser where that
    /// is asked for.
    pub fn entity(&mut self, id: EntityId, with_value: bool) -> Hash {
        if let Some(hash) = self.entities[id as usize].filter(|_| !with_value) {
            return hash;
        }
        let hash = self.entity_anew(id, with_value);
        if !with_value {
            self.entities[id as usize] = Some(hash);
        }
        hash
    }

    fn entity_anew(&mut self, id: EntityId, with_value: bool) -> Hash {
        let declarations = self.declarations();
        let entity = &declarations.entities[id as usize];
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(self.all.names.spelling(entity.name));
        scratch.extend([b'\n', entity.role as u8, u8::from(entity.value.is_some())]);
        match entity.value {
            Some(value) => scratch.extend(value.to_le_bytes()),
            None => {
                for piece in declarations.pieces_of(id) {
                    if !piece.is_repeated {
                        self.piece(&mut scratch, piece);
                    }
                    if with_value {
                        scratch.extend(self.part(piece.initialiser).0);
                    }
                }
            }
        }
        let hash = Hash::of(&scratch);
        self.scratch = scratch;
        hash
    }

    /// Whether an entity is something that other definitions contain.
    pub fn is_linked(&self, id: EntityId) -> bool {
        matches!(
            self.declarations().entities[id as usize].role,
            Role::Function | Role::Variable | Role::Undeclared
        )
    }
}
