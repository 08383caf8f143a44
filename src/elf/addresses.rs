//! Which relocations use the address of their target as a value, so that the order in which things
//! lie can be seen. In: an object's tables, a relocation. Out: its [`Usage`].
//!
//! A call, a jump, a load or a store does not show where its target lies. An address in a register
//! or in data does: pointers are compared, sorted, and the keys of maps. So whatever is not surely
//! one of the former counts as a use of the address. Some addresses in data are left out, because
//! programs call or match what they lead to, and have no way to get at the pointer itself short of
//! reading the tables of the language's runtime as raw memory:
//!
//! - the functions in vtables, and the addresses of vtables themselves (C++ has no expression for
//!   either);
//! - of `type_info` objects the base classes, and the names, which are compared as texts unless
//!   they start with `*` (types of an unnamed namespace, whose names are compared by address);
//! - exception tables, which are matched for equality, and arrays of constructors and destructors,
//!   which count in order;
//! - literals that are arguments of functions which only read them (`arguments`);
//! - tables that compilers make of a choice between constants: programs have no name for them;
//! - labels inside of functions: jump tables and computed gotos lead back into one and the same
//!   function.
//!
//! The address of a type's `type_info` in its vtable is not left out: `&typeid(*object)` is that
//! pointer.

use super::arguments;
use super::labels::Labels;
use super::object_file::{ObjectFile, Relocation, Section, Symbol, SymbolPlace};
use crate::model::record::Usage;
use object::elf;

