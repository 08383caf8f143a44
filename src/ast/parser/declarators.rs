//! Declarators: the name that a declaration gives, with `*`, `[…]` and `(…)` around it.

use super::super::kinds::TokenKind;
use super::super::names::Name;
use super::super::scope::{Binding, Bound};
use super::{Parser, Result};

/// What a declarator declares.
#[derive(Debug, Default)]
pub struct Declarator {
    pub name: Option<Name>,
    pub shape: Shape,
    /// What the parameters of a function declare.
    pub parameters: Vec<Bound>,
}

/// What is nearest to the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: it has the type of the specifiers.
    #[default]
    Bare,
    Function,
    /// A pointer or an array.
    Other,
}

impl Parser<'_, '_> {
    /// Reads a declarator. One that may be abstract need not have a name.
    pub fn declarator(&mut self, may_be_abstract: bool) -> Result<Declarator> {
        let mut found = Declarator::default();
        self.declarator_level(&mut found, may_be_abstract)?;
        if found.name.is_none() && !may_be_abstract { self.unexpected() } else { Ok(found) }
    }

    /// What stands between two pairs of brackets.
    fn declarator_level(&mut self, found: &mut Declarator, may_be_abstract: bool) -> Result<()> {
        let is_pointer = self.pointers()?;
        match self.kind() {
            TokenKind::Identifier => {
                found.name = Some(self.token().name);
                self.next();
            }
            TokenKind::OpenParen if !(may_be_abstract && self.begins_parameters()) => {
                self.next();
                self.nested(|parser| parser.declarator_level(found, may_be_abstract))?;
                self.expect(TokenKind::CloseParen)?;
            }
            _ => {}
        }
        self.suffixes(found)?;
        if is_pointer && found.shape == Shape::Bare {
            found.shape = Shape::Other;
        }
        Ok(())
    }

    /// `*`, and what may stand between and behind them.
    fn pointers(&mut self) -> Result<bool> {
        let mut is_pointer = false;
        loop {
            match self.meant(0) {
                TokenKind::Star | TokenKind::Caret => is_pointer = true,
                TokenKind::Qualifier | TokenKind::Atomic | TokenKind::Extension => {}
                TokenKind::Attribute | TokenKind::Declspec => {
                    self.attribute(&mut Default::default())?;
                    continue;
                }
                TokenKind::OpenBracket
                    if is_pointer && self.kind_at(1) == TokenKind::OpenBracket =>
                {
                    self.attribute(&mut Default::default())?;
                    continue;
                }
                _ => return Ok(is_pointer),
            }
            self.next();
        }
    }

    /// Whether the bracket here holds parameters rather than a declarator.
    fn begins_parameters(&self) -> bool {
        let storage = matches!(
            self.kind_at(1),
            TokenKind::Register | TokenKind::Ellipsis | TokenKind::CloseParen
        );
        // An attribute can begin either: it is a declarator's if `*` or a bracket follows, as in
        // `(__cdecl *)`.
        let is_attribute = matches!(self.kind_at(1), TokenKind::Attribute | TokenKind::Declspec);
        storage || !is_attribute && self.is_type_start(1)
    }

    fn suffixes(&mut self, found: &mut Declarator) -> Result<()> {
        loop {
            let shape = match self.kind() {
                TokenKind::OpenBracket if self.kind_at(1) == TokenKind::OpenBracket => {
                    self.attribute(&mut Default::default())?;
                    continue;
                }
                TokenKind::OpenBracket => {
                    self.array()?;
                    Shape::Other
                }
                TokenKind::OpenParen => {
                    let parameters = self.nested(Self::parameters)?;
                    if found.shape == Shape::Bare && found.name.is_some() {
                        found.parameters = parameters;
                    }
                    Shape::Function
                }
                _ => return Ok(()),
            };
            if found.shape == Shape::Bare {
                found.shape = shape;
            }
        }
    }

    fn array(&mut self) -> Result<()> {
        self.next();
        loop {
            match self.meant(0) {
                TokenKind::Static | TokenKind::Qualifier | TokenKind::Atomic => self.next(),
                TokenKind::Attribute => self.attribute(&mut Default::default())?,
                _ => break,
            }
        }
        // `[*]`: any size.
        if !(self.kind() == TokenKind::Star && self.kind_at(1) == TokenKind::CloseBracket) {
            self.nested(Self::expression)?;
        } else {
            self.next();
        }
        self.expect(TokenKind::CloseBracket)
    }

    /// `( parameters )`, in a scope of their own; what they declare.
    fn parameters(&mut self) -> Result<Vec<Bound>> {
        self.expect(TokenKind::OpenParen)?;
        self.scope.open();
        let is_list_of_names = self.kind() == TokenKind::Identifier && !self.is_type_start(0);
        while self.kind() != TokenKind::CloseParen {
            if is_list_of_names {
                let token = self.token();
                self.expect(TokenKind::Identifier)?;
                self.bind(token.name, Binding::LOCAL);
            } else if !self.take(TokenKind::Ellipsis) {
                self.parameter()?;
            }
            // A semicolon ends GNU's forward declarations of parameters.
            if !self.take(TokenKind::Comma) && !self.take(TokenKind::Semicolon) {
                break;
            }
        }
        self.expect(TokenKind::CloseParen)?;
        Ok(self.scope.close_and_keep())
    }

    fn parameter(&mut self) -> Result<()> {
        let specifiers = self.specifiers()?;
        if specifiers.part.is_empty() {
            return self.unexpected();
        }
        let declarator = self.declarator(true)?;
        self.attributes(&mut Default::default())?;
        if let Some(name) = declarator.name {
            self.bind(name, Binding::LOCAL);
        }
        Ok(())
    }
}
