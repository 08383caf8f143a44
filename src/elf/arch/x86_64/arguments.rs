//! Literals that are nothing but arguments of a call whose function only reads them: their
//! addresses are values, but nobody compares them. In: a section of x86-64 code, a relocation. Out:
//! whether that is so.
//!
//! It is seen where `lea literal(%rip), %register` is followed by the call, with nothing between
//! but instructions that set up other arguments. Behind a call, registers of arguments hold nothing
//! that compilers count on.

use crate::elf::object_file::{ObjectFile, Relocation, Section, SymbolPlace};
use crate::elf::readers;

/// The registers of the first six arguments, by their numbers: rcx, rdx, rsi, rdi, r8, r9.
const ARGUMENTS: [u8; 6] = [1, 2, 6, 7, 8, 9];

/// Whether the relocation at `number` is that of a literal which is only read by the function that
/// is called next.
pub fn is_only_read(object: &ObjectFile, section: &Section, number: usize) -> bool {
    let Some(relocation) = section.relocations.get(number) else { return false };
    let Some((register, after)) = loaded(section.data, relocation) else { return false };
    let Some(call) = call_behind(section.data, register, after) else { return false };
    let mut behind = section.relocations[number + 1..].iter().take(ARGUMENTS.len());
    let called = behind.find(|relocation| relocation.offset == call + 1);
    called.is_some_and(|relocation| is_reader(object, relocation))
}

/// The register that `lea field(%rip), %register` loads, and where the next instruction starts.
fn loaded(code: &[u8], relocation: &Relocation) -> Option<(u8, u64)> {
    let start = relocation.offset.checked_sub(3)?;
    let [prefix, 0x8d, mod_rm] = *code.get(usize::try_from(start).ok()?..)?.first_chunk()? else {
        return None;
    };
    let is_lea = prefix & 0xfb == 0x48 && mod_rm & 0xc7 == 0x05;
    let register = mod_rm >> 3 & 7 | (prefix & 4) << 1;
    (is_lea && ARGUMENTS.contains(&register)).then_some((register, relocation.offset + 4))
}

/// Where the next call is, if no instruction before it reads the register.
fn call_behind(code: &[u8], register: u8, mut at: u64) -> Option<u64> {
    loop {
        let rest = code.get(usize::try_from(at).ok()?..)?;
        at += match *rest {
            [0xe8, ..] => return Some(at),
            // mov $number, %register
            [0xb8..=0xbf, ..] => 5,
            [0x41, 0xb8..=0xbf, ..] => 6,
            // xor %register, %register: both the same
            [0x31, mod_rm, ..] if mod_rm & 0xc0 == 0xc0 && mod_rm >> 3 & 7 == mod_rm & 7 => 2,
            // lea field(%rip), %register
            [0x48 | 0x4c, 0x8d, mod_rm, ..] if mod_rm & 0xc7 == 0x05 => 7,
            // mov %register, %register
            [prefix @ 0x48..=0x4f, 0x89, mod_rm, ..] if mod_rm & 0xc0 == 0xc0 => {
                let source = mod_rm >> 3 & 7 | (prefix & 4) << 1;
                if source == register {
                    return None;
                }
                3
            }
            _ => return None,
        };
    }
}

fn is_reader(object: &ObjectFile, relocation: &Relocation) -> bool {
    let symbol = object.symbols.get(relocation.symbol as usize);
    symbol.is_some_and(|symbol| {
        symbol.place == SymbolPlace::Undefined && readers::is_known(symbol.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf;

    const LEA_RDI: [u8; 7] = [0x48, 0x8d, 0x3d, 0, 0, 0, 0];

    fn finds_call(between: &[u8]) -> bool {
        let code = [&LEA_RDI[..], between, &[0xe8, 0, 0, 0, 0]].concat();
        let relocation =
            Relocation { offset: 3, kind: elf::R_X86_64_PC32.0, symbol: 1, addend: -4 };
        let (register, after) = loaded(&code, &relocation).unwrap();
        call_behind(&code, register, after) == Some((LEA_RDI.len() + between.len()) as u64)
    }

    #[test]
    fn other_arguments_may_come_between() {
        assert!(finds_call(&[]));
        assert!(finds_call(&[0x31, 0xc0]), "xor %eax, %eax");
        assert!(
            finds_call(&[0xba, 1, 0, 0, 0, 0x48, 0x8d, 0x35, 0, 0, 0, 0]),
            "mov $1, %edx; lea x(%rip), %rsi"
        );
        assert!(finds_call(&[0x48, 0x89, 0xde]), "mov %rbx, %rsi");
    }

    #[test]
    fn copies_and_comparisons_are_uses() {
        assert!(!finds_call(&[0x48, 0x89, 0xfb]), "mov %rdi, %rbx");
        assert!(!finds_call(&[0x48, 0x39, 0xfe]), "cmp %rdi, %rsi");
        assert!(!finds_call(&[0x57]), "push %rdi");
        assert!(!finds_call(&[0x31, 0xfe]), "xor %edi, %esi");
    }
}
