//! Expressions and initialisers, as far as they decide what names mean.
//!
//! An expression is walked through token by token. What has to be known is whether an operand has just ended: then `&&` is an
//! operator, else it takes the address of a label; then `(` begins arguments, else it can hold a type.

use super::super::kinds::Kind;
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
                Kind::Identifier if !is_operand => is_operand = self.name()?,
                Kind::Number | Kind::Character | Kind::Text | Kind::Position | Kind::FunctionName if !is_operand => {
                    is_operand = self.literal(kind);
                }
                Kind::Dot | Kind::Arrow if is_operand => {
                    self.next();
                    self.expect(Kind::Identifier)?;
                }
                Kind::OpenParen => is_operand = self.nested(|parser| parser.brackets(is_operand))?,
                Kind::OpenBracket if is_operand => {
                    self.next();
                    self.nested(Self::expression)?;
                    self.expect(Kind::CloseBracket)?;
                }
                Kind::Operator | Kind::Star | Kind::Assign | Kind::Ellipsis => {
                    self.next();
                    is_operand = false;
                }
                Kind::Extension | Kind::Part if !is_operand => self.next(),
                Kind::Caret if !is_operand => return self.fail("a block literal"),
                Kind::Step => self.next(),
                Kind::AndAnd if !is_operand => {
                    self.next();
                    self.expect(Kind::Identifier)?;
                    self.body.has_effects = true;
                    is_operand = true;
                }
                Kind::Question if is_operand => {
                    self.next();
                    questions += 1;
                    is_operand = false;
                }
                Kind::Colon if questions > 0 => {
                    self.next();
                    questions -= 1;
                    is_operand = false;
                }
                Kind::Caret | Kind::AndAnd => {
                    self.next();
                    is_operand = false;
                }
                // Between `?` and `:` a comma is always an operator.
                Kind::Comma if !stops.comma || questions > 0 => {
                    self.next();
                    is_operand = false;
                }
                Kind::Sizeof | Kind::Alignof if !is_operand => {
                    self.next();
                    is_operand = self.size()?;
                }
                Kind::Generic if !is_operand => {
                    self.next();
                    self.nested(Self::selection)?;
                    is_operand = true;
                }
                Kind::Offsetof if !is_operand => {
                    self.next();
                    self.nested(Self::offset)?;
                    is_operand = true;
                }
                Kind::Colon if stops.colon => return Ok(()),
                Kind::Comma | Kind::Semicolon | Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace
                    if questions == 0 =>
                {
                    return Ok(());
                }
                _ => return self.unexpected(),
            }
        }
    }

    /// A literal, or several strings that make one. It ends an operand.
    fn literal(&mut self, kind: Kind) -> bool {
        self.body.has_effects |= kind == Kind::FunctionName;
        self.next();
        // Older compilers take the name of the function for a literal.
        while kind != Kind::Number && matches!(self.kind(), Kind::Text | Kind::FunctionName) {
            self.body.has_effects |= self.kind() == Kind::FunctionName;
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
            // Compilers declare what is called without a declaration, and some know it by themselves.
            Binding::NONE => {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            Binding::LOCAL_UNCLEAR if self.kind_at(1) == Kind::OpenParen => {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            Binding::LOCAL_UNCLEAR => {}
            _ if binding.as_word() == Some(Kind::Alignof) => {
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
        if self.kind() != Kind::OpenParen || !self.is_type_start(1) {
            return Ok(false);
        }
        self.next();
        self.nested(Self::type_name)?;
        self.expect(Kind::CloseParen)?;
        if self.kind() == Kind::OpenBrace {
            self.braces()?;
        }
        Ok(true)
    }

    /// `( … )`: an expression, arguments, a cast, a compound literal or a statement expression. Whether it ends an operand.
    fn brackets(&mut self, is_call: bool) -> Result<bool> {
        self.next();
        if self.kind() == Kind::OpenBrace {
            self.block()?;
            self.expect(Kind::CloseParen)?;
            return Ok(true);
        }
        let mut is_type = false;
        let mut count = 0;
        while self.kind() != Kind::CloseParen {
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
            if !self.take(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::CloseParen)?;
        if !(is_type && count == 1 && !is_call) {
            return Ok(true);
        }
        if self.kind() == Kind::OpenBrace {
            self.braces()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// C23's `(static const T){…}`.
    fn is_storage_of_literal(&self) -> bool {
        matches!(self.meant(0), Kind::Static | Kind::Register | Kind::Constexpr | Kind::Thread)
    }

    /// Behind `_Generic`.
    fn selection(&mut self) -> Result<()> {
        self.expect(Kind::OpenParen)?;
        if self.is_type_start(0) {
            self.type_name()?
        } else {
            self.expression_to_comma()?
        }
        while self.take(Kind::Comma) {
            if !self.take(Kind::Default) {
                self.type_name()?;
            }
            self.expect(Kind::Colon)?;
            self.expression_to_comma()?;
        }
        self.expect(Kind::CloseParen)
    }

    /// Behind `__builtin_offsetof`: a type and a path of members.
    fn offset(&mut self) -> Result<()> {
        self.expect(Kind::OpenParen)?;
        self.type_name()?;
        self.expect(Kind::Comma)?;
        self.expect(Kind::Identifier)?;
        loop {
            match self.kind() {
                Kind::Dot | Kind::Arrow => {
                    self.next();
                    self.expect(Kind::Identifier)?;
                }
                Kind::OpenBracket => {
                    self.next();
                    self.expression()?;
                    self.expect(Kind::CloseBracket)?;
                }
                _ => return self.expect(Kind::CloseParen),
            }
        }
    }

    /// An initialiser.
    pub fn initialiser(&mut self) -> Result<()> {
        if self.kind() == Kind::OpenBrace { self.braces() } else { self.expression_to_comma() }
    }

    /// `{ … }` in an initialiser.
    fn braces(&mut self) -> Result<()> {
        self.nested(|parser| {
            parser.next();
            while parser.kind() != Kind::CloseBrace {
                parser.designators()?;
                parser.initialiser()?;
                if !parser.take(Kind::Comma) {
                    break;
                }
            }
            parser.expect(Kind::CloseBrace)
        })
    }

    /// `.member`, `[index]`, `[from ... to]`, and GNU's `member:`.
    fn designators(&mut self) -> Result<()> {
        if self.kind() == Kind::Identifier && self.kind_at(1) == Kind::Colon {
            self.at += 2;
            return Ok(());
        }
        let from = self.at;
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.next();
                    self.expect(Kind::Identifier)?;
                }
                Kind::OpenBracket => {
                    self.next();
                    self.expression()?;
                    self.expect(Kind::CloseBracket)?;
                }
                _ => break,
            }
        }
        if self.at > from {
            self.take(Kind::Assign);
        }
        Ok(())
    }
}
