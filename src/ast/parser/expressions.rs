//! Expressions and initialisers, as far as they decide what names mean.
//!
//! An expression is walked through token by token. What has to be known is whether an operand has
//! just ended: then `&&` is an operator, else it takes the address of a label; then `(` begins
//! arguments, else it can hold a type.

use super::super::kinds::TokenKind;
use super::super::scope::Binding;
use super::{Parser, Result};

/// Where an expression ends, besides brackets and semicolons.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stops {
    comma: bool,
    colon: bool,
}

impl Parser<'_, '_> {
    /// An expression, up to the bracket, semicolon or brace behind it. It may be empty.
    pub fn expression(&mut self) -> Result<()> {
        self.walk(Stops { comma: false, colon: false })
    }

    /// An expression that a comma ends.
    pub fn expression_to_comma(&mut self) -> Result<()> {
        self.walk(Stops { comma: true, colon: false })
    }

    /// An expression that a colon ends, unless the colon belongs to a `?`.
    pub fn expression_to_colon(&mut self) -> Result<()> {
        self.walk(Stops { comma: false, colon: true })
    }

    fn walk(&mut self, stops: Stops) -> Result<()> {
        let mut is_operand = false;
        let mut questions = 0;
        loop {
            let kind = self.kind();
            match kind {
                TokenKind::Identifier if !is_operand => is_operand = self.name()?,
                TokenKind::Number
                | TokenKind::Character
                | TokenKind::Text
                | TokenKind::Position
                | TokenKind::FunctionName
                    if !is_operand =>
                {
                    is_operand = self.literal(kind);
                }
                TokenKind::Dot | TokenKind::Arrow if is_operand => {
                    self.next();
                    self.expect(TokenKind::Identifier)?;
                }
                TokenKind::OpenParen => {
                    is_operand = self.nested(|parser| parser.brackets(is_operand))?
                }
                TokenKind::OpenBracket if is_operand => {
                    self.next();
                    self.nested(Self::expression)?;
                    self.expect(TokenKind::CloseBracket)?;
                }
                TokenKind::Operator | TokenKind::Star | TokenKind::Assign | TokenKind::Ellipsis => {
                    self.next();
                    is_operand = false;
                }
                TokenKind::Extension | TokenKind::Part if !is_operand => self.next(),
                TokenKind::Caret if !is_operand => return self.fail("a block literal"),
                TokenKind::Step => self.next(),
                TokenKind::AndAnd if !is_operand => {
                    self.next();
                    self.expect(TokenKind::Identifier)?;
                    self.body.has_effects = true;
                    is_operand = true;
                }
                TokenKind::Question if is_operand => {
                    self.next();
                    questions += 1;
                    is_operand = false;
                }
                TokenKind::Colon if questions > 0 => {
                    self.next();
                    questions -= 1;
                    is_operand = false;
                }
                TokenKind::Caret | TokenKind::AndAnd => {
                    self.next();
                    is_operand = false;
                }
                // Between `?` and `:` a comma is always an operator.
                TokenKind::Comma if !stops.comma || questions > 0 => {
                    self.next();
                    is_operand = false;
                }
                TokenKind::Sizeof | TokenKind::Alignof if !is_operand => {
                    self.next();
                    is_operand = self.size()?;
                }
                TokenKind::Generic if !is_operand => {
                    self.next();
                    self.nested(Self::selection)?;
                    is_operand = true;
                }
                TokenKind::Offsetof if !is_operand => {
                    self.next();
                    self.nested(Self::offset)?;
                    is_operand = true;
                }
                TokenKind::Colon if stops.colon => return Ok(()),
                TokenKind::Comma
                | TokenKind::Semicolon
                | TokenKind::CloseParen
                | TokenKind::CloseBracket
                | TokenKind::CloseBrace
                    if questions == 0 =>
                {
                    return Ok(());
                }
                _ => return self.unexpected(),
            }
        }
    }

    /// A literal, or several strings that make one. It ends an operand.
    fn literal(&mut self, kind: TokenKind) -> bool {
        self.body.has_effects |= kind == TokenKind::FunctionName;
        self.next();
        // Older compilers take the name of the function for a literal.
        while kind != TokenKind::Number
            && matches!(self.kind(), TokenKind::Text | TokenKind::FunctionName)
        {
            self.body.has_effects |= self.kind() == TokenKind::FunctionName;
            self.next();
        }
        true
    }

    /// An identifier in an expression. Whether it ends an operand.
    #[inline]
    fn name(&mut self) -> Result<bool> {
        let token = self.token();
        let binding = self.scope.ordinary(token.name);
        if let Some(entity) = binding.as_entity() {
            if binding.is_type() {
                return self.unexpected();
            }
            self.declarations.refer(entity);
        } else if binding != Binding::LOCAL {
            return self.rare_name(binding);
        }
        self.next();
        Ok(true)
    }

