//! Path resolution: the same walk over folders and symbolic links that the kernel is about to do
//! for a thread, with notes of what it passes on the way.
//!
//! In: the thread, the folder where the path starts, the bytes of the path. Out: the resolved path
//! without links, what is there, and a trail: the links that were followed, and the folders that
//! `..` left again.

use super::content::same_file;
use super::listing::Kind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// So many places may change under our eyes before folders are not remembered any more.
const MOST_UNSTEADY: usize = 64;

/// A place that a path leads to.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: PathBuf,
    pub found: Found,
}

/// What is at a place.
#[derive(Clone, Debug)]
pub enum Found {
    /// Something, which was not followed if it is a link.
    There(Metadata),
    /// Something that is no folder, and more of the path would have followed: nothing can be there.
    Blocks(Metadata),
    /// Nothing, in a folder that is there: a file could be made.
    Missing,
    /// Nothing, and more of the path would have followed: the place is the first that is missing.
    MissingFolder,
    /// It may not be looked at.
    Denied,
    /// Something of the thread's own that has no name: a pipe, a socket, memory.
    Nameless,
}

impl Place {
    /// The kind of what is there.
    pub fn kind(&self) -> Option<Kind> {
        match &self.found {
            Found::There(found) => Some(Kind::of(found.file_type())),
            _ => None,
        }
    }
}

/// What a walk met on its way.
#[derive(Debug, Default)]
pub struct Trail {
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Folders that have to be there for `..` to lead where it led.
    pub folders: Vec<PathBuf>,
    /// It went through `/proc`, where paths mean something else to each process.
    pub is_of_a_process: bool,
}

/// Walks paths, and knows which folders and links need no second look.
#[derive(Debug, Default)]
pub struct Resolver {
    folders: FxHashSet<PathBuf>,
    /// Links that were followed, and where they lead.
    links: FxHashMap<PathBuf, PathBuf>,
    unsteady: Vec<PathBuf>,
}

/// The walk in progress.
struct Walk {
    at: PathBuf,
    /// What is still to go, the next part last.
    rest: Vec<OsString>,
    trail: Trail,
    /// `/` at the end, or `follow`: a link at the end is followed.
    follow: bool,
    thread: u32,
}

/// What one step led to.
enum Step {
    Onward,
    Arrived(Found),
}

impl Resolver {
    /// Where `path` leads for this thread, from the folder `start`.
    pub fn walk(
        &mut self,
        thread: u32,
        start: PathBuf,
        path: &[u8],
        follow: bool,
    ) -> (Place, Trail) {
        let at = if path.first() == Some(&b'/') { PathBuf::from("/") } else { start };
        let follow = follow || path.ends_with(b"/") || path.ends_with(b"/.");
        let mut walk = Walk { at, rest: Vec::new(), trail: Trail::default(), follow, thread };
        walk.trail.is_of_a_process = is_in_proc(&walk.at);
        walk.push(path);
        let found = self.go(&mut walk);
        (Place { path: walk.at, found }, walk.trail)
    }

    fn go(&mut self, walk: &mut Walk) -> Found {
        while let Some(part) = walk.rest.pop() {
            if part == ".." {
                walk.trail.folders.push(walk.at.clone());
                walk.at.pop();
                continue;
            }
            walk.at.push(&part);
            walk.trail.is_of_a_process |= is_in_proc(&walk.at);
            if !walk.rest.is_empty() && self.folders.contains(&walk.at) {
                continue;
            }
            if let Step::Arrived(found) = self.step(walk) {
                return found;
            }
        }
        look(&walk.at)
    }

    /// Looks at the part that was just entered.
    fn step(&mut self, walk: &mut Walk) -> Step {
        let last = walk.rest.is_empty();
        if walk.enters_itself() {
            return Step::Onward;
        }
        if let Some(target) = self.links.get(&walk.at).filter(|_| !last || walk.follow) {
            return walk.go_on_at(target.clone());
        }
        let found = match fs::symlink_metadata(&walk.at) {
            Ok(found) => found,
            Err(error) => return Step::Arrived(absence(&error, last)),
        };
        if found.is_symlink() && (!last || walk.follow) {
            let link = walk.at.clone();
            let Ok(target) = fs::read_link(&link) else { return Step::Arrived(Found::Denied) };
            if is_magic(&link) {
                return walk.jump(target);
            }
            if self.is_steady(&link) {
                self.links.insert(link, target.clone());
            }
            return walk.go_on_at(target);
        }
        if last {
            return Step::Arrived(Found::There(found));
        }
        if !found.is_dir() {
            return Step::Arrived(Found::Blocks(found));
        }
        if self.is_steady(&walk.at) {
            self.folders.insert(walk.at.clone());
        }
        Step::Onward
    }

    /// What is there may be looked up from memory. What is below /proc comes and goes with
    /// processes.
    fn is_steady(&self, path: &Path) -> bool {
        let is_spared = || !self.unsteady.iter().any(|unsteady| path.starts_with(unsteady));
        self.unsteady.len() <= MOST_UNSTEADY && is_spared() && !path.starts_with("/proc")
    }

