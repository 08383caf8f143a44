//! How far a replay has come, so that an interrupted one goes on where it was.
//!
//! In: commits as they are done. Out: those that were done before. One line of JSON each; a torn
//! last line counts as not done.

use super::repository::Listed;
use crate::report::history::Commit;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A replay's folder, which nobody else uses at the same time.
pub struct ReplayState {
    folder: PathBuf,
    done: File,
    _lock: File,
}

/// When the tests of a commit were started.
struct Begun {
    sha: String,
    time: u64,
}

impl ReplayState {
    /// Opens the folder. Gives what was done of these commits; what belongs to another list is
    /// removed.
    pub fn open(folder: &Path, commits: &[Listed]) -> anyhow::Result<(ReplayState, Vec<Commit>)> {
        let parent = folder.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let lock = File::create(folder.with_extension("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .context("another tasting history is at work here")?;
        let text = fs::read_to_string(folder.join(DONE)).unwrap_or_default();
        let done: Vec<Commit> = text.split_inclusive('\n').map_while(whole).collect();
        let fits = done.len() <= commits.len()
            && done.iter().zip(commits).all(|(done, listed)| done.sha == listed.sha);
        if !fits || done.is_empty() && !folder.join(BEGUN).exists() {
            let _ = fs::remove_dir_all(folder);
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let done = if fits { done } else { Vec::new() };
        // A torn line goes.
        let kept: usize = text.split_inclusive('\n').take(done.len()).map(str::len).sum();
        fs::write(folder.join(DONE), &text[..kept])?;
        let file = File::options().append(true).open(folder.join(DONE))?;
        Ok((ReplayState { folder: folder.to_owned(), done: file, _lock: lock }, done))
    }

    /// A commit is done.
    pub fn add(&mut self, commit: &Commit) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(commit)?;
        line.push(b'\n');
        Ok(self.done.write_all(&line)?)
    }

    /// The tests of a commit are about to start. Gives when they did: before an interruption, if
    /// there was one, for what was decided then must not be decided again.
    pub fn begin(&self, sha: &str, now: u64) -> anyhow::Result<u64> {
        if let Some(begun) = self.begun().filter(|begun| begun.sha == sha) {
            return Ok(begun.time);
        }
        fs::write(self.folder.join(BEGUN), format!("{sha} {now}\n"))?;
        Ok(now)
    }

    fn begun(&self) -> Option<Begun> {
        let text = fs::read_to_string(self.folder.join(BEGUN)).ok()?;
        let (sha, time) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Begun { sha: sha.to_owned(), time: time.parse().ok()? })
    }
}

fn whole(line: &str) -> Option<Commit> {
    serde_json::from_str(line.strip_suffix('\n')?).ok()
}

const DONE: &str = "done.jsonl";
const BEGUN: &str = "begun";

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(shas: &[&str]) -> Vec<Listed> {
        let one = |sha: &&str| Listed { sha: (*sha).to_owned(), time: 0, subject: String::new() };
        shas.iter().map(one).collect()
    }

    #[test]
    fn completed_steps_are_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let open = |shas: &[&str]| ReplayState::open(&place, &listed(shas)).unwrap();
        let (mut state, done) = open(&["a", "b"]);
        assert!(done.is_empty());
        assert_eq!(state.begin("a", 7).unwrap(), 7);
        state.add(&Commit { sha: "a".into(), ..Commit::default() }).unwrap();
        state.done.write_all(b"{\"sha\":").unwrap();
        assert!(ReplayState::open(&place, &listed(&["a"])).is_err(), "two at the same time");
        drop(state);
        let (state, done) = open(&["a", "b"]);
        assert_eq!(done.len(), 1);
        assert_eq!((state.begin("a", 9).unwrap(), state.begin("b", 9).unwrap()), (7, 9));
        drop(state);
        let (_, done) = open(&["b"]);
        assert!(done.is_empty());
    }
}
