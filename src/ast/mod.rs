//! A C front end for hashing: a preprocessed unit → its definitions, each with the hash of what it
//! means and with what it refers to, and a hash of the whole that decides whether an object that
//! was made of another text can be used again.
//!
//! What counts and what does not: `docs/ast.md`.

mod assembler;
mod closure;
mod constants;
mod declarations;
mod hashing;
mod inlining;
mod kinds;
mod lexer;
mod library;
mod names;
mod parser;
mod pragmas;
mod problem;
mod prototypes;
mod scope;
mod tokens;
mod unit;

pub use problem::Problem;
pub use prototypes::RemovablePrototype;

use crate::model::Hash;

/// What a preprocessed unit means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// In the order of the text. Inline functions that nothing uses are not among them.
    pub definitions: Vec<Definition>,
    /// All that decides the object file, apart from positions in the source: equal meanings, equal
    /// code.
    pub meaning: Hash,
    /// The same for an object with debug information, which tells where everything stands. That is
    /// the whole text: gcc numbers files and types, and places variables, by all declarations
    /// before, whether they are used or not.
    pub with_lines: Hash,
    /// A construct whose result depends on what is inlined where.
    pub depends_on_inlining: Option<String>,
    /// Declarations that it could do without; only where they are asked for.
    pub removable_prototypes: Vec<RemovablePrototype>,
}

/// A function, a variable, or assembler outside of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name in the source; that of the symbol where a declaration says `asm("symbol")`. Empty
    /// for assembler.
    pub name: String,
    pub kind: DefinitionKind,
    pub linkage: Linkage,
    /// Its own tree, with all declarations that it uses, and those that they use. What other
    /// functions do and what variables contain is not in it: they are references.
    pub hash: Hash,
    /// The functions and variables that it names, in the order of their first use.
    pub references: Vec<Reference>,
    /// It has assembler text, which may name symbols that no declaration tells of.
    pub has_assembler: bool,
    /// Where it begins.
    pub file: String,
    pub line: u32,
}

/// What a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefinitionKind {
    Function,
    Variable,
    /// `asm("…");` outside of functions.
    Assembler,
    /// A second name, by the attributes `alias` or `ifunc`, of what it refers to.
    Alias,
}

/// Who sees a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Only this unit.
    Static,
    /// Other units, too.
    Extern,
    /// An `inline` function without `static`: whether the unit has a symbol for it depends on the
    /// standard and on other declarations.
    Inline,
}

/// A function or variable that a definition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    pub linkage: Linkage,
}

/// Reads a preprocessed unit. What is not understood is refused, with the place and the reason.
pub fn read(text: &[u8]) -> Result<Unit, Problem> {
    read_for(text, false)
}

/// The same, and finds the declarations that it could do without.
pub fn read_with_prototypes(text: &[u8]) -> Result<Unit, Problem> {
    read_for(text, true)
}

fn read_for(text: &[u8], wants_prototypes: bool) -> Result<Unit, Problem> {
    let all = lexer::tokens(text)?;
    assembler::check(&all)?;
    let parsed = parser::parse(&all).map_err(|problem| *problem)?;
    Ok(unit::unit(&all, &parsed, wants_prototypes))
}

#[cfg(test)]
mod tests;
