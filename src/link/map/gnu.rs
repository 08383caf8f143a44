//! GNU ld (ld.bfd): in come the lines behind `Linker script and memory map`, out comes the
//! placement.
//!
//! What its map tells:
//! - Linker-made sections (`.plt`, `.got`, `.interp`, `.rela.*`, `.dynamic`, the unwind entries of
//!   the PLT) are listed as if the first object had them, mostly `crt1.o`, or whichever object
//!   needed them first.
//! - Merged sections (`.rodata.str1.1`) are listed one by one, but neither address nor size is to
//!   be believed: strings move into the room of another section of their kind, which leaves a
//!   section that is in use at size 0, or at its old size over what follows.
//! - `.eh_frame` is listed per object, at the size that is left of it.
//! - Common symbols: one `COMMON` for each object that provides some, with all of them.
//! - Other sections of size 0 may have been discarded: ld prints 0 for those that still stand in
//!   its script.
//! - A member of a thin archive is the file that it is, with no word of the archive.
//! - `--gc-sections` lists what it drops among the discarded, before the memory map. There is no
//!   `--icf`.
//! - With LTO the files are temporary objects (`/tmp/ccQ5wLbF.ltrans0.ltrans.o`).

use super::columns::{Columns, Event, Extent};
use super::text::{Lines, split_member};
use super::{MapError, is_loaded};
use crate::model::{PlacedSection, Placement};

/// The output section at hand.
#[derive(Clone, Copy)]
enum Output<'a> {
    /// It has no address, so nothing that has contents can be in it.
    Absent,
    Unloaded,
    Loaded(&'a [u8]),
}

pub(super) fn parse(lines: Lines<'_>) -> Result<Placement<'_>, MapError> {
    let mut columns = Columns::new(lines);
    let mut placement = Placement::default();
    let mut output = Output::Absent;
    let mut complete = false;
    while let Some(event) = columns.event()? {
        match event {
            Event::Output { name, extent: None } => {
                complete |= is_end(name);
                output = Output::Absent;
            }
            Event::Output { name, extent: Some(extent) } if is_loaded(name, extent.address) => {
                output = Output::Loaded(name);
            }
            Event::Output { .. } => output = Output::Unloaded,
            Event::Entry { name, extent } if is_fill(name, &extent) => {}
            Event::Entry { name, extent } => match place(output, name, extent) {
                Ok(section) => section.into_iter().for_each(|section| placement.push(section)),
                Err(()) => return columns.malformed(),
            },
            Event::Pattern(text) if is_script(text) => {}
            Event::Pattern(_) => return columns.malformed(),
            Event::Statement(text) => complete |= is_end(text),
            Event::CrossReferences => break,
        }
    }
    if complete { Ok(placement) } else { Err(MapError::Truncated) }
}

fn place<'a>(
    output: Output<'a>,
    name: &'a [u8],
    extent: Extent<'a>,
) -> Result<Option<PlacedSection<'a>>, ()> {
    let Extent { address, size, tail } = extent;
    if tail.is_empty() {
        return Err(());
    }
    match output {
        Output::Absent if size != 0 => Err(()),
        Output::Absent | Output::Unloaded => Ok(None),
        Output::Loaded(output) => {
            if is_stub(name, tail) {
                return Ok(None);
            }
            let (file, member) = split_member(tail);
            Ok(Some(PlacedSection { output, name, address, size, file, member }))
        }
    }
}

/// Code that the linker adds for branches that are too far, or around errors of a processor
/// (AArch64, Arm): it does what the code does that it stands in for.
fn is_stub(name: &[u8], file: &[u8]) -> bool {
    file == b"linker stubs" && name.ends_with(b".stub")
}

/// `OUTPUT(a.out elf64-x86-64)` ends the linker script, and follows every output section that the
/// script names. Only sections that no script names can still come: debug information, mostly.
fn is_end(statement: &[u8]) -> bool {
    statement.starts_with(b"OUTPUT(")
}

/// Padding, followed by the bytes that it repeats. (A section may be called `*fill*`, but a file is
/// not hexadecimal.)
fn is_fill(name: &[u8], extent: &Extent) -> bool {
    name == b"*fill*" && extent.tail.iter().all(u8::is_ascii_hexdigit)
}

/// Statements of a script: `*(.text .text.*)`, `crtbegin.o(.ctors)`, and three more.
fn is_script(text: &[u8]) -> bool {
    text.ends_with(b")")
        || text.starts_with(b"FILL mask 0x")
        || matches!(text, b"CONSTRUCTORS" | b"CREATE_OBJECT_SYMBOLS")
}

#[cfg(test)]
mod tests {
    use super::super::zoo::render;
    use super::super::{MapError, parse};

