//! A remote store in a folder that machines share, for instance on NFS. Files are written
//! atomically; there is no lock that a crashed host could hold.

use super::location::{Attributes, Layout};
use super::{Backend, Fetched, Listed, Name};
use crate::store::store_file::{self, SUFFIX, TemporaryFile};
use std::fs::{self, FileTimes, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file being written that is older belongs to nobody any more.
const ABANDONED: Duration = Duration::from_secs(3600);

pub struct Folder {
    root: PathBuf,
    attributes: Attributes,
    layout: Layout,
    largest: usize,
    umask: Option<u32>,
    is_read_only: bool,
}

impl Folder {
    pub fn new(path: PathBuf, attributes: &Attributes) -> Folder {
        let root =
            if attributes.namespace.is_empty() { path } else { path.join(&attributes.namespace) };
        let Attributes { layout, largest, umask, .. } = *attributes;
        let is_read_only = attributes.read_only == Some(true);
        Folder { root, layout, largest, umask, is_read_only, attributes: attributes.clone() }
    }

    fn path(&self, name: Name) -> PathBuf {
        let file = name.file();
        match self.layout {
            Layout::Flat => self.root.join(file),
            _ => self.root.join(&file[..2]).join(&file[2..]),
        }
    }

    /// The name of a value's file. Other files are nobody's business.
    fn name(&self, path: &Path) -> Option<Name> {
        let file = path.file_name()?.to_str()?;
        match self.layout {
            Layout::Flat => Name::of_file(file),
            _ => Name::of_file(&format!("{}{file}", path.parent()?.file_name()?.to_str()?)),
        }
    }

    fn read(&self, name: Name) -> Result<Fetched, String> {
        let path = self.path(name);
        match store_file::read(&path, self.largest) {
            Ok(None) => Ok(Fetched::Missing),
            Ok(Some((bytes, file))) => {
                if self.attributes.lifetime(name.kind).is_some() && !self.is_read_only {
                    // Where it is not ours to change, whoever else uses it does so.
                    let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
                }
                Ok(Fetched::Value(bytes))
            }
            Err(error) => match fs::symlink_metadata(&path) {
                Ok(found) if !found.is_file() || found.len() > self.largest as u64 => {
                    Ok(Fetched::Bad(
                        "it is no plain file of the size that max-value allows".to_owned(),
                    ))
                }
                _ => Err(error.to_string()),
            },
        }
    }

    fn write(&self, name: Name, value: &[u8], replace: bool) -> Result<(), String> {
        let path = self.path(name);
        if !replace && path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.root);
        let is_new = self.umask.is_some() && !folder.exists();
        let temporary =
            TemporaryFile::write_public(folder, value).map_err(|error| error.to_string())?;
        if let Some(mask) = self.umask {
            let _ = fs::set_permissions(temporary.path(), Permissions::from_mode(0o666 & !mask));
            if is_new {
                let _ = fs::set_permissions(folder, Permissions::from_mode(0o777 & !mask));
            }
        }
        temporary.replace(&path).map_err(|error| error.to_string())
    }

    /// Every file below the root, with its length and the time of its last use.
    fn every(&self, visit: &mut dyn FnMut(&Path, &fs::Metadata)) -> Result<(), String> {
        let unreadable =
            |path: &Path, error| format!("{} cannot be listed: {error}", path.display());
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(&folder, error)),
            };
            for entry in entries.flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                // Two letters: what else lies there are the folders of other namespaces.
                let is_ours = entry.file_name().len() == 2
                    && folder == self.root
                    && self.layout != Layout::Flat;
                if metadata.is_dir() && is_ours {
                    folders.push(entry.path());
                } else if metadata.is_file() {
                    visit(&entry.path(), &metadata);
                }
            }
        }
        Ok(())
    }
}

impl Backend for Folder {
    fn get(&mut self, names: &[Name], first_hit_only: bool) -> Result<Vec<Fetched>, String> {
        let mut fetched = Vec::with_capacity(names.len());
        for name in names {
            fetched.push(self.read(*name)?);
            if first_hit_only && matches!(fetched.last(), Some(Fetched::Value(_))) {
                break;
            }
        }
        fetched.resize(names.len(), Fetched::Missing);
        Ok(fetched)
    }

    fn put(&mut self, values: &[(Name, Vec<u8>)], replace: bool) -> Result<(), String> {
        values.iter().try_for_each(|(name, value)| self.write(*name, value, replace))
    }

