//! The files of a link, open: objects, archives with their members, and what was remembered of them. In: the paths that
//! the map names. Out: the bytes of each object, or the record that an earlier link made of it.

use super::early::Early;
use super::inputs::{Input, InputError};
use super::remembered::{self, Shelf};
use crate::elf::archive::{self, Content};
use crate::elf::{self, ElfError};
use crate::model::Record;
use crate::model::placement::Name;
use crate::process::Settings;
use crate::process::sys::{self, Mapped};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How people are told of an object.
pub fn label((file, member): Name) -> String {
    let file = String::from_utf8_lossy(file);
    match member {
        Some(member) => format!("{file}({})", String::from_utf8_lossy(member)),
        None => file.into_owned(),
    }
}

/// A file and what is known of it without a look at its objects.
pub struct OpenFile {
    path: PathBuf,
    state: State,
    bytes: Mapped,
    shelf: Option<Shelf>,
    /// The members, if it is an archive.
    members: Option<Result<Members, ElfError>>,
}

/// Device, inode, size, time of the last modification and of the last change.
type State = [i64; 7];

fn state(metadata: &Metadata) -> State {
    let [dev, ino, size] = [metadata.dev(), metadata.ino(), metadata.size()].map(|number| number as i64);
    let (modified, changed) = ([metadata.mtime(), metadata.mtime_nsec()], [metadata.ctime(), metadata.ctime_nsec()]);
    [dev, ino, size, modified[0], modified[1], changed[0], changed[1]]
}

impl OpenFile {
    /// Maps a file.
    pub fn open(path: &Path, settings: &Settings) -> io::Result<Self> {
        let (bytes, metadata) = sys::map_with_metadata(path)?;
        let shelf = Shelf::open(&metadata, settings);
        let members = archive::is_archive(&bytes).then(|| Members::read(&bytes));
        Ok(OpenFile { path: path.to_owned(), state: state(&metadata), bytes, shelf, members })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode.
    pub fn identity(&self) -> (u64, u64) {
        (self.state[0] as u64, self.state[1] as u64)
    }

    /// Nobody has written to the file, or put another one into its place, since it was opened.
    pub fn is_unchanged(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|metadata| state(&metadata) == self.state)
    }

    /// The object that is the whole file.
    pub fn object(&self) -> Object<'_> {
        self.object_at(&self.bytes)
    }

    /// The records that can be read without the map: of an object its own, of an archive those that are remembered.
    pub fn records(&self) -> Vec<(usize, (Record<'_>, bool))> {
        if self.members.is_none() {
            let object = self.object();
            return object.record().map(|record| (object.place_in_memory(), record)).into_iter().collect();
        }
        let start = self.bytes.as_ptr() as usize;
        let decode = |(place, record): (u64, _)| Some((start + place as usize, (Record::decode(record).ok()?, false)));
        self.shelf.iter().flat_map(Shelf::records).filter_map(decode).collect()
    }

    fn object_at<'f>(&'f self, bytes: &'f [u8]) -> Object<'f> {
        let start = bytes.as_ptr() as u64 - self.bytes.as_ptr() as u64;
        let remembered = self.shelf.as_ref().and_then(|shelf| shelf.get(start));
        Object { start, bytes, remembered }
    }
}

/// The members of one archive, sorted by the last part of their names: linkers differ in how much of a thin archive's
/// paths they show.
struct Members(Vec<Member>);

/// Where the name and the content of a member lie in the archive; the content may be a file of its own.
struct Member {
    name: Range<usize>,
    content: Option<Range<usize>>,
}

impl Members {
    fn read(bytes: &[u8]) -> Result<Self, ElfError> {
        let place = |part: &[u8]| {
            let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
            start..start + part.len()
        };
        let members = archive::members(bytes)?.into_iter().map(|member| Member {
            name: place(member.name),
            content: match member.content {
                Content::Here(content) => Some(place(content)),
                Content::Elsewhere => None,
            },
        });
        let mut members = Members(members.collect());
        members.0.sort_by_key(|member| file_name(&bytes[member.name.clone()]));
        Ok(members)
    }

    /// Those whose names have this last part, in the order of the archive.
    fn named(&self, bytes: &[u8], name: &[u8]) -> &[Member] {
        let last_part = |member: &Member| file_name(&bytes[member.name.clone()]).cmp(name);
        let from = self.0.partition_point(|member| last_part(member).is_lt());
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|member| last_part(member).is_eq())]
    }
}

