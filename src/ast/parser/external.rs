//! Declarations at file scope.

use super::super::declarations::{Definition, EntityId, NOTHING, Part, Piece, Role, Sort, Traits};
use super::super::kinds::TokenKind;
use super::super::names::Name;
use super::super::scope::Binding;
use super::declarators::Declarator;
use super::local::is_function;
use super::specifiers::Specifiers;
use super::{Body, Parser, Result};
use crate::model::Hash;

impl Parser<'_, '_> {
    /// One declaration, definition or assertion, or assembler.
    pub fn external(&mut self) -> Result<()> {
        self.meet_pragmas();
        while self.kind() == TokenKind::Extension {
            self.next();
        }
        match self.meant(0) {
            TokenKind::Semicolon => {
                self.next();
                Ok(())
            }
            TokenKind::Asm => self.alone(Sort::Assembler, Self::assembler),
            TokenKind::StaticAssert => self.alone(Sort::Assertion, Self::assertion),
            _ => self.external_declaration(),
        }
    }

    /// The pragmas up to here come into force.
    pub fn meet_pragmas(&mut self) {
        while let Some(pragma) = self
            .all
            .pragmas
            .get(self.pragmas_met)
            .filter(|pragma| pragma.before as usize <= self.at)
        {
            self.pragmas.meet(pragma.text, (pragma.before as usize) < self.at);
            self.pragmas_met += 1;
        }
    }

    /// Something that declares nothing.
    fn alone(&mut self, sort: Sort, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.body = Body::default();
        let mark = self.declarations.begin(self.at);
        read(self)?;
        let body = self.declarations.end(mark, self.at);
        self.define(sort, NOTHING, NOTHING, body, Traits::default());
        Ok(())
    }

    /// `_Static_assert(condition, "text");`
    pub fn assertion(&mut self) -> Result<()> {
        self.next();
        self.expect(TokenKind::OpenParen)?;
        self.expression()?;
        self.expect(TokenKind::CloseParen)?;
        // Within structures the last semicolon may be missing.
        if self.take(TokenKind::Semicolon) || self.kind() == TokenKind::CloseBrace {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    fn external_declaration(&mut self) -> Result<()> {
        self.body = Body::default();
        let specifiers = self.specifiers()?;
        if self.take(TokenKind::Semicolon) {
            return Ok(());
        }
        loop {
            if self.external_declarator(&specifiers)? {
                return Ok(());
            }
            if !self.take(TokenKind::Comma) {
                return self.expect(TokenKind::Semicolon);
            }
        }
    }

    /// One declarator with its initialiser or body. Whether it was a function's definition, which
    /// ends the declaration.
    fn external_declarator(&mut self, specifiers: &Specifiers) -> Result<bool> {
        let mark = self.declarations.begin(self.at);
        let mut traits = specifiers.traits;
        // Attributes may stand before each declarator.
        self.attributes(&mut traits)?;
        let declarator = self.declarator(false)?;
        let Some(name) = declarator.name else { return self.unexpected() };
        self.attributes_and_label(&mut traits)?;
        let is_function = is_function(specifiers, &declarator);
        if is_function
            && !specifiers.is_typedef
            && (self.kind() == TokenKind::OpenBrace || self.is_declaration_start())
        {
            self.function(specifiers, &declarator, name, traits, mark)?;
            return Ok(true);
        }
        let own = self.declarations.end(mark, self.at);
        if specifiers.is_typedef {
            self.type_definition(name, is_function, specifiers.part, own);
        } else {
            self.object(specifiers, name, is_function, traits, own)?;
        }
        Ok(false)
    }

    fn type_definition(&mut self, name: Name, of_functions: bool, specifiers: Part, own: Part) {
        let earlier = self.scope.ordinary(name);
        let entity = match earlier.as_entity() {
            Some(entity) if earlier.is_type() => entity,
            _ => self.declarations.add(name, Role::Type),
        };
        self.declare(entity, specifiers, own);
        self.bind(name, Binding::entity_type(entity, of_functions));
    }

    /// A variable, or a function that is only declared.
    fn object(
        &mut self,
        specifiers: &Specifiers,
        name: Name,
        is_function: bool,
        traits: Traits,
        own: Part,
    ) -> Result<()> {
        let role = if is_function { Role::Function } else { Role::Variable };
        let (entity, piece) = self.declare_linked(name, role, traits, specifiers.part, own);
        let mut is_defined = !is_function && !traits.is_extern;
        if self.take(TokenKind::Assign) {
            let mark = self.declarations.begin(self.at);
            self.initialiser()?;
            let initialiser = self.declarations.end(mark, self.at);
            self.declarations.pieces[piece as usize].initialiser = initialiser;
            is_defined = true;
        }
        if traits.is_alias || traits.is_weak_reference {
            self.define(Sort::Alias, entity, piece, Part::default(), traits);
        } else if is_defined {
            self.define(Sort::Variable, entity, piece, Part::default(), traits);
        }
        // A register that is taken for a variable is taken from all code.
        if specifiers.is_register {
            let words = [specifiers.part, own].map(|part| self.all.hash_of_text(part.tokens));
            words.into_iter().for_each(|hash: Hash| self.pragmas.meet_declaration(hash));
        }
        Ok(())
    }

    fn function(
        &mut self,
        specifiers: &Specifiers,
        declarator: &Declarator,
        name: Name,
        traits: Traits,
        mark: (super::super::declarations::Mark, u32),
    ) -> Result<()> {
        let entity = self.linked(name);
        self.bind(name, Binding::entity(entity));
        self.open_function(&declarator.parameters);
        self.old_parameters()?;
        let own = self.declarations.end(mark, self.at);
        let (entity, piece) = self.add_linked(entity, Role::Function, traits, specifiers.part, own);
        let mark = self.declarations.begin(self.at);
        self.nested(Self::block_in_scope)?;
        self.scope.close();
        let body = self.declarations.end(mark, self.at);
        self.define(Sort::Function, entity, piece, body, traits);
        Ok(())
    }

    /// Declares a function or variable, and binds its name.
    fn declare_linked(
        &mut self,
        name: Name,
        role: Role,
        traits: Traits,
        specifiers: Part,
        own: Part,
    ) -> (EntityId, u32) {
        let entity = self.linked(name);
        self.bind(name, Binding::entity(entity));
        self.add_linked(entity, role, traits, specifiers, own)
    }

    fn add_linked(
        &mut self,
        entity: EntityId,
        role: Role,
        traits: Traits,
        specifiers: Part,
        own: Part,
    ) -> (EntityId, u32) {
        let declared = &mut self.declarations.entities[entity as usize];
        declared.role = role;
        declared.traits.join(traits);
        if self.label != NOTHING {
            declared.label = self.label;
        }
        (entity, self.declare(entity, specifiers, own))
    }

    fn declare(&mut self, entity: EntityId, specifiers: Part, own: Part) -> u32 {
        let all = self.all;
        let piece = Piece {
            specifiers,
            own,
            initialiser: Part::default(),
            state: self.pragmas.state(),
            is_repeated: false,
            next: NOTHING,
        };
        self.declarations.declare(entity, piece, |one, other| Self::same_text(all, one, other))
    }

    fn define(&mut self, sort: Sort, entity: EntityId, piece: u32, body: Part, traits: Traits) {
        self.declarations.definitions.push(Definition {
            sort,
            entity,
            piece,
            body,
            state: self.pragmas.state(),
            has_assembler: self.body.has_assembler,
            has_effects: self.body.has_effects,
            traits,
        });
    }
}
