//! LLVM's intermediate language, as clang writes it for link-time optimisation: a stream of blocks.
//! In: the bytes of such a file. Out: its symbols, and the record that it carries.
//!
//! The record is in a block of its own behind the others. Every reader of LLVM's passes over a
//! block that it does not know, so linkers, archivers and `llvm-nm` see what they saw before. The
//! symbols are in a table that clang writes for linkers (LLVM's `irsymtab`), with their names in a
//! block beside it.

use super::ElfError;
use crate::model::record::Record;
use crate::model::{Hash, Hasher};

const MAGIC: &[u8] = b"BC\xc0\xde";

/// The blocks that matter here, of LLVM's numbers, and the one that holds a record.
const NAMES: u32 = 23;
const SYMBOLS: u32 = 25;
const RECORD: u32 = 84;

/// In the stream outside of blocks, an abbreviation has two bits; this one enters a block.
const ENTER_BLOCK: u32 = 1;

/// How a block with one blob starts: it defines an abbreviation (a number and a blob), and uses it.
/// The number is left out.
const BLOB_ABBREVIATION_BITS: u64 = 3;

/// The newest version of the table of symbols that is known. All of them have the same symbols.
const LAST_VERSION: u32 = 3;

/// The file is LLVM's bitcode.
pub fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A file of bitcode.
pub struct Bitcode<'a> {
    /// What it was before it was given a record.
    digest: Hash,
    names: Option<&'a [u8]>,
    symbols: Option<&'a [u8]>,
    records: Vec<&'a [u8]>,
}

/// A symbol that linkers see.
pub struct Symbol<'a> {
    pub name: &'a str,
    pub is_defined: bool,
    pub is_weak: bool,
    pub is_common: bool,
}

impl<'a> Bitcode<'a> {
    /// Finds the blocks of a file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(ElfError::NotAnObject)?;
        let mut hasher = Hasher::new("bitcode");
        let mut file =
            Bitcode { digest: Hash::default(), names: None, symbols: None, records: Vec::new() };
        while !rest.is_empty() {
            let block =
                Block::at(rest).ok_or(ElfError::Malformed("its stream of blocks is damaged"))?;
            let (whole, after) = rest.split_at(block.size);
            match block.kind {
                RECORD => file.records.extend(block.blob()),
                // Of several files in one, which has no meaning to linkers, each may have its own.
                NAMES if file.names.is_some() => return Err(ElfError::Bitcode),
                SYMBOLS if file.symbols.is_some() => return Err(ElfError::Bitcode),
                NAMES => file.names = block.blob(),
                SYMBOLS => file.symbols = block.blob(),
                _ => {}
            }
            if block.kind != RECORD {
                hasher.bytes(whole);
            }
            rest = after;
        }
        file.digest = hasher.finish();
        Ok(file)
    }

    /// By which a record knows the file.
    pub fn digest(&self) -> Hash {
        self.digest
    }

    /// The record that it carries, if it was made of just this file.
    pub fn record(&self) -> Option<Record<'a>> {
        self.records.iter().find_map(|record| Record::find(record, self.digest).ok())
    }

    /// The symbols that linkers see. `None` where there is no table of them that is understood.
    pub fn symbols(&self) -> Option<Vec<Symbol<'a>>> {
        const VERSION: usize = 0;
        const TABLE: usize = 28;
        const ENTRY: usize = 24;
        const FLAGS: usize = 20;
        const UNDEFINED: u32 = 1 << 3;
        const WEAK: u32 = 1 << 4;
        const COMMON: u32 = 1 << 5;
        const GLOBAL: u32 = 1 << 10;
        const FORMAT_SPECIFIC: u32 = 1 << 11;
        let (table, names) = (self.symbols?, self.names?);
        if word(table, VERSION)? > LAST_VERSION {
            return None;
        }
        let (start, count) = (word(table, TABLE)? as usize, word(table, TABLE + 4)? as usize);
        let entries = table.get(start..start.checked_add(count.checked_mul(ENTRY)?)?)?;
        let mut symbols = Vec::new();
        for entry in entries.chunks_exact(ENTRY) {
            let flags = word(entry, FLAGS)?;
            if flags & GLOBAL == 0 || flags & FORMAT_SPECIFIC != 0 {
                continue;
            }
            let (at, length) = (word(entry, 0)? as usize, word(entry, 4)? as usize);
            let name = std::str::from_utf8(names.get(at..at.checked_add(length)?)?).ok()?;
            let has = |flag: u32| flags & flag != 0;
            symbols.push(Symbol {
                name,
                is_defined: !has(UNDEFINED),
                is_weak: has(WEAK),
                is_common: has(COMMON),
            });
        }
        Some(symbols)
    }
}

