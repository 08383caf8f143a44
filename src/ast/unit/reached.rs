//! What is reached from the definitions of a unit. In: the parsed unit. Out: marks for all entities
//! and definitions.

use crate::ast::declarations::{Definition, EntityId, NOTHING, Part, Role, Sort};
use crate::ast::lexer::Tokens;
use crate::ast::library;
use crate::ast::parser::Parsed;

/// What counts.
pub(super) struct Reached {
    /// By the number of the definition.
    pub(super) definitions: Vec<bool>,
    /// By the number of the entity.
    pub(super) entities: Vec<bool>,
}

impl Reached {
    pub(super) fn new(parsed: &Parsed, library: &[bool]) -> Self {
        let declarations = &parsed.declarations;
        let mut reached = Reached {
            definitions: vec![false; declarations.definitions.len()],
            entities: vec![false; declarations.entities.len()],
        };
        // The definitions that only count if somebody uses them.
        let mut waiting: Vec<(EntityId, usize)> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for (index, definition) in declarations.definitions.iter().enumerate() {
            if is_emitted(parsed, library, definition) {
                reached.definition(parsed, index, &mut parts);
            } else {
                waiting.push((definition.entity, index));
            }
        }
        waiting.sort_unstable();
        for (id, _) in library.iter().enumerate().filter(|(_, is_library)| **is_library) {
            reached.entity(parsed, id as EntityId, &waiting, &mut parts);
        }
        while let Some(part) = parts.pop() {
            for used in declarations.uses_of(part) {
                reached.entity(parsed, used.entity, &waiting, &mut parts);
            }
        }
        reached
    }

    fn definition(&mut self, parsed: &Parsed, index: usize, parts: &mut Vec<Part>) {
        if std::mem::replace(&mut self.definitions[index], true) {
            return;
        }
        let definition = &parsed.declarations.definitions[index];
        parts.push(definition.body);
        if definition.entity != NOTHING {
            parts.push(parsed.declarations.pieces[definition.piece as usize].initialiser);
            // Its own declarations count as those of anything that is used.
            self.entity(parsed, definition.entity, &[], parts);
        }
    }

    fn entity(
        &mut self,
        parsed: &Parsed,
        id: EntityId,
        waiting: &[(EntityId, usize)],
        parts: &mut Vec<Part>,
    ) {
        if !std::mem::replace(&mut self.entities[id as usize], true)
            && parsed.declarations.entities[id as usize].value.is_none()
        {
            parts.extend(
                parsed.declarations.pieces_of(id).flat_map(|piece| [piece.specifiers, piece.own]),
            );
        }
        let from = waiting.partition_point(|&(entity, _)| entity < id);
        for &(_, index) in waiting[from..].iter().take_while(|&&(entity, _)| entity == id) {
            self.definition(parsed, index, parts);
        }
    }
}

/// Whether a definition counts even where nothing uses it. Inline functions do not, unless they are
/// special or their text has effects of its own.
fn is_emitted(parsed: &Parsed, library: &[bool], definition: &Definition) -> bool {
    if definition.sort != Sort::Function {
        return true;
    }
    let entity = &parsed.declarations.entities[definition.entity as usize];
    let is_optional = definition.traits.is_inline
        && (entity.traits.is_static || definition.traits.gnu_inline && definition.traits.is_extern);
    !is_optional
        || entity.traits.is_special
        || definition.has_effects
        || library[definition.entity as usize]
}

pub(super) fn is_library(all: &Tokens, parsed: &Parsed, id: usize) -> bool {
    let entity = &parsed.declarations.entities[id];
    entity.role == Role::Function
        && entity.first != NOTHING
        && library::is_known(all.names.spelling(entity.name))
}
