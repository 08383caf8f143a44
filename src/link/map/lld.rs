//! lld: in come the lines behind `VMA LMA Size Align Out In Symbol`, out comes the placement.
//!
//! What its map tells, every number but the alignment in hexadecimal:
//! - Linker-made sections have the file `<internal>`, and so have merged ones: one
//!   `<internal>:(.rodata)` for each kind and alignment. Which objects gave to it is not told; a
//!   mergeable section that was kept is not listed by itself (but `-Wl,-O0` merges nothing and
//!   lists them all).
//! - `.eh_frame` is listed entry by entry, `m.o:(.eh_frame+0x2c)`. The offset is cut off here, so
//!   the same section comes many times.
//! - Common symbols: a `COMMON` for each symbol, of the object whose definition won.
//! - `--icf` and `--gc-sections` drop without a word. The symbols of a folded section stand under
//!   the one that stayed.
//! - Statements of a linker script stand among the sections (`. = ALIGN ( 16 )`, `LONG ( 5 )`, or
//!   nothing at all).
//! - A member of a thin archive: `sub/libx.a(dir/m.o)`, the member's path as the archive spells it.
//! - With LTO the file is `lto.tmp`, or a temporary object.

use super::text::{Lines, decimal, hex, marks, skip_spaces, split_input, split_member};
use super::{MapError, is_loaded};
use crate::model::{PlacedSection, Placement};

const INPUT: [u8; 8] = [b' '; 8];
const SYMBOL: [u8; 16] = [b' '; 16];

pub(super) fn parse(mut lines: Lines<'_>) -> Result<Placement<'_>, MapError> {
    let mut placement = Placement::default();
    let mut output = None;
    let mut complete = false;
    while let Some(line) = lines.next() {
        if line.is_empty() && lines.next() == Some(b"Cross Reference Table") {
            break;
        }
        let Some(row) = Row::read(line) else { return lines.malformed() };
        if row.text.starts_with(&SYMBOL) {
            continue;
        }
        let Some(input) = row.text.strip_prefix(&INPUT) else {
            complete |= row.text == b".shstrtab";
            output = Some((row.text, is_loaded(row.text, row.address)));
            continue;
        };
        match (split_input(input), output) {
            (Some((path, name)), Some((output, true))) => {
                let (file, member) = split_member(path);
                let Row { address, size, .. } = row;
                let name = without_offset(name);
                placement.push(PlacedSection { output, name, address, size, file, member });
            }
            (Some(_), Some((_, false))) => {}
            (None, Some(_)) if is_script(input) => {}
            _ => return lines.malformed(),
        }
    }
    if complete { Ok(placement) } else { Err(MapError::Truncated) }
}

/// The columns of one line; `text` holds the last three, which are told apart by their indentation.
struct Row<'a> {
    address: u64,
    size: u64,
    text: &'a [u8],
}

impl<'a> Row<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let (address, rest) = hex(skip_spaces(line))?;
        let (_load_address, rest) = hex(skip_spaces(rest))?;
        let (size, rest) = hex(skip_spaces(rest))?;
        let (_align, rest) = decimal(skip_spaces(rest))?;
        Some(Self { address, size, text: rest.strip_prefix(b" ")? })
    }
}

/// `.eh_frame+0x2c` without its offset.
fn without_offset(name: &[u8]) -> &[u8] {
    match name.strip_prefix(b".eh_frame+0x") {
        Some(offset) if hex(offset).is_some_and(|(_, rest)| rest.is_empty()) => b".eh_frame",
        _ => name,
    }
}

