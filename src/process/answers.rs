//! A cache of small answers from other programs (which linker a compiler would run, what kind of
//! linker it is), in files of the store, so that each question is asked once.
//!
//! In: a hash of everything that the answer depends on. Out: the answer, if it is known. Any error
//! is a miss.

use super::{Settings, atomic_write, side_caches};
use crate::model::Hash;
use crate::model::envelope::Format;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

const FORMAT: Format = Format { magic: *b"TASTEANS", version: 1 };

fn path(settings: &Settings, key: Hash) -> Option<PathBuf> {
    Some(settings.dir.as_ref()?.join(side_caches::ANSWERS).join(key.to_string()))
}

/// The answer that was remembered under `key`.
pub fn recall(settings: &Settings, key: Hash) -> Option<Vec<u8>> {
    let bytes = fs::read(path(settings, key)?).ok()?;
    FORMAT.decode::<Vec<u8>>(&bytes).ok().map(|(answer, _)| answer)
}

/// Remembers an answer under `key`, where the store may be written to.
pub fn remember(settings: &Settings, key: Hash, answer: &[u8]) {
    if settings.readonly {
        return;
    }
    let Some(path) = path(settings, key) else { return };
    if let (Some(folder), Ok(bytes)) = (path.parent(), FORMAT.encode(&answer)) {
        // Not remembered is asked again.
        let _ = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| atomic_write::write(&path, None, None, &[bytes]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_and_damage_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { dir: Some(folder.path().join("store")), ..Settings::default() };
        let key = Hash::of(b"key");
        assert_eq!(recall(&settings, key), None);
        remember(&settings, key, b"/usr/bin/ld");
        assert_eq!(recall(&settings, key), Some(b"/usr/bin/ld".to_vec()));
        fs::write(path(&settings, key).unwrap(), "damaged").unwrap();
        assert_eq!(recall(&settings, key), None);
    }

    #[test]
    fn a_read_only_store_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { dir: Some(folder.path().into()), readonly: true, ..Settings::default() };
        remember(&settings, Hash::of(b"key"), b"x");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
