//! One input file of a link, mapped into memory: an object, or an archive with its members, and the
//! cached records of these. In: its path. Out: the bytes of each object, or its cached record.

use super::remembered::Shelf;
use crate::elf::archive::{self, Content};
use crate::elf::{self, ElfError};
use crate::model::placement::Name;
use crate::model::{FileIdentity, Record};
use crate::process::Settings;
use crate::process::sys::{self, Mapped};
use std::fs;
use std::io;
use std::ops::Range;
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
    pub(super) path: PathBuf,
    identity: FileIdentity,
    pub(super) bytes: Mapped,
    pub(super) shelf: Option<Shelf>,
    /// The members, if it is an archive.
    pub(super) members: Option<Result<Members, ElfError>>,
}

impl OpenFile {
    /// Maps a file.
    pub fn open(path: &Path, settings: &Settings) -> io::Result<Self> {
        let (bytes, metadata) = sys::map_with_metadata(path)?;
        let shelf = Shelf::open(&metadata, settings);
        let members = archive::is_archive(&bytes).then(|| Members::read(&bytes));
        Ok(OpenFile {
            path: path.to_owned(),
            identity: FileIdentity::of(&metadata),
            bytes,
            shelf,
            members,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity.device_and_inode()
    }

    /// Nobody has written to the file, or put another one into its place, since it was opened.
    pub fn is_unchanged(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|metadata| FileIdentity::of(&metadata) == self.identity)
    }

    /// The object that is the whole file.
    pub fn object(&self) -> Object<'_> {
        self.object_at(&self.bytes)
    }

    /// The records that can be read without the map: of an object its own, of an archive those that
    /// are remembered.
    pub fn records(&self) -> Vec<(usize, (Record<'_>, bool))> {
        if self.members.is_none() {
            let object = self.object();
            return object
                .record()
                .map(|record| (object.place_in_memory(), record))
                .into_iter()
                .collect();
        }
        let start = self.bytes.as_ptr() as usize;
        let decode = |(place, record): (u64, _)| {
            Some((start + place as usize, (Record::decode(record).ok()?, false)))
        };
        self.shelf.iter().flat_map(Shelf::records).filter_map(decode).collect()
    }

    pub(super) fn object_at<'f>(&'f self, bytes: &'f [u8]) -> Object<'f> {
        let start = bytes.as_ptr() as u64 - self.bytes.as_ptr() as u64;
        let remembered = self.shelf.as_ref().and_then(|shelf| shelf.get(start));
        Object { start, bytes, remembered }
    }
}

/// The members of one archive, sorted by the last part of their names: linkers differ in how much
/// of a thin archive's paths they show.
pub struct Members(pub(super) Vec<Member>);

/// Where the name and the content of a member lie in the archive; the content may be a file of its
/// own.
pub struct Member {
    pub(super) name: Range<usize>,
    pub(super) content: Option<Range<usize>>,
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
    pub(super) fn named(&self, bytes: &[u8], name: &[u8]) -> &[Member] {
        let last_part = |member: &Member| file_name(&bytes[member.name.clone()]).cmp(name);
        let from = self.0.partition_point(|member| last_part(member).is_lt());
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|member| last_part(member).is_eq())]
    }
}

/// One object: a file, or a part of one.
#[derive(Clone, Copy)]
pub struct Object<'f> {
    pub(super) start: u64,
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

/// The last part of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
}