/// A statement within an output section: an assignment, a datum, or the empty trace of an
/// assertion. lld 14 puts a space between the tokens, later ones print what the script says. With
/// `:(` it could be a section that was not understood.
fn is_script(text: &[u8]) -> bool {
    let is_call = |name: &[u8]| {
        text.strip_prefix(name).is_some_and(|rest| skip_spaces(rest).starts_with(b"("))
    };
    let keywords: [&[u8]; 5] = [b"BYTE", b"SHORT", b"LONG", b"QUAD", b"ASSERT"];
    marks(text).next().is_none()
        && (text.is_empty() || text.contains(&b'=') || keywords.into_iter().any(is_call))
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
            ".rodata .rodata 0x200200 0x1f <internal>",
            ".eh_frame .eh_frame 0x200220 0x2c ./main.o",
            ".eh_frame .eh_frame 0x200250 0x14 ./main.o",
            ".eh_frame .eh_frame 0x200268 0x2c ./main.o",
            ".eh_frame .eh_frame 0x200298 0x18 odd dir (x)/odd obj (1).o",
            ".eh_frame .eh_frame 0x2002b0 0x18 odd dir (x)/lib d(u)p.a [dup.o]",
            ".eh_frame .eh_frame 0x2002c8 0x18 odd dir (x)/lib d(u)p.a [dup.o]",
            ".eh_frame .eh_frame 0x2002e0 0x14 sub/libthin.a [helper.o]",
            ".eh_frame .eh_frame 0x2002f8 0x14 sub/libthin.a [helper.o]",
            ".eh_frame .eh_frame 0x200310 0x20 sub/libthin.a [helper.o]",
            ".text .text.par(en):x 0x201334 0x3 ./main.o",
            ".text .text.function_whose_name_does_not_fit 0x201337 0x5 ./main.o",
            ".text .text.starter 0x20133c 0xe ./main.o",
            ".text .text.main 0x20134a 0xcf ./main.o",
            ".text .text.odd 0x201419 0x4 odd dir (x)/odd obj (1).o",
            ".text .text.dup_a 0x20141d 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.dup_b 0x201423 0x6 odd dir (x)/lib d(u)p.a [dup.o]",
            ".text .text.twin1 0x201429 0x3b sub/libthin.a [helper.o]",
            ".text .text.msg 0x201464 0x8 sub/libthin.a [helper.o]",
            ".text .text.helper 0x20146c 0x41 sub/libthin.a [helper.o]",
            ".tdata .tdata.tls_init 0x2024b0 0x4 ./main.o",
            ".tbss .tbss.tls_zero 0x2024b4 0x4 ./main.o",
            ".init_array .init_array 0x2024b8 0x8 ./main.o",
            ".data.rel.ro .data.rel.ro.local.words 0x2024c0 0x18 ./main.o",
            "my sec my sec 0x2034d8 0x4 ./main.o",
            "my_set my_set 0x2034dc 0x4 ./main.o",
            ".data .data.data_object_whose_name_does_not_fit 0x2034e0 0x4 ./main.o",
            ".got.plt .got.plt 0x2034e8 0x18 <internal>",
            ".bss COMMON 0x203500 0x4 ./main.o",
            ".bss COMMON 0x203508 0x8 ./main.o",
            ".bss COMMON 0x203520 0xc8 sub/libthin.a [helper.o]",
            ".bss COMMON 0x203600 0x28 sub/libthin.a [helper.o]",
            ".bss .bss.counters 0x203640 0x20 sub/libthin.a [helper.o]",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/zoo-lld.map")), expected);
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
            ".bss .bss 0x10001c 0x0 bare.o",
            ".bss COMMON 0x10001c 0x4 bare.o",
        ];
        assert_eq!(render(include_bytes!("../../../fixtures/maps/script-lld.map")), expected);
    }

    #[test]
    fn lines_that_would_lose_a_section_are_refused() {
        let head = "VMA LMA Size Align Out In Symbol\n";
        let output = "1920 1920 279 16 .text\n";
        let cases = [
            format!("{head}1920 1920 22 16         crt1.o:(.text)\n"),
            format!("{head}{output}1920 1920 22 16         crt1.o\n"),
            format!("{head}{output}1920 1920 22 16         crt1.o:(.text\n"),
            format!("{head}{output}1920 1920 22 16         a=b.o:(c.o:(.text)\n"),
            format!("{head}{output}1920 1920 2g 16         crt1.o:(.text)\n"),
            format!("{head}{output}\n1920 1920 22 16         crt1.o:(.text)\n"),
        ];
        for case in cases {
            assert!(matches!(parse(case.as_bytes()), Err(MapError::Malformed { .. })), "{case}");
        }
    }
}
