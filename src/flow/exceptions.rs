//! The exception table of a function (LSDA): which calls have a landing pad. In: an object, its
//! unwind tables and the number of a section of code. Out: the call sites, each with its landing
//! pad and what is caught there.
//!
//! The format is that of the Itanium C++ ABI's language-specific data area, as gcc and clang write
//! it: landing pads count from the function's start, call sites are sorted, and only the table of
//! types has relocations.

use super::NotUnderstood;
use crate::elf::object_file::{ObjectFile, Section, SymbolPlace};
use crate::elf::unwind::{Part, Unwind};
use std::collections::BTreeSet;

/// The call sites of one function.
#[derive(Default)]
pub struct Handlers {
    pub sites: Vec<Site>,
    /// There is a table: what throws and is no call site of it ends the program.
    pub is_present: bool,
}

/// A range of code, and what happens when something in it throws.
pub struct Site {
    pub start: u64,
    pub end: u64,
    /// Where to go on: an offset in the function. None: the exception goes on to the caller.
    pub pad: Option<u32>,
    /// What is caught or filtered there, in order: the numbers of filters, and the symbols of
    /// types.
    pub actions: Vec<Action>,
}

/// One step of a call site's chain of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Cleanup,
    /// Anything is caught.
    CatchAll,
    /// A type is caught, which this symbol names, with this addend.
    Catch(u32, i64),
}

const OMITTED: u8 = 0xff;

impl Handlers {
    pub fn read(
        object: &ObjectFile,
        unwind: &Unwind,
        function: usize,
    ) -> Result<Self, NotUnderstood> {
        if !unwind.undivided.is_empty() {
            return Err("the unwind table of its object is unusual");
        }
        let parts: Vec<Part> = unwind.parts(function).collect();
        match &parts[..] {
            [] => Ok(Handlers::default()),
            [common, own] => match table_of(object, common, own)? {
                Some((section, at)) => {
                    let sites = read_table(object, &object.sections[section], at as usize)?;
                    Ok(Handlers { sites, is_present: true })
                }
                None => Ok(Handlers::default()),
            },
            _ => Err("it has several unwind entries"),
        }
    }

    pub fn pads(&self) -> BTreeSet<u32> {
        self.sites.iter().filter_map(|site| site.pad).collect()
    }

    /// What happens when the instruction that ends here throws: the unwinder looks for the byte
    /// before a call's return address. The position of the site, or none.
    pub fn site(&self, instruction_end: u64) -> Option<usize> {
        let last = instruction_end.checked_sub(1)?;
        self.sites.iter().position(|site| site.start <= last && last < site.end)
    }
}

const UNUSUAL: NotUnderstood = "its unwind entry is unusual";
const DAMAGED: NotUnderstood = "its exception table is unusual";

/// Where the exception table is that an unwind entry names.
fn table_of(
    object: &ObjectFile,
    common: &Part,
    own: &Part,
) -> Result<Option<(usize, u64)>, NotUnderstood> {
    let mut bytes = Bytes { data: common.data, at: 4 };
    let version = bytes.byte().ok_or(UNUSUAL)?;
    let mut letters = Vec::new();
    loop {
        match bytes.byte().ok_or(UNUSUAL)? {
            0 => break,
            letter => letters.push(letter),
        }
    }
    let Some((b'z', letters)) = letters.split_first().map(|(first, rest)| (*first, rest)) else {
        return if letters.is_empty() { Ok(None) } else { Err(UNUSUAL) };
    };
    bytes.number().and(bytes.number()).ok_or(UNUSUAL)?;
    if version == 1 { bytes.byte().map(u64::from) } else { bytes.number() }.ok_or(UNUSUAL)?;
    bytes.number().ok_or(UNUSUAL)?;
    let (mut code, mut table) = (0, OMITTED);
    for letter in letters {
        match letter {
            b'R' => code = bytes.byte().ok_or(UNUSUAL)?,
            b'L' => table = bytes.byte().ok_or(UNUSUAL)?,
            b'P' => {
                let encoding = bytes.byte().ok_or(UNUSUAL)?;
                bytes.at += width(encoding).ok_or(UNUSUAL)?;
            }
            b'S' | b'B' => {}
            _ => return Err(UNUSUAL),
        }
    }
    if table == OMITTED {
        return Ok(None);
    }
    let mut bytes = Bytes { data: own.data, at: 2 * width(code).ok_or(UNUSUAL)? };
    bytes.number().ok_or(UNUSUAL)?;
    let field = own.start + bytes.at as u64;
    let Some(relocation) = own.relocations.iter().find(|relocation| relocation.offset == field)
    else {
        // The padding of an entry may have been cut off: what remains of a field of zeros is none.
        let is_null =
            own.data.get(bytes.at..).unwrap_or_default().iter().take(8).all(|&byte| byte == 0);
        return if is_null { Ok(None) } else { Err(UNUSUAL) };
    };
    let symbol = &object.symbols[relocation.symbol as usize];
    match symbol.place {
        SymbolPlace::Section(section) => {
            Ok(Some((section, symbol.value.wrapping_add_signed(relocation.addend))))
        }
        _ => Err(UNUSUAL),
    }
}

