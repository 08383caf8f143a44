//! The objects of a link. In: the placement. Out: each object or archive member that the linker used, with its
//! record and the addresses of its sections.

use crate::elf::archive::{self, Content};
use crate::elf::{self, ElfError};
use crate::model::{AtomKind, Level, PlacedSection, Placement, Record};
use crate::process::sys::{self, Mapped};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Beyond so many objects several threads pay.
const MANY: usize = 48;

/// Why the objects of a link cannot be told apart finely.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{file}: cannot be read any more: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{object}: {error}")]
    NotUnderstood { object: String, error: ElfError },
    #[error("{object}: section {section} of the linker's map is not in it")]
    NoSuchSection { object: String, section: String },
    #[error("{object}: several of its sections are called {section}, and it cannot be told which was linked")]
    Ambiguous { object: String, section: String },
}

/// One object, as it was linked.
pub struct Input<'a> {
    pub label: Cow<'a, str>,
    pub record: Record<'a>,
    /// The address of each atom that was given a place.
    pub addresses: Vec<Option<u64>>,
}

/// A file and member that the map names.
type Name<'a> = (&'a [u8], Option<&'a [u8]>);

/// The placed sections of each object that the map names, in the map's order.
pub struct Groups<'a> {
    names: Vec<Name<'a>>,
    sections: Vec<Vec<PlacedSection<'a>>>,
}

impl<'a> Groups<'a> {
    /// Groups a placement by object. Entries that the linker made up itself belong to none.
    pub fn new(placement: &Placement<'a>) -> Self {
        let mut numbers: FxHashMap<Name, usize> = FxHashMap::default();
        let mut groups = Groups { names: Vec::new(), sections: Vec::new() };
        // Sections of one object often stand together.
        let mut last: Option<(Name, usize)> = None;
        for section in placement.sections.iter().filter(|section| !section.file.starts_with(b"<")) {
            let name = (section.file, section.member);
            let number = match last {
                Some((known, number)) if known == name => number,
                _ => *numbers.entry(name).or_insert_with(|| {
                    groups.names.push(name);
                    groups.sections.push(Vec::new());
                    groups.names.len() - 1
                }),
            };
            last = Some((name, number));
            groups.sections[number].push(*section);
        }
        groups
    }

    /// The files that have to be open while their records are used.
    pub fn open(&self) -> Result<Files, InputError> {
        let mut files = Files::default();
        for (file, _) in &self.names {
            files.open(file)?;
        }
        files.open_thin_members()?;
        Ok(files)
    }

    /// Reads or makes the record of every object, and finds its sections in the map.
    pub fn read<'f>(&self, files: &'f Files, resolver: &dyn SymbolAddresses) -> Result<Vec<Input<'f>>, InputError> {
        let archives = files.archives()?;
        let candidates: Vec<(usize, &'f [u8])> = self
            .names
            .iter()
            .enumerate()
            .map(|(group, name)| Ok((group, files.candidates(*name, &archives)?)))
            .collect::<Result<Vec<_>, InputError>>()?
            .into_iter()
            .flat_map(|(group, found)| found.into_iter().map(move |bytes| (group, bytes)))
            .collect();
        let read = |&(group, bytes): &(usize, &'f [u8])| -> Result<(usize, Record<'f>), InputError> {
            let record = elf::record_of(bytes)
                .map_err(|error| InputError::NotUnderstood { object: label(self.names[group]), error })?;
            Ok((group, record))
        };
        let records: Vec<(usize, Record<'f>)> = if candidates.len() < MANY {
            candidates.iter().map(read).collect::<Result<_, _>>()?
        } else {
            candidates.par_iter().map(read).collect::<Result<_, _>>()?
        };
        let mut inputs = Vec::with_capacity(records.len());
        let mut records = records.into_iter().peekable();
        for (group, name) in self.names.iter().enumerate() {
            let mut members = Vec::new();
            while let Some((_, record)) = records.next_if(|(of, _)| *of == group) {
                members.push(record);
            }
            inputs.extend(super::matching::place(&label(*name), members, &self.sections[group], resolver)?);
        }
        Ok(inputs)
    }
}

