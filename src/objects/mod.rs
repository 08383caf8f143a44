//! The cache of finished objects, beside the store. In: the key of what an object was made of. Out:
//! the object, as it was, or nothing. Whatever is the matter with the cache, the worst that comes
//! of it is that a source is compiled.
//!
//! ```text
//! objects-1/ab/cdef….o   an object, with its record         objects-1/counts   a letter for each look-up
//! objects-1/ab/cdef….n   what is known of it                objects-1/sizes    of the folders, about
//! objects-1/ab/cdef….d   there is nothing to say of a       objects-1/remote   what waits to be sent (`shared`)
//!                        declaration
//! ```
//!
//! The object is a plain file of its own, so that file systems which can share the blocks of two
//! files do so. What is used longest ago goes first, by the times of the files.

/// Objects of other machines.
pub mod shared;

use crate::model::Hash;
use crate::model::envelope::Format;
use crate::process::{Settings, atomic_write, sys};
use crate::store::retention::{self, Retention};
use crate::store::{StoreError, private};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const FORMAT: Format = Format { magic: *b"TASTEOBJ", version: 3 };

/// The version of the layout.
const FOLDER: &str = "objects-1";

/// What the limit is unless somebody says otherwise.
pub const DEFAULT_LIMIT: u64 = 5 << 30;

/// A use is noted at most this often.
const NOTED: Duration = Duration::from_secs(3600);

/// How many texts are remembered of which the compiler had nothing to say.
const MOST_TEXTS: usize = 64;

/// The cache of a user.
pub struct Objects {
    root: PathBuf,
    limit: u64,
    read_only: bool,
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The content of the object, so that a damaged one is not taken.
    content: Hash,
    /// The texts of this meaning that were compiled, or checked, without any message.
    pub clean_texts: Vec<Hash>,
    /// The last of them.
    pub last: TextDigest,
}

/// A text that the compiler had nothing to say of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDigest {
    pub text: Hash,
    /// What is left of it without the declarations that it could do without.
    pub rest: Hash,
    /// These declarations.
    pub prototypes: Vec<Hash>,
}

/// An object as other machines get it.
#[derive(Serialize, Deserialize)]
struct SharedObject<'a> {
    clean_texts: Vec<Hash>,
    object: &'a [u8],
}

/// What came of looking for an object. The letter stands for it in the file of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectLookup {
    Reused = b'r' as isize,
    /// The same; it came from another machine.
    Shared = b's' as isize,
    Compiled = b'c' as isize,
}

/// How often it was looked for objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub reused: u64,
    /// How many of the reused ones came from other machines.
    pub shared: u64,
    pub compiled: u64,
}

/// An object that is there.
pub struct CachedObject {
    path: PathBuf,
    content: sys::Mapped,
    pub notes: Notes,
}

