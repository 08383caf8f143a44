//! What a name means at a place: two name spaces, and blocks that end.
//!
//! Names are numbers, so that a look-up is one access. What a block declares is noted, and taken
//! back at its end.

use super::declarations::EntityId;
use super::kinds::{GIVEN, Predefined, TokenKind};
use super::names::{FIRST_GIVEN, Name};

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(u32);

const FIRST_ENTITY: u32 = 1 << 10;
const FIRST_WORD: u32 = 1 << 9;
// Below an entity's number.
const TYPE: u32 = 1;
const FUNCTION_TYPE: u32 = 2;

impl Binding {
    pub const NONE: Binding = Binding(0);
    /// A local variable, parameter or enumerator.
    pub const LOCAL: Binding = Binding(1);
    pub const LOCAL_TYPE: Binding = Binding(2);
    /// The name of a type of functions.
    pub const LOCAL_FUNCTION_TYPE: Binding = Binding(3);
    /// A local name of the type of an expression, which could be a function's.
    pub const LOCAL_UNCLEAR: Binding = Binding(4);
    /// A type that the compiler knows by itself.
    pub const GIVEN_TYPE: Binding = Binding(5);
    pub const GIVEN_CONSTANT: Binding = Binding(6);

    /// A function, variable, enumerator or tag.
    pub fn entity(id: EntityId) -> Self {
        Binding(FIRST_ENTITY + (id << 2))
    }

    /// The name of a type.
    pub fn entity_type(id: EntityId, of_functions: bool) -> Self {
        Binding(Self::entity(id).0 | TYPE | if of_functions { FUNCTION_TYPE } else { 0 })
    }

    /// The entity, if it is one.
    #[inline]
    pub fn as_entity(self) -> Option<EntityId> {
        (self.0 >= FIRST_ENTITY).then(|| (self.0 - FIRST_ENTITY) >> 2)
    }

    /// Whether it names a type.
    #[inline]
    pub fn is_type(self) -> bool {
        match self {
            Binding(value) if value >= FIRST_ENTITY => value & TYPE != 0,
            Self::LOCAL_TYPE | Self::LOCAL_FUNCTION_TYPE | Self::GIVEN_TYPE => true,
            _ => false,
        }
    }

    /// Whether it names a type of functions.
    pub fn is_function_type(self) -> bool {
        self == Self::LOCAL_FUNCTION_TYPE || self.0 >= FIRST_ENTITY && self.0 & FUNCTION_TYPE != 0
    }

    /// The word of a newer standard that it still is.
    #[inline]
    pub fn as_word(self) -> Option<TokenKind> {
        let is_word = (FIRST_WORD..FIRST_ENTITY).contains(&self.0);
        is_word.then(|| GIVEN[(self.0 - FIRST_WORD) as usize].1).and_then(|given| match given {
            Predefined::Word(kind) => Some(kind),
            _ => None,
        })
    }
}

/// The two name spaces that have scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Ordinary,
    Tags,
}

/// A declaration that can be made again.
pub type Bound = (Space, Name, Binding);

/// The names in force.
pub struct Scope {
    ordinary: Vec<Binding>,
    tags: Vec<Binding>,
    /// What names meant before, for all open blocks.
    undo: Vec<Bound>,
    /// Where each open block begins in `undo`.
    blocks: Vec<usize>,
}

impl Scope {
    /// File scope, where only the compiler's own names are known.
    pub fn new(names: usize) -> Self {
        let mut ordinary = vec![Binding::NONE; names];
        for (index, (_, given)) in GIVEN.iter().enumerate() {
            ordinary[FIRST_GIVEN as usize + index] = match given {
                Predefined::Type => Binding::GIVEN_TYPE,
                Predefined::Constant => Binding::GIVEN_CONSTANT,
                Predefined::Word(_) => Binding(FIRST_WORD + index as u32),
            };
        }
        Scope { ordinary, tags: vec![Binding::NONE; names], undo: Vec::new(), blocks: Vec::new() }
    }

    /// Whether no block is open.
    pub fn is_file(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What an ordinary name means.
    #[inline]
    pub fn ordinary(&self, name: Name) -> Binding {
        self.ordinary[name as usize]
    }

    /// What a tag means.
    pub fn tag(&self, name: Name) -> Binding {
        self.tags[name as usize]
    }

    /// Declares a name in the innermost block.
    pub fn bind(&mut self, space: Space, name: Name, binding: Binding) {
        let table = match space {
            Space::Ordinary => &mut self.ordinary,
            Space::Tags => &mut self.tags,
        };
        let before = std::mem::replace(&mut table[name as usize], binding);
        if !self.blocks.is_empty() {
            self.undo.push((space, name, before));
        }
    }

    /// Begins a block.
    pub fn open(&mut self) {
        self.blocks.push(self.undo.len());
    }

    /// Ends the innermost block.
    pub fn close(&mut self) {
        self.close_with(|_| ());
    }

    /// Ends the innermost block, and tells what it had declared, in order.
    pub fn close_and_keep(&mut self) -> Vec<Bound> {
        let mut kept = Vec::new();
        self.close_with(|bound| kept.push(bound));
        kept.reverse();
        kept
    }

    fn close_with(&mut self, mut tell: impl FnMut(Bound)) {
        let from = self.blocks.pop().unwrap_or(0);
        for (space, name, before) in self.undo.drain(from..).rev() {
            let table = match space {
                Space::Ordinary => &mut self.ordinary,
                Space::Tags => &mut self.tags,
            };
            tell((space, name, table[name as usize]));
            table[name as usize] = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::names::FIRST_OWN;

    #[test]
    fn blocks_end() {
        let mut scope = Scope::new(FIRST_OWN as usize + 2);
        let (x, y) = (FIRST_OWN, FIRST_OWN + 1);
        scope.bind(Space::Ordinary, x, Binding::entity(7));
        scope.open();
        scope.bind(Space::Ordinary, x, Binding::LOCAL);
        scope.bind(Space::Tags, y, Binding::LOCAL);
        assert_eq!(
            (scope.ordinary(x), scope.tag(x), scope.tag(y)),
            (Binding::LOCAL, Binding::NONE, Binding::LOCAL)
        );
        assert_eq!(
            scope.close_and_keep(),
            [(Space::Ordinary, x, Binding::LOCAL), (Space::Tags, y, Binding::LOCAL)]
        );
        assert_eq!((scope.ordinary(x).as_entity(), scope.tag(y)), (Some(7), Binding::NONE));
    }

    #[test]
    fn kinds_of_bindings() {
        assert!(
            Binding::entity_type(3, true).is_function_type()
                && Binding::entity_type(3, false).is_type()
        );
        assert!(!Binding::entity(3).is_type() && Binding::entity(3).as_entity() == Some(3));
        let scope = Scope::new(FIRST_OWN as usize);
        let words: Vec<_> =
            (FIRST_GIVEN..FIRST_OWN).filter_map(|name| scope.ordinary(name).as_word()).collect();
        assert!(words.contains(&TokenKind::StaticAssert) && !words.contains(&TokenKind::If));
    }
}
