//! An object's record at the file level, and what records of both levels have in common.
//!
//! In: an object's tables. Out: its record, with one atom.

use super::endings::{EndFlow, Endings};
use super::object_file::{ObjectFile, SymbolPlace};
use super::{digest, noreturn};
use crate::model::record::{Ending, Usage};
use crate::model::{Atom, AtomKind, Level, Record, Reference, Symbol, SymbolKind, Target};
use object::elf;

/// The file level: one atom for the whole object, which refers to everything that the object names.
pub fn whole<'a>(object: &ObjectFile<'a>) -> Record<'a> {
    let digest = digest::of_object(object);
    let symbols = symbols(object, |section, value| SymbolKind::Defined {
        atom: 0,
        offset: ((section as u64) << 40) | value,
    });
    let references: Vec<_> =
        (0..symbols.len() as u32).map(|symbol| address_of(Target::Symbol(symbol))).collect();
    let endings = Endings::new(object);
    let code = object
        .sections
        .iter()
        .enumerate()
        .filter(|(_, section)| section.is_code() && section.size > 0);
    let is_closed =
        code.map(|(index, section)| endings.of(index, 0..section.size)).all(|end| match end.flow {
            EndFlow::Leaves => true,
            EndFlow::Calls(calls) => calls.iter().all(|relocation| {
                noreturn::is_known(object.symbols[relocation.symbol as usize].name)
            }),
            EndFlow::Falls => false,
        });
    let atom = Atom {
        name: "",
        kind: AtomKind::Function,
        level: Level::File,
        hash: digest,
        section: 0,
        section_name: "",
        group: 0,
        size: object
            .sections
            .iter()
            .filter(|section| section.is_allocated())
            .fold(0, |sum: u64, section| sum.saturating_add(section.size)),
        references: references.len() as u32,
        traceable: false,
        ending: if is_closed { Ending::Leaves } else { Ending::Falls },
        returns: true,
        file: 0,
        line: 0,
    };
    Record { digest, atoms: vec![atom], references, symbols, ..Record::default() }
}

/// The symbols that are visible beyond the object, in the order of the symbol table.
pub fn symbols<'a>(
    object: &ObjectFile<'a>,
    defined: impl Fn(usize, u64) -> SymbolKind,
) -> Vec<Symbol<'a>> {
    let visible = object.symbols.iter().filter(|symbol| !symbol.is_local());
    visible
        .map(|symbol| {
            let kind = match symbol.place {
                SymbolPlace::Undefined => SymbolKind::Undefined,
                SymbolPlace::Absolute => SymbolKind::Absolute { value: symbol.value },
                SymbolPlace::Common => {
                    SymbolKind::Common { size: symbol.size, align: symbol.value }
                }
                SymbolPlace::Section(section) => defined(section, symbol.value),
            };
            Symbol::new(symbol.name, symbol.binding == elf::STB_WEAK.0, kind)
        })
        .collect()
}

/// A reference of which no more is known.
pub fn address_of(target: Target) -> Reference {
    Reference { target, offset: 0, usage: Usage::Address }
}
