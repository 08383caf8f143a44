//! The end of a run's account: whether what was met first is still so, and what the run leaves behind.
//!
//! In: the ledger of a run that has ended. Out: its uses, sorted, and its refusals.

use super::content::Identity;
use super::ledger::{CHANGED, Entry, First, Ledger, Sight, Touch, uses};
use super::policy;
use super::used::{Kind, Use, What, is_absence};
use crate::model::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// More files than this are not worth keeping.
const MOST_LEFT_BEHIND: usize = 10_000;

impl Ledger {
    /// Closes the account.
    pub fn close(mut self) -> (Vec<Use>, Vec<Refusal<'static>>) {
        let changed: Vec<PathBuf> = self.changed_by_others();
        for path in changed {
            self.refuse_path(&path, CHANGED);
        }
        let mut used = self.left_behind();
        used.extend(self.entries.iter().flat_map(|(path, entry)| uses(path, entry, &self.loads)));
        let links = self.links.drain().map(|(path, target)| Use::Link { path, target });
        used.extend(links);
        used.sort_unstable();
        used.dedup();
        self.contents.remember();
        (used, self.refusals)
    }

    /// What is not as it was met, and not by the run's own doing.
    fn changed_by_others(&self) -> Vec<PathBuf> {
        let entries = self.entries.iter().filter(|(path, entry)| !self.still_holds(path, entry)).map(|(path, _)| path);
        let links = self
            .links
            .iter()
            .filter(|(path, target)| !self.is_own(path) && !fs::read_link(path).is_ok_and(|now| now == **target));
        entries.chain(links.map(|(path, _)| path)).cloned().collect()
    }

    fn still_holds(&self, path: &Path, entry: &Entry) -> bool {
        if policy::is_pseudo(path) {
            return true;
        }
        let now = fs::symlink_metadata(path);
        if let (Some((first, identity)), Ok(now)) = (&entry.listing, &now) {
            let same = || self.effective_listing(path).is_ok_and(|now| now == *first);
            if !self.is_own(path) && Identity::of(now) != *identity && !same() {
                return false;
            }
        }
        if self.is_own(path) {
            return true;
        }
        match (&entry.first, now) {
            (First::Absent, now) => now.is_err_and(|error| is_absence(&error)),
            (First::Denied, _) => true,
            (First::There(..), Err(_)) => false,
            (First::There(identity, what), Ok(now)) => match entry.sight {
                sight if sight > Sight::Kind && what.kind == Kind::File => Identity::of(&now) == *identity,
                _ => Kind::of(now.file_type()) == what.kind,
            },
        }
    }

    /// What is there of the run's doing, and what is gone.
    fn left_behind(&mut self) -> Vec<Use> {
        let mut left = Vec::new();
        let touched: Vec<(PathBuf, Touch)> = self.touched.iter().map(|(path, touch)| (path.clone(), *touch)).collect();
        for (path, touch) in touched {
            match (fs::symlink_metadata(&path), touch) {
                (Ok(now), Touch::Changed(_, before)) if Identity::of(&now) == before => {}
                (Ok(now), _) if now.is_dir() => collect(&path, self.own_folders.contains(&path), &mut left),
                (Ok(now), _) if self.is_unchanged(&path, &now) => {}
                (Ok(now), _) => left.push(Use::Written { path, kind: Kind::of(now.file_type()) }),
                (Err(_), Touch::Changed(..)) => left.push(Use::Removed { path }),
                (Err(_), Touch::Made) => {}
            }
        }
        if left.len() > MOST_LEFT_BEHIND {
            self.refuse("files", format!("leaves more than {MOST_LEFT_BEHIND} files behind"));
            left.truncate(MOST_LEFT_BEHIND);
        }
        left
    }

    /// Opened for writing, but the same as before.
    fn is_unchanged(&mut self, path: &Path, now: &fs::Metadata) -> bool {
        let Some(Entry { first: First::There(_, what), content: Some(content), .. }) = self.entries.get(path) else {
            return false;
        };
        let (what, content) = (*what, *content);
        now.is_file() && What::of(now) == what && self.contents.of(path, now).is_ok_and(|now| now == content)
    }
}

/// A folder of the run's own, with everything below it.
fn collect(folder: &Path, whole: bool, left: &mut Vec<Use>) {
    left.push(Use::Written { path: folder.to_owned(), kind: Kind::Folder });
    let entries = whole.then(|| fs::read_dir(folder).ok()).flatten();
    for entry in entries.into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type().map(Kind::of) else { continue };
        match kind {
            _ if left.len() > MOST_LEFT_BEHIND => return,
            Kind::Folder => collect(&entry.path(), true, left),
            kind => left.push(Use::Written { path: entry.path(), kind }),
        }
    }
}