    /// Something that may be a folder or a link is about to be removed, renamed or replaced. It is
    /// not looked up from memory again, because the change happens some time after we hear of it.
    pub fn forget(&mut self, path: &Path) {
        if self.unsteady.len() <= MOST_UNSTEADY
            && !self.unsteady.iter().any(|other| path.starts_with(other))
        {
            self.unsteady.push(path.to_owned());
        }
        let is_spared =
            |known: &Path| self.unsteady.len() <= MOST_UNSTEADY && !known.starts_with(path);
        self.folders.retain(|folder| is_spared(folder));
        self.links.retain(|link, _| is_spared(link));
    }
}

impl Walk {
    /// Puts the parts of a path in front of what is still to go.
    fn push(&mut self, path: &[u8]) {
        let parts =
            path.split(|&byte| byte == b'/').rev().filter(|part| !part.is_empty() && *part != b".");
        self.rest.extend(parts.map(|part| OsStr::from_bytes(part).to_owned()));
    }

    /// `/proc/self` means the thread that asks, not us.
    fn enters_itself(&mut self) -> bool {
        if !self.at.as_os_str().as_bytes().starts_with(b"/proc/")
            || (self.rest.is_empty() && !self.follow)
        {
            return false;
        }
        match self.at.as_os_str().as_bytes() {
            b"/proc/self" => self.at = PathBuf::from(format!("/proc/{}", self.thread)),
            b"/proc/thread-self" => {
                self.at = PathBuf::from(format!("/proc/{0}/task/{0}", self.thread))
            }
            _ => return false,
        }
        true
    }

    /// Goes on where a link leads.
    fn go_on_at(&mut self, target: PathBuf) -> Step {
        if self.trail.links.len() >= MOST_LINKS {
            return Step::Arrived(Found::Denied);
        }
        self.push(target.as_os_str().as_bytes());
        let link = self.at.clone();
        match target.is_absolute() {
            true => self.at = PathBuf::from("/"),
            false => _ = self.at.pop(),
        }
        self.trail.links.push((link, target));
        Step::Onward
    }

    /// Links of `/proc/PID` lead to the thing itself, whatever it is called.
    fn jump(&mut self, target: PathBuf) -> Step {
        match (fs::metadata(&self.at), fs::symlink_metadata(&target)) {
            (Ok(one), Ok(other)) if target.is_absolute() && same_file(&one, &other) => {
                self.at = target;
                Step::Onward
            }
            _ => Step::Arrived(Found::Nameless),
        }
    }
}

fn is_in_proc(path: &Path) -> bool {
    path.as_os_str().as_bytes().starts_with(b"/proc")
}

/// Whether a link is one of `/proc/PID/{cwd,root,exe}`, `fd/N`, `map_files/…`, `ns/…`: not a text
/// but the thing.
fn is_magic(path: &Path) -> bool {
    let mut parts = path.components().skip(1).filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    parts.next() == Some("proc")
        && parts.next().is_some_and(|process| process.parse::<u32>().is_ok())
}

/// What is at a place that no link leads away from.
fn look(path: &Path) -> Found {
    fs::symlink_metadata(path).map_or_else(|error| absence(&error, true), Found::There)
}

fn absence(error: &io::Error, last: bool) -> Found {
    match error.kind() {
        io::ErrorKind::NotFound if last => Found::Missing,
        io::ErrorKind::NotFound => Found::MissingFolder,
        // A name that is too long, or a file where a folder would have to be: nothing can be there.
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Found::MissingFolder,
        _ => Found::Denied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn walk(start: &Path, path: &str, follow: bool) -> (Place, Trail) {
        Resolver::default().walk(std::process::id(), start.to_owned(), path.as_bytes(), follow)
    }

    #[test]
    fn links_are_followed_and_noted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a", root.join("one")).unwrap();
        symlink("one/b", root.join("two")).unwrap();
        symlink("two/file", root.join("three")).unwrap();
        let (place, trail) = walk(&root, "./three", true);
        assert_eq!(place.path, root.join("a/b/file"));
        assert_eq!(place.kind(), Some(Kind::File));
        let links: Vec<_> =
            trail.links.iter().map(|(link, _)| link.strip_prefix(&root).unwrap()).collect();
        assert_eq!(links, [Path::new("three"), Path::new("two"), Path::new("one")]);
        assert_eq!(walk(&root, "three", false).0.kind(), Some(Kind::Link));
        assert_eq!(walk(&root, "one/", false).0.path, root.join("a"));
        let (place, trail) = walk(&root, "one/b/../../one/x/y", true);
        assert_eq!(place.path, root.join("a/x"));
        assert!(matches!(place.found, Found::MissingFolder));
        assert_eq!(trail.folders, [root.join("a/b"), root.join("a")]);
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("file"), "").unwrap();
        let (place, _) = walk(&root, "file/x", true);
        assert_eq!((place.path.clone(), place.kind()), (root.join("file"), None));
        assert!(matches!(place.found, Found::Blocks(_)));
    }

    #[test]
    fn own_links_of_proc_lead_to_the_thing() {
        let (place, trail) = walk(Path::new("/"), "/proc/self/cwd/Cargo.toml", true);
        assert_eq!(place.path, std::env::current_dir().unwrap().join("Cargo.toml"));
        assert!(trail.links.is_empty());
        let (place, _) = walk(Path::new("/"), "/proc/self/status", true);
        assert_eq!(place.path, PathBuf::from(format!("/proc/{}/status", std::process::id())));
    }
}
