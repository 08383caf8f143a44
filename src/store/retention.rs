//! Keeps the store within its size limit. After each new entry, the table of sizes is checked. Only
//! when the limit is exceeded, the least recently used entries in some of the folders are removed,
//! which takes some milliseconds at most. `tasting gc` does it thoroughly, over all folders.

use super::private;
use super::sizes::{FOLDERS, Sizes};
use super::store_file::{SUFFIX, random};
use super::{StoreError, Volume};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long one step looks, and how long it removes, at the most.
const BUDGET: Duration = Duration::from_millis(8);

/// One step looks at this many entries, so as to find old ones among them.
const SAMPLE: usize = 2000;

/// Which share of the limit a step frees beyond what is needed, so that the next entries need no
/// step.
const SPARE_SHARE: u64 = 50;

/// One in so many entries has the size of its folder put right.
const CHECKED_SHARE: u64 = 64;

/// A file being written, or a lock, that is older belongs to nobody any more.
const ABANDONED: Duration = Duration::from_secs(600);

/// Disks give space in blocks.
const BLOCK: u64 = 4096;

/// A file in one of the folders.
struct StoredFile {
    used: SystemTime,
    size: u64,
    folder: u8,
    path: PathBuf,
}

/// The folders of entries, and their limit.
pub struct Retention<'a> {
    pub root: &'a Path,
    pub limit: u64,
}

/// The folder of the entries whose names start with this byte.
pub fn folder(root: &Path, number: u8) -> PathBuf {
    root.join(format!("{number:02x}"))
}

/// What a file of this length takes on disk.
fn on_disk(length: u64) -> u64 {
    length.next_multiple_of(BLOCK).max(BLOCK)
}

