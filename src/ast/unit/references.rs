//! What a definition refers to, by the names of symbols. In: entities. Out: references, as the
//! linker will see them.

use super::Maker;
use crate::ast::declarations::{Definition, EntityId, NOTHING, Traits};
use crate::ast::kinds::TokenKind;
use crate::ast::lexer::readable;
use crate::ast::{Linkage, Reference, library};

impl<'t, 'a> Maker<'t, 'a> {
    /// What a definition names before its body or initialiser: in sizes of arrays, types of
    /// expressions, attributes.
    pub(super) fn refer_by_head(
        &mut self,
        references: &mut Vec<Reference>,
        index: usize,
        definition: &Definition,
    ) {
        let declarations = &self.parsed().declarations;
        let piece = &declarations.pieces[definition.piece as usize];
        for used in
            [piece.specifiers, piece.own].into_iter().flat_map(|part| declarations.uses_of(part))
        {
            if self.is_first(index, used.entity) {
                self.refer(references, used.entity, definition.entity);
            }
        }
    }

    pub(super) fn refer(&self, references: &mut Vec<Reference>, entity: EntityId, from: EntityId) {
        let declared = &self.parsed().declarations.entities[entity as usize];
        if !self.hashing.is_linked(entity) {
            return;
        }
        if declared.traits.is_weak_reference && entity != from {
            return self.refer_to_targets(references, entity);
        }
        let name = self.symbol(entity);
        // What the compiler knows by itself may end in a call of the library's function.
        let name = match name.strip_prefix("__builtin_").filter(|_| declared.first == NOTHING) {
            Some(plain) if library::is_known(plain.as_bytes()) => plain.to_owned(),
            Some(_) => return,
            None => name,
        };
        references.push(Reference { name, linkage: self.linkage(entity) });
    }

    /// What the attributes of a declaration refer to.
    fn refer_to_targets(&self, references: &mut Vec<Reference>, entity: EntityId) {
        let declarations = &self.parsed().declarations;
        for piece in declarations.pieces_of(entity) {
            for used in
                declarations.uses_of(piece.specifiers).iter().chain(declarations.uses_of(piece.own))
            {
                if used.entity != entity && self.hashing.is_linked(used.entity) {
                    references.push(Reference {
                        name: self.symbol(used.entity),
                        linkage: self.linkage(used.entity),
                    });
                }
            }
        }
    }

    /// The name by which the object knows an entity.
    pub(super) fn symbol(&self, entity: EntityId) -> String {
        let declarations = &self.parsed().declarations;
        let Some(declared) = declarations.entities.get(entity as usize) else {
            return String::new();
        };
        match declared.label {
            NOTHING => readable(self.all().names.spelling(declared.name)),
            label => self.label(label as usize),
        }
    }

    /// The symbol that `asm("symbol")` gives, from its first literal on.
    fn label(&self, first: usize) -> String {
        let texts =
            self.all().tokens[first..].iter().take_while(|token| token.kind == TokenKind::Text);
        texts
            .map(|token| readable(self.all().spelling(token)).trim_matches('"').to_owned())
            .collect()
    }

    pub(super) fn linkage(&self, entity: EntityId) -> Linkage {
        let none = Traits::default();
        let traits = self
            .parsed()
            .declarations
            .entities
            .get(entity as usize)
            .map_or(&none, |entity| &entity.traits);
        match traits {
            Traits { is_static: true, .. } => Linkage::Static,
            Traits { is_inline: true, .. } => Linkage::Inline,
            _ => Linkage::Extern,
        }
    }
}