    fn rare_name(&mut self, binding: Binding) -> Result<bool> {
        let name = self.token().name;
        match binding {
            Binding::GIVEN_CONSTANT => {}
            Binding::NONE if self.all.names.spelling(name) == b"__builtin_COLUMN" => {
                return self.fail("a question for the column");
            }
            // Compilers declare what is called without a declaration, and some know it by
            // themselves.
            Binding::NONE => {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            Binding::LOCAL_UNCLEAR if self.kind_at(1) == TokenKind::OpenParen => {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            Binding::LOCAL_UNCLEAR => {}
            _ if binding.as_word() == Some(TokenKind::Alignof) => {
                self.next();
                return self.size();
            }
            _ => return self.unexpected(),
        }
        self.next();
        Ok(true)
    }

    /// Behind `sizeof` and its like: whether an operand has ended.
    fn size(&mut self) -> Result<bool> {
        if self.kind() != TokenKind::OpenParen || !self.is_type_start(1) {
            return Ok(false);
        }
        self.next();
        self.nested(Self::type_name)?;
        self.expect(TokenKind::CloseParen)?;
        if self.kind() == TokenKind::OpenBrace {
            self.braces()?;
        }
        Ok(true)
    }

    /// `( … )`: an expression, arguments, a cast, a compound literal or a statement expression.
    /// Whether it ends an operand.
    fn brackets(&mut self, is_call: bool) -> Result<bool> {
        self.next();
        if self.kind() == TokenKind::OpenBrace {
            self.block()?;
            self.expect(TokenKind::CloseParen)?;
            return Ok(true);
        }
        let mut is_type = false;
        let mut count = 0;
        while self.kind() != TokenKind::CloseParen {
            count += 1;
            is_type = self.is_storage_of_literal() || self.is_type_start(0);
            if is_type {
                while self.is_storage_of_literal() {
                    self.body.has_effects = true;
                    self.next();
                }
                self.type_name()?;
            } else {
                self.expression_to_comma()?;
            }
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseParen)?;
        if !(is_type && count == 1 && !is_call) {
            return Ok(true);
        }
        if self.kind() == TokenKind::OpenBrace {
            self.braces()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// C23's `(static const T){…}`.
    fn is_storage_of_literal(&self) -> bool {
        matches!(
            self.meant(0),
            TokenKind::Static | TokenKind::Register | TokenKind::Constexpr | TokenKind::Thread
        )
    }

    /// Behind `_Generic`.
    fn selection(&mut self) -> Result<()> {
        self.expect(TokenKind::OpenParen)?;
        if self.is_type_start(0) {
            self.type_name()?
        } else {
            self.expression_to_comma()?
        }
        while self.take(TokenKind::Comma) {
            if !self.take(TokenKind::Default) {
                self.type_name()?;
            }
            self.expect(TokenKind::Colon)?;
            self.expression_to_comma()?;
        }
        self.expect(TokenKind::CloseParen)
    }

    /// Behind `__builtin_offsetof`: a type and a path of members.
    fn offset(&mut self) -> Result<()> {
        self.expect(TokenKind::OpenParen)?;
        self.type_name()?;
        self.expect(TokenKind::Comma)?;
        self.expect(TokenKind::Identifier)?;
        loop {
            match self.kind() {
                TokenKind::Dot | TokenKind::Arrow => {
                    self.next();
                    self.expect(TokenKind::Identifier)?;
                }
                TokenKind::OpenBracket => {
                    self.next();
                    self.expression()?;
                    self.expect(TokenKind::CloseBracket)?;
                }
                _ => return self.expect(TokenKind::CloseParen),
            }
        }
    }

    /// An initialiser.
    pub fn initialiser(&mut self) -> Result<()> {
        if self.kind() == TokenKind::OpenBrace { self.braces() } else { self.expression_to_comma() }
    }

    /// `{ … }` in an initialiser.
    fn braces(&mut self) -> Result<()> {
        self.nested(|parser| {
            parser.next();
            while parser.kind() != TokenKind::CloseBrace {
                parser.designators()?;
                parser.initialiser()?;
                if !parser.take(TokenKind::Comma) {
                    break;
                }
            }
            parser.expect(TokenKind::CloseBrace)
        })
    }

    /// `.member`, `[index]`, `[from ... to]`, and GNU's `member:`.
    fn designators(&mut self) -> Result<()> {
        if self.kind() == TokenKind::Identifier && self.kind_at(1) == TokenKind::Colon {
            self.at += 2;
            return Ok(());
        }
        let from = self.at;
        loop {
            match self.kind() {
                TokenKind::Dot => {
                    self.next();
                    self.expect(TokenKind::Identifier)?;
                }
                TokenKind::OpenBracket => {
                    self.next();
                    self.expression()?;
                    self.expect(TokenKind::CloseBracket)?;
                }
                _ => break,
            }
        }
        if self.at > from {
            self.take(TokenKind::Assign);
        }
        Ok(())
    }
}