/// Sections whose pointers nobody but the runtime reads, to call what they lead to or to compare
/// for equality.
const OF_THE_RUNTIME: [&str; 6] =
    [".gcc_except_table", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"];

/// Distances in what instrumentation reads, which turns them back into addresses.
const OF_INSTRUMENTATION: [&str; 2] = ["__llvm_prf_", "xray_"];

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
    let usage = match section.is_code() {
        true => of_code(object.machine, section.data, relocation),
        false => of_data(object.machine, relocation),
    };
    if usage == Usage::Access {
        return usage;
    }
    let starts = |starts: &[&str], name: &str| starts.iter().any(|start| name.starts_with(start));
    let symbol = &object.symbols[relocation.symbol as usize];
    let target = name(object, labels, symbol);
    if starts(&VTABLES, target) || starts(&CHOICES, target) || starts(&OF_THE_RUNTIME, section.name)
    {
        return Usage::Access;
    }
    if section.is_code() {
        let is_read = is_merged(object, symbol) && arguments::is_only_read(object, section, number);
        return if is_read { Usage::Access } else { usage };
    }
    let source = labels[from].name.map_or(section.name, |(_, name)| name);
    let is_hidden = is_label(object, symbol, relocation, usage)
        || starts(&VTABLES, source) && !target.starts_with("_ZTI")
        || source.starts_with("_ZTI") && !is_name_compared_by_address(object, symbol, target)
        || usage == Usage::Distance && starts(&OF_INSTRUMENTATION, section.name);
    match usage {
        _ if is_hidden => Usage::Access,
        // Clang's tables of distances to literals, which its code turns back into addresses.
        Usage::Distance if is_merged(object, symbol) => Usage::Address,
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

/// A place inside of a function, for a jump. Entries of position-independent jump tables are
/// distances, and their addends are biased by the place of the entry.
fn is_label(object: &ObjectFile, symbol: &Symbol, relocation: &Relocation, usage: Usage) -> bool {
    let is_code = section_of(object, symbol).is_some_and(Section::is_code);
    is_code && symbol.is_section() && (usage == Usage::Distance || relocation.addend != 0)
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

/// A pointer in data, or a distance from there.
fn of_data(machine: u16, relocation: &Relocation) -> Usage {
    let kind = relocation.kind;
    let (distances, nothing): (&[u32], &[u32]) = match elf::Machine(machine) {
        elf::EM_X86_64 => (
            &[
                elf::R_X86_64_PC8.0,
                elf::R_X86_64_PC16.0,
                elf::R_X86_64_PC32.0,
                elf::R_X86_64_PC64.0,
            ],
            &[elf::R_X86_64_NONE.0, elf::R_X86_64_SIZE32.0, elf::R_X86_64_SIZE64.0],
        ),
        elf::EM_AARCH64 => (
            &[elf::R_AARCH64_PREL16.0, elf::R_AARCH64_PREL32.0, elf::R_AARCH64_PREL64.0],
            &[elf::R_AARCH64_NONE.0],
        ),
        elf::EM_386 => {
            (&[elf::R_386_PC8.0, elf::R_386_PC16.0, elf::R_386_PC32.0], &[elf::R_386_NONE.0])
        }
        _ => (&[], &[]),
    };
    if distances.contains(&kind) {
        Usage::Distance
    } else if nothing.contains(&kind) {
        Usage::Access
    } else {
        Usage::Address
    }
}

/// What the instruction does that holds the relocated field. Of a machine that is not known every
/// use may be one of the address.
fn of_code(machine: u16, code: &[u8], relocation: &Relocation) -> Usage {
    let is_access = match elf::Machine(machine) {
        elf::EM_X86_64 => is_access_x86_64(code, relocation),
        elf::EM_386 => {
            [elf::R_386_PC32.0, elf::R_386_PLT32.0].contains(&relocation.kind)
                && is_jump(code, relocation)
        }
        elf::EM_AARCH64 => is_access_aarch64(relocation.kind),
        _ => false,
    };
    if is_access { Usage::Access } else { Usage::Address }
}

/// The bytes before the field: of an operand `field(%rip)` the last one says so (ModRM: mod 00, r/m
/// 101), and the one before that is the opcode's last byte in every encoding.
fn is_access_x86_64(code: &[u8], relocation: &Relocation) -> bool {
    let through_table =
        [elf::R_X86_64_GOTPCREL.0, elf::R_X86_64_GOTPCRELX.0, elf::R_X86_64_REX_GOTPCRELX.0];
    let direct = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0];
    let nothing = [elf::R_X86_64_NONE.0, elf::R_X86_64_SIZE32.0, elf::R_X86_64_SIZE64.0];
    let kind = relocation.kind;
    if nothing.contains(&kind) {
        return true;
    }
    let [opcode, mod_rm] = before(code, relocation);
    let is_relative = mod_rm & 0xc7 == 0x05;
    if direct.contains(&kind) {
        // `lea`; anything else with such an operand reads or writes memory.
        is_jump(code, relocation) || is_relative && opcode != 0x8d
    } else {
        // The table of addresses is read. `call *` and `jmp *` go there; whatever else does so gets
        // the address.
        through_table.contains(&kind) && opcode == 0xff && [0x15, 0x25].contains(&mod_rm)
    }
}

/// `call`, `jmp` or a conditional jump.
fn is_jump(code: &[u8], relocation: &Relocation) -> bool {
    let [first, second] = before(code, relocation);
    matches!(second, 0xe8 | 0xe9) || first == 0x0f && second & 0xf0 == 0x80
}

/// The two bytes before a relocated field.
fn before(code: &[u8], relocation: &Relocation) -> [u8; 2] {
    let back = |distance: u64| {
        let place =
            relocation.offset.checked_sub(distance).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| code.get(place)).copied().unwrap_or(0)
    };
    [back(2), back(1)]
}

/// Calls, jumps, loads and stores. The page of an address (`adrp`) is only half of it: the
/// instruction with the other half decides.
fn is_access_aarch64(kind: u32) -> bool {
    let kinds = [
        elf::R_AARCH64_NONE,
        elf::R_AARCH64_CALL26,
        elf::R_AARCH64_JUMP26,
        elf::R_AARCH64_CONDBR19,
        elf::R_AARCH64_TSTBR14,
        elf::R_AARCH64_LD_PREL_LO19,
        elf::R_AARCH64_LDST8_ABS_LO12_NC,
        elf::R_AARCH64_LDST16_ABS_LO12_NC,
        elf::R_AARCH64_LDST32_ABS_LO12_NC,
        elf::R_AARCH64_LDST64_ABS_LO12_NC,
        elf::R_AARCH64_LDST128_ABS_LO12_NC,
        elf::R_AARCH64_ADR_PREL_PG_HI21,
        elf::R_AARCH64_ADR_PREL_PG_HI21_NC,
        elf::R_AARCH64_ADR_GOT_PAGE,
    ];
    kinds.iter().any(|access| access.0 == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8], kind: elf::RelocationType) -> Usage {
        let relocation =
            Relocation { offset: code.len() as u64, kind: kind.0, symbol: 1, addend: -4 };
        of_code(elf::EM_X86_64.0, code, &relocation)
    }

    #[test]
    fn calls_jumps_loads_and_stores_are_accesses() {
        assert_eq!(of(&[0xe8], elf::R_X86_64_PLT32), Usage::Access, "call f");
        assert_eq!(of(&[0xe9], elf::R_X86_64_PLT32), Usage::Access, "jmp f");
        assert_eq!(of(&[0x0f, 0x84], elf::R_X86_64_PC32), Usage::Access, "je f");
        assert_eq!(of(&[0x8b, 0x05], elf::R_X86_64_PC32), Usage::Access, "mov x(%rip), %eax");
        assert_eq!(of(&[0x83, 0x3d], elf::R_X86_64_PC32), Usage::Access, "cmpl $1, x(%rip)");
        assert_eq!(
            of(&[0xff, 0x15], elf::R_X86_64_GOTPCRELX),
            Usage::Access,
            "call *f@GOTPCREL(%rip)"
        );
    }

    #[test]
    fn what_gets_an_address_uses_it() {
        assert_eq!(
            of(&[0x48, 0x8d, 0x05], elf::R_X86_64_PC32),
            Usage::Address,
            "lea x(%rip), %rax"
        );
        assert_eq!(
            of(&[0x48, 0x8d, 0x3d], elf::R_X86_64_PLT32),
            Usage::Address,
            "lea f@PLT(%rip), %rdi"
        );
        assert_eq!(
            of(&[0x48, 0x8b, 0x05], elf::R_X86_64_REX_GOTPCRELX),
            Usage::Address,
            "mov x@GOTPCREL(%rip), %rax"
        );
        assert_eq!(
            of(&[0xff, 0x35], elf::R_X86_64_GOTPCREL),
            Usage::Address,
            "push x@GOTPCREL(%rip)"
        );
        assert_eq!(of(&[0xbf], elf::R_X86_64_32), Usage::Address, "mov $x, %edi");
        assert_eq!(of(&[], elf::R_X86_64_PC32), Usage::Address);
    }

    #[test]
    fn pages_of_addresses_wait_for_their_other_half() {
        assert!(is_access_aarch64(elf::R_AARCH64_ADR_PREL_PG_HI21.0));
        assert!(is_access_aarch64(elf::R_AARCH64_LDST64_ABS_LO12_NC.0));
        assert!(!is_access_aarch64(elf::R_AARCH64_ADD_ABS_LO12_NC.0));
        assert!(!is_access_aarch64(elf::R_AARCH64_LD64_GOT_LO12_NC.0));
    }
}
