//! The user's repository, which is only read, and the tree of our own in which its commits are
//! checked out.
//!
//! In: the folder at hand. Out: commits, and a tree that borrows the repository's objects: no
//! branch, no worktree, no setting of the repository is touched.

use super::git::{git, path, text};
use super::tree::{Borrowed, Tree};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// The repository of the folder at hand.
pub struct Repository {
    root: PathBuf,
    /// Where in it the project is.
    prefix: PathBuf,
    /// What a tree of our own borrows of it.
    borrowed: Borrowed,
}

/// A commit to be replayed.
pub struct Listed {
    pub sha: String,
    /// Seconds since 1970.
    pub time: u64,
    pub subject: String,
}

impl Repository {
    /// Finds the repository.
    pub fn here() -> anyhow::Result<Repository> {
        let folder = std::env::current_dir().context("there is no folder to be in")?;
        let ask = |what: &str| {
            git(&folder, &["rev-parse", "--path-format=absolute", what]).map(|said| path(&said))
        };
        let common = ask("--git-common-dir").context("this folder is in no git repository")?;
        let root = ask("--show-toplevel")
            .context("a bare repository has no project: run this in a checkout")?;
        let prefix = path(&git(&folder, &["rev-parse", "--show-prefix"])?);
        Ok(Repository { borrowed: Borrowed::of(&common, &root), root, prefix })
    }

    /// The folder of the project: the one at hand.
    pub fn project(&self) -> PathBuf {
        self.root.join(&self.prefix)
    }

    /// The commits of a range, or the last ones, oldest first.
    pub fn commits(
        &self,
        range: Option<&str>,
        last: usize,
        first_parent: bool,
    ) -> anyhow::Result<Vec<Listed>> {
        let last = format!("--max-count={last}");
        let mut words =
            vec!["log", "--topo-order", "--no-show-signature", "-z", "--format=%H %ct %s"];
        words.extend(first_parent.then_some("--first-parent"));
        words.push(if range.is_some() { "--no-color" } else { &last });
        words.extend(["--end-of-options", range.unwrap_or("HEAD"), "--"]);
        let listed = text(&git(&self.root, &words)?);
        let mut commits: Vec<Listed> = listed.split('\0').filter_map(parse).collect();
        commits.reverse();
        Ok(commits)
    }

    /// A tree of our own in a folder; the one that is there goes on being used.
    pub fn tree(&self, folder: &Path) -> anyhow::Result<Tree> {
        Tree::open(folder, &self.prefix, self.borrowed.clone())
    }
}

fn parse(line: &str) -> Option<Listed> {
    let mut words = line.trim_start_matches('\n').splitn(3, ' ');
    let (sha, time) = (words.next().filter(|sha| !sha.is_empty())?, words.next()?.parse().ok()?);
    Some(Listed { sha: sha.to_owned(), time, subject: words.next().unwrap_or_default().to_owned() })
}
