//! A folder with all that is in it, held in memory: taken from the disk, changed, put there again,
//! compared.
//!
//! A test is run plainly and under Tasting in the same place, from the same tree; what it leaves
//! behind are two trees.

use crate::process;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, lgetxattr,
    llistxattr, lsetxattr, mknodat, utimensat,
};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

/// What files of the beginning are said to have been written at: 3 February 2001.
pub const LONG_AGO: i64 = 981_158_400;
/// Times before this one (2020) were set by somebody; later ones are of the run, and differ.
const RECENT: i64 = 1_577_836_800;

/// What lies at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    File(Arc<[u8]>),
    Link(String),
    Folder,
    Fifo,
    /// Another name of the file at this path, which comes before it.
    Twin(String),
    /// Sockets and devices: compared by their kind, never put there again.
    Other(u32),
}

/// Something in a tree, with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: NodeKind,
    pub mode: u32,
    pub owner: (u32, u32),
    /// Seconds and nanoseconds.
    pub time: (i64, i64),
    pub attributes: BTreeMap<String, Vec<u8>>,
}

impl Node {
    pub fn new(kind: NodeKind, mode: u32) -> Node {
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Node { kind, mode, owner, time: (LONG_AGO, 0), attributes: BTreeMap::new() }
    }

    /// The same, as far as two runs of one test can agree.
    fn agrees(&self, other: &Node, by_time: bool) -> bool {
        let is_set = |node: &Node| by_time && node.time.0 < RECENT && node.kind != NodeKind::Folder;
        let set = |node: &Node| is_set(node).then_some(node.time.0);
        (&self.kind, self.mode, self.owner, &self.attributes)
            == (&other.kind, other.mode, other.owner, &other.attributes)
            && set(self) == set(other)
    }

    fn describe(&self) -> String {
        let kind = match &self.kind {
            NodeKind::File(bytes) if bytes.len() > 300 => format!("file of {} bytes", bytes.len()),
            NodeKind::File(bytes) => format!("file {:?}", String::from_utf8_lossy(bytes)),
            other => format!("{other:?}"),
        };
        let time = if self.time.0 < RECENT { self.time.0.to_string() } else { "recent".to_owned() };
        let attributes = if self.attributes.is_empty() {
            String::new()
        } else {
            format!(" {:?}", self.attributes)
        };
        format!("{kind} mode {:o} owner {:?} time {time}{attributes}", self.mode, self.owner)
    }
}

/// Everything below a folder, by its path from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// What is below a folder now.
    pub fn take(folder: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.add(folder, "", &mut HashMap::new())?;
        Ok(tree)
    }

    fn add(
        &mut self,
        folder: &Path,
        name: &str,
        seen: &mut HashMap<u64, String>,
    ) -> io::Result<()> {
        let mut names: Vec<String> = fs::read_dir(folder.join(name))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort_unstable();
        for entry in names {
            let name = if name.is_empty() { entry } else { format!("{name}/{entry}") };
            let path = folder.join(&name);
            let node = node(&path, &name, seen)?;
            let is_folder = node.kind == NodeKind::Folder;
            self.nodes.insert(name.clone(), node);
            if is_folder {
                self.add(folder, &name, seen)?;
            }
        }
        Ok(())
    }

    /// Makes `folder`, in which there is `now`, hold this tree. What is the same already is left
    /// alone.
    pub fn put(&self, folder: &Path, now: &Tree) -> io::Result<()> {
        let has_twins =
            |tree: &Tree| tree.nodes.values().any(|node| matches!(node.kind, NodeKind::Twin(_)));
        let anew = has_twins(self) || has_twins(now);
        let is_kept = |name: &String, node: &Node| {
            let wanted = self.nodes.get(name);
            let same = wanted == Some(node) && !matches!(node.kind, NodeKind::Other(_));
            wanted.is_some_and(|wanted| {
                wanted.kind == NodeKind::Folder && node.kind == NodeKind::Folder
            }) || same && !anew
        };
        for (name, node) in now.nodes.iter().rev() {
            if !is_kept(name, node) {
                remove(&folder.join(name), node)?;
            }
        }
        let (twins, others): (Vec<_>, Vec<_>) =
            self.nodes.iter().partition(|(_, node)| matches!(node.kind, NodeKind::Twin(_)));
        for (name, node) in others.into_iter().chain(twins) {
            let known = now.nodes.get(name).filter(|known| is_kept(name, known));
            if known != Some(node) {
                make(folder, name, node, known.is_none())?;
            }
        }
        Ok(())
    }

    pub fn set(&mut self, name: &str, kind: NodeKind, mode: u32) {
        self.nodes.insert(name.to_owned(), Node::new(kind, mode));
    }

    pub fn write(&mut self, name: &str, content: impl AsRef<[u8]>, mode: u32) {
        self.set(name, NodeKind::File(content.as_ref().into()), mode);
    }

    /// Takes something away, with all that is below it.
    pub fn remove(&mut self, name: &str) {
        let below = format!("{name}/");
        self.nodes.retain(|path, _| path != name && !path.starts_with(&below));
        let is_there = self.nodes.clone();
        self.nodes.retain(
            |_, node| !matches!(&node.kind, NodeKind::Twin(first) if !is_there.contains_key(first)),
        );
    }

    /// A line for each path at which two trees differ.
    pub fn differences(&self, other: &Tree, by_time: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, node) in &self.nodes {
            match other.nodes.get(name) {
                None => lines.push(format!("{name}: only plainly: {}", node.describe())),
                Some(given) if !node.agrees(given, by_time) => {
                    lines.push(format!(
                        "{name}: plainly {}; given {}",
                        node.describe(),
                        given.describe()
                    ));
                }
                Some(_) => {}
            }
        }
        for (name, node) in other.nodes.iter().filter(|(name, _)| !self.nodes.contains_key(*name)) {
            lines.push(format!("{name}: only given: {}", node.describe()));
        }
        lines
    }
}

