//! The layout that GNU ld and gold share: in come the lines behind the title of the memory map, out
//! come output sections, entries and statements, with names that were too long for their column
//! joined to the next line.
//!
//! ```text
//! .text           0x0000000000001070      0x279                 output section, behind an empty line
//!  .text.main     0x0000000000001173       0xfc main.o          entry
//!                 0x0000000000001173                main        symbol or assignment: 16 spaces, not a size
//!  .text.unused_fn                                              entry whose name reaches the 15th column
//!                 0x000000000000116f        0x4 main.o
//!                                          0x14 (size before relaxing)
//!                 0x0000000000001177        0x4 LONG 0x55       datum of a linker script
//! ```

use super::MapError;
use super::text::{Lines, prefixed_hex, skip_spaces};

/// Names are padded to this column, or followed by a new line and this many spaces.
const COLUMN: usize = 16;

/// One thing that the map tells. Symbols, assignments and data of scripts are passed over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// An output section; without an extent it is not in the binary (or is no output section, but
    /// `LOAD file`).
    Output { name: &'a [u8], extent: Option<Extent<'a>> },
    /// Something placed: a section, or the linker's own.
    Entry { name: &'a [u8], extent: Extent<'a> },
    /// An indented text that no address follows: a statement of the linker script.
    Pattern(&'a [u8]),
    /// A text at the first column that follows no empty line: `LOAD file`, `OUTPUT(file format)`.
    Statement(&'a [u8]),
    /// The table that `--cref` adds; nothing behind it belongs to the map.
    CrossReferences,
}

/// `0xADDRESS  0xSIZE` and what follows one space later: the file, or `load address …`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    pub address: u64,
    pub size: u64,
    pub tail: &'a [u8],
}

/// Reads events off the lines.
pub(super) struct Columns<'a> {
    lines: Lines<'a>,
    behind_empty: bool,
}

impl<'a> Columns<'a> {
    pub fn new(lines: Lines<'a>) -> Self {
        Self { lines, behind_empty: false }
    }

    pub fn malformed<T>(&self) -> Result<T, MapError> {
        self.lines.malformed()
    }

    /// The next event, or `None` at the end.
    pub fn event(&mut self) -> Result<Option<Event<'a>>, MapError> {
        while let Some(line) = self.lines.next() {
            let behind_empty = std::mem::replace(&mut self.behind_empty, line.is_empty());
            match line {
                [] => {}
                [b' ', b' ', ..] => self.check_continuation(line)?,
                [b' ', name @ ..] => return self.entry(line, name).map(Some),
                b"Cross Reference Table" if behind_empty => {
                    return Ok(Some(Event::CrossReferences));
                }
                _ if behind_empty => return self.output(line).map(Some),
                _ => return Ok(Some(Event::Statement(line))),
            }
        }
        Ok(None)
    }

    fn output(&mut self, line: &'a [u8]) -> Result<Event<'a>, MapError> {
        if let Some((name, column)) = short_name(line) {
            let Some(extent) = extent(column) else { return self.malformed() };
            return Ok(Event::Output { name, extent: Some(extent) });
        }
        let is_own = |tail: &[u8]| {
            tail.is_empty() || tail.starts_with(b"load address ") || tail.starts_with(b"(")
        };
        let extent = self.join(|extent| is_own(extent.tail));
        Ok(Event::Output { name: line, extent })
    }

    fn entry(&mut self, line: &'a [u8], name: &'a [u8]) -> Result<Event<'a>, MapError> {
        let short = short_name(line).and_then(|(name, column)| Some((name, extent(column)?)));
        if let Some((name, extent)) = short {
            return Ok(Event::Entry { name: name.strip_prefix(b" ").unwrap_or(name), extent });
        }
        match self.join(|extent| !is_datum(extent.tail)) {
            Some(extent) => Ok(Event::Entry { name, extent }),
            None => Ok(Event::Pattern(name)),
        }
    }

    /// Takes the next line if it gives the extent of the name on this one.
    fn join(&mut self, belongs: impl Fn(&Extent) -> bool) -> Option<Extent<'a>> {
        let mut ahead = self.lines;
        let extent = extent(continuation(ahead.next()?)?).filter(belongs)?;
        self.lines = ahead;
        Some(extent)
    }

    /// Passes over symbols and the like; an address with a size and a file, but no name before it,
    /// is a section that would be lost.
    fn check_continuation(&self, line: &[u8]) -> Result<(), MapError> {
        let Some(column) = continuation(line) else { return self.malformed() };
        let Some(number) = column.strip_prefix(b"0x") else { return Ok(()) };
        match extent(column) {
            Some(extent) if is_datum(extent.tail) => Ok(()),
            Some(_) => self.malformed(),
            None if number.windows(COLUMN).any(|window| window == [b' '; COLUMN]) => Ok(()),
            None => self.malformed(),
        }
    }
}

/// The name, and the column that begins with an address, if the name leaves room for it.
fn short_name(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, column) = line.split_at_checked(COLUMN)?;
    let padded = name.ends_with(b" ") && column.starts_with(b"0x");
    let length = name.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    if padded { Some((name.get(..length)?, column)) } else { None }
}

fn continuation(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(&[b' '; COLUMN])
}

/// A size is right-aligned in 10 columns, so at most 8 spaces precede it; symbols and assignments
/// follow 16 of them.
fn extent(column: &[u8]) -> Option<Extent<'_>> {
    let (address, rest) = prefixed_hex(column)?;
    let size = skip_spaces(rest);
    if !(1..COLUMN).contains(&(rest.len() - size.len())) {
        return None;
    }
    let (size, tail) = prefixed_hex(size)?;
    match tail {
        [] => Some(Extent { address, size, tail }),
        [b' ', tail @ ..] => Some(Extent { address, size, tail }),
        _ => None,
    }
}

/// Whether a script's `LONG(0x55)` stands here, printed as `LONG 0x55`, and not a file.
fn is_datum(tail: &[u8]) -> bool {
    let keywords: [&[u8]; 6] =
        [b"BYTE 0x", b"SHORT 0x", b"LONG 0x", b"QUAD 0x", b"SQUAD 0x", b"RELOC "];
    keywords.iter().any(|keyword| tail.starts_with(keyword))
}