/// What is to be written behind a file of bitcode so that it carries a record. `None` where the
/// record is too large.
pub fn block(record: &[u8]) -> Option<Vec<u8>> {
    let mut bits = Bits::default();
    bits.add(ENTER_BLOCK.into(), 2);
    bits.add_in_parts(RECORD.into(), 8);
    bits.add_in_parts(BLOB_ABBREVIATION_BITS, 4);
    bits.align();
    let length = bits.bytes.len();
    bits.add(0, 32);
    let start = bits.bytes.len();
    for (value, width) in blob_abbreviation() {
        if width > 3 { bits.add_in_parts(value, width) } else { bits.add(value, width) }
    }
    bits.add_in_parts(record.len() as u64, 6);
    bits.align();
    bits.bytes.extend_from_slice(record);
    bits.align();
    // The end of the block.
    bits.add(0, 32);
    let words = u32::try_from((bits.bytes.len() - start) / 4).ok()?;
    bits.bytes[length..start].copy_from_slice(&words.to_le_bytes());
    Some(bits.bytes)
}

/// The start of a block with one blob, as values and their widths: a definition with two operands,
/// of which the first is the number 1 and the second a blob; then the use of it.
fn blob_abbreviation() -> [(u64, u32); 7] {
    const DEFINE: u64 = 2;
    const BLOB: u64 = 5;
    const FIRST: u64 = 4;
    [(DEFINE, 3), (2, 5), (1, 1), (1, 8), (0, 1), (BLOB, 3), (FIRST, 3)]
}

/// A block of the stream.
struct Block<'a> {
    kind: u32,
    content: &'a [u8],
    /// With its head.
    size: usize,
}

impl<'a> Block<'a> {
    const HEAD: usize = 8;

    /// The block at the start of `bytes`. One of an unusual number or width has another head, and
    /// there are none.
    fn at(bytes: &'a [u8]) -> Option<Self> {
        let (head, words) = (word(bytes, 0)?, word(bytes, 4)? as usize);
        let (enters, kind, width) = (head & 3, head >> 2 & 0xff, head >> 10 & 0xf);
        let size = Self::HEAD.checked_add(words.checked_mul(4)?)?;
        let is_usual = enters == ENTER_BLOCK && kind < 0x80 && width < 8;
        Some(Block { kind, content: bytes.get(Self::HEAD..size)?, size }).filter(|_| is_usual)
    }

    /// The blob that is all its content.
    fn blob(&self) -> Option<&'a [u8]> {
        let mut place = 0;
        let expected = blob_abbreviation();
        for (index, (value, width)) in expected.into_iter().enumerate() {
            let found = if width > 3 {
                self.parts(&mut place, width)?
            } else {
                self.bits(&mut place, width)?
            };
            // The number that stands for the content is each block's own.
            if found != value && index != 3 {
                return None;
            }
        }
        let length = self.parts(&mut place, 6)?;
        let start = place.div_ceil(32) * 4;
        self.content.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    fn bits(&self, place: &mut usize, width: u32) -> Option<u64> {
        let mut value = 0;
        for bit in 0..width {
            let byte = self.content.get(*place / 8)?;
            value |= u64::from(byte >> (*place % 8) & 1) << bit;
            *place += 1;
        }
        Some(value)
    }

    /// A number in parts of `width` bits, the last of which tells whether there is another one.
    fn parts(&self, place: &mut usize, width: u32) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let part = self.bits(place, width)?;
            let more = 1 << (width - 1);
            value |= (part & (more - 1)).checked_shl(shift)?;
            if part & more == 0 {
                return Some(value);
            }
            shift += width - 1;
        }
    }
}

