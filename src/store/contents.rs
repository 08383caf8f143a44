//! A cache of results that are expensive to compute, above all content hashes by file identity: a
//! table of fixed size in one file, in which each identity has four possible slots. It is read and
//! written in place without any lock; each slot carries a checksum, so that one that two writers
//! have torn is not used. The file is sparse, and new hashes replace old ones: nothing ever needs
//! cleaning up.

use super::private;
use crate::model::Hash;
use crate::model::keys::KeyOf;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How many groups of places there are: room for 262,144 files in 10 MiB.
const GROUPS: u64 = 1 << 16;

/// How many places an identity can be in.
const PLACES: usize = 4;

/// Identity (16), content (16), checksum (8).
const WIDTH: usize = 40;

/// The table.
pub struct Contents {
    file: File,
}

impl Contents {
    /// Opens the table; makes an empty one if it may be written.
    pub fn open(path: &Path, writable: bool) -> Option<Self> {
        let open = |writable| {
            let mut how = private::options();
            how.read(true).write(writable).create(writable).truncate(false).open(path)
        };
        let make = || private::create_folder(path.parent()?).and_then(|()| open(true)).ok();
        let written = if writable { open(true).ok().or_else(make) } else { None };
        let file = written.or_else(|| open(false).ok())?;
        file.metadata().ok()?.is_file().then_some(Contents { file })
    }

    /// The content hash remembered for an identity.
    pub fn get(&self, identity: Hash) -> Option<Hash> {
        let group = self.group(identity);
        let places = group.as_chunks::<WIDTH>().0;
        places
            .iter()
            .filter(|place| place.starts_with(&identity.0))
            .find_map(|place| decode(place).map(|(_, content)| content))
    }

    /// Remembers a content hash: where the identity is already, else in a free place, else in place
    /// of some other one.
    pub fn set(&self, identity: Hash, content: Hash) {
        let group = self.group(identity);
        let places = group.as_chunks::<WIDTH>().0;
        let same = places
            .iter()
            .position(|place| decode(place).is_some_and(|(found, _)| found == identity));
        let free = || places.iter().position(|place| decode(place).is_none());
        let place = same.or_else(free).unwrap_or(usize::from(identity.0[15]) % PLACES);
        // What could not be remembered is hashed again.
        let _ = self
            .file
            .write_all_at(&encode(identity, content), start(identity) + (place * WIDTH) as u64);
    }

    fn group(&self, identity: Hash) -> [u8; PLACES * WIDTH] {
        let mut group = [0; PLACES * WIDTH];
        let mut filled = 0;
        while filled < group.len()
            && let Ok(count @ 1..) =
                self.file.read_at(&mut group[filled..], start(identity) + filled as u64)
        {
            filled += count;
        }
        group
    }
}

/// Where the group of an identity starts in the file.
fn start(identity: Hash) -> u64 {
    let [low, high, ..] = identity.0;
    u64::from(u16::from_le_bytes([low, high])) % GROUPS * (PLACES * WIDTH) as u64
}

fn encode(identity: Hash, content: Hash) -> [u8; WIDTH] {
    let mut place = [0; WIDTH];
    place[..16].copy_from_slice(&identity.0);
    place[16..32].copy_from_slice(&content.0);
    let mut hasher = KeyOf::ContentEntry.hasher();
    hasher.hash(identity).hash(content);
    place[32..].copy_from_slice(&hasher.finish().0[..8]);
    place
}

fn decode(place: &[u8; WIDTH]) -> Option<(Hash, Hash)> {
    let part = |from: usize| place[from..].first_chunk::<16>().copied().map(Hash);
    let (identity, content) = (part(0)?, part(16)?);
    (encode(identity, content) == *place).then_some((identity, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> (tempfile::TempDir, Contents) {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open(&folder.path().join("contents"), true).unwrap();
        (folder, contents)
    }

    fn number(number: u32) -> Hash {
        Hash::of(&number.to_le_bytes())
    }

    #[test]
    fn found_values_are_correct() {
        let (folder, contents) = table();
        for key in 0..100_000 {
            contents.set(number(key), number(key + 1));
        }
        contents.set(number(1), number(9));
        let other = Contents::open(&folder.path().join("contents"), false).unwrap();
        assert_eq!(other.get(number(1)), Some(number(9)));
        let found = (2..100_000)
            .filter(|key| other.get(number(*key)).is_some_and(|found| found == number(key + 1)));
        assert!(found.count() > 90_000);
        assert_eq!(other.get(number(100_001)), None);
    }

    #[test]
    fn the_table_does_not_grow() {
        let (folder, contents) = table();
        let full = (0..5u8).map(|last| {
            let mut identity = [7; 16];
            identity[15] = last;
            Hash(identity)
        });
        for identity in full {
            contents.set(identity, identity);
            assert_eq!(contents.get(identity), Some(identity));
        }
        contents.set(Hash([255; 16]), Hash([1; 16]));
        assert!(
            folder.path().join("contents").metadata().unwrap().len()
                <= GROUPS * (PLACES * WIDTH) as u64
        );
    }

    #[test]
    fn a_torn_place_is_no_answer() {
        let (_folder, contents) = table();
        contents.set(number(1), number(2));
        let group = contents.group(number(1));
        let at = group.iter().position(|byte| *byte != 0).unwrap();
        for byte in at..at + WIDTH {
            let change = [group[byte] ^ 0x40];
            contents.file.write_all_at(&change, start(number(1)) + byte as u64).unwrap();
            assert_eq!(contents.get(number(1)), None);
            contents
                .file
                .write_all_at(&group[byte..=byte], start(number(1)) + byte as u64)
                .unwrap();
        }
        assert_eq!(contents.get(number(1)), Some(number(2)));
    }
}
