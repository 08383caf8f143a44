//! Work that can be done while the linker still runs: opens the objects and archives that the
//! command line names, and reads the objects' records. In: the command line. Out: the open files
//! and records, for those that the map turns out to name, if they have not been changed meanwhile.

use super::arguments::LinkerJob;
use super::input::Read;
use super::libraries::{self, Library};
use super::open_file::OpenFile;
use super::symbols::Names;
use crate::elf::archive;
use crate::elf::bitcode::is_bitcode;
use crate::process::Settings;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files that were opened early.
#[derive(Default)]
pub struct Early {
    files: FxHashMap<PathBuf, OpenFile>,
    /// Their paths, in the order of the command line.
    order: Vec<PathBuf>,
    /// Objects may have been left out, like members of archives.
    pub has_objects_as_members: bool,
    /// The shared libraries of the project that the linker may take.
    pub libraries: Vec<Library>,
}

/// The records of objects, by where each object lies in memory, and the numbers of their names.
#[derive(Default)]
pub struct Records<'e> {
    pub objects: FxHashMap<usize, Read<'e>>,
    pub names: Names,
}

impl Records<'_> {
    /// How many atoms they have.
    pub fn atoms(&self) -> usize {
        self.objects.values().map(|read| read.record.atoms.len()).sum()
    }
}

impl Early {
    /// Opens the files that the linker will open as well.
    pub fn open(settings: &Settings, job: &LinkerJob) -> Self {
        // The linker may be about to truncate its output.
        let output =
            fs::metadata(&job.output).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let mut early =
            Early { has_objects_as_members: job.has_objects_as_members, ..Early::default() };
        for path in candidates(job) {
            if !early.files.contains_key(&path)
                && let Ok(file) = OpenFile::open(&path, settings)
                && Some(file.identity()) != output
            {
                early.order.push(path.clone());
                early.files.insert(path, file);
            }
        }
        early.libraries = libraries::of_project(settings, job, |path| early.is_linked_in(path));
        early
    }

    /// The records of the files that are objects, and what is remembered of archives: mostly a
    /// program uses the same members as the one before. What cannot be read is tried again when the
    /// map names it.
    pub fn records(&self) -> Records<'_> {
        let mut records = Records::default();
        for file in self.files.values().filter(|file| !is_script(file.bytes())) {
            for (place, record) in file.records() {
                let names = records.names.of_symbols(&record.0);
                records.objects.insert(place, Read { names, ..Read::new(record) });
            }
        }
        records
    }

    /// The files in the order of the command line.
    pub fn in_order(&self) -> impl Iterator<Item = &OpenFile> {
        self.order.iter().filter_map(|path| self.files.get(path))
    }

    pub fn file(&self, path: &Path) -> Option<&OpenFile> {
        self.files.get(path)
    }

    /// The file is an object or an archive, of which parts became part of the binary.
    pub fn is_linked_in(&self, path: &Path) -> bool {
        self.file(path).is_some_and(|file| {
            let is_object =
                is_elf(file.bytes()) && matches!(file.bytes().get(16..18), Some([1, 0] | [0, 1]));
            is_object || archive::is_archive(file.bytes())
        })
    }
}

/// What the linker will read, as it will name it. It looks for a library in each folder; where that
/// has a shared one, this is what it takes, unless the link is static.
fn candidates(job: &LinkerJob) -> Vec<PathBuf> {
    let library = |name: &[u8]| -> Option<PathBuf> {
        let file = |folder: &PathBuf, ending: &[u8]| {
            folder.join(OsStr::from_bytes(&[b"lib", name, ending].concat()))
        };
        let is_here =
            |folder: &&PathBuf| file(folder, b".a").exists() || file(folder, b".so").exists();
        let folder = job.library_paths.iter().find(is_here)?;
        (job.is_static || !file(folder, b".so").exists()).then(|| file(folder, b".a"))
    };
    let inputs = job.inputs.iter();
    inputs
        .filter_map(|input| match input.as_bytes().strip_prefix(b"-l") {
            Some(name) => library(name),
            None => Some(input.into()),
        })
        .collect()
}

fn is_elf(start: &[u8]) -> bool {
    start.starts_with(b"\x7fELF")
}

/// Whether a linker takes a file that starts like this for a script: it is neither an object nor an
/// archive.
pub fn is_script(start: &[u8]) -> bool {
    !is_elf(start) && !is_bitcode(start) && !archive::is_archive(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(inputs: &[&str], folder: &Path, is_static: bool) -> LinkerJob {
        let inputs = inputs.iter().map(|input| input.into()).collect();
        LinkerJob {
            inputs,
            library_paths: vec![folder.to_owned()],
            is_static,
            ..LinkerJob::default()
        }
    }

    #[test]
    fn libraries_are_opened_where_the_linker_takes_archives() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libboth.a", "libboth.so", "libonly.a"] {
            fs::write(folder.path().join(name), "!<arch>\n").unwrap();
        }
        let opened = |is_static| {
            candidates(&job(&["x.o", "-lboth", "-lonly", "-lnone"], folder.path(), is_static))
        };
        let archive = |name| folder.path().join(name);
        assert_eq!(opened(false), [PathBuf::from("x.o"), archive("libonly.a")]);
        assert_eq!(
            opened(true),
            [PathBuf::from("x.o"), archive("libboth.a"), archive("libonly.a")]
        );
    }

    #[test]
    fn changed_and_replaced_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.o");
        let open = || {
            Early::open(&Settings::default(), &job(&[path.to_str().unwrap()], folder.path(), false))
        };
        fs::write(&path, "one").unwrap();
        let early = open();
        assert!(early.file(&path).unwrap().is_unchanged());
        fs::write(&path, "longer").unwrap();
        assert!(!early.file(&path).unwrap().is_unchanged());
        let early = open();
        fs::write(folder.path().join("y.o"), "longer").unwrap();
        fs::rename(folder.path().join("y.o"), &path).unwrap();
        assert!(!early.file(&path).unwrap().is_unchanged());
    }

    #[test]
    fn the_output_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.o");
        fs::write(&path, "one").unwrap();
        let job = LinkerJob {
            output: path.clone(),
            ..job(&[path.to_str().unwrap()], folder.path(), false)
        };
        assert!(Early::open(&Settings::default(), &job).file(&path).is_none());
    }
}