/// Where the binary's symbol table says that symbols are.
pub trait SymbolAddresses {
    fn address(&self, name: &str) -> Option<u64>;
}

/// How people are told of an object.
fn label((file, member): Name) -> String {
    let file = String::from_utf8_lossy(file);
    match member {
        Some(member) => format!("{file}({})", String::from_utf8_lossy(member)),
        None => file.into_owned(),
    }
}

/// The open files of a link.
#[derive(Default)]
pub struct Files {
    mapped: FxHashMap<PathBuf, Mapped>,
}

/// The members of each archive, by the last part of their names: linkers differ in how much of a thin archive's
/// paths they show.
type Archives<'f> = FxHashMap<&'f Path, FxHashMap<&'f [u8], Vec<archive::Member<'f>>>>;

impl Files {
    fn open(&mut self, file: &[u8]) -> Result<(), InputError> {
        let path = Path::new(OsStr::from_bytes(file));
        if !self.mapped.contains_key(path) {
            let mapped = sys::map(path).map_err(|error| InputError::Unreadable {
                file: path.display().to_string(),
                reason: error.to_string(),
            })?;
            self.mapped.insert(path.to_owned(), mapped);
        }
        Ok(())
    }

    fn open_thin_members(&mut self) -> Result<(), InputError> {
        let mut paths = Vec::new();
        for (path, members) in &self.archives()? {
            let members = members.values().flatten();
            let elsewhere = members.filter(|member| matches!(member.content, Content::Elsewhere));
            paths.extend(elsewhere.map(|member| thin_path(path, member.name)));
        }
        for path in paths {
            self.open(path.as_os_str().as_bytes())?;
        }
        Ok(())
    }

    fn archives(&self) -> Result<Archives<'_>, InputError> {
        let archives = self.mapped.iter().filter(|(_, bytes)| archive::is_archive(bytes));
        archives
            .map(|(path, bytes)| {
                let members = archive::members(bytes)
                    .map_err(|error| InputError::NotUnderstood { object: path.display().to_string(), error })?;
                let mut by_name: FxHashMap<_, Vec<_>> = FxHashMap::default();
                for member in members {
                    by_name.entry(file_name(member.name)).or_default().push(member);
                }
                Ok((path.as_path(), by_name))
            })
            .collect()
    }

    /// The bytes of an object: several for an archive that has members of the same name.
    fn candidates<'f>(&'f self, (file, member): Name, archives: &Archives<'f>) -> Result<Vec<&'f [u8]>, InputError> {
        let path = Path::new(OsStr::from_bytes(file));
        let missing = |reason: &str| InputError::Unreadable { file: label((file, member)), reason: reason.to_owned() };
        let Some(member) = member else {
            return Ok(vec![self.mapped.get(path).ok_or_else(|| missing("it is not open"))?]);
        };
        let members = archives.get(path).ok_or_else(|| missing("it is not an archive"))?;
        let named = members.get(file_name(member)).map(Vec::as_slice).unwrap_or_default();
        let bytes = |found: &archive::Member<'f>| match found.content {
            Content::Here(bytes) => Some(bytes),
            Content::Elsewhere => self.mapped.get(&thin_path(path, found.name)).map(|mapped| &mapped[..]),
        };
        let is_same_path =
            |candidate: &&archive::Member| candidate.name.ends_with(member) || member.ends_with(candidate.name);
        let exact: Vec<_> = named.iter().filter(is_same_path).filter_map(bytes).collect();
        let found = if exact.is_empty() { named.iter().filter_map(bytes).collect() } else { exact };
        if found.is_empty() { Err(missing("the archive has no such member")) } else { Ok(found) }
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The file of a thin archive's member.
fn thin_path(archive: &Path, member: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member))
}

/// Whether the map gives this atom a place of its own.
pub fn has_own_place(kind: AtomKind, level: Level) -> bool {
    kind != AtomKind::Literal && level != Level::File
}
