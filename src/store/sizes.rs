//! The approximate size of each of the 256 folders of entries: a table of numbers, changed in place
//! without any lock. Updates that get lost between two processes are corrected whenever a folder is
//! scanned.

use super::private;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How many folders the entries are divided over, by the first byte of their names.
pub const FOLDERS: usize = 256;

const WIDTH: usize = size_of::<u64>();

/// The table.
pub struct Sizes {
    file: File,
}

impl Sizes {
    /// Opens the table, or makes an empty one.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file =
            private::options().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Sizes { file })
    }

    /// All the sizes. What is not in the table yet is 0.
    pub fn all(&self) -> [u64; FOLDERS] {
        let mut bytes = [0; FOLDERS * WIDTH];
        let mut filled = 0;
        while let Ok(count @ 1..) = self.file.read_at(&mut bytes[filled..], filled as u64) {
            filled += count;
        }
        let mut sizes = [0; FOLDERS];
        for (size, bytes) in sizes.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
            *size = u64::from_le_bytes(*bytes);
        }
        sizes
    }

    /// Changes one size.
    pub fn change(&self, folder: u8, by: i64) {
        self.set(folder, self.all()[usize::from(folder)].saturating_add_signed(by));
    }

    /// Sets one size.
    pub fn set(&self, folder: u8, size: u64) {
        // The table is only about right anyway.
        let _ = self.file.write_all_at(&size.to_le_bytes(), u64::from(folder) * WIDTH as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_kept_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sizes");
        Sizes::open(&path).unwrap().change(7, 100);
        let sizes = Sizes::open(&path).unwrap();
        sizes.change(7, -30);
        sizes.change(255, -1);
        sizes.set(0, u64::MAX);
        sizes.change(0, 1);
        let all = sizes.all();
        assert_eq!((all[7], all[255], all[0], all[1]), (70, 0, u64::MAX, 0));
    }
}
