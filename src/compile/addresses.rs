//! Whose addresses an object uses as values, where its sections hold many definitions each. In: the
//! object. Out: the places and symbols of which that is so, anywhere in the object: what is inlined
//! somewhere uses addresses there.

use crate::elf::addresses;
use crate::elf::arch;
use crate::elf::labels::labels;
use crate::elf::object_file::{ObjectFile, Relocation, SymbolPlace};
use crate::model::record::Usage;

/// A target of an object's relocations, and how it is used.
pub enum Used {
    /// A symbol that other objects see, by its index.
    Symbol(u32, Usage),
    /// A place in a section: section and offset.
    SymbolPlace(usize, u64, Usage),
}

/// All addresses that are used as values. `None`: of this machine that is not known.
pub fn used(object: &ObjectFile) -> Option<Vec<Used>> {
    let processor = arch::of(object.machine);
    if !processor.tells_address_uses() {
        return None;
    }
    let labels = labels(object);
    let mut used = Vec::new();
    for (index, section) in object.sections.iter().enumerate() {
        if !section.is_allocated() || section.is_unwind() {
            continue;
        }
        for (number, relocation) in section.relocations.iter().enumerate() {
            let usage = addresses::usage(object, &labels, index, number);
            if usage != Usage::Access {
                add(object, relocation, usage, &mut used);
            }
        }
        if section.is_code() {
            let places = processor.addresses_without_relocation(section).into_iter();
            used.extend(places.map(|place| Used::SymbolPlace(index, place, Usage::Address)));
        }
    }
    Some(used)
}

fn add(object: &ObjectFile, relocation: &Relocation, usage: Usage, used: &mut Vec<Used>) {
    let symbol = &object.symbols[relocation.symbol as usize];
    if !symbol.is_local() {
        used.push(Used::Symbol(relocation.symbol, usage));
    }
    let SymbolPlace::Section(section) = symbol.place else { return };
    // A field that counts from its own end is 4 bytes further on; and the end of a thing may be
    // meant.
    let addend = if symbol.is_local() { relocation.addend } else { 0 };
    for bias in [-1, 0, 3, 4] {
        let place = symbol.value.checked_add_signed(addend.saturating_add(bias));
        used.extend(place.map(|place| Used::SymbolPlace(section, place, usage)));
    }
}