    /// Odd names, two members called alike, a thin archive, COMMON, TLS, merged strings,
    /// `--gc-sections`.
    #[test]
    fn awkward_program() {
        let expected = [
            ".rela.dyn .rela.got 0x4001c8 0x0 ./main.o",
            ".rela.plt .rela.iplt 0x4001c8 0x0 ./main.o",
            ".plt .iplt 0x401000 0x0 ./main.o",
            ".text .text.par(en):x 0x401000 0x3 ./main.o",
            ".text .text.function_whose_name_does_not_fit 0x401003 0x5 ./main.o",
            ".text .text.starter 0x401008 0xe ./main.o",
            ".text .text.main 0x401016 0xcf ./main.o",
            ".text .text.odd 0x4010e5 0x4 odd dir (x)/odd obj (1).o",
            ".text .text.dup_a 0x4010e9 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.dup_b 0x4010ef 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.twin1 0x4010f5 0x3b sub/helper.o",
            ".text .text.msg 0x401130 0x8 sub/helper.o",
            ".text .text.helper 0x401138 0x41 sub/helper.o",
            ".text .text.twin2 0x401179 0x3b sub/twin.o",
            ".rodata .rodata.main.str1.1 0x402000 0x0 ./main.o",
            ".rodata .rodata.str1.1 0x402000 0x18 ./main.o",
            ".rodata .rodata.msg.str1.1 0x402018 0xd sub/helper.o",
            ".eh_frame .eh_frame 0x402018 0x70 ./main.o",
            ".eh_frame .eh_frame 0x402088 0x18 odd dir (x)/odd obj (1).o",
            ".eh_frame .eh_frame 0x4020a0 0x18 odd dir (x)/lib d(u)p.a [dup.o]",
            ".eh_frame .eh_frame 0x4020b8 0x18 odd dir (x)/lib d(u)p.a [dup.o]",
            ".eh_frame .eh_frame 0x4020d0 0x48 sub/helper.o",
            ".eh_frame .eh_frame 0x402118 0x14 sub/twin.o",
            ".tdata .tdata.tls_init 0x403fd4 0x4 ./main.o",
            ".tbss .tbss.tls_zero 0x403fd8 0x4 ./main.o",
            ".init_array .init_array 0x403fd8 0x8 ./main.o",
            ".data.rel.ro .data.rel.ro.local.words 0x403fe0 0x18 ./main.o",
            ".got .got 0x403ff8 0x0 ./main.o",
            ".got.plt .got.plt 0x404000 0x0 ./main.o",
            ".got.plt .igot.plt 0x404000 0x0 ./main.o",
            ".data .data.data_object_whose_name_does_not_fit 0x404000 0x4 ./main.o",
            "my sec my sec 0x404004 0x4 ./main.o",
            "my_set my_set 0x404008 0x4 ./main.o",
            ".bss .bss.counters 0x404020 0x20 sub/helper.o",
            ".bss COMMON 0x404040 0x10 ./main.o",
            ".bss COMMON 0x404060 0x108 sub/helper.o",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/zoo-bfd.map")), expected);
    }

    /// A linker script with a section at address 0, data, assignments, debug information and
    /// `--cref`.
    #[test]
    fn linker_script() {
        let expected = [
            ".vectors .vectors_long_name 0x8 0x4 bare.o",
            ".vectors .vectors 0x10 0x10 bare.o",
            ".text .text 0x20 0x0 bare.o",
            ".text .text._start 0x30 0xe bare.o",
            ".text .text.unused 0x3e 0x4 bare.o",
            ".iplt .iplt 0x42 0x0 bare.o",
            "an_output_name_that_does_not_fit .rodata.ro_q 0x44 0x4 bare.o",
            ".rela.dyn .rela.got 0x48 0x0 bare.o",
            ".rela.dyn .rela.iplt 0x48 0x0 bare.o",
            ".rela.dyn .rela.text._start 0x48 0x0 bare.o",
            ".data .data 0x100000 0x0 bare.o",
            ".data .data.data_q 0x100000 0x4 bare.o",
            ".got .got 0x100020 0x0 bare.o",
            ".got.plt .got.plt 0x100020 0x0 bare.o",
            ".igot.plt .igot.plt 0x100020 0x0 bare.o",
            ".bss .bss 0x10001c 0x0 bare.o",
            ".bss COMMON 0x10001c 0x4 bare.o",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/script-bfd.map")), expected);
    }

    fn with_lines(lines: &str) -> Vec<u8> {
        format!("Linker script and memory map\n\nLOAD a.o\n{lines}OUTPUT(a.out elf64-x86-64)\n")
            .into_bytes()
    }

    #[test]
    fn lines_that_would_lose_a_section_are_refused() {
        let cases = [
            // A section in an output section that has no address.
            "\n.text\n .text.main     0x0000000000001173       0xfc main.o\n",
            // The name is missing, the file is missing, the address is too long, the name begins
            // with a space.
            "\n.text           0x0000000000001070      0x279\n                0x0000000000001173       0xfc main.o\n",
            "\n.text           0x0000000000001070      0x279\n .text.main     0x0000000000001173       0xfc\n",
            "\n.text           0x0000000000001070      0x279\n .text.main     0x10000000000000001173 0xfc main.o\n",
            "\n.text           0x0000000000001070      0x279\n  text.main     0x0000000000001173       0xfc main.o\n",
            // A long name without the line that belongs to it.
            "\n.text           0x0000000000001070      0x279\n .text.unused_fn\n",
            "\n.text           0x10700000000000000000      0x279\n",
        ];
        for case in cases {
            let text = with_lines(case);
            assert!(
                matches!(parse(&text), Err(MapError::Malformed { .. })),
                "{case}: {:?}",
                parse(&text)
            );
        }
    }

    /// A pattern ends as a section's name may end; what follows tells them apart.
    #[test]
    fn patterns_data_and_long_names() {
        let text = with_lines(concat!(
            "\n.text           0x0000000000001000       0x20\n",
            " *(.text.parenthesised)\n",
            "                0x0000000000001000        0x4 LONG 0x55\n",
            " .text.parenthesised(x)\n",
            "                0x0000000000001004        0x4 main.o\n",
            " *fill*         0x0000000000001008        0x8 90\n",
            " *fill*         0x0000000000001010        0x8 main.o\n",
        ));
        let expected =
            [".text .text.parenthesised(x) 0x1004 0x4 main.o", ".text *fill* 0x1010 0x8 main.o"];
        assert_eq!(render(&text), expected);
    }
}
