//! mold: in come the lines behind `VMA Size Align Out In Symbol`, out comes the placement.
//!
//! What its map tells, the address in hexadecimal and the rest in decimal:
//! - Linker-made and merged output sections (`.got`, `.rodata.str`, `.eh_frame`) have no inputs at
//!   all: such a row is given out as an input section of the same name with the file [`INTERNAL`].
//!   Which objects gave to it is not told.
//! - Common symbols: a `.common` for each symbol, of the object whose definition won, given out as
//!   `COMMON`; they are in an output section `.common` (or `.bss`).
//! - `--icf` and `--gc-sections` drop without a word, and the symbols of a folded section are not
//!   listed.
//! - Paths are tidied: `sub/../x//y.o` is printed as `x/y.o`.
//! - A member of a thin archive: `sub/libx.a(sub/dir/m.o)`, with the archive's folder in front, not
//!   tidied.
//! - With LTO the files are temporary objects.

use super::text::{Lines, decimal, hex, skip_spaces, split_input, split_member};
use super::{INTERNAL, MapError, is_loaded};
use crate::model::{PlacedSection, Placement};

const INPUT: [u8; 8] = [b' '; 8];
const SYMBOL: [u8; 16] = [b' '; 16];

pub(super) fn parse(mut lines: Lines<'_>) -> Result<Placement<'_>, MapError> {
    let mut placement = Placement::default();
    let mut output: Option<Output> = None;
    let mut complete = false;
    while let Some(line) = lines.next() {
        let Some(row) = Row::read(line) else { return lines.malformed() };
        if row.text.starts_with(&SYMBOL) {
            continue;
        }
        if let Some(input) = row.text.strip_prefix(&INPUT) {
            let (Some((path, name)), Some(output)) = (split_input(input), &mut output) else {
                return lines.malformed();
            };
            output.has_inputs = true;
            if is_loaded(output.row.text, output.row.address) {
                placement.push(place(output.row.text, &row, path, name));
            }
            continue;
        }
        complete |= row.text == b"SHDR";
        output.and_then(Output::own).into_iter().for_each(|own| placement.push(own));
        output = Some(Output { row, has_inputs: false });
    }
    output.and_then(Output::own).into_iter().for_each(|own| placement.push(own));
    if complete { Ok(placement) } else { Err(MapError::Truncated) }
}

fn place<'a>(output: &'a [u8], row: &Row<'a>, path: &'a [u8], name: &'a [u8]) -> PlacedSection<'a> {
    let (file, member) = split_member(path);
    let name = if name == b".common" { b"COMMON" } else { name };
    PlacedSection { output, name, address: row.address, size: row.size, file, member }
}

/// The output section at hand.
struct Output<'a> {
    row: Row<'a>,
    has_inputs: bool,
}

impl<'a> Output<'a> {
    /// What mold made itself. The file's headers are rows as well, but no sections.
    fn own(self) -> Option<PlacedSection<'a>> {
        let Row { address, size, text: name } = self.row;
        let is_header = matches!(name, b"EHDR" | b"PHDR" | b"SHDR");
        if self.has_inputs || is_header || !is_loaded(name, address) {
            return None;
        }
        Some(PlacedSection { output: name, name, address, size, file: INTERNAL, member: None })
    }
}

/// The columns of one line; `text` holds the last three, which are told apart by their indentation.
struct Row<'a> {
    address: u64,
    size: u64,
    text: &'a [u8],
}

impl<'a> Row<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let address = skip_spaces(line);
        // A zero has no `0x`, as C++ streams print it.
        let (address, rest) = hex(address.strip_prefix(b"0x").unwrap_or(address))?;
        let (size, rest) = decimal(skip_spaces(rest))?;
        let (_align, rest) = decimal(skip_spaces(rest))?;
        Some(Self { address, size, text: rest.strip_prefix(b" ")? })
    }
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
            ".eh_frame .eh_frame 0x200238 0x100 <internal>",
            ".eh_frame_hdr .eh_frame_hdr 0x200338 0x54 <internal>",
            ".rodata.str .rodata.str 0x20038c 0x1f <internal>",
            ".text .text.par(en):x 0x2013ab 0x3 main.o",
            ".text .text.function_whose_name_does_not_fit 0x2013ae 0x5 main.o",
            ".text .text.starter 0x2013b3 0xe main.o",
            ".text .text.main 0x2013c1 0xcf main.o",
            ".text .text.odd 0x201490 0x4 odd dir (x)/odd obj (1).o",
            ".text .text.dup_a 0x201494 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.dup_b 0x20149a 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.twin1 0x2014a0 0x3b sub/libthin.a [sub/helper.o]",
            ".text .text.msg 0x2014db 0x8 sub/libthin.a [sub/helper.o]",
            ".text .text.helper 0x2014e3 0x41 sub/libthin.a [sub/helper.o]",
            ".tdata .tdata.tls_init 0x202524 0x4 main.o",
            ".tbss .tbss.tls_zero 0x202528 0x4 main.o",
            ".data.rel.ro .data.rel.ro.local.words 0x202530 0x18 main.o",
            ".init_array .init_array 0x202548 0x8 main.o",
            ".got .got 0x202550 0x8 <internal>",
            ".relro_padding .relro_padding 0x202558 0xaa8 <internal>",
            ".got.plt .got.plt 0x203558 0x18 <internal>",
            ".data .data.data_object_whose_name_does_not_fit 0x203570 0x4 main.o",
            "my sec my sec 0x203574 0x4 main.o",
            "my_set my_set 0x203578 0x4 main.o",
            ".bss .bss.counters 0x203580 0x20 sub/libthin.a [sub/helper.o]",
            ".common COMMON 0x2035a0 0x4 main.o",
            ".common COMMON 0x2035a8 0x8 main.o",
            ".common COMMON 0x2035c0 0x64 main.o",
            ".common COMMON 0x203640 0x28 sub/libthin.a [sub/helper.o]",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/zoo-mold.map")), expected);
    }

    #[test]
    fn lines_that_would_lose_a_section_are_refused() {
        let head = "VMA Size Align Out In Symbol\n";
        let output = "0x1920 633 16 .text\n";
        let cases = [
            format!("{head}0x1920 34 16         crt1.o:(.text)\n"),
            format!("{head}{output}0x1920 34 16         crt1.o\n"),
            format!("{head}{output}0x1920 3f 16         crt1.o:(.text)\n"),
            format!("{head}{output}\n"),
        ];
        for case in cases {
            assert!(matches!(parse(case.as_bytes()), Err(MapError::Malformed { .. })), "{case}");
        }
    }
}
