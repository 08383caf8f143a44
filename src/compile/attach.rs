//! Attaching the record: an object that the compiler has just written gets the section that carries it.
//!
//! In: the object's path. Out: the object with its record, under the same name, mode and time.

use crate::elf::{self, ElfError};
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

/// Attaches the record to the object at `object`.
pub fn attach(object: &Path, level: Level) -> Result<(), AttachError> {
    let metadata = fs::metadata(object)?;
    let bytes = sys::map(object)?;
    if let Some(appended) = elf::with_record(&bytes, level)? {
        let rest = &bytes[appended.head.len()..];
        aside::write(object, Some(&metadata), metadata.modified().ok(), &[&appended.head[..], rest, &appended.tail])?;
    }
    Ok(())
}
