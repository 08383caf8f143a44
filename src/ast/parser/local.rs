//! Declarations within functions.

use super::super::declarations::{NOTHING, Part, Piece, Role};
use super::super::kinds::TokenKind;
use super::super::names::Name;
use super::super::scope::{Binding, Bound};
use super::declarators::{Declarator, Shape};
use super::specifiers::{Specifiers, TypeIs};
use super::{Parser, Result};

impl Parser<'_, '_> {
    /// A declaration in a block, with its semicolon, or the definition of a nested function.
    pub fn local_declaration(&mut self) -> Result<()> {
        while self.kind() == TokenKind::Extension {
            self.next();
        }
        if self.meant(0) == TokenKind::StaticAssert {
            return self.assertion();
        }
        let specifiers = self.specifiers()?;
        self.body.has_effects |= specifiers.traits.is_static || specifiers.traits.is_extern;
        if self.take(TokenKind::Semicolon) {
            return Ok(());
        }
        loop {
            if self.local_declarator(&specifiers)? {
                return Ok(());
            }
            if !self.take(TokenKind::Comma) {
                return self.expect(TokenKind::Semicolon);
            }
            // Attributes may stand before each declarator.
            self.attributes(&mut Default::default())?;
        }
    }

    /// One declarator with its initialiser. Whether it was a nested function, which ends the
    /// declaration.
    fn local_declarator(&mut self, specifiers: &Specifiers) -> Result<bool> {
        let mark = self.declarations.begin(self.at);
        let declarator = self.declarator(false)?;
        let Some(name) = declarator.name else { return self.unexpected() };
        let mut traits = specifiers.traits;
        self.attributes_and_label(&mut traits)?;
        let own = self.declarations.end(mark, self.at);
        let is_function = is_function(specifiers, &declarator);
        if is_function && (self.kind() == TokenKind::OpenBrace || self.is_declaration_start()) {
            self.bind(name, Binding::LOCAL);
            self.body.has_effects = true;
            self.function_body(&declarator.parameters)?;
            return Ok(true);
        }
        if specifiers.is_typedef {
            let binding =
                if is_function { Binding::LOCAL_FUNCTION_TYPE } else { Binding::LOCAL_TYPE };
            self.bind(name, binding);
        } else if traits.is_extern || is_function && !specifiers.is_auto {
            self.linked_declaration(name, is_function, specifiers.part, own);
        } else if specifiers.type_is == TypeIs::Unclear
            && declarator.shape == Shape::Bare
            && self.kind() != TokenKind::Assign
        {
            self.bind(name, Binding::LOCAL_UNCLEAR);
        } else {
            self.bind(name, Binding::LOCAL);
        }
        if self.take(TokenKind::Assign) {
            self.initialiser()?;
        }
        Ok(false)
    }

    /// A declaration in a block of something that other functions see as well.
    fn linked_declaration(&mut self, name: Name, is_function: bool, specifiers: Part, own: Part) {
        let all = self.all;
        self.body.has_effects = true;
        let entity = self.linked(name);
        let declared = &mut self.declarations.entities[entity as usize];
        if declared.role == Role::Undeclared {
            declared.role = if is_function { Role::Function } else { Role::Variable };
        }
        if self.label != NOTHING {
            declared.label = self.label;
        }
        let piece = Piece {
            specifiers,
            own,
            initialiser: Part::default(),
            state: self.pragmas.state(),
            is_repeated: false,
            next: NOTHING,
        };
        self.declarations.declare(entity, piece, |one, other| Self::same_text(all, one, other));
        self.bind(name, Binding::entity(entity));
        self.declarations.refer(entity);
    }

    /// The declarations of parameters in the old style, if there are any, and the body.
    pub fn function_body(&mut self, parameters: &[Bound]) -> Result<()> {
        self.open_function(parameters);
        self.old_parameters()?;
        self.nested(Self::block_in_scope)?;
        self.scope.close();
        Ok(())
    }

    /// The scope of a function, with its parameters.
    pub fn open_function(&mut self, parameters: &[Bound]) {
        self.scope.open();
        for &(space, name, binding) in parameters {
            self.scope.bind(space, name, binding);
        }
    }

    /// What stands between the names of parameters and the body in the old style.
    pub fn old_parameters(&mut self) -> Result<()> {
        while self.kind() != TokenKind::OpenBrace {
            if !self.is_declaration_start() {
                return self.unexpected();
            }
            let specifiers = self.specifiers()?;
            while self.kind() != TokenKind::Semicolon {
                let declarator = self.declarator(false)?;
                self.attributes_and_label(&mut Default::default())?;
                if let Some(name) = declarator.name {
                    self.bind(name, Binding::LOCAL);
                }
                if !self.take(TokenKind::Comma) {
                    break;
                }
            }
            if specifiers.part.is_empty() {
                return self.unexpected();
            }
            self.expect(TokenKind::Semicolon)?;
        }
        Ok(())
    }
}

/// Whether a function is declared, or a type of functions.
pub fn is_function(specifiers: &Specifiers, declarator: &Declarator) -> bool {
    match declarator.shape {
        Shape::Function => true,
        Shape::Bare => specifiers.type_is == TypeIs::Function,
        Shape::Other => false,
    }
}
