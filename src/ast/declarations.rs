//! What a unit declares at file scope, and which text uses it.
//!
//! An *entity* is a function, variable, type name, enumerator or tag. Its *pieces* are its
//! declarations in source order. A *part* is a run of tokens together with the references made in
//! it; parts can be nested, as a structure lies within the declaration that defines it. A reference
//! records how many pieces of the entity had been seen: what a later declaration adds does not
//! exist for earlier uses.

use super::names::Name;
use crate::model::keys::Code;

/// The number of an entity.
pub type EntityId = u32;

/// What an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// A name that was used and never declared.
    Undeclared,
    Function,
    Variable,
    Type,
    Enumerator,
    /// The tag of a structure or union.
    Structure,
    /// The tag of an enumeration.
    Enumeration,
}

/// No piece, no entity.
pub const NOTHING: u32 = u32::MAX;

/// Something declared at file scope, or with linkage.
#[derive(Clone, Debug)]
pub struct Entity {
    pub name: Name,
    pub role: Role,
    pub traits: Traits,
    /// How many pieces it has that differ from each other.
    pub different: u32,
    pub first: u32,
    last: u32,
    /// Behind the last reference to it.
    referred: u32,
    /// The first literal of `asm("symbol")` behind one of its declarators.
    pub label: u32,
    /// Of an enumerator of a plain enumeration: all that a use of it depends on.
    pub value: Option<i32>,
}

/// What declarations say of an entity that matters to whether it is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub is_static: bool,
    pub is_inline: bool,
    pub is_extern: bool,
    pub gnu_inline: bool,
    /// It stands for another symbol that its attributes name, and is defined by that.
    pub is_alias: bool,
    /// Its uses are uses of another symbol.
    pub is_weak_reference: bool,
    /// It has an attribute that is not known to leave an unused function out of the object.
    pub is_special: bool,
}

impl Traits {
    /// What several declarations say together.
    pub fn join(&mut self, other: Traits) {
        self.is_static |= other.is_static;
        self.is_inline |= other.is_inline;
        self.is_extern |= other.is_extern;
        self.gnu_inline |= other.gnu_inline;
        self.is_alias |= other.is_alias;
        self.is_weak_reference |= other.is_weak_reference;
        self.is_special |= other.is_special;
    }
}

/// A run of tokens, and the references made in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub tokens: (u32, u32),
    pub references: (u32, u32),
}

impl Part {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.tokens.0 == self.tokens.1
    }
}

/// The beginning of a part.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub token: u32,
    pub reference: u32,
}

/// One declaration of an entity.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// What it shares with other declarators of the same declaration.
    pub specifiers: Part,
    pub own: Part,
    /// The initialiser of a variable.
    pub initialiser: Part,
    /// The pragmas in force.
    pub state: u32,
    /// It says the same as an earlier piece.
    pub is_repeated: bool,
    pub next: u32,
}

/// A use of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub entity: EntityId,
    /// How many different pieces of it had been seen. Not counted for structures: where a use needs
    /// the members, they must have been declared.
    pub seen: u32,
}

/// Something that the compiler makes code or data of, or that decides whether it compiles at all.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub sort: Sort,
    /// `NOTHING` for assembler and assertions.
    pub entity: EntityId,
    pub piece: u32,
    /// The body of a function; all of it for assembler and assertions.
    pub body: Part,
    /// The pragmas in force, with those that only concern warnings.
    pub state: u32,
    pub has_assembler: bool,
    /// Its body can have an effect on the object though nobody calls it: numbered names,
    /// declarations with linkage.
    pub has_effects: bool,
    /// What this very declaration says.
    pub traits: Traits,
}

/// What a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Function,
    Variable,
    Alias,
    Assembler,
    Assertion,
}

impl Code for Sort {
    fn code(self) -> u64 {
        match self {
            Sort::Function => 0,
            Sort::Variable => 1,
            Sort::Alias => 2,
            Sort::Assembler => 3,
            Sort::Assertion => 4,
        }
    }
}

/// Everything at file scope.
#[derive(Default)]
pub struct Declarations {
    pub entities: Vec<Entity>,
    pub pieces: Vec<Piece>,
    pub uses: Vec<Use>,
    pub definitions: Vec<Definition>,
    /// References from here on belong to the innermost part that is being read.
    floor: u32,
}

impl Declarations {
    /// A new entity without pieces.
    pub fn add(&mut self, name: Name, role: Role) -> EntityId {
        self.entities.push(Entity {
            name,
            role,
            traits: Traits::default(),
            different: 0,
            first: NOTHING,
            last: NOTHING,
            referred: 0,
            label: NOTHING,
            value: None,
        });
        self.entities.len() as u32 - 1
    }

    /// Notes a use, once for each part.
    #[inline]
    pub fn refer(&mut self, entity: EntityId) {
        let target = &mut self.entities[entity as usize];
        if target.referred > self.floor {
            return;
        }
        let seen = if target.role == Role::Structure { 0 } else { target.different };
        self.uses.push(Use { entity, seen });
        target.referred = self.uses.len() as u32;
    }

    /// Begins a part at a token; the result goes to `end`, with the mark of the part around it.
    pub fn begin(&mut self, token: usize) -> (Mark, u32) {
        let around = self.floor;
        self.floor = self.uses.len() as u32;
        (Mark { token: token as u32, reference: self.floor }, around)
    }

    /// Ends it before a token.
    pub fn end(&mut self, (mark, around): (Mark, u32), token: usize) -> Part {
        self.floor = around;
        Part {
            tokens: (mark.token, token as u32),
            references: (mark.reference, self.uses.len() as u32),
        }
    }

    /// Adds a declaration to its entity. `same` tells whether two parts have the same text.
    pub fn declare(
        &mut self,
        entity: EntityId,
        mut piece: Piece,
        same: impl Fn(Part, Part) -> bool,
    ) -> u32 {
        let index = self.pieces.len() as u32;
        let (first, last) =
            (self.entities[entity as usize].first, self.entities[entity as usize].last);
        // Two are enough to look at: which are compared follows from the text alone.
        piece.is_repeated = [first, last]
            .into_iter()
            .filter(|&earlier| earlier != NOTHING)
            .any(|earlier| self.is_same(&self.pieces[earlier as usize], &piece, &same));
        self.pieces.push(piece);
        if last != NOTHING {
            self.pieces[last as usize].next = index;
        }
        let entity = &mut self.entities[entity as usize];
        entity.last = index;
        if first == NOTHING {
            entity.first = index;
        }
        entity.different += u32::from(!piece.is_repeated);
        index
    }

    fn is_same(&self, one: &Piece, other: &Piece, same: &impl Fn(Part, Part) -> bool) -> bool {
        let parts = |piece: &Piece| [piece.specifiers, piece.own];
        one.state == other.state
            && one.initialiser.is_empty()
            && parts(one)
                .into_iter()
                .zip(parts(other))
                .all(|(one, other)| self.uses_of(one) == self.uses_of(other) && same(one, other))
    }

    /// The uses made in a part.
    pub fn uses_of(&self, part: Part) -> &[Use] {
        &self.uses[part.references.0 as usize..part.references.1 as usize]
    }

    /// The pieces of an entity.
    pub fn pieces_of(&self, entity: EntityId) -> impl Iterator<Item = &Piece> {
        let at = |index: u32| self.pieces.get(index as usize);
        std::iter::successors(at(self.entities[entity as usize].first), move |piece| at(piece.next))
    }
}