    fn remove(&mut self, names: &[Name]) -> Result<(), String> {
        for name in names {
            match fs::remove_file(self.path(*name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    fn touch(&mut self, names: &[Name]) -> Result<(), String> {
        for name in names {
            if let Ok(file) = store_file::open(&self.path(*name)) {
                let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
            }
        }
        Ok(())
    }

    fn list(&mut self, visit: &mut dyn FnMut(Listed)) -> Result<(), String> {
        self.every(&mut |path, metadata| {
            if let Some(name) = self.name(path) {
                visit(Listed { name, bytes: metadata.len() });
            }
        })
    }

    fn clean(&mut self) -> Result<u64, String> {
        if self.attributes.expire.or(self.attributes.expire_objects).is_none() {
            return Err(
                "nothing is to be removed: the remote has no attribute expire, such as expire=30d"
                    .to_owned(),
            );
        }
        let mut removed = 0;
        self.every(&mut |path, metadata| {
            let age =
                metadata.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
            let is_left_over =
                path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes()) && age > ABANDONED;
            let longest = self.name(path).and_then(|name| self.attributes.lifetime(name.kind));
            let is_old = longest.is_some_and(|longest| age > longest);
            let is_gone = (is_old || is_left_over) && fs::remove_file(path).is_ok();
            removed += u64::from(is_gone && is_old);
        })?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hash;
    use crate::store::remote::location::{Endpoint, Location};

    fn folder(text: &str) -> Folder {
        let location = Location::parse(text).unwrap();
        let Endpoint::Folder(path) = location.endpoint else { panic!() };
        Folder::new(path, &location.attributes)
    }

    #[test]
    fn values_are_replaced_only_on_request() {
        let place = tempfile::tempdir().unwrap();
        for attributes in ["", " layout=flat namespace=n", " umask=002"] {
            let mut folder = folder(&format!("file:{}/new{attributes}", place.path().display()));
            let names = [Name::outcome(Hash::of(b"1")), Name::dependency_sets(Hash::of(b"1"))];
            assert_eq!(folder.get(&names, false).unwrap(), [Fetched::Missing, Fetched::Missing]);
            folder.put(&[(names[0], b"one".to_vec())], false).unwrap();
            folder
                .put(&[(names[0], b"two".to_vec()), (names[1], b"three".to_vec())], false)
                .unwrap();
            let value = |text: &[u8]| Fetched::Value(text.to_vec());
            assert_eq!(folder.get(&names, false).unwrap(), [value(b"one"), value(b"three")]);
            folder.put(&[(names[0], b"two".to_vec())], true).unwrap();
            assert_eq!(folder.get(&names, true).unwrap(), [value(b"two"), Fetched::Missing]);
            let mut listed = Vec::new();
            folder.list(&mut |found| listed.push((found.name, found.bytes))).unwrap();
            listed.sort();
            assert_eq!(listed, [(names[1], 5), (names[0], 3)]);
            folder.remove(&names).unwrap();
            folder.remove(&names).unwrap();
            assert_eq!(folder.get(&names, false).unwrap(), [Fetched::Missing, Fetched::Missing]);
        }
    }

    #[test]
    fn unused_values_expire_used_ones_stay() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = folder(&format!("file:{} expire=10d", place.path().display()));
        let names = [
            Name::outcome(Hash::of(b"1")),
            Name::outcome(Hash::of(b"2")),
            Name::outcome(Hash::of(b"3")),
        ];
        folder.put(&names.map(|name| (name, b"x".to_vec())), false).unwrap();
        let age = |name: Name| {
            let long_ago = SystemTime::now() - Duration::from_secs(11 * 24 * 3600);
            let file = fs::File::options().append(true).open(folder.path(name)).unwrap();
            file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
        };
        names.into_iter().for_each(age);
        folder.touch(&names[..1]).unwrap();
        folder.get(&names[1..2], false).unwrap();
        assert_eq!(folder.clean().unwrap(), 1);
        let left = folder.get(&names, false).unwrap();
        assert!(matches!(left[..], [Fetched::Value(_), Fetched::Value(_), Fetched::Missing]));
    }

    #[test]
    fn objects_can_have_an_end_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = folder(&format!("file:{} expire-objects=10d", place.path().display()));
        let names = [Name::outcome(Hash::of(b"1")), Name::object(Hash::of(b"1"))];
        folder.put(&names.map(|name| (name, b"x".to_vec())), false).unwrap();
        for name in names {
            let long_ago = SystemTime::now() - Duration::from_secs(11 * 24 * 3600);
            let file = fs::File::options().append(true).open(folder.path(name)).unwrap();
            file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
        }
        assert_eq!(folder.clean().unwrap(), 1);
        assert!(matches!(
            folder.get(&names, false).unwrap()[..],
            [Fetched::Value(_), Fetched::Missing]
        ));
    }

    #[test]
    fn large_values_are_damaged_and_files_no_folders() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = folder(&format!("file:{} max-value=10", place.path().display()));
        let names = [Name::outcome(Hash::of(b"1")), Name::outcome(Hash::of(b"2"))];
        folder.put(&[(names[0], vec![0; 11])], false).unwrap();
        fs::create_dir_all(folder.path(names[1])).unwrap();
        assert!(matches!(
            folder.get(&names, false).unwrap()[..],
            [Fetched::Bad(_), Fetched::Bad(_)]
        ));
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(self::folder(&format!("file:{}", file.display())).get(&names, false).is_err());
    }
}