fn node(path: &Path, name: &str, seen: &mut HashMap<u64, String>) -> io::Result<Node> {
    let metadata = fs::symlink_metadata(path)?;
    let sort = metadata.file_type();
    let kind = if sort.is_symlink() {
        NodeKind::Link(fs::read_link(path)?.to_string_lossy().into_owned())
    } else if sort.is_dir() {
        NodeKind::Folder
    } else if sort.is_file() {
        let first =
            (metadata.nlink() > 1).then(|| seen.insert(metadata.ino(), name.to_owned())).flatten();
        match first {
            Some(first) => {
                seen.insert(metadata.ino(), first.clone());
                NodeKind::Twin(first)
            }
            None => NodeKind::File(fs::read(path)?.into()),
        }
    } else if FileType::from_raw_mode(metadata.mode()) == FileType::Fifo {
        NodeKind::Fifo
    } else {
        NodeKind::Other(metadata.mode() & 0o170_000)
    };
    Ok(Node {
        kind,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        time: (metadata.mtime(), metadata.mtime_nsec()),
        attributes: if sort.is_symlink() { BTreeMap::new() } else { attributes(path)? },
    })
}

fn attributes(path: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut names = [0; 1024];
    // Not every file system has them.
    let Ok(length) = llistxattr(path, &mut names) else { return Ok(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let name = String::from_utf8_lossy(name).into_owned();
        let mut value = [0; 1024];
        let length = lgetxattr(path, &*name, &mut value)?;
        found.insert(name, value[..length].to_vec());
    }
    Ok(found)
}

fn remove(path: &Path, node: &Node) -> io::Result<()> {
    if node.kind == NodeKind::Folder { fs::remove_dir(path) } else { fs::remove_file(path) }
}

fn make(folder: &Path, name: &str, node: &Node, is_new: bool) -> io::Result<()> {
    let path = &folder.join(name);
    match &node.kind {
        NodeKind::File(bytes) if node.mode & 0o111 != 0 => {
            process::writing(|| fs::write(path, bytes))?
        }
        NodeKind::File(bytes) => fs::write(path, bytes)?,
        NodeKind::Link(target) => symlink(target, path)?,
        NodeKind::Folder if is_new => fs::create_dir(path)?,
        NodeKind::Folder => {}
        NodeKind::Fifo => mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
        NodeKind::Twin(first) => return fs::hard_link(folder.join(first), path),
        NodeKind::Other(_) => return Ok(()),
    }
    for (name, value) in &node.attributes {
        lsetxattr(path, name.as_str(), value, XattrFlags::empty())?;
    }
    if rustix::process::getuid().is_root() {
        let (user, group) = (Uid::from_raw(node.owner.0), Gid::from_raw(node.owner.1));
        chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if !matches!(node.kind, NodeKind::Link(_)) {
        fs::set_permissions(path, fs::Permissions::from_mode(node.mode))?;
    }
    if node.kind == NodeKind::Folder {
        return Ok(());
    }
    let time = Timespec { tv_sec: node.time.0, tv_nsec: node.time.1 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_back_as_it_was_put() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        tree.set("a", NodeKind::Folder, 0o755);
        tree.write("a/x", "text", 0o640);
        tree.set("a/y", NodeKind::Twin("a/x".to_owned()), 0o640);
        tree.set("fifo", NodeKind::Fifo, 0o600);
        tree.set("link", NodeKind::Link("a/x".to_owned()), 0o777);
        tree.put(folder.path(), &Tree::default()).unwrap();
        let first = Tree::take(folder.path()).unwrap();
        assert_eq!(tree.differences(&first, true).len(), 0);
        fs::write(folder.path().join("a/x"), "other").unwrap();
        fs::remove_file(folder.path().join("link")).unwrap();
        let second = Tree::take(folder.path()).unwrap();
        // The file by both of its names, and the link.
        assert_eq!(first.differences(&second, true).len(), 3);
        tree.put(folder.path(), &second).unwrap();
        let third = Tree::take(folder.path()).unwrap();
        assert_eq!(first.differences(&third, true), Vec::<String>::new());
    }
}
