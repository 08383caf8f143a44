//! The log of decisions, and the sums over it. In: one decision at a time, from many processes.
//! Out: the last decisions; sums.
//!
//! Lines of JSON are appended to the newest of some numbered segments, each with one write and no
//! lock. A full segment is followed by the next number. The oldest one is removed once it has been
//! added to the sums. The sums record up to which position of the log they reach, so that adding a
//! segment twice is the same as adding it once.

use super::StoreError;
use super::private;
use super::store_file::{self, TemporaryFile};
use crate::model::envelope::Format;
use crate::model::{Decision, Stats};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How long a segment grows, and how many are kept: about 40,000 decisions.
const SEGMENT: u64 = 1 << 20;
const KEPT: u64 = 16;

/// More of a command line or a reason is not kept.
const LONGEST_TEXT: usize = 16 << 10;

/// How many decisions are written at once: together they take no more room than a reader expects of
/// latecomers.
const AT_ONCE: usize = 60;

const SUMS: Format = Format { magic: *b"TASTESUM", version: 4 };

/// Sums over everything before a position in the log.
#[derive(Default, Serialize, Deserialize)]
struct Sums {
    stats: Stats,
    segment: u64,
    offset: u64,
}

/// The log in one folder.
pub struct Log {
    folder: PathBuf,
}

impl Log {
    /// The log below the store's folder.
    pub fn new(store: &Path) -> Self {
        Log { folder: store.join("log") }
    }

    /// Adds a decision.
    pub fn append(&self, decision: &Decision) -> Result<(), StoreError> {
        self.append_lines(&line(decision))
    }

    /// Adds decisions, many with one write.
    pub fn append_all(&self, decisions: &[Decision]) -> Result<(), StoreError> {
        decisions.chunks(AT_ONCE).try_for_each(|some| {
            self.append_lines(&some.iter().flat_map(line).collect::<Vec<u8>>())
        })
    }

    fn append_lines(&self, lines: &[u8]) -> Result<(), StoreError> {
        let newest = self.segments().last().copied().unwrap_or(0);
        let path = self.segment(newest);
        let full = path.metadata().is_ok_and(|metadata| metadata.len() >= SEGMENT);
        let path = if full { self.segment(newest + 1) } else { path };
        self.append_to(&path, lines)?;
        if full {
            self.drop_old(newest + 1);
        }
        Ok(())
    }

    fn append_to(&self, path: &Path, line: &[u8]) -> Result<(), StoreError> {
        let open = || private::options().append(true).create(true).open(path);
        let file = open().or_else(|error| match error.kind() {
            ErrorKind::NotFound => private::create_folder(&self.folder).and_then(|()| open()),
            _ => Err(error),
        });
        file.and_then(|mut file| file.write_all(line))
            .map_err(|error| StoreError::io("write", path, error))
    }

    /// The last decisions, the newest last.
    pub fn last(&self, count: usize) -> Result<Vec<Decision>, StoreError> {
        let mut parts = Vec::new();
        let mut found = 0;
        for segment in self.segments().into_iter().rev() {
            if found >= count {
                break;
            }
            let decisions = self.read(segment, 0)?;
            found += decisions.len();
            parts.push(decisions);
        }
        let all = parts.into_iter().rev().flatten();
        Ok(all.skip(found.saturating_sub(count)).collect())
    }

    /// The sums over all decisions since they were set to zero.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let newest = self.segments().last().copied().unwrap_or(0);
        Ok(self.sums_through(newest)?.stats)
    }

    /// Sets the sums to zero.
    pub fn zero(&self) -> Result<(), StoreError> {
        let segment = self.segments().last().copied().unwrap_or(0);
        let offset = self.segment(segment).metadata().map_or(0, |metadata| metadata.len());
        self.write_sums(&Sums { stats: Stats::default(), segment, offset })
    }

    /// The kept sums, and on top of them the segments up to and with this one.
    fn sums_through(&self, last: u64) -> Result<Sums, StoreError> {
        let mut sums = self.read_sums();
        for segment in self.segments().into_iter().filter(|segment| *segment <= last) {
            if segment < sums.segment {
                continue;
            }
            let offset = if segment == sums.segment { sums.offset } else { 0 };
            for decision in self.read(segment, offset)? {
                sums.stats.count(&decision);
            }
            (sums.segment, sums.offset) = (segment + 1, 0);
        }
        Ok(sums)
    }

    /// Removes the segments that are too old, after adding them to the sums. If that is not
    /// possible now, it is done when the next segment is full.
    fn drop_old(&self, newest: u64) {
        let Some(last) = newest.checked_sub(KEPT) else { return };
        let old = self.segments().into_iter().filter(|segment| *segment <= last);
        let added = self.sums_through(last).and_then(|sums| self.write_sums(&sums));
        if added.is_ok() {
            for segment in old {
                let _ = fs::remove_file(self.segment(segment));
            }
        }
    }

    /// The decisions in a segment from an offset on. Lines that are torn or not ours are passed
    /// over.
    fn read(&self, segment: u64, offset: u64) -> Result<Vec<Decision>, StoreError> {
        let path = self.segment(segment);
        // Many processes can find a segment not yet full at the same time, and each adds its line.
        let largest = 2 * SEGMENT as usize + (LONGEST_TEXT << 6);
        let content = match store_file::read(&path, largest) {
            Ok(Some((content, _))) => content,
            Ok(None) => return Ok(Vec::new()),
            // Somebody else's doing, and no reason to hide the other segments.
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let lines = content[from..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// The numbers of all segments, in order.
    fn segments(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let number = |entry: fs::DirEntry| {
            entry.file_name().to_str()?.strip_suffix(".jsonl")?.parse::<u64>().ok()
        };
        let mut numbers: Vec<u64> =
            entries.flatten().filter_map(number).filter(|number| *number < u64::MAX).collect();
        numbers.sort_unstable();
        numbers
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.jsonl"))
    }

    /// The kept sums; none if they cannot be read.
    fn read_sums(&self) -> Sums {
        let file = store_file::read(&self.folder.join("sums"), SEGMENT as usize).ok().flatten();
        file.and_then(|(bytes, _)| Some(SUMS.decode(&bytes).ok()?.0)).unwrap_or_default()
    }

    fn write_sums(&self, sums: &Sums) -> Result<(), StoreError> {
        let path = self.folder.join("sums");
        let bytes = SUMS.encode(sums).map_err(|error| StoreError::damaged(&path, error))?;
        TemporaryFile::write(&self.folder, &bytes)?.replace(&path)
    }
}

/// The line for a decision, bounded. It starts with a line feed too: after a write that was cut
/// short, only that line is lost.
fn line(decision: &Decision) -> Vec<u8> {
    let mut decision = decision.clone();
    let mut left = LONGEST_TEXT;
    for text in decision.argv.iter_mut().chain([
        &mut decision.cwd,
        &mut decision.reason,
        &mut decision.sort,
    ]) {
        shorten(text, left);
        left = left.saturating_sub(text.len());
    }
    decision.argv.truncate(LONGEST_TEXT / 8);
    let mut line = vec![b'\n'];
    // Strings and numbers can always be written.
    let _ = serde_json::to_writer(&mut line, &decision);
    line.push(b'\n');
    line
}

fn shorten(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
