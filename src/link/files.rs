//! The files of a link, open: objects, archives with their members, and what was remembered of them. In: the paths that
//! the map names. Out: the bytes of each object, or the record that an earlier link made of it.

use super::inputs::{Input, InputError};
use super::remembered::{self, Shelf};
use crate::elf::archive::{self, Content};
use crate::elf::{self, ElfError};
use crate::model::Record;
use crate::process::Settings;
use crate::process::sys::{self, Mapped};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file and member, as the map names them.
pub type Name<'a> = (&'a [u8], Option<&'a [u8]>);

/// How people are told of an object.
pub fn label((file, member): Name) -> String {
    let file = String::from_utf8_lossy(file);
    match member {
        Some(member) => format!("{file}({})", String::from_utf8_lossy(member)),
        None => file.into_owned(),
    }
}

/// The open files of a link.
#[derive(Default)]
pub struct Files {
    numbers: FxHashMap<PathBuf, usize>,
    files: Vec<OpenFile>,
}

struct OpenFile {
    path: PathBuf,
    bytes: Mapped,
    shelf: Option<Shelf>,
}

/// One object: a file, or a part of one.
#[derive(Clone, Copy)]
pub struct Object<'f> {
    file: usize,
    bytes: &'f [u8],
    remembered: Option<&'f [u8]>,
}

/// An object whose record was made just now: a file, and where the object starts in it.
pub type Fresh = (usize, u64);

impl<'f> Object<'f> {
    /// The object's record, and whether it was made just now.
    pub fn record(&self, files: &'f Files) -> Result<(Record<'f>, Option<Fresh>), ElfError> {
        if let Some(record) = self.remembered.and_then(|bytes| Record::decode(bytes).ok()) {
            return Ok((record, None));
        }
        let (record, carried) = elf::read_record(self.bytes)?;
        let start = self.bytes.as_ptr() as u64 - files.files[self.file].bytes.as_ptr() as u64;
        Ok((record, (!carried).then_some((self.file, start))))
    }
}

/// The members of one archive, by the last part of their names: linkers differ in how much of a thin archive's paths
/// they show.
type Members<'f> = FxHashMap<&'f [u8], Vec<archive::Member<'f>>>;

/// The members of each archive, by the archive's number.
pub type Archives<'f> = FxHashMap<usize, Members<'f>>;

impl Files {
    /// Opens all the files that are named, and the files of thin archives' members.
    pub fn open<'n>(names: impl Iterator<Item = Name<'n>>, settings: &Settings) -> Result<Self, InputError> {
        let mut files = Files::default();
        for (file, _) in names {
            files.open_one(Path::new(OsStr::from_bytes(file)), settings)?;
        }
        let mut elsewhere = Vec::new();
        for (&number, members) in &files.archives()? {
            let outside = members.values().flatten().filter(|member| matches!(member.content, Content::Elsewhere));
            elsewhere.extend(outside.map(|member| thin_path(&files.files[number].path, member.name)));
        }
        for path in elsewhere {
            files.open_one(&path, settings)?;
        }
        Ok(files)
    }

    fn open_one(&mut self, path: &Path, settings: &Settings) -> Result<(), InputError> {
        if self.numbers.contains_key(path) {
            return Ok(());
        }
        let bytes = sys::map(path)
            .map_err(|error| InputError::Unreadable { file: path.display().to_string(), reason: error.to_string() })?;
        let shelf = Shelf::open(path, settings);
        self.numbers.insert(path.to_owned(), self.files.len());
        self.files.push(OpenFile { path: path.to_owned(), bytes, shelf });
        Ok(())
    }

    /// The members of all archives.
    pub fn archives(&self) -> Result<Archives<'_>, InputError> {
        let archives = self.files.iter().enumerate().filter(|(_, file)| archive::is_archive(&file.bytes));
        archives
            .map(|(number, file)| {
                let members = archive::members(&file.bytes)
                    .map_err(|error| InputError::NotUnderstood { object: file.path.display().to_string(), error })?;
                let mut by_name = Members::default();
                for member in members {
                    by_name.entry(file_name(member.name)).or_default().push(member);
                }
                Ok((number, by_name))
            })
            .collect()
    }

    /// The object of a name: several where an archive has members of the same name.
    pub fn objects<'f>(&'f self, name: Name, archives: &Archives<'f>) -> Result<Vec<Object<'f>>, InputError> {
        let missing = |reason: &str| InputError::Unreadable { file: label(name), reason: reason.to_owned() };
        let number = self.number(Path::new(OsStr::from_bytes(name.0))).ok_or_else(|| missing("it is not open"))?;
        let Some(member) = name.1 else {
            return Ok(vec![self.object(number, &self.files[number].bytes)]);
        };
        let members = archives.get(&number).ok_or_else(|| missing("it is not an archive"))?;
        let named = members.get(file_name(member)).map(Vec::as_slice).unwrap_or_default();
        let object = |found: &archive::Member<'f>| match found.content {
            Content::Here(bytes) => Some(self.object(number, bytes)),
            Content::Elsewhere => {
                let file = self.number(&thin_path(&self.files[number].path, found.name))?;
                Some(self.object(file, &self.files[file].bytes))
            }
        };
        let is_same_path =
            |candidate: &&archive::Member| candidate.name.ends_with(member) || member.ends_with(candidate.name);
        let mut found: Vec<_> = named.iter().filter(is_same_path).filter_map(object).collect();
        if found.is_empty() {
            found.extend(named.iter().filter_map(object));
        }
        if found.is_empty() { Err(missing("the archive has no such member")) } else { Ok(found) }
    }

    fn number(&self, path: &Path) -> Option<usize> {
        self.numbers.get(path).copied()
    }

    fn object<'f>(&'f self, file: usize, bytes: &'f [u8]) -> Object<'f> {
        let start = bytes.as_ptr() as u64 - self.files[file].bytes.as_ptr() as u64;
        let remembered = self.files[file].shelf.as_ref().and_then(|shelf| shelf.get(start));
        Object { file, bytes, remembered }
    }

    /// Remembers the records that had to be made.
    pub fn remember(&self, settings: &Settings, inputs: &[Input]) {
        let mut fresh: FxHashMap<usize, Vec<(u64, &Record)>> = FxHashMap::default();
        for input in inputs {
            if let Some((file, start)) = input.fresh {
                fresh.entry(file).or_default().push((start, &input.record));
            }
        }
        for (file, records) in fresh {
            if let Some(shelf) = &self.files[file].shelf {
                remembered::add(settings, shelf, &records);
            }
        }
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The file of a thin archive's member.
fn thin_path(archive: &Path, member: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member))
}