/// One object: a file, or a part of one.
#[derive(Clone, Copy)]
pub struct Object<'f> {
    start: u64,
    bytes: &'f [u8],
    remembered: Option<&'f [u8]>,
}

impl<'f> Object<'f> {
    pub fn bytes(&self) -> &'f [u8] {
        self.bytes
    }

    /// By which it is told from all other objects that are open.
    pub fn place_in_memory(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    /// The object's record, and whether it was made just now.
    pub fn record(&self) -> Result<(Record<'f>, bool), ElfError> {
        if let Some(record) = self.remembered.and_then(|bytes| Record::decode(bytes).ok()) {
            return Ok((record, false));
        }
        let (record, carried) = elf::read_record(self.bytes)?;
        Ok((record, !carried))
    }
}

/// An object whose record was made just now: a file, and where the object starts in it.
pub type Fresh = (usize, u64);

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
        for path in files.elsewhere()? {
            files.open_one(&path, early, settings)?;
        }
        Ok(files)
    }

    fn open_one(&mut self, path: &Path, early: &'e Early, settings: &Settings) -> Result<(), InputError> {
        if self.numbers.contains_key(path) {
            return Ok(());
        }
        let unreadable =
            |error: io::Error| InputError::Unreadable { file: path.display().to_string(), reason: error.to_string() };
        let file = match early.file(path) {
            Some(file) if file.is_unchanged() => Opened::Early(file),
            _ => Opened::Now(Box::new(OpenFile::open(path, settings).map_err(unreadable)?)),
        };
        self.numbers.insert(path.to_owned(), self.files.len());
        self.files.push(file);
        Ok(())
    }

    /// The files of thin archives' members.
    fn elsewhere(&self) -> Result<Vec<PathBuf>, InputError> {
        let mut paths = Vec::new();
        for file in &self.files {
            let Some(members) = members(file)? else { continue };
            let outside = members.0.iter().filter(|member| member.content.is_none());
            paths.extend(outside.map(|member| thin_path(&file.path, &file.bytes[member.name.clone()])));
        }
        Ok(paths)
    }

    /// The object of a name: several where an archive has members of the same name.
    pub fn objects(&self, name: Name) -> Result<Vec<FoundObject<'_>>, InputError> {
        let missing = |reason: &str| InputError::Unreadable { file: label(name), reason: reason.to_owned() };
        let number = self.number(Path::new(OsStr::from_bytes(name.0))).ok_or_else(|| missing("it is not open"))?;
        let archive: &OpenFile = &self.files[number];
        let Some(member) = name.1 else {
            return Ok(vec![FoundObject { file: number, object: archive.object() }]);
        };
        let members = members(archive)?.ok_or_else(|| missing("it is not an archive"))?;
        let named = members.named(&archive.bytes, file_name(member));
        let object = |found: &Member| match &found.content {
            Some(content) => {
                Some(FoundObject { file: number, object: archive.object_at(&archive.bytes[content.clone()]) })
            }
            None => {
                let file = self.number(&thin_path(&archive.path, &archive.bytes[found.name.clone()]))?;
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

    /// All objects of a file, with how people are told of them, and whether they are members of an archive.
    pub fn all(&self, path: &Path) -> Result<Vec<(String, Object<'_>, bool)>, InputError> {
        let missing = |file: String| InputError::Unreadable { file, reason: "it is not open".to_owned() };
        let shown = path.display().to_string();
        let file: &OpenFile = &self.files[self.number(path).ok_or_else(|| missing(shown.clone()))?];
        let Some(members) = members(file)? else { return Ok(vec![(shown, file.object(), false)]) };
        let object = |member: &Member| {
            let name = &file.bytes[member.name.clone()];
            let label = label((path.as_os_str().as_bytes(), Some(name)));
            let object = match &member.content {
                Some(content) => Some(file.object_at(&file.bytes[content.clone()])),
                None => self.number(&thin_path(path, name)).map(|number| self.files[number].object()),
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
        Some(Err(error)) => {
            Err(InputError::NotUnderstood { object: file.path.display().to_string(), error: error.clone() })
        }
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
}

/// The file of a thin archive's member.
fn thin_path(archive: &Path, member: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member))
}