impl Retention<'_> {
    /// To be called after entries were added: (folder, length) each. Never fails; what is not
    /// cleaned away now is later.
    pub fn added(&self, entries: &[(u8, u64)]) {
        let Ok(sizes) = Sizes::open(&self.root.join("sizes")) else { return };
        for (folder, length) in entries.iter().filter(|entry| entry.1 > 0) {
            sizes.change(*folder, on_disk(*length) as i64);
        }
        let all = sizes.all();
        let total = all.iter().copied().fold(0, u64::saturating_add);
        let largest = (0..=u8::MAX).max_by_key(|folder| all[usize::from(*folder)]).unwrap_or(0);
        if total > self.limit {
            self.locked(|| self.step(&sizes, largest));
        } else if random().is_multiple_of(CHECKED_SHARE)
            && let Some((folder, _)) = entries.first()
        {
            self.look(&sizes, *folder, Instant::now() + BUDGET, &mut Vec::new());
        }
    }

    /// One at a time cleans up; the others have better things to do than to wait. Who is killed
    /// leaves the lock behind.
    fn locked(&self, work: impl FnOnce()) {
        let lock = self.root.join("cleaning");
        let take = || private::options().write(true).create_new(true).open(&lock);
        let stale = || age(&lock).is_some_and(|age| age > ABANDONED);
        if take().is_ok() || (stale() && fs::remove_file(&lock).is_ok() && take().is_ok()) {
            work();
            let _ = fs::remove_file(&lock);
        }
    }

    /// Looks at entries, from the largest folder on, and removes the older ones of them until
    /// enough is freed.
    fn step(&self, sizes: &Sizes, largest: u8) {
        let mut found = Vec::new();
        let end = Instant::now() + BUDGET;
        let mut folders = (0..=u8::MAX).map(|offset| largest.wrapping_add(offset));
        while found.len() < SAMPLE && Instant::now() < end {
            let Some(folder) = folders.next() else { break };
            self.look(sizes, folder, end, &mut found);
        }
        let total = sizes.all().into_iter().fold(0, u64::saturating_add);
        let excess = total.saturating_sub(self.limit);
        if excess == 0 {
            return;
        }
        // Of a mere sample, the newer half stays: the sizes of the folders not looked at may be
        // wrong.
        let seen = found.iter().map(|file| file.size).sum::<u64>();
        let most = if folders.next().is_none() { seen } else { seen / 2 };
        let wanted = excess.saturating_add(self.limit / SPARE_SHARE).min(most);
        found.sort_unstable_by_key(|file| file.used);
        // The newest stays, even where it alone is more than the limit.
        found.pop();
        remove(found, wanted, Instant::now() + BUDGET, |file| {
            sizes.change(file.folder, -(file.size as i64))
        });
    }

    /// Adds the entries of a folder to `found`; puts its size right, unless the time was too short
    /// to see all of it.
    fn look(&self, sizes: &Sizes, number: u8, end: Instant, found: &mut Vec<StoredFile>) {
        let before = found.len();
        let Ok(entries) = fs::read_dir(folder(self.root, number)) else {
            return sizes.set(number, 0);
        };
        for (count, entry) in entries.flatten().enumerate() {
            found.extend(examine(&entry, number));
            if count % 64 == 63 && Instant::now() > end {
                return;
            }
        }
        sizes.set(number, found[before..].iter().map(|file| file.size).sum());
    }

    /// Removes what was used longest ago, over all folders. Gives the bytes that were freed.
    pub fn clean(&self) -> Result<u64, StoreError> {
        let mut all: Vec<(SystemTime, u64)> = Vec::new();
        self.every(|found| all.push((found.used, found.size)))?;
        let mut excess = all.iter().map(|(_, size)| size).sum::<u64>().saturating_sub(self.limit);
        all.sort_unstable();
        let mut cut = None;
        for (used, size) in all {
            if excess == 0 {
                break;
            }
            cut = Some(used);
            excess = excess.saturating_sub(size);
        }
        self.remove_until(cut)
    }

    /// Removes everything that was last used then or before, and puts all sizes right.
    fn remove_until(&self, cut: Option<SystemTime>) -> Result<u64, StoreError> {
        let mut freed = 0;
        let mut kept = [0; FOLDERS];
        self.every(|found| {
            if cut.is_some_and(|cut| found.used <= cut) && fs::remove_file(&found.path).is_ok() {
                freed += found.size;
            } else {
                kept[usize::from(found.folder)] += found.size;
            }
        })?;
        if let Ok(sizes) = Sizes::open(&self.root.join("sizes")) {
            (0..=u8::MAX).for_each(|folder| sizes.set(folder, kept[usize::from(folder)]));
        }
        Ok(freed)
    }

    /// Removes all entries.
    pub fn clear(&self) -> Result<(), StoreError> {
        self.remove_until(Some(SystemTime::now() + ABANDONED)).map(|_| ())
    }

    /// What there is.
    pub fn volume(&self) -> Result<Volume, StoreError> {
        let mut volume = Volume::default();
        self.every(|found| {
            volume.bytes += found.size;
            match found.path.extension() {
                Some(ending) if ending == "o" => volume.outcomes += 1,
                _ => volume.dependency_sets += 1,
            }
        })?;
        Ok(volume)
    }

    /// Every entry's file, and when it was last used.
    pub fn every_file(&self, mut visit: impl FnMut(&Path, SystemTime)) -> Result<(), StoreError> {
        self.every(|found| visit(&found.path, found.used))
    }

    fn every(&self, mut visit: impl FnMut(StoredFile)) -> Result<(), StoreError> {
        for number in 0..=u8::MAX {
            let path = folder(self.root, number);
            match fs::read_dir(&path) {
                Ok(entries) => entries
                    .flatten()
                    .filter_map(|entry| examine(&entry, number))
                    .for_each(&mut visit),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("list", &path, error)),
            }
        }
        Ok(())
    }
}

/// Removes files, the first first, until enough is freed or the time is over.
fn remove(files: Vec<StoredFile>, wanted: u64, end: Instant, mut removed: impl FnMut(&StoredFile)) {
    let mut freed = 0;
    for file in files {
        if freed >= wanted || Instant::now() > end {
            break;
        }
        if fs::remove_file(&file.path).is_ok() {
            freed += file.size;
            removed(&file);
        }
    }
}

/// An entry's file. What somebody is writing is none, and what nobody is writing any more is
/// removed.
fn examine(entry: &fs::DirEntry, folder: u8) -> Option<StoredFile> {
    let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
    let (path, used) = (entry.path(), metadata.modified().ok()?);
    if entry.file_name().as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
        if age(&path).is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(&path);
        }
        return None;
    }
    Some(StoredFile { used, size: on_disk(metadata.len()), folder, path })
}

fn age(path: &Path) -> Option<Duration> {
    path.symlink_metadata().ok()?.modified().ok()?.elapsed().ok()
}
