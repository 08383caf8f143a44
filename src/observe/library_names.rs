//! The name under which the dynamic loader opened each library. `libx.so.5` is a link to
//! `libx.so.5.4.0` beside it. If only the loader follows that link, the program sees the library's
//! content but not the name of its file. So the library is recorded under the name that was opened,
//! and the link's target is not an input.
//!
//! In: the links that the loader and others followed. Out: the name of each library, and the links
//! that are not inputs.

use super::resolve::Trail;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The names of all libraries of a run.
#[derive(Debug, Default)]
pub struct LibraryNames {
    /// For each library the links that led to it, by each name under which the loader opened it.
    names: FxHashMap<PathBuf, FxHashMap<PathBuf, Vec<PathBuf>>>,
    /// Links whose target the run itself may have seen.
    seen: FxHashSet<PathBuf>,
    /// The run has read the names of the files that are mapped into memory.
    are_files_seen: bool,
}

impl LibraryNames {
    /// The loader opens a library. Links that lead from one folder to another count by their
    /// target.
    pub fn opened(&mut self, library: &Path, trail: &Trail) {
        let last =
            trail.links.iter().rev().take_while(|(link, target)| is_beside(link, target, library));
        let links: Vec<PathBuf> = last.map(|(link, _)| link.clone()).collect();
        let others = &trail.links[..trail.links.len() - links.len()];
        self.seen.extend(others.iter().map(|(link, _)| link.clone()));
        let name = links.last().map_or(library, PathBuf::as_path).to_owned();
        self.names.entry(library.to_owned()).or_default().insert(name, links);
    }

    /// The run follows or reads a link.
    pub fn follows(&mut self, link: &Path) {
        if !self.seen.contains(link) {
            self.seen.insert(link.to_owned());
        }
    }

    /// The run reads which files are mapped into its memory.
    pub fn sees_files(&mut self) {
        self.are_files_seen = true;
    }

    /// The name under which a library was opened; that of its file where there are several.
    pub fn of(&self, library: &Path) -> PathBuf {
        self.only_name(library).map_or(library, |(name, _)| name).to_owned()
    }

    /// The links that are no more than the names of libraries.
    pub fn links(&self) -> FxHashSet<&Path> {
        let links = self
            .names
            .keys()
            .filter_map(|library| self.only_name(library))
            .flat_map(|(_, links)| links);
        links.map(PathBuf::as_path).filter(|link| !self.seen.contains(*link)).collect()
    }

    fn only_name(&self, library: &Path) -> Option<(&Path, &[PathBuf])> {
        let names =
            self.names.get(library).filter(|names| names.len() == 1 && !self.are_files_seen)?;
        names.iter().next().map(|(name, links)| (name.as_path(), links.as_slice()))
    }
}

/// Whether a link leads to another name in the folder of a library.
fn is_beside(link: &Path, target: &Path, library: &Path) -> bool {
    link.parent() == library.parent()
        && target.file_name().map(OsStr::len) == Some(target.as_os_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(links: &[(&str, &str)]) -> Trail {
        let links = links
            .iter()
            .map(|(link, target)| (PathBuf::from(link), PathBuf::from(target)))
            .collect();
        Trail { links, ..Trail::default() }
    }

    #[test]
    fn links_beside_the_library_are_names() {
        let library = Path::new("/b/libx.so.5.4");
        let mut names = LibraryNames::default();
        names.opened(
            library,
            &trail(&[("/a", "b"), ("/b/libx.so", "libx.so.5"), ("/b/libx.so.5", "libx.so.5.4")]),
        );
        assert_eq!(names.of(library), Path::new("/b/libx.so"));
        assert_eq!(names.links().len(), 2);
        names.follows(Path::new("/b/libx.so"));
        assert_eq!(names.links(), FxHashSet::from_iter([Path::new("/b/libx.so.5")]));
        names.opened(library, &Trail::default());
        assert_eq!(names.of(library), library);
        assert!(names.links().is_empty(), "two names may become two libraries");
    }

    #[test]
    fn links_to_other_folders_count() {
        let library = Path::new("/b/libx.so.5.4");
        let mut names = LibraryNames::default();
        names.opened(
            library,
            &trail(&[("/a/libx.so", "../b/libx.so"), ("/b/libx.so", "/b/libx.so.5.4")]),
        );
        assert_eq!((names.of(library), names.links().len()), (library.to_owned(), 0));
    }

    #[test]
    fn files_count_for_those_who_see_their_names() {
        let library = Path::new("/b/libx.so.5.4");
        let mut names = LibraryNames::default();
        names.opened(library, &trail(&[("/b/libx.so.5", "libx.so.5.4")]));
        names.sees_files();
        assert_eq!((names.of(library), names.links().len()), (library.to_owned(), 0));
    }
}
