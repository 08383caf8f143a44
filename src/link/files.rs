//! The files of a link, open. In: the paths that the map names. Out: their objects.

use super::early::Early;
use super::input::{Fresh, Input, InputError};
use super::open_file::{Member, Members, Object, OpenFile, file_name, label};
use super::remembered;
use crate::model::Record;
use crate::model::placement::Name;
use crate::process::Settings;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An object, and the number of its file.
#[derive(Clone, Copy)]
pub struct FoundObject<'f> {
    pub file: usize,
    pub object: Object<'f>,
}

impl FoundObject<'_> {
    pub fn place(&self) -> Fresh {
        (self.file, self.object.start)
    }
}

/// The open files of a link.
#[derive(Default)]
pub struct Files<'e> {
    numbers: FxHashMap<PathBuf, usize>,
    files: Vec<Opened<'e>>,
}

/// A file that was opened before the map was there, or because of it.
enum Opened<'e> {
    Early(&'e OpenFile),
    Now(Box<OpenFile>),
}

impl Deref for Opened<'_> {
    type Target = OpenFile;

    fn deref(&self) -> &OpenFile {
        match self {
            Opened::Early(file) => file,
            Opened::Now(file) => file,
        }
    }
}

impl<'e> Files<'e> {
    /// Opens all the files that are named, and the files of thin archives' members.
    pub fn open<'n>(
        names: impl Iterator<Item = Name<'n>>,
        early: &'e Early,
        settings: &Settings,
    ) -> Result<Self, InputError> {
        let mut files = Files::default();
        for (file, _) in names {
            files.open_one(Path::new(OsStr::from_bytes(file)), early, settings)?;
        }
        for path in files.thin_member_paths()? {
            files.open_one(&path, early, settings)?;
        }
        Ok(files)
    }

    fn open_one(
        &mut self,
        path: &Path,
        early: &'e Early,
        settings: &Settings,
    ) -> Result<(), InputError> {
        if self.numbers.contains_key(path) {
            return Ok(());
        }
        let unreadable = |error: io::Error| InputError::Unreadable {
            file: path.display().to_string(),
            reason: error.to_string(),
        };
        let file = match early.file(path) {
            Some(file) if file.is_unchanged() => Opened::Early(file),
            _ => Opened::Now(Box::new(OpenFile::open(path, settings).map_err(unreadable)?)),
        };
        self.numbers.insert(path.to_owned(), self.files.len());
        self.files.push(file);
        Ok(())
    }

    /// The files of thin archives' members.
    fn thin_member_paths(&self) -> Result<Vec<PathBuf>, InputError> {
        let mut paths = Vec::new();
        for file in &self.files {
            let Some(members) = members(file)? else { continue };
            let outside = members.0.iter().filter(|member| member.content.is_none());
            paths.extend(
                outside.map(|member| thin_path(&file.path, &file.bytes[member.name.clone()])),
            );
        }
        Ok(paths)
    }

    /// The object of a name: several where an archive has members of the same name.
    pub fn objects(&self, name: Name) -> Result<Vec<FoundObject<'_>>, InputError> {
        let missing =
            |reason: &str| InputError::Unreadable { file: label(name), reason: reason.to_owned() };
        let number = self
            .number(Path::new(OsStr::from_bytes(name.0)))
            .ok_or_else(|| missing("it is not open"))?;
        let archive: &OpenFile = &self.files[number];
        let Some(member) = name.1 else {
            return Ok(vec![FoundObject { file: number, object: archive.object() }]);
        };
        let members = members(archive)?.ok_or_else(|| missing("it is not an archive"))?;
        let named = members.named(&archive.bytes, file_name(member));
        let object = |found: &Member| match &found.content {
            Some(content) => Some(FoundObject {
                file: number,
                object: archive.object_at(&archive.bytes[content.clone()]),
            }),
            None => {
                let file =
                    self.number(&thin_path(&archive.path, &archive.bytes[found.name.clone()]))?;
                Some(FoundObject { file, object: self.files[file].object() })
            }
        };
        let is_same_path = |candidate: &&Member| {
            let name = &archive.bytes[candidate.name.clone()];
            name.ends_with(member) || member.ends_with(name)
        };
        let mut found: Vec<_> = named.iter().filter(is_same_path).filter_map(object).collect();
        if found.is_empty() {
            found.extend(named.iter().filter_map(object));
        }
        if found.is_empty() { Err(missing("the archive has no such member")) } else { Ok(found) }
    }

    /// All objects of a file, with how people are told of them, and whether they are members of an
    /// archive.
    pub fn all(&self, path: &Path) -> Result<Vec<(String, Object<'_>, bool)>, InputError> {
        let missing =
            |file: String| InputError::Unreadable { file, reason: "it is not open".to_owned() };
        let shown = path.display().to_string();
        let file: &OpenFile =
            &self.files[self.number(path).ok_or_else(|| missing(shown.clone()))?];
        let Some(members) = members(file)? else { return Ok(vec![(shown, file.object(), false)]) };
        let object = |member: &Member| {
            let name = &file.bytes[member.name.clone()];
            let label = label((path.as_os_str().as_bytes(), Some(name)));
            let object = match &member.content {
                Some(content) => Some(file.object_at(&file.bytes[content.clone()])),
                None => {
                    self.number(&thin_path(path, name)).map(|number| self.files[number].object())
                }
            };
            object.map(|object| (label.clone(), object, true)).ok_or_else(|| missing(label))
        };
        members.0.iter().map(object).collect()
    }

    fn number(&self, path: &Path) -> Option<usize> {
        self.numbers.get(path).copied()
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

/// The members of a file, if it is an archive.
fn members(file: &OpenFile) -> Result<Option<&Members>, InputError> {
    match &file.members {
        None => Ok(None),
        Some(Ok(members)) => Ok(Some(members)),
        Some(Err(error)) => Err(InputError::NotUnderstood {
            object: file.path.display().to_string(),
            error: error.clone(),
        }),
    }
}

/// The file of a thin archive's member.
fn thin_path(archive: &Path, member: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member))
}
