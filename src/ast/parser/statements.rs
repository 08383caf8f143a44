//! Statements and blocks.

use super::super::kinds::TokenKind;
use super::{Parser, Result};

impl Parser<'_, '_> {
    /// `{ … }` with a scope of its own.
    pub fn block(&mut self) -> Result<()> {
        self.scope.open();
        self.nested(Self::block_in_scope)?;
        self.scope.close();
        Ok(())
    }

    /// `{ … }` in the scope that is open.
    pub fn block_in_scope(&mut self) -> Result<()> {
        self.expect(TokenKind::OpenBrace)?;
        while self.kind() != TokenKind::CloseBrace {
            self.item()?;
        }
        self.next();
        Ok(())
    }

    /// A declaration or a statement.
    fn item(&mut self) -> Result<()> {
        if self.is_label() {
            self.at += 2;
            return Ok(());
        }
        self.skip_statement_attributes()?;
        if self.is_declaration_start() { self.local_declaration() } else { self.statement() }
    }

    fn is_label(&self) -> bool {
        self.kind() == TokenKind::Identifier && self.kind_at(1) == TokenKind::Colon
    }

    /// Attributes of a label or an empty statement: `__attribute__((fallthrough));`. Those of a
    /// declaration are its own.
    fn skip_statement_attributes(&mut self) -> Result<()> {
        let from = self.at;
        while self.kind() == TokenKind::Attribute
            || self.kind() == TokenKind::OpenBracket && self.kind_at(1) == TokenKind::OpenBracket
        {
            self.attribute(&mut Default::default())?;
        }
        if self.at > from && !self.begins_statement() && self.kind() != TokenKind::Semicolon {
            self.at = from;
        }
        Ok(())
    }

    /// Whether a statement other than an expression begins here.
    fn begins_statement(&self) -> bool {
        matches!(
            self.kind(),
            TokenKind::If
                | TokenKind::While
                | TokenKind::Do
                | TokenKind::For
                | TokenKind::Switch
                | TokenKind::Case
                | TokenKind::Default
                | TokenKind::Goto
                | TokenKind::Continue
                | TokenKind::Break
                | TokenKind::Return
                | TokenKind::OpenBrace
                | TokenKind::CloseBrace
        ) || self.is_label()
    }

    /// A statement that belongs to another one.
    fn inner_statement(&mut self) -> Result<()> {
        self.scope.open();
        self.nested(|parser| {
            while parser.is_label() {
                parser.at += 2;
                parser.skip_statement_attributes()?;
            }
            parser.skip_statement_attributes()?;
            parser.statement()
        })?;
        self.scope.close();
        Ok(())
    }

    fn statement(&mut self) -> Result<()> {
        match self.kind() {
            TokenKind::OpenBrace => self.block(),
            TokenKind::If => self.choice(),
            TokenKind::While | TokenKind::Switch => {
                self.next();
                self.condition()?;
                self.inner_statement()
            }
            TokenKind::Do => {
                self.next();
                self.inner_statement()?;
                self.expect(TokenKind::While)?;
                self.condition()?;
                self.expect(TokenKind::Semicolon)
            }
            TokenKind::For => self.loop_over(),
            TokenKind::Case => {
                self.next();
                self.expression_to_colon()?;
                self.expect(TokenKind::Colon)
            }
            TokenKind::Default => {
                self.next();
                self.expect(TokenKind::Colon)
            }
            TokenKind::Goto => self.jump(),
            TokenKind::Continue | TokenKind::Break => {
                self.next();
                self.expect(TokenKind::Semicolon)
            }
            TokenKind::Return => {
                self.next();
                self.initialiser()?;
                self.rest_of_expression()
            }
            TokenKind::Asm => self.assembler(),
            TokenKind::LabelDeclaration => {
                self.next();
                while self.take(TokenKind::Identifier) || self.take(TokenKind::Comma) {}
                self.expect(TokenKind::Semicolon)
            }
            _ => self.rest_of_expression(),
        }
    }

    fn rest_of_expression(&mut self) -> Result<()> {
        self.expression()?;
        self.expect(TokenKind::Semicolon)
    }

    fn condition(&mut self) -> Result<()> {
        self.expect(TokenKind::OpenParen)?;
        self.nested(Self::expression)?;
        self.expect(TokenKind::CloseParen)
    }

    /// `if`, with as many `else if` as there are: chains of them can be long.
    fn choice(&mut self) -> Result<()> {
        loop {
            self.next();
            self.condition()?;
            self.labelled()?;
            if !self.take(TokenKind::Else) {
                return Ok(());
            }
            if self.kind() != TokenKind::If {
                return self.labelled();
            }
        }
    }

    /// An inner statement, with the `case`s before it, which are statements of their own here.
    fn labelled(&mut self) -> Result<()> {
        while matches!(self.kind(), TokenKind::Case | TokenKind::Default) {
            self.statement()?;
        }
        self.inner_statement()
    }

    fn loop_over(&mut self) -> Result<()> {
        self.next();
        self.expect(TokenKind::OpenParen)?;
        self.scope.open();
        if self.is_declaration_start() {
            self.local_declaration()?;
        } else {
            self.rest_of_expression()?;
        }
        self.rest_of_expression()?;
        self.expression()?;
        self.expect(TokenKind::CloseParen)?;
        self.inner_statement()?;
        self.scope.close();
        Ok(())
    }

    fn jump(&mut self) -> Result<()> {
        self.next();
        if self.take(TokenKind::Identifier) {
            self.expect(TokenKind::Semicolon)
        } else {
            self.rest_of_expression()
        }
    }

    /// `asm volatile ("…" : outputs : inputs : clobbers : labels);`
    pub fn assembler(&mut self) -> Result<()> {
        self.next();
        self.body.has_assembler = true;
        while matches!(self.kind(), TokenKind::Qualifier | TokenKind::Goto | TokenKind::Inline) {
            self.next();
        }
        self.expect(TokenKind::OpenParen)?;
        let mut colons = 0;
        loop {
            match self.kind() {
                TokenKind::Text => self.symbols_in_text(),
                TokenKind::Colon => colons += 1,
                TokenKind::Comma => {}
                // The name of an operand.
                TokenKind::OpenBracket
                    if colons > 0 && self.kind_at(1) == TokenKind::Identifier =>
                {
                    self.at += 2;
                    if self.kind() != TokenKind::CloseBracket {
                        return self.unexpected();
                    }
                }
                TokenKind::OpenParen if colons > 0 => {
                    self.next();
                    self.nested(Self::expression)?;
                    if self.kind() != TokenKind::CloseParen {
                        return self.unexpected();
                    }
                }
                TokenKind::Identifier if colons == 4 => {}
                TokenKind::CloseParen => break,
                _ => return self.unexpected(),
            }
            self.next();
        }
        self.next();
        self.expect(TokenKind::Semicolon)
    }

    /// Words of assembler that are names of functions or variables.
    fn symbols_in_text(&mut self) {
        let token = self.token();
        let text = self.all.spelling(&token);
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let mut at = 0;
        while at < text.len() {
            if text[at] == b'\\' {
                at += 2;
                continue;
            }
            let length =
                text[at..].iter().position(|&byte| !is_word(byte)).unwrap_or(text.len() - at);
            if let Some(name) = self.all.names.find(&text[at..at + length]).filter(|_| length > 0) {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            at += length.max(1);
        }
    }
}
