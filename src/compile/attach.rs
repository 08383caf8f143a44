//! Attaching the record: an object that the compiler has just written gets the section that carries it.
//!
//! In: the object's path. Out: the object with its record, and without the labels that were kept for it, under the
//! same name, mode and time.

use crate::elf::append::Appended;
use crate::elf::{self, ElfError, Labels};
use crate::model::Level;
use crate::process::{aside, sys};
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

/// Attaches the record to the object at `object`. `labels` says what the compiler was asked for.
pub fn attach(object: &Path, level: Level, labels: Labels) -> Result<(), AttachError> {
    let metadata = fs::metadata(object)?;
    let bytes = sys::map(object)?;
    if let Some(with_record) = elf::with_record(&bytes, level, labels)? {
        let Appended { head, tail } = with_record.record;
        let content = with_record.object.as_deref().unwrap_or(&bytes);
        let rest = content.get(head.len()..).unwrap_or_default();
        aside::write(object, Some(&metadata), metadata.modified().ok(), &[&head[..], rest, &tail])?;
    }
    Ok(())
}
