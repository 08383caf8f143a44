//! Statements and blocks.

use super::super::kinds::Kind;
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
        self.expect(Kind::OpenBrace)?;
        while self.kind() != Kind::CloseBrace {
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
        self.kind() == Kind::Identifier && self.kind_at(1) == Kind::Colon
    }

    /// Attributes of a label or an empty statement: `__attribute__((fallthrough));`. Those of a declaration are its own.
    fn skip_statement_attributes(&mut self) -> Result<()> {
        let from = self.at;
        while self.kind() == Kind::Attribute || self.kind() == Kind::OpenBracket && self.kind_at(1) == Kind::OpenBracket
        {
            self.attribute(&mut Default::default())?;
        }
        if self.at > from && !self.begins_statement() && self.kind() != Kind::Semicolon {
            self.at = from;
        }
        Ok(())
    }

    /// Whether a statement other than an expression begins here.
    fn begins_statement(&self) -> bool {
        matches!(
            self.kind(),
            Kind::If
                | Kind::While
                | Kind::Do
                | Kind::For
                | Kind::Switch
                | Kind::Case
                | Kind::Default
                | Kind::Goto
                | Kind::Continue
                | Kind::Break
                | Kind::Return
                | Kind::OpenBrace
                | Kind::CloseBrace
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
            Kind::OpenBrace => self.block(),
            Kind::If => self.choice(),
            Kind::While | Kind::Switch => {
                self.next();
                self.condition()?;
                self.inner_statement()
            }
            Kind::Do => {
                self.next();
                self.inner_statement()?;
                self.expect(Kind::While)?;
                self.condition()?;
                self.expect(Kind::Semicolon)
            }
            Kind::For => self.loop_over(),
            Kind::Case => {
                self.next();
                self.expression_to_colon()?;
                self.expect(Kind::Colon)
            }
            Kind::Default => {
                self.next();
                self.expect(Kind::Colon)
            }
            Kind::Goto => self.jump(),
            Kind::Continue | Kind::Break => {
                self.next();
                self.expect(Kind::Semicolon)
            }
            Kind::Return => {
                self.next();
                self.initialiser()?;
                self.rest_of_expression()
            }
            Kind::Asm => self.assembler(),
            Kind::LabelDeclaration => {
                self.next();
                while self.take(Kind::Identifier) || self.take(Kind::Comma) {}
                self.expect(Kind::Semicolon)
            }
            _ => self.rest_of_expression(),
        }
    }

    fn rest_of_expression(&mut self) -> Result<()> {
        self.expression()?;
        self.expect(Kind::Semicolon)
    }

    fn condition(&mut self) -> Result<()> {
        self.expect(Kind::OpenParen)?;
        self.nested(Self::expression)?;
        self.expect(Kind::CloseParen)
    }

    /// `if`, with as many `else if` as there are: chains of them can be long.
    fn choice(&mut self) -> Result<()> {
        loop {
            self.next();
            self.condition()?;
            self.labelled()?;
            if !self.take(Kind::Else) {
                return Ok(());
            }
            if self.kind() != Kind::If {
                return self.labelled();
            }
        }
    }

    /// An inner statement, with the `case`s before it, which are statements of their own here.
    fn labelled(&mut self) -> Result<()> {
        while matches!(self.kind(), Kind::Case | Kind::Default) {
            self.statement()?;
        }
        self.inner_statement()
    }

    fn loop_over(&mut self) -> Result<()> {
        self.next();
        self.expect(Kind::OpenParen)?;
        self.scope.open();
        if self.is_declaration_start() {
            self.local_declaration()?;
        } else {
            self.rest_of_expression()?;
        }
        self.rest_of_expression()?;
        self.expression()?;
        self.expect(Kind::CloseParen)?;
        self.inner_statement()?;
        self.scope.close();
        Ok(())
    }

    fn jump(&mut self) -> Result<()> {
        self.next();
        if self.take(Kind::Identifier) { self.expect(Kind::Semicolon) } else { self.rest_of_expression() }
    }

    /// `asm volatile ("…" : outputs : inputs : clobbers : labels);`
    pub fn assembler(&mut self) -> Result<()> {
        self.next();
        self.body.has_assembler = true;
        while matches!(self.kind(), Kind::Qualifier | Kind::Goto | Kind::Inline) {
            self.next();
        }
        self.expect(Kind::OpenParen)?;
        let mut colons = 0;
        loop {
            match self.kind() {
                Kind::Text => self.symbols_in_text(),
                Kind::Colon => colons += 1,
                Kind::Comma => {}
                // The name of an operand.
                Kind::OpenBracket if colons > 0 && self.kind_at(1) == Kind::Identifier => {
                    self.at += 2;
                    if self.kind() != Kind::CloseBracket {
                        return self.unexpected();
                    }
                }
                Kind::OpenParen if colons > 0 => {
                    self.next();
                    self.nested(Self::expression)?;
                    if self.kind() != Kind::CloseParen {
                        return self.unexpected();
                    }
                }
                Kind::Identifier if colons == 4 => {}
                Kind::CloseParen => break,
                _ => return self.unexpected(),
            }
            self.next();
        }
        self.next();
        self.expect(Kind::Semicolon)
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
            let length = text[at..].iter().position(|&byte| !is_word(byte)).unwrap_or(text.len() - at);
            if let Some(name) = self.all.names.find(&text[at..at + length]).filter(|_| length > 0) {
                let entity = self.linked(name);
                self.declarations.refer(entity);
            }
            at += length.max(1);
        }
    }
}
