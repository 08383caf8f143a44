//! Tokens → what the unit declares, defines and uses.
//!
//! No tree is kept: the tokens of a definition, and what its names mean, say all that a tree would.
//! So the grammar is followed only as far as it decides what a name means: whether it is a type, a
//! member, a label, something local, or a reference to something at file scope. What does not fit
//! is refused.

mod attributes;
mod declarators;
mod expressions;
mod external;
mod local;
mod specifiers;
mod statements;
mod tags;

use super::declarations::{Declarations, EntityId, NOTHING, Part, Role};
use super::kinds::{TokenKind, VECTOR_TYPES};
use super::lexer::{Token, Tokens, readable};
use super::names::Name;
use super::pragmas::Pragmas;
use super::problem::Problem;
use super::scope::{Binding, Scope, Space};

/// How far brackets, blocks and declarators may be nested.
const DEEPEST: u32 = 600;

/// Boxed, since it is rare and large.
pub type Result<T> = std::result::Result<T, Box<Problem>>;

/// What the text of a unit says.
pub struct Parsed {
    pub declarations: Declarations,
    pub pragmas: Pragmas,
}

/// Reads a whole unit.
pub fn parse(all: &Tokens) -> Result<Parsed> {
    let count = all.names.len();
    let mut parser = Parser {
        all,
        at: 0,
        depth: 0,
        scope: Scope::new(count),
        linkage: vec![NOTHING; count],
        declarations: Declarations::default(),
        pragmas: Pragmas::new(),
        pragmas_met: 0,
        body: Body::default(),
        label: NOTHING,
    };
    while parser.kind() != TokenKind::End {
        parser.external()?;
    }
    parser.meet_pragmas();
    Ok(Parsed { declarations: parser.declarations, pragmas: parser.pragmas })
}

/// What was met in the function that is being read.
#[derive(Clone, Copy, Default)]
struct Body {
    has_assembler: bool,
    has_effects: bool,
}

struct Parser<'t, 'a> {
    all: &'t Tokens<'a>,
    at: usize,
    depth: u32,
    scope: Scope,
    /// The function or variable with linkage that a name stands for, wherever it was declared.
    linkage: Vec<EntityId>,
    declarations: Declarations,
    pragmas: Pragmas,
    /// How many of the unit's pragmas the state covers.
    pragmas_met: usize,
    body: Body,
    /// The literal of the last `asm("symbol")` behind the declarator that is being read.
    label: u32,
}

