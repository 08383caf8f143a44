//! The entries of a store, read one by one as a store would read them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tasting::model::{DependencySet, Hash, Outcome};
use tasting::store::entry::{self, BLOB, DEPENDENCY_SET, OUTCOME};

/// What was found.
#[derive(Debug, Default)]
pub struct Stored {
    pub whole: u64,
    pub damaged: Vec<PathBuf>,
}

/// Reads every entry.
pub fn read(store: &Path) -> io::Result<Stored> {
    let mut stored = Stored::default();
    for_each(store, &mut |path| {
        match is_whole(path, &fs::read(path)?) {
            true => stored.whole += 1,
            false => stored.damaged.push(path.to_owned()),
        }
        Ok(())
    })?;
    Ok(stored)
}

/// Does something with the file of each entry. Files that are being written have other names.
pub fn for_each(folder: &Path, act: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let Ok(files) = fs::read_dir(folder) else { return Ok(()) };
    for file in files {
        let path = file?.path();
        if path.is_dir() {
            for_each(&path, act)?;
        } else if name_of(&path).is_some() {
            act(&path)?;
        }
    }
    Ok(())
}

/// The name of an entry, from its folder and file: `ab/cdef….o`.
fn name_of(path: &Path) -> Option<Hash> {
    let (stem, ending) = path.file_name()?.to_str()?.split_once('.')?;
    let is_entry = matches!(ending.as_bytes(), b"o" | b"b" | [b's', _]);
    let name = Hash::from_text(&format!("{}{stem}", path.parent()?.file_name()?.to_str()?))?;
    is_entry.then_some(name)
}

fn is_whole(path: &Path, bytes: &[u8]) -> bool {
    let Some(name) = name_of(path) else { return false };
    match path.extension().map(|ending| ending.as_encoded_bytes()) {
        Some(b"o") => {
            entry::decode(&OUTCOME, name, bytes).is_ok_and(|raw| Outcome::from_bytes(&raw).is_ok())
        }
        Some(b"b") => entry::decode(&BLOB, name, bytes).is_ok(),
        _ => entry::decode(&DEPENDENCY_SET, name, bytes)
            .is_ok_and(|raw| DependencySet::from_bytes(&raw).is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasting::store::{FileStore, Memo, Options};

    #[test]
    fn a_damaged_entry_is_seen() {
        let folder =
            std::env::temp_dir().join(format!("tasting-lab-stored-{}", std::process::id()));
        let store = FileStore::new(&folder, Options { limit: 1 << 20, read_only: false });
        for name in [b"one", b"two"] {
            store.put_blob(Hash::of(name), name).unwrap();
        }
        let found = read(&folder).unwrap();
        assert_eq!((found.whole, found.damaged.len()), (2, 0));
        let mut count = 0;
        for_each(&folder, &mut |path| {
            let mut bytes = fs::read(path)?;
            let last = bytes.len() - 1;
            bytes[last] ^= u8::from(count == 0);
            count += 1;
            fs::write(path, bytes)
        })
        .unwrap();
        let found = read(&folder).unwrap();
        assert_eq!((found.whole, found.damaged.len()), (1, 1));
        fs::remove_dir_all(folder).unwrap();
    }
}
