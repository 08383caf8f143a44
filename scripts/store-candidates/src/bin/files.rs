//! Plain files: one for each name, written aside and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use store_candidates::{Candidate, Name};
use xxhash_rust::xxh3::xxh3_64;

struct Files(PathBuf);

impl Files {
    fn path(&self, kind: &str, name: &Name) -> PathBuf {
        let text = format!("{:032x}", u128::from_be_bytes(*name));
        self.0.join(kind).join(&text[..2]).join(&text[2..])
    }

    fn get(&self, kind: &str, name: &Name) -> Option<Vec<u8>> {
        let content = fs::read(self.path(kind, name)).ok()?;
        let (checksum, value) = content.split_at_checked(8)?;
        (xxh3_64(value).to_le_bytes() == checksum).then(|| value.to_vec())
    }

    fn set(&self, kind: &str, name: &Name, value: &[u8]) -> Result<(), String> {
        let path = self.path(kind, name);
        let aside = path.with_extension(std::process::id().to_string());
        let content = [&xxh3_64(value).to_le_bytes(), value].concat();
        let write = || File::create(&aside).and_then(|mut file| file.write_all(&content));
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = write().or_else(|_| fs::create_dir_all(folder).and_then(|()| write()));
        written.and_then(|()| fs::rename(&aside, &path)).map_err(|error| error.to_string())
    }
}

impl Candidate for Files {
    fn open(folder: &str) -> Result<Self, String> {
        Ok(Files(folder.into()))
    }

    fn shape(&self, test: &Name) -> Option<Vec<u8>> {
        self.get("shapes", test)
    }

    fn outcome(&self, key: &Name) -> Option<Vec<u8>> {
        self.get("outcomes", key)
    }

    fn put(&self, test: &Name, shape: &[u8], key: &Name, outcome: &[u8]) -> Result<(), String> {
        self.set("outcomes", key, outcome)?;
        self.set("shapes", test, shape)
    }

    fn log(&self, line: &[u8]) -> Result<(), String> {
        let log = OpenOptions::new().append(true).create(true).open(self.0.join("log"));
        log.and_then(|mut log| log.write_all(line)).map_err(|error| error.to_string())
    }
}

fn main() -> Result<(), String> {
    store_candidates::main::<Files>()
}
