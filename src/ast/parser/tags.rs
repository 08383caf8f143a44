//! Structures, unions and enumerations.

use super::super::constants;
use super::super::declarations::{EntityId, NOTHING, Part, Piece, Role};
use super::super::kinds::TokenKind;
use super::super::names::Name;
use super::super::scope::{Binding, Space};
use super::{Parser, Result};

impl Parser<'_, '_> {
    /// `struct tag`, `struct tag { … }`, `struct { … }`; the same with `union`.
    pub fn structure(&mut self) -> Result<()> {
        let mark = self.declarations.begin(self.at);
        self.next();
        self.attributes(&mut Default::default())?;
        let tag = self.tag();
        if self.kind() != TokenKind::OpenBrace {
            let part = self.declarations.end(mark, self.at);
            return self.tag_use(tag, Role::Structure, part);
        }
        let entity = tag.and_then(|tag| self.tag_definition(tag, Role::Structure));
        self.next();
        self.nested(Self::members)?;
        self.expect(TokenKind::CloseBrace)?;
        self.attributes(&mut Default::default())?;
        let part = self.declarations.end(mark, self.at);
        if let Some(entity) = entity {
            self.declare_tag(entity, part);
        }
        Ok(())
    }

    fn tag(&mut self) -> Option<Name> {
        let token = self.token();
        (token.kind == TokenKind::Identifier).then(|| {
            self.next();
            token.name
        })
    }

    /// A tag that is defined: the entity, unless it is local.
    fn tag_definition(&mut self, tag: Name, role: Role) -> Option<EntityId> {
        if !self.scope.is_file() {
            self.scope.bind(Space::Tags, tag, Binding::LOCAL);
            return None;
        }
        let entity = self.scope.tag(tag).as_entity().unwrap_or_else(|| {
            let entity = self.declarations.add(tag, role);
            self.scope.bind(Space::Tags, tag, Binding::entity(entity));
            entity
        });
        self.declarations.refer(entity);
        Some(entity)
    }

    /// A tag without a body. One that is not known is declared by that.
    fn tag_use(&mut self, tag: Option<Name>, role: Role, part: Part) -> Result<()> {
        let Some(tag) = tag else { return self.unexpected() };
        let binding = self.scope.tag(tag);
        // `struct tag;` alone declares another one in a block.
        let is_reported =
            self.kind() == TokenKind::Semicolon && part.tokens.0 as usize + 2 == self.at;
        match binding.as_entity() {
            Some(entity) if self.scope.is_file() || !is_reported => self.declarations.refer(entity),
            None if binding == Binding::LOCAL && !is_reported => {}
            _ if self.scope.is_file() => {
                let entity = self.declarations.add(tag, role);
                self.scope.bind(Space::Tags, tag, Binding::entity(entity));
                self.declarations.refer(entity);
            }
            _ => self.scope.bind(Space::Tags, tag, Binding::LOCAL),
        }
        Ok(())
    }

    fn declare_tag(&mut self, entity: EntityId, part: Part) -> u32 {
        let all = self.all;
        let specifiers = Part {
            tokens: (part.tokens.0, part.tokens.0),
            references: (part.references.0, part.references.0),
        };
        let piece = Piece {
            specifiers,
            own: part,
            initialiser: Part::default(),
            state: self.pragmas.state(),
            is_repeated: false,
            next: NOTHING,
        };
        self.declarations.declare(entity, piece, |one, other| Self::same_text(all, one, other))
    }

    fn members(&mut self) -> Result<()> {
        while self.kind() != TokenKind::CloseBrace {
            match self.meant(0) {
                TokenKind::Semicolon => self.next(),
                TokenKind::StaticAssert => self.assertion()?,
                _ => self.member()?,
            }
        }
        Ok(())
    }

    fn member(&mut self) -> Result<()> {
        let specifiers = self.specifiers()?;
        if specifiers.part.is_empty() {
            return self.unexpected();
        }
        while !matches!(self.kind(), TokenKind::Semicolon | TokenKind::CloseBrace) {
            if self.kind() != TokenKind::Colon {
                self.declarator(false)?;
            }
            if self.take(TokenKind::Colon) {
                self.expression_to_comma()?;
            }
            self.attributes(&mut Default::default())?;
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        // The last semicolon is often forgotten, and compilers let it pass.
        if self.take(TokenKind::Semicolon) || self.kind() == TokenKind::CloseBrace {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// `enum tag`, `enum tag { … }`, `enum { … }`, and C23's `enum tag : type`.
    pub fn enumeration(&mut self) -> Result<()> {
        let mark = self.declarations.begin(self.at);
        self.next();
        let mut is_plain = !self.attributes(&mut Default::default())?;
        let tag = self.tag();
        // In a structure, a colon can be that of a bit-field.
        if self.kind() == TokenKind::Colon && self.is_type_start(1) {
            self.next();
            is_plain = false;
            let specifiers = self.specifiers()?;
            if !specifiers.has_type {
                return self.unexpected();
            }
        }
        if self.kind() != TokenKind::OpenBrace {
            let part = self.declarations.end(mark, self.at);
            return self.tag_use(tag, Role::Enumeration, part);
        }
        let entity = tag.and_then(|tag| self.tag_definition(tag, Role::Enumeration));
        self.next();
        let first = self.declarations.entities.len();
        let mut enumerators = Vec::new();
        is_plain &= self.nested(|parser| parser.enumerators(&mut enumerators))?;
        self.expect(TokenKind::CloseBrace)?;
        is_plain &= !self.attributes(&mut Default::default())?;
        let part = self.declarations.end(mark, self.at);
        debug_assert!(first <= self.declarations.entities.len());
        if let Some(entity) = entity {
            self.declare_tag(entity, part);
        }
        for enumerator in enumerators {
            if !is_plain {
                self.declarations.entities[enumerator as usize].value = None;
            }
            self.declare_tag(enumerator, part);
        }
        Ok(())
    }

    /// The enumerators at file scope go to `found`. Whether all have values that are known and fit
    /// into an `int`, so that none of them depends on those behind it.
    fn enumerators(&mut self, found: &mut Vec<EntityId>) -> Result<bool> {
        let mut is_plain = true;
        let mut value = Some(-1i32);
        while self.kind() != TokenKind::CloseBrace {
            let token = self.token();
            self.expect(TokenKind::Identifier)?;
            is_plain &= !self.attributes(&mut Default::default())?;
            value = match self.take(TokenKind::Assign) {
                true => self.enumerator_value()?,
                false => value.and_then(|value| value.checked_add(1)),
            };
            is_plain &= value.is_some();
            if self.scope.is_file() {
                let entity = self.declarations.add(token.name, Role::Enumerator);
                self.declarations.entities[entity as usize].value = value;
                self.bind(token.name, Binding::entity(entity));
                found.push(entity);
            } else {
                self.bind(token.name, Binding::LOCAL);
            }
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        Ok(is_plain)
    }

    fn enumerator_value(&mut self) -> Result<Option<i32>> {
        let from = self.at;
        self.expression_to_comma()?;
        let value = constants::evaluate(self.all, from, self.at, |name| {
            let entity = self.scope.ordinary(name).as_entity()?;
            self.declarations.entities[entity as usize].value
        });
        Ok(value)
    }
}
