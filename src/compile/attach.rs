//! Attaching the record: an object that the compiler has just written gets the section that carries
//! it.
//!
//! In: the object's path. Out: the object with its record, and without the labels that were kept
//! for it, under the same name, mode and time.

use super::{Syntax, definitions};
use crate::elf::append::Appended;
use crate::elf::bitcode::{self, Bitcode, is_bitcode};
use crate::elf::object_file::ObjectFile;
use crate::elf::{self, ElfError, Labels, atoms};
use crate::model::{Level, Record};
use crate::process::{atomic_write, sys};
use std::path::Path;
use std::{fs, io};
use thiserror::Error;

/// Why an object was left as the compiler wrote it.
#[derive(Debug, Error)]
pub enum AttachError {
    #[error("cannot read or write it: {0}")]
    File(#[from] io::Error),
    #[error(transparent)]
    Elf(#[from] ElfError),
}

/// Attaches the record to the object at `object`. `labels` says what the compiler was asked for,
/// `syntax` what the source means, where it was read.
pub fn attach(
    object: &Path,
    level: Level,
    labels: Labels,
    syntax: Option<&Syntax>,
) -> Result<(), AttachError> {
    let metadata = fs::metadata(object)?;
    let bytes = sys::map(object)?;
    if is_bitcode(&bytes) {
        let Some(Ok(understood)) = syntax.filter(|_| level == Level::Ast) else { return Ok(()) };
        if understood.by_code.is_some() {
            return Ok(());
        }
        let file = Bitcode::parse(&bytes)?;
        if file.record().is_none() {
            let record = definitions::record_of_bitcode(&file, understood)?.encode();
            let block = record.ok().and_then(|record| bitcode::block(&record));
            let block = block.ok_or(ElfError::Malformed("its record cannot be encoded"))?;
            atomic_write::write(
                object,
                Some(&metadata),
                metadata.modified().ok(),
                &[&bytes[..], &block],
            )?;
        }
        return Ok(());
    }
    let with_record = match syntax {
        Some(syntax) => {
            elf::with_made_record(&bytes, labels, |object| record(object, level, labels, syntax))?
        }
        None => elf::with_record(&bytes, level, labels)?,
    };
    if let Some(with_record) = with_record {
        let Appended { head, tail } = with_record.record;
        let content = with_record.object.as_deref().unwrap_or(&bytes);
        let rest = content.get(head.len()..).unwrap_or_default();
        atomic_write::write(
            object,
            Some(&metadata),
            metadata.modified().ok(),
            &[&head[..], rest, &tail],
        )?;
    }
    Ok(())
}

/// The record of an object whose source was read; by its code, where it was not understood.
fn record<'a>(
    object: &ObjectFile<'a>,
    level: Level,
    labels: Labels,
    syntax: &'a Syntax,
) -> Result<Record<'a>, ElfError> {
    let refusal = match syntax {
        Ok(understood) if level == Level::Ast && understood.by_code.is_none() => {
            return definitions::record(object, understood);
        }
        Ok(understood) => understood.by_code.as_ref(),
        Err(refusal) => Some(refusal),
    };
    let mut record = atoms::record(object, level, labels == Labels::Kept)?;
    record.refusals.extend(refusal.filter(|_| level == Level::Ast).cloned());
    Ok(record)
}
