//! Parts of the text → hashes.
//!
//! What is hashed of a part is how its tokens are written, the pragmas between them, and what its names refer to.

use super::declarations::{Declarations, EntityId, Part, Piece, Role};
use super::kinds::Kind;
use super::lexer::Tokens;
use super::parser::Parsed;
use crate::model::{Hash, Hasher};

/// Hashes what was parsed.
pub struct Hashing<'t, 'a> {
    pub all: &'t Tokens<'a>,
    pub parsed: &'t Parsed,
    buffer: Vec<u8>,
}

impl<'t, 'a> Hashing<'t, 'a> {
    pub fn new(all: &'t Tokens<'a>, parsed: &'t Parsed) -> Self {
        Hashing { all, parsed, buffer: Vec::new() }
    }

    pub fn declarations(&self) -> &'t Declarations {
        &self.parsed.declarations
    }

    /// A part by itself: what it refers to counts by name and kind only.
    pub fn part(&mut self, part: Part) -> Hash {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.write_tokens(&mut buffer, part.tokens);
        let declarations = self.declarations();
        for used in declarations.uses_of(part) {
            let entity = &declarations.entities[used.entity as usize];
            buffer.push(entity.role as u8);
            buffer.extend(used.seen.to_le_bytes());
            buffer.extend(self.all.names.spelling(entity.name));
            buffer.push(b'\n');
        }
        let hash = Hash::of(&buffer);
        self.buffer = buffer;
        hash
    }

    /// The tokens, each on a line of its own: no token has a line's end within.
    fn write_tokens(&self, buffer: &mut Vec<u8>, (from, to): (u32, u32)) {
        let mut pragmas = self.all.pragmas_within((from, to)).peekable();
        for (index, token) in (from..to).zip(&self.all.tokens[from as usize..to as usize]) {
            while let Some(pragma) = pragmas.next_if(|pragma| pragma.before == index) {
                buffer.push(b'#');
                buffer.extend(pragma.text);
                buffer.push(b'\n');
            }
            buffer.extend(self.all.spelling(token));
            buffer.push(b'\n');
            if token.kind == Kind::Position {
                buffer.extend(self.all.file(index as usize));
                buffer.push(b'\n');
                buffer.extend(token.line.to_le_bytes());
            }
        }
        for pragma in pragmas {
            buffer.push(b'#');
            buffer.extend(pragma.text);
            buffer.push(b'\n');
        }
        buffer.push(0);
    }

    /// One declaration.
    fn piece(&mut self, hasher: &mut Hasher, piece: &Piece) {
        hasher.hash(self.parsed.pragmas.states[piece.state as usize].0);
        hasher.hash(self.part(piece.specifiers));
        hasher.hash(self.part(piece.own));
    }

    /// All declarations of an entity, without what they refer to. With the initialiser where that is asked for.
    pub fn entity(&mut self, id: EntityId, with_value: bool) -> Hash {
        let declarations = self.declarations();
        let entity = &declarations.entities[id as usize];
        let mut hasher = Hasher::new("entity");
        hasher.number(entity.role as u64).bytes(self.all.names.spelling(entity.name));
        if let Some(value) = entity.value {
            return hasher.number(value as u64).finish();
        }
        for piece in declarations.pieces_of(id) {
            if !piece.is_repeated {
                self.piece(&mut hasher, piece);
            }
            if with_value {
                hasher.hash(self.part(piece.initialiser));
            }
        }
        hasher.finish()
    }

    /// Where the tokens of a part stand.
    pub fn positions(&mut self, hasher: &mut Hasher, part: Part) {
        let (from, to) = part.tokens;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut source = self.all.sources.partition_point(|source| source.from <= from);
        let file = source.checked_sub(1).map_or(&b""[..], |at| self.all.sources[at].file);
        buffer.extend(file);
        buffer.push(b'\n');
        let (mut line, mut line_start) = (u32::MAX, 0);
        for (index, token) in (from..to).zip(&self.all.tokens[from as usize..to as usize]) {
            while let Some(next) = self.all.sources.get(source).filter(|next| next.from <= index) {
                buffer.extend(next.file);
                buffer.push(b'\n');
                source += 1;
                line = u32::MAX;
            }
            if token.line != line {
                line = token.line;
                line_start = memchr::memrchr(b'\n', &self.all.text[..token.start as usize]).map_or(0, |at| at + 1);
            }
            buffer.extend(token.line.to_le_bytes());
            buffer.extend((token.start - line_start as u32).to_le_bytes());
        }
        hasher.bytes(&buffer);
        self.buffer = buffer;
    }

    /// Whether an entity is something that other definitions contain.
    pub fn is_linked(&self, id: EntityId) -> bool {
        matches!(self.declarations().entities[id as usize].role, Role::Function | Role::Variable | Role::Undeclared)
    }
}
