//! The specifiers that begin a declaration or the name of a type.

use super::super::declarations::{Part, Traits};
use super::super::kinds::TokenKind;
use super::super::scope::Binding;
use super::{Parser, Result};

/// What they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Specifiers {
    pub part: Part,
    pub is_typedef: bool,
    pub is_register: bool,
    pub is_auto: bool,
    pub traits: Traits,
    /// Whether there was a type among them.
    pub has_type: bool,
    pub type_is: TypeIs,
}

/// What is known of the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeIs {
    #[default]
    NoFunction,
    Function,
    /// The type of an expression.
    Unclear,
}

impl Parser<'_, '_> {
    /// Reads as many specifiers as there are. There may be none.
    pub fn specifiers(&mut self) -> Result<Specifiers> {
        let mark = self.declarations.begin(self.at);
        let mut found = Specifiers::default();
        while self.specifier(&mut found)? {}
        found.part = self.declarations.end(mark, self.at);
        Ok(found)
    }

    /// Reads one of them, if there is one.
    fn specifier(&mut self, found: &mut Specifiers) -> Result<bool> {
        match self.meant(0) {
            TokenKind::Typedef => found.is_typedef = true,
            TokenKind::Extern => found.traits.is_extern = true,
            TokenKind::Static => found.traits.is_static = true,
            TokenKind::Inline => found.traits.is_inline = true,
            TokenKind::Register => found.is_register = true,
            TokenKind::Auto => found.is_auto = true,
            TokenKind::Qualifier
            | TokenKind::Noreturn
            | TokenKind::Constexpr
            | TokenKind::Thread
            | TokenKind::Extension => {}
            TokenKind::BasicType | TokenKind::AutoType => found.has_type = true,
            TokenKind::Attribute | TokenKind::Declspec => {
                self.attribute(&mut found.traits)?;
                return Ok(true);
            }
            TokenKind::OpenBracket if self.kind_at(1) == TokenKind::OpenBracket => {
                self.attribute(&mut found.traits)?;
                return Ok(true);
            }
            TokenKind::Atomic => {
                self.next();
                if self.kind() == TokenKind::OpenParen {
                    self.type_or_expression()?;
                    found.has_type = true;
                }
                return Ok(true);
            }
            TokenKind::BitInt => {
                self.next();
                self.type_or_expression()?;
                found.has_type = true;
                return Ok(true);
            }
            TokenKind::Alignas => {
                self.next();
                self.type_or_expression()?;
                return Ok(true);
            }
            TokenKind::Typeof => {
                self.next();
                found.type_is = self.type_of()?;
                found.has_type = true;
                return Ok(true);
            }
            TokenKind::Struct | TokenKind::Union => {
                self.structure()?;
                found.has_type = true;
                return Ok(true);
            }
            TokenKind::Enum => {
                self.enumeration()?;
                found.has_type = true;
                return Ok(true);
            }
            TokenKind::Identifier if !found.has_type && self.is_type_name(self.token()) => {
                self.type_name_specifier(found)
            }
            _ => return Ok(false),
        }
        self.next();
        Ok(true)
    }

    fn type_name_specifier(&mut self, found: &mut Specifiers) {
        let binding = self.scope.ordinary(self.token().name);
        if let Some(entity) = binding.as_entity() {
            self.declarations.refer(entity);
        }
        found.has_type = true;
        if binding.is_function_type() {
            found.type_is = TypeIs::Function;
        }
    }

    /// `( type )` or `( expression )`.
    pub fn type_or_expression(&mut self) -> Result<()> {
        self.expect(TokenKind::OpenParen)?;
        self.nested(|parser| {
            if parser.is_type_start(0) { parser.type_name() } else { parser.expression() }
        })?;
        self.expect(TokenKind::CloseParen)
    }

    /// Behind `typeof`.
    fn type_of(&mut self) -> Result<TypeIs> {
        let names_one =
            self.kind_at(1) == TokenKind::Identifier && self.kind_at(2) == TokenKind::CloseParen;
        let binding = self.scope.ordinary(self.token_at(1).name);
        let is_expression = !self.is_type_start(1);
        self.type_or_expression()?;
        Ok(match binding.as_entity() {
            _ if names_one && binding.is_function_type() => TypeIs::Function,
            Some(entity) if names_one && self.is_function(entity) => TypeIs::Function,
            Some(_) if names_one && is_expression => TypeIs::NoFunction,
            None if names_one && binding == Binding::LOCAL => TypeIs::NoFunction,
            _ => TypeIs::Unclear,
        })
    }

    /// The name of a type: specifiers, and a declarator without a name.
    pub fn type_name(&mut self) -> Result<()> {
        let specifiers = self.specifiers()?;
        if !specifiers.has_type {
            return self.unexpected();
        }
        let declarator = self.declarator(true)?;
        if declarator.name.is_some() { self.unexpected() } else { Ok(()) }
    }
}
