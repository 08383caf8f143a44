//! Which relocations use the address of their target as a value, so that the order in which things
//! lie can be seen. In: an object's tables, a relocation. Out: its [`Usage`].
//!
//! A call, a jump, a load or a store does not show where its target lies. An address in a register
//! or in data does: pointers are compared, sorted, and the keys of maps. So whatever is not surely
//! one of the former counts as a use of the address. Some addresses in data are left out, because
//! programs call or match what they lead to, and have no way to get at the pointer itself short of
//! reading the tables of the language's runtime as raw memory:
//!
//! - the functions in vtables, and vtables in tables of vtables. The address of a vtable in code is
//!   not left out: it is stored in objects, and programs that are built without `type_info` have
//!   maps with it as the key;
//! - of `type_info` objects the base classes, and the names, which are compared as texts unless
//!   they start with `*` (types of an unnamed namespace, whose names are compared by address);
//! - exception tables, which are matched for equality, and arrays of constructors and destructors,
//!   which count in order;
//! - literals that are arguments of functions which only read them;
//! - tables that compilers make of a choice between constants: programs have no name for them;
//! - labels inside of functions: the function that a jump table or a computed goto leads into
//!   refers to the table.
//!
//! The address of a type's `type_info` in its vtable is not left out: `&typeid(*object)` is that
//! pointer.

use super::arch;
use super::labels::Labels;
use super::object_file::{ObjectFile, Section, Symbol, SymbolPlace};
use crate::model::record::Usage;
use object::elf;

/// Sections whose pointers nobody but the runtime reads, to call what they lead to or to compare
/// for equality.
const OF_THE_RUNTIME: [&str; 6] =
    [".gcc_except_table", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"];

/// Distances in what instrumentation reads, which turns them back into addresses.
const OF_INSTRUMENTATION: [&str; 2] = ["__llvm_prf_", "xray_"];

/// Sections of the parts of functions that are hardly executed.
const PARTS: [&str; 2] = [".text.unlikely", ".text.split."];

/// The names of vtables, of tables of vtables, and of vtables during construction.
const VTABLES: [&str; 3] = ["_ZTV", "_ZTT", "_ZTC"];

/// Tables that compilers make of a choice between constants, and only their own code reads. Or
/// names of their sections.
const CHOICES: [&str; 6] = [
    "reltable.",
    "switch.table.",
    "CSWTCH.",
    ".rodata.reltable.",
    ".rodata.switch.table.",
    ".rodata.CSWTCH.",
];

/// What a relocation of section `from` does with its target.
pub fn usage(object: &ObjectFile, labels: &[Labels], from: usize, number: usize) -> Usage {
    let section = &object.sections[from];
    let relocation = &section.relocations[number];
    let processor = arch::of(object.machine);
    let usage = match section.is_code() {
        true if processor.is_access_in_code(section.data, relocation) => Usage::Access,
        true => Usage::Address,
        false => processor.usage_in_data(relocation.kind),
    };
    if usage == Usage::Access {
        return usage;
    }
    let starts = |starts: &[&str], name: &str| starts.iter().any(|start| name.starts_with(start));
    let symbol = &object.symbols[relocation.symbol as usize];
    let target = name(object, labels, symbol);
    if starts(&CHOICES, target) || starts(&OF_THE_RUNTIME, section.name) {
        return Usage::Access;
    }
    if section.is_code() {
        let is_read =
            is_merged(object, symbol) && processor.is_argument_only_read(object, section, number);
        return if is_read { Usage::Access } else { usage };
    }
    let source = labels[from].name.map_or(section.name, |(_, name)| name);
    let is_hidden = is_label(object, labels, from, number, usage)
        || starts(&VTABLES, source) && !target.starts_with("_ZTI")
        || source.starts_with("_ZTI") && !is_name_compared_by_address(object, symbol, target)
        || usage == Usage::Distance && starts(&OF_INSTRUMENTATION, section.name);
    match usage {
        _ if is_hidden => Usage::Access,
        // Clang's tables of distances, which its code turns back into addresses.
        Usage::Distance if is_merged(object, symbol) || starts(&CHOICES, source) => Usage::Address,
        usage => usage,
    }
}

fn name<'a>(object: &ObjectFile<'a>, labels: &[Labels<'a>], symbol: &Symbol<'a>) -> &'a str {
    match symbol.place {
        SymbolPlace::Section(section) if symbol.is_section() => {
            labels[section].name.map_or(object.sections[section].name, |(_, name)| name)
        }
        _ => symbol.name,
    }
}

fn section_of<'o, 'a>(object: &'o ObjectFile<'a>, symbol: &Symbol) -> Option<&'o Section<'a>> {
    match symbol.place {
        SymbolPlace::Section(section) => object.sections.get(section),
        _ => None,
    }
}

/// A place inside of a function, for a jump: it has no name, and the function itself refers to the
/// table, or a part of it does that compilers put elsewhere. Entries of position-independent jump
/// tables are distances, and their addends are biased by the place of the entry, so that it cannot
/// be seen where they lead.
fn is_label(
    object: &ObjectFile,
    labels: &[Labels],
    from: usize,
    number: usize,
    usage: Usage,
) -> bool {
    let relocation = &object.sections[from].relocations[number];
    let symbol = &object.symbols[relocation.symbol as usize];
    let SymbolPlace::Section(target) = symbol.place else { return false };
    let section = &object.sections[target];
    if !symbol.is_section() || !section.is_code() {
        return false;
    }
    let code = &labels[target];
    let place = relocation.addend as u64;
    let is_named = place == 0 || code.named.binary_search(&place).is_ok();
    let is_part = || {
        code.name.is_some_and(|(_, name)| name.contains(".cold"))
            || PARTS.iter().any(|start| section.name.starts_with(start))
    };
    let may_be_inside = usage == Usage::Distance || !is_named;
    may_be_inside && (code.reads.binary_search(&from).is_ok() || is_part())
}

/// Whether a `type_info` object compares its name by address.
fn is_name_compared_by_address(object: &ObjectFile, symbol: &Symbol, target: &str) -> bool {
    let first =
        section_of(object, symbol).and_then(|section| section.data.get(symbol.value as usize));
    target.starts_with("_ZTS") && first.is_none_or(|first| *first == b'*')
}

/// A string or a constant that is the same thing wherever it lies.
fn is_merged(object: &ObjectFile, symbol: &Symbol) -> bool {
    section_of(object, symbol).is_some_and(|section| section.flags & elf::SHF_MERGE.0 != 0)
}