/// The size of an encoded pointer.
fn width(encoding: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x03 | 0x0b => Some(4),
        0x02 | 0x0a => Some(2),
        _ => None,
    }
}

/// Reads an exception table.
fn read_table(
    object: &ObjectFile,
    section: &Section,
    at: usize,
) -> Result<Vec<Site>, NotUnderstood> {
    let mut bytes = Bytes { data: section.data, at };
    if bytes.byte() != Some(OMITTED) {
        return Err("its landing pads do not count from its start");
    }
    let types = bytes.byte().ok_or(DAMAGED)?;
    let types_end = match types {
        OMITTED => None,
        _ => {
            let distance = bytes.number().ok_or(DAMAGED)? as usize;
            Some(bytes.at.checked_add(distance).ok_or(DAMAGED)?)
        }
    };
    let encoding = bytes.byte().ok_or(DAMAGED)?;
    let length = bytes.number().ok_or(DAMAGED)? as usize;
    let end =
        bytes.at.checked_add(length).filter(|end| *end <= section.data.len()).ok_or(DAMAGED)?;
    let has_relocation = |range: std::ops::Range<usize>| {
        section.relocations.iter().any(|relocation| range.contains(&(relocation.offset as usize)))
    };
    if has_relocation(at..end) {
        return Err("its call sites have relocations");
    }
    let mut sites = Vec::new();
    while bytes.at < end {
        let mut value = || match encoding {
            0x01 => bytes.number(),
            0x03 => bytes.word(),
            _ => None,
        };
        let (start, size, pad) =
            (value().ok_or(DAMAGED)?, value().ok_or(DAMAGED)?, value().ok_or(DAMAGED)?);
        let action = bytes.number().ok_or(DAMAGED)?;
        let pad = (pad != 0).then(|| u32::try_from(pad)).transpose().map_err(|_| DAMAGED)?;
        let reader = Types { object, section, end: types_end, encoding: types };
        let actions = if action == 0 {
            Vec::new()
        } else {
            {
                let at =
                    usize::try_from(action - 1).ok().and_then(|action| end.checked_add(action));
                self::actions(&reader, at.ok_or(DAMAGED)?)?
            }
        };
        sites.push(Site { start, end: start.checked_add(size).ok_or(DAMAGED)?, pad, actions });
    }
    Ok(sites)
}

/// The table of types of an exception table, which lies before its end.
struct Types<'o, 'a> {
    object: &'o ObjectFile<'a>,
    section: &'o Section<'a>,
    end: Option<usize>,
    encoding: u8,
}

impl Types<'_, '_> {
    fn read(&self, number: u64) -> Result<Action, NotUnderstood> {
        let width = width(self.encoding).ok_or(DAMAGED)?;
        let distance = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_mul(width))
            .ok_or(DAMAGED)?;
        let at = self.end.and_then(|end| end.checked_sub(distance)).ok_or(DAMAGED)?;
        let field =
            self.section.data.get(at..).and_then(|rest| rest.get(..width)).ok_or(DAMAGED)?;
        let relocation =
            self.section.relocations.iter().find(|relocation| relocation.offset == at as u64);
        match relocation {
            Some(relocation) if (relocation.symbol as usize) < self.object.symbols.len() => {
                Ok(Action::Catch(relocation.symbol, relocation.addend))
            }
            None if field.iter().all(|&byte| byte == 0) => Ok(Action::CatchAll),
            _ => Err(DAMAGED),
        }
    }
}

/// The chain of actions that starts at a place.
fn actions(types: &Types, start: usize) -> Result<Vec<Action>, NotUnderstood> {
    const LONGEST: usize = 1000;
    let mut found = Vec::new();
    let mut at = start;
    while found.len() < LONGEST {
        let mut bytes = Bytes { data: types.section.data, at };
        let filter = bytes.signed().ok_or(DAMAGED)?;
        let field = bytes.at as i64;
        let next = bytes.signed().ok_or(DAMAGED)?;
        found.push(match filter {
            0 => Action::Cleanup,
            1.. => types.read(filter as u64)?,
            _ => return Err("it has an exception specification"),
        });
        if next == 0 {
            return Ok(found);
        }
        at = usize::try_from(field.checked_add(next).ok_or(DAMAGED)?).map_err(|_| DAMAGED)?;
    }
    Err(DAMAGED)
}

/// Reads numbers one after the other.
struct Bytes<'d> {
    data: &'d [u8],
    at: usize,
}

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.data.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn word(&mut self) -> Option<u64> {
        let bytes = self.data.get(self.at..self.at.checked_add(4)?)?.try_into().ok()?;
        self.at += 4;
        Some(u64::from(u32::from_le_bytes(bytes)))
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A signed LEB128 number.
    fn signed(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let unused = 64 - (shift + 7);
                return Some(value << unused >> unused);
            }
        }
        None
    }
}
