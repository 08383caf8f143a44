//! A cache of records for objects that carry none, such as the members of the C library's archive:
//! made once, and stored under the identity of the file that holds the objects. In: an input file
//! of a link. Out: the records that earlier links made of its objects, by the offset of each
//! object.
//!
//! A file that was changed within the last minute is not cached: what a build has just made is
//! seldom linked unchanged for long.

use crate::model::envelope::Format;
use crate::model::{FileIdentity, Record};
use crate::process::sys::{self, Mapped};
use crate::process::{Settings, atomic_write, side_caches};
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const FORMAT: Format = Format { magic: *b"TASTESHE", version: 2 };

/// A smaller file is read as fast as what would be remembered of it.
const SMALLEST: u64 = 32 << 10;

/// What is younger is not worth remembering.
const YOUNGEST: Duration = Duration::from_secs(60);

/// How many files' records are kept.
const MOST: usize = 200;

/// What is remembered of one file.
pub struct Shelf {
    path: PathBuf,
    content: Option<Mapped>,
    /// Where each record lies in the content, by the start of its object; sorted.
    places: Vec<(u64, usize, usize)>,
}

/// The content of a shelf.
#[derive(Serialize, Deserialize)]
struct ShelfContent<'a> {
    #[serde(borrow)]
    records: Vec<(u64, &'a [u8])>,
}

impl Shelf {
    /// The shelf of a file, if it is one whose records are remembered.
    pub fn open(metadata: &Metadata, settings: &Settings) -> Option<Self> {
        let age = SystemTime::now().duration_since(changed(metadata)).ok()?;
        if metadata.len() < SMALLEST || age < YOUNGEST || !FileIdentity::of(metadata).is_settled() {
            return None;
        }
        let path = settings
            .dir
            .as_ref()?
            .join(side_caches::RECORDS)
            .join(FileIdentity::of(metadata).hash().to_string());
        let mut shelf = Shelf { content: sys::map(&path).ok(), path, places: Vec::new() };
        shelf.places = shelf.read().unwrap_or_default();
        Some(shelf)
    }

    fn read(&self) -> Option<Vec<(u64, usize, usize)>> {
        let content = self.content.as_deref()?;
        let (decoded, _) = FORMAT.decode::<ShelfContent>(content).ok()?;
        let base = content.as_ptr() as usize;
        Some(
            decoded
                .records
                .iter()
                .map(|(start, bytes)| (*start, bytes.as_ptr() as usize - base, bytes.len()))
                .collect(),
        )
    }

    /// All records, with where their objects start.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.places.iter().filter_map(|place| Some((place.0, self.get(place.0)?)))
    }

    /// The record of the object that starts there.
    pub fn get(&self, start: u64) -> Option<&[u8]> {
        let index = self.places.binary_search_by_key(&start, |place| place.0).ok()?;
        let (_, from, length) = self.places[index];
        self.content.as_deref()?.get(from..from + length)
    }
}

/// Puts records onto a shelf, beside those that are there.
pub fn add(settings: &Settings, shelf: &Shelf, fresh: &[(u64, &Record)]) {
    if settings.readonly {
        return;
    }
    let encoded: Vec<(u64, Vec<u8>)> =
        fresh.iter().filter_map(|(start, record)| Some((*start, record.encode().ok()?))).collect();
    let known = shelf.places.iter().filter_map(|place| Some((place.0, shelf.get(place.0)?)));
    let mut records: Vec<(u64, &[u8])> =
        known.chain(encoded.iter().map(|(start, bytes)| (*start, &bytes[..]))).collect();
    records.sort_unstable_by_key(|record| record.0);
    records.dedup_by_key(|record| record.0);
    let (Some(folder), Ok(bytes)) = (shelf.path.parent(), FORMAT.encode(&ShelfContent { records }))
    else {
        return;
    };
    // What could not be remembered is made again.
    let _ = fs::create_dir_all(folder)
        .and_then(|()| atomic_write::write(&shelf.path, None, None, &[bytes]));
    limit(folder);
}

/// Drops the shelf that was written longest ago, when there are too many.
fn limit(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let written =
        |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut shelves: Vec<_> = entries.flatten().filter_map(written).collect();
    if shelves.len() > MOST {
        shelves.sort_unstable();
        let _ = fs::remove_file(&shelves[0].1);
    }
}

fn changed(metadata: &Metadata) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(metadata.ctime().max(0) as u64)
}
