//! Undoes a run: removes what it made, and restores what it changed or removed, with attributes and
//! times.
//!
//! In: originals. Out: the files as they were before the run. Nothing is touched if it is clear
//! beforehand that undoing will fail.

use super::content::Identity;
use super::originals::{Attributes, Content, Original, Originals, Times, extended};
use rustix::fs::{
    AtFlags, CWD, Gid, Timespec, Timestamps, Uid, XattrFlags, chownat, lremovexattr, lsetxattr,
    utimensat,
};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

impl Originals {
    /// Makes everything as it was before the run.
    pub fn put_back(&self) -> Result<(), String> {
        if let Some(obstacle) = self.obstacle() {
            return Err(obstacle.to_owned());
        }
        self.check()?;
        self.put_all_back()
            .map_err(|(path, error)| format!("{} cannot be put back: {error}", path.display()))
    }

    /// Looks for what would go wrong.
    fn check(&self) -> Result<(), String> {
        for (old, _) in &self.moved {
            if fs::symlink_metadata(old).is_ok() && !is_empty_folder(old) {
                return Err(format!(
                    "{} was renamed, and something else is there now",
                    old.display()
                ));
            }
        }
        for (path, original) in &self.known {
            let now = fs::symlink_metadata(path).ok();
            let was_folder = matches!(original, Original::Folder(_))
                || self.moved.iter().any(|(_, new)| new == path);
            if now.as_ref().is_some_and(fs::Metadata::is_dir) && !was_folder {
                self.check_entries(path)?;
            }
            if let Original::File(attributes, _) = original
                && attributes.links > 1
                && now.is_none_or(|now| (now.dev(), now.ino()) != attributes.file)
            {
                return Err(format!("{} had other names, and was replaced", path.display()));
            }
        }
        Ok(())
    }

    /// All that is in a folder that the run has made has to be of its making, too.
    fn check_entries(&self, folder: &Path) -> Result<(), String> {
        let moved_here = |path: &PathBuf| self.moved.iter().any(|(_, new)| new == path);
        let entries =
            fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        match entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| !self.known.contains_key(path) && !moved_here(path))
        {
            Some(path) => {
                Err(format!("{} is in a folder of the test, and not by its doing", path.display()))
            }
            None => Ok(()),
        }
    }

    fn put_all_back(&self) -> Result<(), (PathBuf, io::Error)> {
        for (old, new) in self.moved.iter().rev() {
            fs::rename(new, old).map_err(|error| (old.clone(), error))?;
        }
        let mut known: Vec<(&PathBuf, &Original)> = self.known.iter().collect();
        // A path comes after all that it is in.
        known.sort_unstable_by_key(|(path, _)| *path);
        let each = |action: fn(&Path, &Original) -> io::Result<()>, is_upwards: bool| {
            let count = known.len();
            (0..count).map(|at| known[if is_upwards { count - 1 - at } else { at }]).try_for_each(
                |(path, original)| action(path, original).map_err(|error| (path.clone(), error)),
            )
        };
        each(remove_made, true)?;
        each(put_folder_back, false)?;
        each(put_file_back, false)?;
        each(finish_folder, true)?;
        for (folder, times) in &self.folders {
            // One that is gone, or not ours, has lost nothing but its times.
            let _ = set_times(folder, times);
        }
        Ok(())
    }
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn remove_made(path: &Path, original: &Original) -> io::Result<()> {
    match original {
        Original::Absent => remove(path),
        _ => Ok(()),
    }
}

fn put_folder_back(path: &Path, original: &Original) -> io::Result<()> {
    let Original::Folder(_) = original else { return Ok(()) };
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    remove(path)?;
    fs::create_dir(path)
}

fn put_file_back(path: &Path, original: &Original) -> io::Result<()> {
    let (attributes, content) = match original {
        Original::File(attributes, content) => (attributes, content),
        Original::Link(attributes, target) => {
            if !fs::read_link(path).is_ok_and(|now| now == *target) {
                remove(path)?;
                std::os::unix::fs::symlink(target, path)?;
            }
            set_owner(path, attributes)?;
            return set_times(path, &attributes.times);
        }
        Original::Absent | Original::Folder(_) => return Ok(()),
    };
    match fs::symlink_metadata(path) {
        Ok(now) if Identity::of(&now) == attributes.identity => return Ok(()),
        // The same file, which may have other names; or a new one, which got the number of one that
        // is gone.
        Ok(now) if now.is_file() && (now.dev(), now.ino()) == attributes.file => {
            fs::set_permissions(path, Permissions::from_mode(attributes.mode | 0o200))?;
        }
        _ => remove(path)?,
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    match content {
        Content::Here(bytes) => io::Write::write_all(&mut file, bytes)?,
        Content::Copy(copy) => _ = io::copy(&mut File::open(copy)?, &mut file)?,
    }
    drop(file);
    set_attributes(path, attributes)
}

fn finish_folder(path: &Path, original: &Original) -> io::Result<()> {
    match original {
        Original::Folder(attributes) => set_attributes(path, attributes),
        _ => Ok(()),
    }
}

/// Owner before mode: a change of owner takes the set-user-id bit away. Times at last.
fn set_attributes(path: &Path, attributes: &Attributes) -> io::Result<()> {
    set_owner(path, attributes)?;
    fs::set_permissions(path, Permissions::from_mode(attributes.mode))?;
    let now = extended(path)?;
    for (name, _) in
        now.iter().filter(|(name, _)| !attributes.extended.iter().any(|(other, _)| other == name))
    {
        lremovexattr(path, name.as_slice())?;
    }
    for (name, value) in attributes.extended.iter().filter(|pair| !now.contains(pair)) {
        lsetxattr(path, name.as_slice(), value, XattrFlags::empty())?;
    }
    set_times(path, &attributes.times)
}

fn set_owner(path: &Path, attributes: &Attributes) -> io::Result<()> {
    let (user, group) = attributes.owner;
    let now = fs::symlink_metadata(path)?;
    if (now.uid(), now.gid()) == (user, group) {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn set_times(path: &Path, times: &Times) -> io::Result<()> {
    let [last_access, last_modification] =
        times.map(|(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec });
    let times = Timestamps { last_access, last_modification };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
