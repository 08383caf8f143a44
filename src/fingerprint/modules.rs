//! The modules of a program: the binary and the libraries that the dynamic loader would load with it, in the order
//! in which it searches them for symbols. In: a path. Out: each module's manifest or content.

use super::libraries::{Search, Seeker};
use super::walk::{self, Fingerprint, Module, Start};
use crate::elf::ElfError;
use crate::elf::binary::Binary;
use crate::model::manifest::Manifest;
use crate::model::{FormatError, Hash, Hasher};
use crate::process::sys::{self, Mapped};
use crate::process::{Settings, manifest_file};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a binary has no fingerprint.
#[derive(Debug, Error)]
pub enum FingerprintError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    NotABinary { path: PathBuf, error: ElfError },
    #[error("{path} has no manifest: link it with tasting-cc, tasting-c++ or tasting-ld ({manifest} is missing)")]
    NoManifest { path: PathBuf, manifest: PathBuf },
    #[error("{path} is not a manifest that can be used: {error}; link the binary again")]
    BadManifest { path: PathBuf, error: FormatError },
    #[error("{path} was changed after it was linked: its manifest does not describe it any more; link it again")]
    Stale { path: PathBuf },
    #[error("{path} has no function or variable called {entry}")]
    NoEntry { path: PathBuf, entry: String },
}

/// The files of one module, open.
pub struct Opened {
    pub path: PathBuf,
    binary: Mapped,
    manifest: Result<Mapped, FingerprintError>,
}

impl Opened {
    /// Opens a binary, and its manifest where it has one.
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, FingerprintError> {
        let unreadable = |error| FingerprintError::Unreadable { path: path.to_owned(), error };
        let binary = sys::map(path).map_err(unreadable)?;
        let file = manifest_file::find(settings, path);
        let manifest =
            sys::map(&file).map_err(|_| FingerprintError::NoManifest { path: path.to_owned(), manifest: file });
        Ok(Opened { path: path.to_owned(), binary, manifest })
    }

    /// The binary's inside.
    pub fn binary(&self) -> Result<Binary<'_>, FingerprintError> {
        Binary::parse(&self.binary).map_err(|error| FingerprintError::NotABinary { path: self.path.clone(), error })
    }

    /// The manifest, if it describes this binary.
    pub fn manifest(&self, binary: &Binary) -> Result<Manifest<'_>, FingerprintError> {
        let bytes = match &self.manifest {
            Ok(bytes) => bytes,
            Err(FingerprintError::NoManifest { path, manifest }) => {
                return Err(FingerprintError::NoManifest { path: path.clone(), manifest: manifest.clone() });
            }
            Err(_) => return Err(FingerprintError::Stale { path: self.path.clone() }),
        };
        let manifest = Manifest::decode(bytes)
            .map_err(|error| FingerprintError::BadManifest { path: self.path.clone(), error })?;
        if manifest.digest != binary.loaded_digest() {
            return Err(FingerprintError::Stale { path: self.path.clone() });
        }
        Ok(manifest)
    }
}

/// The fingerprint of a binary with all the libraries that it needs.
pub fn fingerprint(path: &Path, entry: Option<&str>, settings: &Settings) -> Result<Fingerprint, FingerprintError> {
    let opened = open_all(path, settings)?;
    let mut manifests = Vec::with_capacity(opened.len());
    for (index, module) in opened.iter().enumerate() {
        let binary = module.binary()?;
        match module.manifest(&binary) {
            Ok(manifest) => manifests.push(Ok(manifest)),
            Err(error) if index == 0 => return Err(error),
            Err(_) => manifests.push(Err(foreign(&binary))),
        }
    }
    let modules: Vec<Module> = manifests
        .iter()
        .map(|manifest| match manifest {
            Ok(manifest) => Module::Known(manifest),
            Err((content, names)) => Module::Foreign { content: *content, names },
        })
        .collect();
    let start = entry.map_or(Start::Program, Start::Entry);
    walk::fingerprint(&modules, start)
        .ok_or_else(|| FingerprintError::NoEntry { path: path.to_owned(), entry: entry.unwrap_or_default().to_owned() })
}

/// A library without a manifest: its content, and the symbols that it defines or asks for.
fn foreign<'a>(binary: &Binary<'a>) -> (Hash, Vec<&'a [u8]>) {
    let content = Hasher::new("foreign").hash(binary.behaviour_digest()).finish();
    (content, binary.dynamic.symbols.iter().map(|symbol| symbol.name).collect())
}

/// Opens the binary and, breadth first, the libraries that it needs. A library that is not found is left out: its
/// name counts through the frame of whoever needs it.
fn open_all(path: &Path, settings: &Settings) -> Result<Vec<Opened>, FingerprintError> {
    let mut opened = vec![Opened::open(path, settings)?];
    let mut search = Search::from_environment();
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut at = 0;
    while at < opened.len() {
        let mut found = Vec::new();
        let binary = opened[at].binary()?;
        let seeker = Seeker { path: &opened[at].path, machine: binary.machine, dynamic: &binary.dynamic };
        for name in &binary.dynamic.needed {
            if seen.insert(name.to_vec()) {
                found.extend(search.find(name, &seeker).and_then(|path| Opened::open(&path, settings).ok()));
            }
        }
        drop(binary);
        opened.extend(found);
        at += 1;
    }
    Ok(opened)
}
