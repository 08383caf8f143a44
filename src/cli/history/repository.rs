//! The user's repository, which is only read, and the tree of our own in which its commits are checked out.
//!
//! In: the folder at hand. Out: commits, and a tree that borrows the repository's objects: no branch, no worktree, no setting
//! of the repository is touched.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository of the folder at hand.
pub struct Repository {
    root: PathBuf,
    /// Where in it the project is.
    prefix: PathBuf,
    /// Its objects, and where it is cut off.
    objects: PathBuf,
    shallow: PathBuf,
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
        let ask = |what: &str| -> anyhow::Result<String> {
            let said = git(&folder, &["rev-parse", "--path-format=absolute", what])?;
            Ok(said.trim_end_matches('\n').to_owned())
        };
        let common = PathBuf::from(ask("--git-common-dir").context("this folder is in no git repository")?);
        let root = PathBuf::from(ask("--show-toplevel")?);
        let prefix = PathBuf::from(git(&folder, &["rev-parse", "--show-prefix"])?.trim_end_matches('\n'));
        Ok(Repository { root, prefix, objects: common.join("objects"), shallow: common.join("shallow") })
    }

    /// The folder of the project: the one at hand.
    pub fn project(&self) -> PathBuf {
        self.root.join(&self.prefix)
    }

    /// The commits of a range, or the last ones, oldest first.
    pub fn commits(&self, range: Option<&str>, last: usize, first_parent: bool) -> anyhow::Result<Vec<Listed>> {
        let last = format!("--max-count={last}");
        let mut words = vec!["log", "--topo-order", "--no-show-signature", "-z", "--format=%H %ct %s"];
        words.extend(first_parent.then_some("--first-parent"));
        words.push(if range.is_some() { "--no-color" } else { &last });
        words.extend(["--end-of-options", range.unwrap_or("HEAD"), "--"]);
        let listed = git(&self.root, &words)?;
        let mut commits: Vec<Listed> = listed.split('\0').filter_map(parse).collect();
        commits.reverse();
        Ok(commits)
    }

    /// A tree of our own in a folder; the one that is there goes on being used.
    pub fn tree(&self, folder: &Path) -> anyhow::Result<Tree> {
        let tree = Tree { root: folder.to_owned(), prefix: self.prefix.clone() };
        if folder.join(".git/objects/info/alternates").exists() {
            return Ok(tree);
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // A template may have hooks.
        git(folder, &["init", "--quiet", "--template="])?;
        fs::create_dir_all(folder.join(".git/objects/info"))?;
        if self.shallow.exists() {
            fs::copy(&self.shallow, folder.join(".git/shallow"))?;
        }
        fs::write(folder.join(".git/objects/info/alternates"), format!("{}\n", self.objects.display()))?;
        Ok(tree)
    }
}

fn parse(line: &str) -> Option<Listed> {
    let mut words = line.trim_start_matches('\n').splitn(3, ' ');
    let (sha, time) = (words.next().filter(|sha| !sha.is_empty())?, words.next()?.parse().ok()?);
    Some(Listed { sha: sha.to_owned(), time, subject: words.next().unwrap_or_default().to_owned() })
}

/// Where commits are checked out.
pub struct Tree {
    pub root: PathBuf,
    prefix: PathBuf,
}

impl Tree {
    /// The folder of the project.
    pub fn project(&self) -> PathBuf {
        self.root.join(&self.prefix)
    }

    /// Checks out a commit. What is built stays, as far as it is no part of the commit.
    pub fn check_out(&self, sha: &str) -> anyhow::Result<()> {
        git(&self.root, &["checkout", "--quiet", "--force", "--detach", sha]).map(|_| ())
    }

    /// Removes all that is no part of the commit.
    pub fn clean(&self) -> anyhow::Result<()> {
        git(&self.root, &["clean", "-ffdxq"]).map(|_| ())
    }
}

/// What git says.
fn git(folder: &Path, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", "-c", "gc.auto=0"]).args(words);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
        command.env_remove(variable);
    }
    // Not even an index is refreshed.
    command.env("GIT_OPTIONAL_LOCKS", "0").current_dir(folder).stdin(Stdio::null());
    let said = command.output().context("git cannot be run")?;
    if !said.status.success() {
        bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}
