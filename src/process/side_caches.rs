//! The small caches of the shims beside the results: answers of tools (`answers`), and records of
//! objects that carry none. In: the settings. Out: what `tasting stats`, `gc` and `clear` do with
//! them.

use super::Settings;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What tools have answered.
pub const ANSWERS: &str = "answers";

/// Records of objects that carry none.
pub const RECORDS: &str = "records";

/// What was written longer ago is most likely about tools and archives that are gone; else it is
/// made again.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

fn files(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let folders = [ANSWERS, RECORDS].map(|name| folder.join(name));
    folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten()
}

/// How many bytes they have.
pub fn volume(settings: &Settings) -> u64 {
    let lengths = settings
        .dir
        .iter()
        .flat_map(|folder| files(folder))
        .filter_map(|file| file.metadata().ok());
    lengths.map(|found| found.len()).sum()
}

/// Removes what was written longer ago. Gives the bytes that were freed.
pub fn clean(settings: &Settings, kept: Duration) -> io::Result<u64> {
    let mut freed = 0;
    for file in settings.dir.iter().flat_map(|folder| files(folder)) {
        let (Ok(found), path) = (file.metadata(), file.path()) else { continue };
        let age = found
            .modified()
            .ok()
            .and_then(|written| SystemTime::now().duration_since(written).ok());
        if age.unwrap_or_default() >= kept {
            freed += remove(path)?.map_or(0, |()| found.len());
        }
    }
    Ok(freed)
}

/// Somebody else may have removed it.
fn remove(path: PathBuf) -> io::Result<Option<()>> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn old_files_go_and_new_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { dir: Some(folder.path().into()), ..Settings::default() };
        for name in [ANSWERS, RECORDS] {
            fs::create_dir(folder.path().join(name)).unwrap();
            for file in ["old", "new"] {
                fs::write(folder.path().join(name).join(file), "1234").unwrap();
            }
            let old =
                File::options().append(true).open(folder.path().join(name).join("old")).unwrap();
            old.set_modified(SystemTime::now() - KEPT).unwrap();
        }
        assert_eq!(
            (volume(&settings), clean(&settings, KEPT).unwrap(), volume(&settings)),
            (16, 8, 8)
        );
        assert_eq!((clean(&settings, Duration::ZERO).unwrap(), volume(&settings)), (8, 0));
    }
}
