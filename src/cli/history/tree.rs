//! The tree of our own in which commits are checked out, with their submodules as far as the user
//! has them.
//!
//! In: a repository that is only read. Out: folders with repositories of their own, which borrow
//! its objects.

use super::git::{git, part, path, text};
use anyhow::Context;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is borrowed of a repository: all of it is only read.
#[derive(Clone)]
pub struct Borrowed {
    /// The folder of git: objects, where they are cut off, the repositories of submodules.
    common: PathBuf,
    /// The user's checkout; submodules of old have their repositories there.
    checkout: PathBuf,
}

impl Borrowed {
    /// The repository of a checkout.
    pub fn of(common: &Path, checkout: &Path) -> Borrowed {
        Borrowed { common: common.to_owned(), checkout: checkout.to_owned() }
    }

    /// The repository of a submodule, if it was ever fetched.
    fn submodule(&self, name: &Path, place: &Path) -> Option<Borrowed> {
        let checkout = self.checkout.join(place);
        let folders = [self.common.join("modules").join(name), checkout.join(".git")];
        let common = folders.into_iter().find(|folder| folder.join("objects").is_dir())?;
        Some(Borrowed { common, checkout })
    }
}

/// Where commits are checked out.
pub struct Tree {
    pub root: PathBuf,
    prefix: PathBuf,
    borrowed: Borrowed,
}

impl Tree {
    /// A tree in a folder; the one that is there goes on being used.
    pub fn open(folder: &Path, prefix: &Path, borrowed: Borrowed) -> anyhow::Result<Tree> {
        let tree = Tree { root: folder.to_owned(), prefix: prefix.to_owned(), borrowed };
        // Nobody else works here: what lies there is of a git that was interrupted.
        ["index.lock", "HEAD.lock", "config.lock"]
            .iter()
            .for_each(|name| _ = fs::remove_file(folder.join(".git").join(name)));
        let alternates = folder.join(".git/objects/info/alternates");
        if alternates.exists() {
            return Ok(tree);
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let format = text(&git(
            &tree.borrowed.common,
            &["--git-dir=.", "rev-parse", "--show-object-format"],
        )?);
        // A template may have hooks.
        git(
            folder,
            &["init", "--quiet", "--template=", &format!("--object-format={}", format.trim())],
        )?;
        fs::create_dir_all(folder.join(".git/objects/info"))?;
        let shallow = tree.borrowed.common.join("shallow");
        if shallow.exists() {
            fs::copy(shallow, folder.join(".git/shallow"))?;
        }
        fs::write(alternates, alternate(&tree.borrowed.common.join("objects")))?;
        Ok(tree)
    }

    /// The folder of the project.
    pub fn project(&self) -> PathBuf {
        self.root.join(&self.prefix)
    }

    /// Checks out a commit. What is built stays, as far as it is no part of the commit and nothing
    /// of the commit is to lie there.
    pub fn check_out(&self, sha: &str) -> anyhow::Result<()> {
        let words = ["checkout", "--quiet", "--force", "--detach", sha];
        if git(&self.root, &words).is_err() {
            self.clean()?;
            git(&self.root, &words)?;
        }
        self.submodules().iter().try_for_each(|(tree, sha)| tree.check_out(sha))
    }

    /// The files below the project that differ between two commits, and others by their path from
    /// the root.
    pub fn differing(&self, before: &str, now: &str) -> anyhow::Result<Vec<String>> {
        let words =
            ["diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", before, now, "--"];
        let listed = git(&self.root, &words)?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(part);
        let below = |path: &Path| {
            text(path.strip_prefix(&self.prefix).unwrap_or(path).as_os_str().as_bytes())
        };
        Ok(paths.map(below).collect())
    }

    /// Removes all that is no part of the commit.
    pub fn clean(&self) -> anyhow::Result<()> {
        git(&self.root, &["clean", "-ffdxq"])?;
        self.submodules().iter().try_for_each(|(tree, _)| tree.clean())
    }

    /// The submodules of the commit that is checked out, with the commits that they are to be at.
    /// Those that the user never fetched are left out.
    fn submodules(&self) -> Vec<(Tree, String)> {
        if !self.root.join(".gitmodules").exists() {
            return Vec::new();
        }
        let listed = git(&self.root, &["ls-files", "--stage", "-z"]).unwrap_or_default();
        let links =
            listed.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"160000 "));
        links.filter_map(|line| self.submodule(line)).collect()
    }

    /// A line of the index: `COMMIT STAGE\tPATH`.
    fn submodule(&self, line: &[u8]) -> Option<(Tree, String)> {
        let place = part(line.splitn(2, |byte| *byte == b'\t').nth(1)?);
        let sha = text(line.split(|byte| *byte == b' ').next()?);
        let borrowed = self.borrowed.submodule(&self.submodule_name(place)?, place)?;
        Some((Tree::open(&self.root.join(place), Path::new(""), borrowed).ok()?, sha))
    }

    /// What the submodule at a path is called. A name that leads out of its folder is none.
    fn submodule_name(&self, place: &Path) -> Option<PathBuf> {
        let words =
            ["config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$"];
        let listed = git(&self.root, &words).ok()?;
        let mut entries = listed.split(|byte| *byte == 0).filter_map(|entry| {
            let end = entry.iter().position(|byte| *byte == b'\n')?;
            Some((&entry[..end], &entry[end + 1..]))
        });
        let (key, _) = entries.find(|(_, value)| *value == place.as_os_str().as_bytes())?;
        let name = path(key.strip_prefix(b"submodule.")?.strip_suffix(b".path")?);
        (!name.components().any(|part| part.as_os_str() == "..") && name.is_relative())
            .then_some(name)
    }
}

/// A line of git's list of other folders with objects: quoted as in C where the path has a line end.
fn alternate(path: &Path) -> Vec<u8> {
    let path = path.as_os_str().as_bytes();
    if !path.contains(&b'\n') {
        return [path, b"\n"].concat();
    }
    let quoted = path.iter().flat_map(|byte| match byte {
        b'\n' => b"\\n".to_vec(),
        b'"' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    });
    [b"\"".to_vec(), quoted.collect(), b"\"\n".to_vec()].concat()
}
