//! ELF in and out: relocatable objects are read and described by records, records are carried
//! inside them, archives are opened, linked binaries are inspected.

pub mod addresses;
pub mod append;
pub mod arch;
pub mod archive;
pub mod atoms;
pub mod binary;
pub mod bitcode;
pub mod called;
pub mod code_reads;
pub mod digest;
pub mod dynamic;
pub mod endings;
pub mod gcc_lto;
pub mod labels;
pub mod lines;
pub mod literals;
pub mod noreturn;
pub mod object_file;
pub mod pieces;
pub mod pools;
pub mod readers;
pub mod runtime;
pub mod sanitizers;
pub mod section_shape;
pub mod sites;
pub mod tidy;
pub mod unwind;
pub mod whole;

use crate::model::record::SECTION;
use crate::model::{Level, Record};
use append::Appended;
use bitcode::{Bitcode, is_bitcode};
use object_file::{ObjectFile, Tables};
use thiserror::Error;

/// Why bytes could not be read as ELF.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElfError {
    #[error("it is not an ELF relocatable object")]
    NotAnObject,
    #[error("it is not an ELF executable or shared library")]
    NotABinary,
    #[error("it holds bitcode for link-time optimisation, not machine code")]
    Bitcode,
    #[error("{0}")]
    Malformed(&'static str),
}

impl From<object::read::Error> for ElfError {
    fn from(_: object::read::Error) -> Self {
        ElfError::Malformed("its ELF structure is damaged")
    }
}

/// How much text the names of one table may add up to. Tables may share their strings, and do, but
/// a small file whose symbols all bear one endless name would take as long, and as much memory, as
/// a large one.
struct NameBudget {
    left: usize,
}

impl NameBudget {
    /// Generous for a file of this size: linkers let names share their ends, and the names of most
    /// symbols are their own.
    fn of(file: &[u8]) -> Self {
        NameBudget { left: file.len().saturating_mul(16).saturating_add(1 << 16) }
    }

    fn take<'a>(&mut self, name: &'a [u8]) -> Result<&'a [u8], ElfError> {
        let left = self.left.checked_sub(name.len());
        self.left =
            left.ok_or(ElfError::Malformed("its names are longer than the file could hold"))?;
        Ok(name)
    }
}

/// The record of an object: the one it carries, if that was made of just these bytes, else one made
/// now.
pub fn record_of(bytes: &[u8]) -> Result<Record<'_>, ElfError> {
    Ok(read_record(bytes)?.0)
}

/// The same, and whether the object carried it.
pub fn read_record(bytes: &[u8]) -> Result<(Record<'_>, bool), ElfError> {
    if is_bitcode(bytes) {
        return Bitcode::parse(bytes)?
            .record()
            .map(|record| (record, true))
            .ok_or(ElfError::Bitcode);
    }
    let tables = Tables::parse(bytes)?;
    match carried(&tables) {
        Some(record) => Ok((record, true)),
        None => Ok((atoms::record(&ObjectFile::complete(tables)?, Level::Code, false)?, false)),
    }
}

/// The record that an object carries, if it was made of just this object.
fn carried<'a>(tables: &Tables<'a>) -> Option<Record<'a>> {
    let mut sections = tables.sections.iter().filter(|section| section.name == SECTION).peekable();
    sections.peek()?;
    let digest = digest::of_object(tables);
    sections.find_map(|section| Record::find(section.data, digest).ok())
}

/// What is to be written so that an object carries its record.
pub struct WithRecord {
    /// The object, where it is not to stay as it was.
    pub object: Option<Vec<u8>>,
    pub record: Appended,
}

/// What an object was compiled with, beyond what the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// As the user has it.
    Plain,
    /// Compiled without optimisation, and with the labels of its constants kept for us (`pools`).
    Kept,
}

/// Makes an object carry its record, and takes away the labels that were kept for it. `None`: it
/// carries one already.
pub fn with_record(
    bytes: &[u8],
    level: Level,
    labels: Labels,
) -> Result<Option<WithRecord>, ElfError> {
    with_made_record(bytes, labels, |object| atoms::record(object, level, labels == Labels::Kept))
}

/// The same with a record that somebody else makes.
pub fn with_made_record<'a>(
    bytes: &'a [u8],
    labels: Labels,
    make: impl FnOnce(&ObjectFile<'a>) -> Result<Record<'a>, ElfError>,
) -> Result<Option<WithRecord>, ElfError> {
    let object = ObjectFile::parse(bytes)?;
    if carried(&object).is_some() {
        return Ok(None);
    }
    let mut record = make(&object)?;
    let tidied = if labels == Labels::Kept { tidy::tidy(bytes) } else { None };
    let base = tidied.as_deref().unwrap_or(bytes);
    if tidied.is_some() {
        record.digest = digest::of_object(&Tables::parse(base)?);
    }
    let record =
        record.encode().map_err(|_| ElfError::Malformed("its record cannot be encoded"))?;
    let record = append::append(base, &record)?;
    Ok(Some(WithRecord { record, object: tidied }))
}