impl<'a> Parser<'_, 'a> {
    #[inline]
    fn token(&self) -> Token {
        self.token_at(0)
    }

    /// The token that stands so far ahead; the last one if there is none.
    #[inline]
    fn token_at(&self, ahead: usize) -> Token {
        let tokens = &self.all.tokens;
        *tokens.get(self.at + ahead).unwrap_or(&tokens[tokens.len() - 1])
    }

    #[inline]
    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    #[inline]
    fn kind_at(&self, ahead: usize) -> TokenKind {
        self.token_at(ahead).kind
    }

    #[inline]
    fn next(&mut self) {
        self.at += 1;
    }

    /// Takes a token if it is of this kind.
    #[inline]
    fn take(&mut self, kind: TokenKind) -> bool {
        if self.kind() != kind {
            return false;
        }
        self.next();
        true
    }

    #[inline]
    fn expect(&mut self, kind: TokenKind) -> Result<()> {
        if self.take(kind) { Ok(()) } else { self.unexpected() }
    }

    /// The place does not fit the grammar.
    #[cold]
    fn unexpected<T>(&self) -> Result<T> {
        let token = self.token();
        match token.kind {
            TokenKind::End => self.fail("the text ends within a declaration"),
            _ => {
                self.fail(format!("`{}` is not expected here", readable(self.all.spelling(&token))))
            }
        }
    }

    #[cold]
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(Box::new(self.all.problem(self.at, reason)))
    }

    /// Goes one step down in the nesting.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEEPEST {
            return self.fail("it is nested too deeply");
        }
        self.depth += 1;
        let result = inner(self)?;
        self.depth -= 1;
        Ok(result)
    }

    /// The kind of a token, where a name that is a word of a newer standard counts as that word.
    #[inline]
    fn meant(&self, ahead: usize) -> TokenKind {
        let token = self.token_at(ahead);
        match token.kind {
            TokenKind::Identifier => {
                self.scope.ordinary(token.name).as_word().unwrap_or(TokenKind::Identifier)
            }
            kind => kind,
        }
    }

    /// Whether an identifier names a type here.
    #[inline]
    fn is_type_name(&self, token: Token) -> bool {
        let binding = self.scope.ordinary(token.name);
        binding.is_type() || binding == Binding::NONE && self.is_vector_type(token)
    }

    /// Whether it is a type that compilers for Arm know by themselves.
    fn is_vector_type(&self, token: Token) -> bool {
        let spelling = self.all.spelling(&token);
        spelling.starts_with(b"__")
            && spelling.ends_with(b"_t")
            && VECTOR_TYPES.iter().any(|start| spelling.starts_with(start.as_bytes()))
    }

    /// Whether a type, and so a declaration or the name of a type, begins so far ahead.
    #[inline]
    fn is_type_start(&self, ahead: usize) -> bool {
        match self.meant(ahead) {
            TokenKind::Identifier => self.is_type_name(self.token_at(ahead)),
            TokenKind::Qualifier
            | TokenKind::BasicType
            | TokenKind::Atomic
            | TokenKind::BitInt
            | TokenKind::Struct
            | TokenKind::Union
            | TokenKind::Enum
            | TokenKind::Typeof
            | TokenKind::AutoType
            | TokenKind::Alignas
            | TokenKind::Attribute
            | TokenKind::Declspec => true,
            TokenKind::Extension => self.is_type_start(ahead + 1),
            _ => false,
        }
    }

    /// Whether a declaration begins here.
    fn is_declaration_start(&self) -> bool {
        match self.meant(0) {
            TokenKind::Typedef
            | TokenKind::Extern
            | TokenKind::Static
            | TokenKind::Auto
            | TokenKind::Register
            | TokenKind::Thread
            | TokenKind::Inline
            | TokenKind::Noreturn
            | TokenKind::Constexpr
            | TokenKind::StaticAssert => true,
            TokenKind::OpenBracket => self.kind_at(1) == TokenKind::OpenBracket,
            TokenKind::Extension => {
                let past =
                    (1..).find(|&ahead| self.kind_at(ahead) != TokenKind::Extension).unwrap_or(1);
                self.is_type_start(past)
                    || matches!(
                        self.kind_at(past),
                        TokenKind::Static
                            | TokenKind::Extern
                            | TokenKind::Typedef
                            | TokenKind::Inline
                    )
            }
            _ => self.is_type_start(0),
        }
    }

    /// The function or variable of this name, which may not have been declared yet.
    fn linked(&mut self, name: Name) -> EntityId {
        if self.linkage[name as usize] == NOTHING {
            self.linkage[name as usize] = self.declarations.add(name, Role::Undeclared);
        }
        self.linkage[name as usize]
    }

    fn bind(&mut self, name: Name, binding: Binding) {
        self.scope.bind(Space::Ordinary, name, binding);
    }

    /// Whether two parts are written alike.
    fn same_text(all: &Tokens, one: Part, other: Part) -> bool {
        let tokens = |part: Part| &all.tokens[part.tokens.0 as usize..part.tokens.1 as usize];
        let has_pragmas = |part: Part| all.pragmas_within(part.tokens).next().is_some();
        let (one_tokens, other_tokens) = (tokens(one), tokens(other));
        one_tokens.len() == other_tokens.len()
            && one_tokens
                .iter()
                .zip(other_tokens)
                .all(|(one, other)| all.spelling(one) == all.spelling(other))
            && !has_pragmas(one)
            && !has_pragmas(other)
    }
}