impl Objects {
    /// The cache that the settings name; `None` where there is no home either.
    pub fn new(settings: &Settings) -> Option<Self> {
        let root = settings.dir.as_ref()?.join(FOLDER);
        Some(Objects {
            root,
            limit: settings.max_objects.unwrap_or(DEFAULT_LIMIT),
            read_only: settings.readonly,
        })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How large it may become.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn file(&self, key: Hash, ending: &str) -> PathBuf {
        retention::folder(&self.root, key.0[0]).join(format!("{}.{ending}", &key.to_string()[2..]))
    }

    /// The object of a key.
    pub fn find(&self, key: Hash) -> Option<CachedObject> {
        let bytes = fs::read(self.file(key, "n")).ok()?;
        let (notes, _) = FORMAT.decode::<Notes>(&bytes).ok()?;
        let path = self.file(key, "o");
        let content = sys::map(&path).ok()?;
        (Hash::of(&content) == notes.content).then_some(CachedObject { path, content, notes })
    }

    /// Puts an object that was found at `target`.
    pub fn take(&self, found: &CachedObject, target: &Path) -> io::Result<()> {
        if !self.read_only {
            for path in [found.path.clone(), found.path.with_extension("n")] {
                note_use(&path);
            }
        }
        let source = File::open(&found.path)?;
        atomic_write::write_from(target, &source, &found.content)
    }

    /// Keeps the object at `object`, which was made without any message of this text.
    pub fn keep(&self, key: Hash, object: &Path, text: &TextDigest) -> Result<(), StoreError> {
        if self.read_only {
            return Ok(());
        }
        let failed = |error| StoreError::file("keep", object, error);
        let content = sys::map(object).map_err(failed)?;
        let source = File::open(object).map_err(failed)?;
        self.put(key, &content, vec![text.text], text.clone(), |path| {
            atomic_write::write_from(path, &source, &content)
        })
    }

    fn put(
        &self,
        key: Hash,
        content: &[u8],
        clean_texts: Vec<Hash>,
        last: TextDigest,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.file(key, "o");
        let made =
            private::create_folder(path.parent().unwrap_or(&self.root)).and_then(|()| write(&path));
        made.map_err(|error| StoreError::file("write", &path, error))?;
        let size =
            self.write_notes(key, &Notes { content: Hash::of(content), clean_texts, last })?;
        self.retention().added(&[(key.0[0], content.len() as u64), (key.0[0], size)]);
        Ok(())
    }

    /// The object of a key for other machines; `None` if it is gone. The error is the reason why
    /// they do not get it.
    pub fn give(&self, key: Hash, largest: usize) -> Result<Option<Vec<u8>>, String> {
        let Some(found) = self.find(key) else { return Ok(None) };
        check_size(&found.content, largest)?;
        let given = SharedObject { clean_texts: found.notes.clean_texts, object: &found.content };
        postcard::to_stdvec(&given).map(Some).map_err(|error| error.to_string())
    }

    /// Keeps what another machine gave. The error is the reason why it is of no use.
    pub fn accept(&self, key: Hash, bytes: &[u8], largest: usize) -> Result<(), String> {
        let malformed = || "it is malformed".to_owned();
        let (given, rest) =
            postcard::take_from_bytes::<SharedObject>(bytes).map_err(|_| malformed())?;
        if !rest.is_empty() || given.clean_texts.len() > MOST_TEXTS {
            return Err(malformed());
        }
        check_size(given.object, largest)?;
        if !is_object(given.object) {
            return Err("it is no object".to_owned());
        }
        if self.read_only {
            return Err(StoreError::ReadOnly.to_string());
        }
        let write = |path: &Path| atomic_write::write(path, None, None, &[given.object]);
        self.put(key, given.object, given.clean_texts, TextDigest::default(), write)
            .map_err(|error| error.to_string())
    }

    /// Notes that the compiler has nothing to say of this text either.
    pub fn note_clean_text(
        &self,
        key: Hash,
        mut notes: Notes,
        text: &TextDigest,
    ) -> Result<(), StoreError> {
        if self.read_only {
            return Ok(());
        }
        notes.clean_texts.push(text.text);
        notes.last = text.clone();
        let surplus = notes.clean_texts.len().saturating_sub(MOST_TEXTS);
        notes.clean_texts.drain(..surplus);
        self.write_notes(key, &notes).map(|_| ())
    }

    /// Whether there is nothing to say of a declaration.
    pub fn is_clean_declaration(&self, declaration: Hash) -> bool {
        let path = self.file(declaration, "d");
        let is_there = path.exists();
        if is_there && !self.read_only {
            note_use(&path);
        }
        is_there
    }

    /// Notes that there is nothing to say of a declaration.
    pub fn note_clean_declaration(&self, declaration: Hash) -> Result<(), StoreError> {
        if self.read_only {
            return Ok(());
        }
        let path = self.file(declaration, "d");
        let folder = path.parent().unwrap_or(&self.root);
        let written = private::create_folder(folder).and_then(|()| fs::write(&path, b"\n"));
        written.map_err(|error| StoreError::file("write", &path, error))?;
        self.retention().added(&[(declaration.0[0], 1)]);
        Ok(())
    }

    fn write_notes(&self, key: Hash, notes: &Notes) -> Result<u64, StoreError> {
        let path = self.file(key, "n");
        let bytes = FORMAT.encode(notes).map_err(|error| StoreError::format(&path, error))?;
        atomic_write::write(&path, None, None, &[&bytes])
            .map_err(|error| StoreError::file("write", &path, error))?;
        Ok(bytes.len() as u64)
    }

    fn retention(&self) -> Retention<'_> {
        Retention { root: &self.root, limit: self.limit }
    }

    /// Counts a look-up: one letter, which is written whole or not at all.
    pub fn count(&self, look: ObjectLookup) {
        if self.read_only {
            return;
        }
        let open = || private::options().append(true).create(true).open(self.root.join("counts"));
        let file = open().or_else(|_| private::create_folder(&self.root).and_then(|()| open()));
        let _ = file.and_then(|mut file| file.write_all(&[look as u8]));
    }

    /// All look-ups since they were last forgotten.
    pub fn counts(&self) -> Counts {
        let letters = fs::read(self.root.join("counts")).unwrap_or_default();
        let count = |look: ObjectLookup| {
            letters.iter().filter(|letter| **letter == look as u8).count() as u64
        };
        let shared = count(ObjectLookup::Shared);
        Counts {
            reused: count(ObjectLookup::Reused) + shared,
            shared,
            compiled: count(ObjectLookup::Compiled),
        }
    }

    /// Starts counting anew.
    pub fn forget_counts(&self) {
        let _ = fs::remove_file(self.root.join("counts"));
    }

    /// How many objects there are, and how many bytes they take.
    pub fn volume(&self) -> Result<(u64, u64), StoreError> {
        let volume = self.retention().volume()?;
        Ok((volume.outcomes, volume.bytes))
    }

    /// Removes what was used longest ago, until the limit is kept; gives the bytes that were freed.
    pub fn clean(&self) -> Result<u64, StoreError> {
        self.retention().clean()
    }

    /// Removes all objects.
    pub fn clear(&self) -> Result<(), StoreError> {
        self.retention().clear()
    }
}

fn check_size(object: &[u8], largest: usize) -> Result<(), String> {
    let is_small = object.len() <= largest;
    is_small
        .then_some(())
        .ok_or_else(|| format!("{} bytes are more than the attribute objects allows", object.len()))
}

/// Whether it is an ELF file that a linker takes for an object.
fn is_object(bytes: &[u8]) -> bool {
    const RELOCATABLE: u8 = 1;
    let kind = bytes.get(16..18).filter(|_| bytes.starts_with(b"\x7fELF"));
    kind.is_some_and(|kind| kind.contains(&RELOCATABLE) && kind.contains(&0))
}

fn note_use(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    let age = file
        .metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age > NOTED) {
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
