//! The shared libraries of the project that a binary was linked with. In: the command line, and
//! later the binary. Out: for each library that the binary asks the loader for and that has a
//! manifest, the path at which it was linked.

use super::arguments::LinkerJob;
use crate::elf::binary::Binary;
use crate::process::{Settings, manifest_file, sys};
use rustc_hash::FxHashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf, absolute};

/// A library with a manifest.
pub struct Library {
    /// The name by which it is asked for.
    name: String,
    path: PathBuf,
}

/// The libraries of the project that the linker may take: files that are not linked in.
pub fn of_project(
    settings: &Settings,
    job: &LinkerJob,
    is_linked_in: impl Fn(&Path) -> bool,
) -> Vec<Library> {
    let mut seen = FxHashSet::default();
    let new =
        candidates(job).filter(|path| !is_linked_in(path)).filter(|path| seen.insert(path.clone()));
    let described =
        new.filter(|path| path.exists() && manifest_file::find(settings, path).exists());
    described.filter_map(|path| Some(Library { name: name_of(&path)?, path })).collect()
}

/// Those that a binary asks for: name and path, relative to the folder of the binary.
pub fn needed(libraries: &[Library], output: &Path, binary: &Binary) -> Vec<(String, String)> {
    let Some(folder) = absolute(output).ok().and_then(|output| Some(output.parent()?.to_owned()))
    else {
        return Vec::new();
    };
    let needed =
        libraries.iter().filter(|library| binary.dynamic.needed.contains(&library.name.as_bytes()));
    needed
        .filter_map(|library| {
            let path = relative(&folder, &absolute(&library.path).ok()?);
            Some((library.name.clone(), path.to_str()?.to_owned()))
        })
        .collect()
}

/// The files that the linker may have taken for shared libraries.
fn candidates(job: &LinkerJob) -> impl Iterator<Item = PathBuf> {
    job.inputs.iter().flat_map(|input| match input.as_bytes().strip_prefix(b"-l") {
        None => vec![PathBuf::from(input)],
        Some(name) => {
            let file = match name.strip_prefix(b":") {
                Some(file) => file.to_vec(),
                None => [b"lib", name, b".so"].concat(),
            };
            job.library_paths
                .iter()
                .map(|folder| folder.join(std::ffi::OsStr::from_bytes(&file)))
                .collect()
        }
    })
}

/// The name by which a library is asked for.
fn name_of(path: &Path) -> Option<String> {
    let bytes = sys::map(path).ok()?;
    let binary = Binary::parse(&bytes).ok()?;
    let name = binary.dynamic.soname.or_else(|| Some(path.file_name()?.as_bytes()));
    String::from_utf8(name?.to_vec()).ok()
}

/// The way from a folder to a file, both absolute.
fn relative(folder: &Path, file: &Path) -> PathBuf {
    let common =
        folder.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    up.chain(file.components().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_the_binary_to_the_library() {
        let relative = |folder, file| relative(Path::new(folder), Path::new(file));
        assert_eq!(relative("/p/src", "/p/src/.libs/libx.so"), Path::new(".libs/libx.so"));
        assert_eq!(
            relative("/p/tests/.libs", "/p/src/.libs/libx.so"),
            Path::new("../../src/.libs/libx.so")
        );
    }
}