/// Bits, as they are put into a stream.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// How many bits of the last byte are taken; 0 for all.
    taken: u32,
}

impl Bits {
    fn add(&mut self, value: u64, width: u32) {
        for bit in 0..width {
            if self.taken == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << self.taken;
            }
            self.taken = (self.taken + 1) % 8;
        }
    }

    fn add_in_parts(&mut self, mut value: u64, width: u32) {
        let more = 1 << (width - 1);
        while value >= more {
            self.add(value & (more - 1) | more, width);
            value >>= width - 1;
        }
        self.add(value, width);
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.taken = 0;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    const SOURCE: &str = "int far(int); int near; static int mine = 4;\n\
        __attribute__((weak)) int may(void) { return mine++; }\n\
        int here(void) { return far(near) + may(); }\n";

    fn compiled(folder: &Path, options: &[&str]) -> Vec<u8> {
        fs::write(folder.join("x.c"), SOURCE).unwrap();
        let mut clang = Command::new("clang");
        let status = clang.args(["-flto", "-c", "x.c"]).args(options).current_dir(folder).status();
        assert!(status.expect("clang is installed").success());
        fs::read(folder.join("x.o")).unwrap()
    }

    fn file_with(record: &Record, bytes: &[u8]) -> Vec<u8> {
        [bytes, &block(&record.encode().unwrap()).unwrap()].concat()
    }

    #[test]
    #[ignore = "needs clang"]
    fn symbols_of_what_clang_writes() {
        let folder = tempfile::tempdir().unwrap();
        for options in [&["-O2"][..], &["-O0", "-g"], &["-flto=thin", "-O1"]] {
            let bytes = compiled(folder.path(), options);
            let symbols = Bitcode::parse(&bytes).unwrap().symbols().unwrap();
            let mut shown: Vec<_> =
                symbols.iter().map(|it| (it.name, it.is_defined, it.is_weak)).collect();
            shown.sort_unstable();
            let expected = [
                ("far", false, false),
                ("here", true, false),
                ("may", true, true),
                ("near", true, false),
            ];
            assert_eq!(shown, expected, "{options:?}");
            assert!(symbols.iter().all(|symbol| !symbol.is_common));
        }
    }

    #[test]
    #[ignore = "needs clang"]
    fn a_common_symbol() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = compiled(folder.path(), &["-fcommon"]);
        let symbols = Bitcode::parse(&bytes).unwrap().symbols().unwrap();
        let commons: Vec<&str> =
            symbols.iter().filter(|symbol| symbol.is_common).map(|symbol| symbol.name).collect();
        assert_eq!(commons, ["near"]);
    }

    #[test]
    #[ignore = "needs clang"]
    fn bitcode_records_are_void_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = compiled(folder.path(), &[]);
        let bare = Bitcode::parse(&bytes).unwrap();
        assert!(bare.record().is_none());
        for padding in 0..9 {
            let files = vec!["f".repeat(padding).into()];
            let record =
                Record { digest: bare.digest(), files, bitcode: true, ..Record::default() };
            let carrying = file_with(&record, &bytes);
            let read = Bitcode::parse(&carrying).unwrap();
            assert_eq!(read.record(), Some(record));
            assert_eq!(read.digest(), bare.digest());
        }
        let other = Record { digest: Hash::of(b"another"), ..Record::default() };
        assert!(Bitcode::parse(&file_with(&other, &bytes)).unwrap().record().is_none());
    }

    #[test]
    #[ignore = "needs clang"]
    fn damaged_streams() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = compiled(folder.path(), &[]);
        let bytes = file_with(&Record { bitcode: true, ..Record::default() }, &bytes);
        for end in 0..bytes.len() {
            let _ =
                Bitcode::parse(&bytes[..end]).map(|file| (file.symbols().is_some(), file.record()));
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            let _ = Bitcode::parse(&damaged).map(|file| (file.symbols().is_some(), file.record()));
        }
    }
}
