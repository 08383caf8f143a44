//! Linker maps: in comes the text of a map, out comes the placement: every input section that the
//! linker kept.
//!
//! One file per linker, each of which opens with what that linker's map tells and what it does not.
//! `columns` is the layout that GNU ld and gold share, `text` the lines and names of all four. What
//! holds for all:
//!
//! - A section that is not listed was discarded, or folded into an identical one (`--icf`): no map
//!   says into which, so ask the symbol table, where both names have one address.
//! - Contents that the linker makes or merges itself have [`INTERNAL`] for a file, except in GNU
//!   ld's maps.
//! - Sizes of 0 and equal addresses are normal; ranges overlap in TLS (`.tbss` takes no room) and
//!   in overlays.
//! - Two members of one archive may have the same name, and then nothing but the address tells them
//!   apart.
//! - A map ends without a mark; what is required is a line that each linker writes near to the end.
//!
//! A map says nothing of section flags. An output section at an address other than 0 is in memory.
//! At 0, debug information and its like are known by name and left out; all else is kept, be it
//! code of a bare machine, of `-r`, or a section of the user's own that is not loaded. Whoever
//! holds the binary can look at the flags of the output section.

mod columns;
pub mod feed;
mod gnu;
mod gold;
mod lld;
mod mold;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod zoo;

use thiserror::Error;

use crate::model::Placement;
use crate::process::linker::LinkerKind;
use feed::Feed;
use text::Lines;

/// The file of what comes from no file: merged strings, `.got`, `.dynsym`. lld's own spelling, used
/// for all.
pub const INTERNAL: &[u8] = b"<internal>";

/// Why a map cannot be used. None of these loses a section silently.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// GNU ld and gold translate the titles that they are known by.
    #[error(
        "not a linker map of GNU ld, gold, lld or mold (GNU ld and gold must run with LC_ALL=C)"
    )]
    Unknown,
    #[error("the linker map ends too early")]
    Truncated,
    /// gold lists no loaded section at all when it links with `-r`.
    #[error("the linker map gives no section an address (gold's maps of `-r` links do not)")]
    Unplaced,
    #[error("line {line} of the linker map is not understood")]
    Malformed { line: usize },
}

/// Parses a map, telling from its text which linker wrote it.
pub fn parse(text: &[u8]) -> Result<Placement<'_>, MapError> {
    Ok(parse_lines(Lines::new(text)?)?.1)
}

/// Parses a map that may still be written, to its end.
pub fn read<'a>(feed: &'a Feed<'a>) -> Result<(LinkerKind, Placement<'a>), MapError> {
    parse_lines(Lines::of(feed))
}

fn parse_lines(lines: Lines<'_>) -> Result<(LinkerKind, Placement<'_>), MapError> {
    let (kind, lines) = locate(lines)?;
    let placement = match kind {
        LinkerKind::GnuLd => gnu::parse(lines),
        LinkerKind::Gold => gold::parse(lines),
        LinkerKind::Lld => lld::parse(lines),
        LinkerKind::Mold => mold::parse(lines),
    };
    Ok((kind, placement?))
}

/// The writer, and the lines behind the title. lld and mold open with a table's head; GNU ld and
/// gold tell first which members they took, which sections they discarded (in the layout of those
/// that they kept!) and more.
fn locate(mut lines: Lines<'_>) -> Result<(LinkerKind, Lines<'_>), MapError> {
    let mut first = true;
    let mut behind_empty = true;
    let mut behind_memory = None;
    while let Some(line) = lines.next() {
        match line {
            _ if line.starts_with(b"*default* ") => behind_memory = Some(lines),
            b"Memory map" if behind_empty => return Ok((LinkerKind::Gold, lines)),
            b"Linker script and memory map" if behind_empty => {
                return Ok((LinkerKind::GnuLd, lines));
            }
            _ if first => {
                if let Some(kind) = table(line) {
                    return Ok((kind, lines));
                }
            }
            _ => {}
        }
        first = false;
        behind_empty = line.is_empty();
    }
    behind_memory.and_then(translated).ok_or(MapError::Unknown)
}

/// GNU ld speaks the user's language in its titles. The table of memory regions, which ends with
/// `*default*`, stands before the one that is looked for.
fn translated(mut lines: Lines<'_>) -> Option<(LinkerKind, Lines<'_>)> {
    let title = lines.find(|line| !line.is_empty())?;
    (!title.starts_with(b" ")).then_some((LinkerKind::GnuLd, lines))
}

/// The writer of a table with this head.
fn table(head: &[u8]) -> Option<LinkerKind> {
    let words = |expected: &[&str]| {
        let found = head.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        found.eq(expected.iter().map(|word| word.as_bytes()))
    };
    if words(&["VMA", "LMA", "Size", "Align", "Out", "In", "Symbol"]) {
        Some(LinkerKind::Lld)
    } else if words(&["VMA", "Size", "Align", "Out", "In", "Symbol"]) {
        Some(LinkerKind::Mold)
    } else {
        None
    }
}

/// Whether an output section is to be taken for a part of the program's memory: see above.
fn is_loaded(output: &[u8], address: u64) -> bool {
    address != 0 || !UNLOADED.iter().any(|prefix| output.starts_with(prefix))
}

/// How the names of output sections begin that no compiler and no linker ever loads. `.rela.` at
/// address 0 comes from `-r` and `--emit-relocs`; `.note.stapsdt` and `.gnu.warning` from glibc's
/// archives.
const UNLOADED: [&[u8]; 23] = [
    b".ARM.attributes",
    b".GCC.command.line",
    b".comment",
    b".ctf",
    b".debug",
    b".gdb_index",
    b".gnu.attributes",
    b".gnu.build.attributes",
    b".gnu.debuglto_",
    b".gnu.lto_",
    b".gnu.warning",
    b".gnu_debuglink",
    b".llvm",
    b".note.GNU-stack",
    b".note.gnu.gold-version",
    b".note.stapsdt",
    b".rela.",
    b".riscv.attributes",
    b".shstrtab",
    b".stab",
    b".strtab",
    b".symtab",
    b".zdebug",
];
