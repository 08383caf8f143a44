//! `tasting show`: what is known of an object, an archive or a binary.

use super::{exit, print};
use crate::elf::archive::{self, Content};
use crate::elf::{self, ElfError};
use crate::fingerprint::Opened;
use crate::process::{Settings, sys};
use crate::report::shown::Shown;
use crate::report::text;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Show the atoms of an object, an archive or a linked binary: what each is, its hash, what it
/// refers to.
///
/// For an object or archive this is its record; for a binary its manifest.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: an object with `atoms`, a list of {name, kind, level, hash, refs, …}
    #[arg(long)]
    json: bool,
    /// An object, an archive, an executable or a shared library
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let shown = shown(&arguments.file)?;
    print(arguments.json, &shown, text::write)?;
    Ok(exit::OK)
}

fn shown(path: &Path) -> anyhow::Result<Shown> {
    let name = path.display().to_string();
    let bytes = sys::map(path).with_context(|| format!("cannot read {name}"))?;
    if archive::is_archive(&bytes) {
        return archive_shown(path, &bytes);
    }
    match elf::record_of(&bytes) {
        Ok(record) => Ok(Shown::object(name, &record)),
        Err(ElfError::NotAnObject) => {
            let opened = Opened::open(path, &Settings::from_environment())?;
            let binary = opened.binary()?;
            let manifest = opened.manifest(&binary)?;
            Ok(Shown::binary(name, &manifest))
        }
        Err(error) => bail!("{name}: {error}"),
    }
}

fn archive_shown(path: &Path, bytes: &[u8]) -> anyhow::Result<Shown> {
    let name = path.display().to_string();
    let mut shown = Shown::archive(name.clone());
    for member in archive::members(bytes).with_context(|| name.clone())? {
        let label = String::from_utf8_lossy(member.name).into_owned();
        let elsewhere;
        let bytes = match member.content {
            Content::Here(bytes) => bytes,
            Content::Elsewhere => {
                let file = path.parent().unwrap_or(Path::new("")).join(&label);
                elsewhere = sys::map(&file).with_context(|| {
                    format!("cannot read {}, a member of {name}", file.display())
                })?;
                &elsewhere
            }
        };
        match elf::record_of(bytes) {
            Ok(record) => shown.add_member(label, &record),
            Err(error) => shown.add_refusal(label, error.to_string()),
        }
    }
    Ok(shown)
}
