//! gold: in come the lines behind `Memory map`, out comes the placement.
//!
//! What its map tells:
//! - What comes from no single object is an entry ` ** name` without a file. It is kept with the
//!   file [`INTERNAL`] and the name as printed; padding (`** fill`, which also stands for the
//!   contents of notes) and data of scripts are not.
//! - Merged sections: one `** merge strings` or `** merge constants` for all of a kind. Which
//!   objects gave to it is not told; a mergeable section that was kept is never listed by itself.
//! - `.eh_frame`: one `** eh_frame` for all that gold could parse, and the rest (`crtend.o`) one by
//!   one.
//! - Common symbols: one `** common` for all objects, given out as `COMMON` of [`INTERNAL`].
//! - `--icf` and `--gc-sections` list what they drop among the discarded, before the memory map. No
//!   word of what a section was folded into, and no symbol line for it either.
//! - A member of a thin archive: `sub/libx.a(sub/dir/m.o)`, with the archive's folder in front of
//!   the member's path.
//! - With LTO the files are temporary objects.
//! - With `-r` only the sections that are not loaded are listed: such a map is refused.

use super::columns::{Columns, Event, Extent};
use super::text::{Lines, split_member};
use super::{INTERNAL, MapError, is_loaded};
use crate::model::{PlacedSection, Placement};

pub(super) fn parse(lines: Lines<'_>) -> Result<Placement<'_>, MapError> {
    let mut columns = Columns::new(lines);
    let mut placement = Placement::default();
    let mut output = None;
    let mut complete = false;
    let mut addressed = false;
    while let Some(event) = columns.event()? {
        match event {
            Event::Output { name, extent: Some(extent) } => {
                complete |= is_end(name);
                addressed |= extent.address != 0;
                output = Some((name, is_loaded(name, extent.address)));
            }
            Event::Entry { name, extent } => match (place(name, extent), output) {
                (None, _) => return columns.malformed(),
                // The file's own headers, which stand before all sections.
                (Some(section), None) if section.file == INTERNAL => {}
                (Some(_), None) => return columns.malformed(),
                (Some(section), Some((output, true))) if !is_padding(section.name) => {
                    placement.push(PlacedSection { output, ..section });
                }
                (Some(_), Some(_)) => {}
            },
            Event::CrossReferences => break,
            Event::Output { extent: None, .. } | Event::Pattern(_) | Event::Statement(_) => {
                return columns.malformed();
            }
        }
    }
    match (complete, addressed) {
        (false, _) => Err(MapError::Truncated),
        (true, false) => Err(MapError::Unplaced),
        (true, true) => Ok(placement),
    }
}

/// The entry, still without its output section. Without a file it has to be one of gold's own.
fn place<'a>(name: &'a [u8], extent: Extent<'a>) -> Option<PlacedSection<'a>> {
    let Extent { address, size, tail } = extent;
    let (name, file, member) = match tail {
        [] if name == b"** common" => (b"COMMON".as_slice(), INTERNAL, None),
        [] if name.starts_with(b"** ") => (name, INTERNAL, None),
        [] => return None,
        _ => {
            let (file, member) = split_member(tail);
            (name, file, member)
        }
    };
    Some(PlacedSection { output: b"", name, address, size, file, member })
}

fn is_padding(name: &[u8]) -> bool {
    matches!(name, b"** fill" | b"** zero fill" | b"** expression")
}

/// The names of the sections are written last, whatever else there is.
fn is_end(output: &[u8]) -> bool {
    output == b".shstrtab"
}

#[cfg(test)]
mod tests {
    use super::super::zoo::render;
    use super::super::{MapError, parse};

    /// Odd names, two members called alike, a thin archive, COMMON, TLS, merged strings,
    /// `--gc-sections` and `--icf`.
    #[test]
    fn awkward_program() {
        let expected = [
            ".text .text.par(en):x 0x400158 0x3 ./main.o",
            ".text .text.function_whose_name_does_not_fit 0x40015b 0x5 ./main.o",
            ".text .text.starter 0x400160 0xe ./main.o",
            ".text .text.main 0x40016e 0xcf ./main.o",
            ".text .text.odd 0x40023d 0x4 odd dir (x)/odd obj (1).o",
            ".text .text.dup_a 0x400241 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.dup_b 0x400247 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.twin1 0x40024d 0x3b sub/libthin.a [sub/helper.o]",
            ".text .text.msg 0x400288 0x8 sub/libthin.a [sub/helper.o]",
            ".text .text.helper 0x400290 0x41 sub/libthin.a [sub/helper.o]",
            ".rodata ** merge strings 0x4002d1 0x1f <internal>",
            ".eh_frame ** eh_frame 0x4002f0 0x110 <internal>",
            ".tdata .tdata.tls_init 0x401fb0 0x4 ./main.o",
            ".tbss .tbss.tls_zero 0x401fb4 0x4 ./main.o",
            ".data.rel.ro.local .data.rel.ro.local.words 0x401fc0 0x18 ./main.o",
            ".init_array .init_array 0x401fd8 0x8 ./main.o",
            ".got ** GOT 0x401fe8 0x0 <internal>",
            ".got.plt ** GOT PLT 0x401fe8 0x18 <internal>",
            ".got.plt ** GOT IRELATIVE PLT 0x402000 0x0 <internal>",
            ".got.plt ** GOT 0x402000 0x0 <internal>",
            "my sec my sec 0x402000 0x4 ./main.o",
            "my_set my_set 0x402004 0x4 ./main.o",
            ".data .data.data_object_whose_name_does_not_fit 0x402008 0x4 ./main.o",
            ".bss .bss.counters 0x402020 0x20 sub/libthin.a [sub/helper.o]",
            ".bss COMMON 0x402040 0x114 <internal>",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/zoo-gold.map")), expected);
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
            "an_output_name_that_does_not_fit .rodata.ro_q 0x44 0x4 bare.o",
            ".data .data 0x100000 0x0 bare.o",
            ".data .data.data_q 0x100000 0x4 bare.o",
            ".bss COMMON 0x10001c 0x4 <internal>",
            ".bss .bss 0x100020 0x0 bare.o",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/script-gold.map")), expected);
    }

    #[test]
    fn lines_that_would_lose_a_section_are_refused() {
        let cases = [
            "\n.text           0x0000000000001070      0x279\n .text.main     0x0000000000001173       0xfc\n",
            "\n.text           0x0000000000001070      0x279\n .text.unused_fn\n",
            "\n.text\n .text.main     0x0000000000001173       0xfc main.o\n",
            " .text.main     0x0000000000001173       0xfc main.o\n",
            "\n.text           0x0000000000001070      0x279\n                0x0000000000001173       0xfc main.o\n",
        ];
        for case in cases {
            let text =
                format!("Memory map\n\n{case}\n.shstrtab       0x0000000000000000      0x16b\n");
            assert!(matches!(parse(text.as_bytes()), Err(MapError::Malformed { .. })), "{case}");
        }
    }
}
