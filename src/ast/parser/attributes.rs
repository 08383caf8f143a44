//! Attributes, in their three ways to be written, and the labels of symbols.

use super::super::declarations::{NOTHING, Role, Traits};
use super::super::kinds::TokenKind;
use super::super::names::FIRST_OWN;
use super::{Parser, Result};

/// Attributes with which an inline function that nobody uses is still left out of the object.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "access", "alloc_align", "alloc_size", "always_inline", "artificial", "assume_aligned", "cold", "const", "convergent", "deprecated",
    "error", "fallthrough", "flatten", "format", "format_arg", "gnu_inline", "hot", "leaf", "malloc", "may_alias", "maybe_unused",
    "min_vector_width", "minsize", "no_instrument_function", "no_reorder", "no_sanitize", "no_sanitize_address",
    "no_sanitize_undefined", "no_split_stack", "no_stack_protector", "nodebug", "nodiscard", "noinline", "nonnull", "noreturn", "nothrow",
    "optimize", "overloadable", "pure", "returns_nonnull", "returns_twice", "target", "unavailable", "unused", "warn_unused_result", "warning",
];

/// Attributes whose arguments are words, not names.
const WITHOUT_NAMES: &[&str] =
    &["format", "mode", "access", "availability", "visibility", "section", "target", "optimize"];

impl Parser<'_, '_> {
    /// Reads any number of attributes and labels of symbols. Whether there were any.
    pub fn attributes(&mut self, traits: &mut Traits) -> Result<bool> {
        let from = self.at;
        loop {
            match self.kind() {
                TokenKind::Attribute | TokenKind::Declspec => self.attribute(traits)?,
                TokenKind::OpenBracket if self.kind_at(1) == TokenKind::OpenBracket => {
                    self.attribute(traits)?
                }
                TokenKind::Extension => self.next(),
                _ => return Ok(self.at > from),
            }
        }
    }

    /// Attributes, with `asm("symbol")` among them.
    pub fn attributes_and_label(&mut self, traits: &mut Traits) -> Result<()> {
        self.label = NOTHING;
        while self.attributes(traits)? || self.kind() == TokenKind::Asm {
            if self.take(TokenKind::Asm) {
                self.expect(TokenKind::OpenParen)?;
                self.label = self.at as u32;
                while self.take(TokenKind::Text) {}
                self.expect(TokenKind::CloseParen)?;
            }
        }
        Ok(())
    }

    /// `__attribute__((…))`, `[[…]]` or `__declspec(…)`.
    pub fn attribute(&mut self, traits: &mut Traits) -> Result<()> {
        let (close, twice) = match self.kind() {
            TokenKind::OpenBracket => (TokenKind::CloseBracket, true),
            kind => {
                self.next();
                if self.kind() != TokenKind::OpenParen {
                    return self.unexpected();
                }
                (TokenKind::CloseParen, kind == TokenKind::Attribute)
            }
        };
        self.next();
        if twice {
            if !matches!(self.kind(), TokenKind::OpenParen | TokenKind::OpenBracket) {
                return self.unexpected();
            }
            self.next();
        }
        while self.kind() != close {
            self.one_attribute(traits)?;
        }
        self.next();
        if twice { self.expect(close) } else { Ok(()) }
    }

    /// A name with its arguments, or a comma.
    fn one_attribute(&mut self, traits: &mut Traits) -> Result<()> {
        if self.take(TokenKind::Comma) {
            return Ok(());
        }
        let mut name = self.token();
        self.next();
        // `gnu::name`
        while self.kind() == TokenKind::Colon && self.kind_at(1) == TokenKind::Colon {
            self.at += 2;
            name = self.token();
            self.next();
        }
        // Words of C can be attributes: `const`, `noreturn`.
        let spelling = self.all.spelling(&name);
        if !spelling.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'_') {
            self.at -= 1;
            return self.unexpected();
        }
        let plain = plain(spelling);
        match plain {
            "gnu_inline" => traits.gnu_inline = true,
            "alias" | "ifunc" => traits.is_alias = true,
            "weakref" => traits.is_weak_reference = true,
            _ => {}
        }
        traits.is_special |= !HARMLESS.contains(&plain);
        if self.kind() == TokenKind::OpenParen {
            self.nested(|parser| parser.arguments(plain))
        } else {
            Ok(())
        }
    }

    /// `( … )` behind an attribute. Names in it are references where they are names of something.
    fn arguments(&mut self, attribute: &str) -> Result<()> {
        let has_names = !WITHOUT_NAMES.contains(&attribute);
        let mut depth = 0;
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace => {
                    depth -= 1
                }
                TokenKind::Identifier if has_names => self.argument_name(token.name),
                TokenKind::Struct | TokenKind::Union | TokenKind::Enum
                    if self.kind_at(1) == TokenKind::Identifier =>
                {
                    if let Some(entity) = self.scope.tag(self.token_at(1).name).as_entity() {
                        self.declarations.refer(entity);
                    }
                    self.next();
                }
                TokenKind::Text if matches!(attribute, "alias" | "ifunc" | "weakref") => {
                    self.symbol()
                }
                TokenKind::End | TokenKind::Semicolon => return self.unexpected(),
                _ => {}
            }
            self.next();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn argument_name(&mut self, name: u32) {
        if let Some(entity) = self.scope.ordinary(name).as_entity() {
            self.declarations.refer(entity);
        }
    }

    /// A symbol named by a literal.
    fn symbol(&mut self) {
        let name = self.token().name;
        if name >= FIRST_OWN {
            let entity = self.linked(name);
            self.declarations.refer(entity);
        }
    }

    /// Whether an entity is known to be a function.
    pub fn is_function(&self, entity: u32) -> bool {
        self.declarations.entities[entity as usize].role == Role::Function
    }
}

/// The name of an attribute without the underscores around it.
fn plain(spelling: &[u8]) -> &str {
    let spelling = std::str::from_utf8(spelling).unwrap_or("");
    spelling.strip_prefix("__").and_then(|rest| rest.strip_suffix("__")).unwrap_or(spelling)
}
